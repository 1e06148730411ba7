"""Synthetic board pictures: scans of artwork with defects drawn in, exact masks, true classes.

A defect's class is what it does to the copper, and is checked on the picture itself: a board is made of
pieces of copper (8-connected) and pieces of laminate (4-connected), and each class changes their numbers in
its own way. In pictures copper is black (0) and laminate white (255), as in DeepPCB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.results import BoxXyxy
from training.artwork import Mask, Points

BOX_MARGIN_PX = 10
"""Boxes are this much wider than the mask on each side: the median margin of DeepPCB's annotators."""
MIN_PIECE_PX = 80
"""An open leaves at least this much copper on both sides: what it cuts off is a conductor, not a crumb."""
MIN_DEPTH_PX = 4.0
MARGIN_PX = 3
"""A defect that is neither open nor short stays what it is when it grows by this much: no hair decides."""
TRIES = 200


@dataclass(frozen=True)
class DefectKind:
    """What a class of defect does to a board."""

    removes: bool
    """Takes copper away; else adds copper."""
    site: Literal["across", "inward", "inside"]
    """Where its stroke runs in what it changes: from side to side, in from an edge, or free of all edges."""
    pieces: int
    """Change in the number of pieces of copper."""
    voids: int | None
    """Change in the number of pieces of laminate; None: any."""


DEFECT_KINDS: dict[str, DefectKind] = {
    "open": DefectKind(removes=True, site="across", pieces=1, voids=None),
    "short": DefectKind(removes=False, site="across", pieces=-1, voids=None),
    "mousebite": DefectKind(removes=True, site="inward", pieces=0, voids=0),
    "spur": DefectKind(removes=False, site="inward", pieces=0, voids=0),
    "copper": DefectKind(removes=False, site="inside", pieces=1, voids=0),
    "pin-hole": DefectKind(removes=True, site="inside", pieces=0, voids=1),
}


@dataclass(frozen=True)
class DrawnDefects:
    """A board with defects. `copper` and each of the N masks are (H, W)."""

    copper: Mask
    boxes: NDArray[np.float32]
    """(N, 4) box_xyxy: the mask's bounds, `BOX_MARGIN_PX` wider on each side where the picture allows."""
    labels: tuple[str, ...]
    masks: tuple[Mask, ...]
    """Exactly the pixels that the defect changed."""


def draw_defects(
    copper: Mask,
    rng: np.random.Generator,
    count: int,
    *,
    kinds: Sequence[str] = tuple(DEFECT_KINDS),
    size_px: tuple[int, int] = (6, 25),
) -> DrawnDefects:
    """Draw `count` defects, fewer where the board has no room for more, apart from each other.

    Args:
        copper: (H, W), True where there is copper.
        size_px: least and most px of a defect's longer side.
    """
    copper, taken = copper.copy(), np.zeros_like(copper)
    boxes: list[BoxXyxy] = []
    labels: list[str] = []
    masks: list[Mask] = []
    for _ in range(count):
        for label in rng.permutation(list(kinds)).tolist():
            mask = _draw_one(copper, taken, rng, DEFECT_KINDS[label], size_px)
            if mask is not None:
                break
        else:
            break
        copper ^= mask
        left, top, right, bottom = box = _box_around(mask)
        taken[int(top) : int(bottom), int(left) : int(right)] = True
        boxes.append(box)
        labels.append(label)
        masks.append(mask)
    return DrawnDefects(copper, np.array(boxes, np.float32).reshape(-1, 4), tuple(labels), tuple(masks))


def scan(copper: Mask, rng: np.random.Generator, *, shift_px: float = 0.5) -> Mask:
    """Binarise artwork as a scanner would: frayed edges, a slight turn, a shift up to `shift_px`."""
    height, width = copper.shape
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), rng.uniform(-0.05, 0.05), 1.0)
    turn = turn + np.array([[0.0, 0.0, 1.0]]) * rng.uniform(-shift_px, shift_px, (2, 1))
    soft = cv2.GaussianBlur(copper.astype(np.float32), (0, 0), 1.0)
    soft = cv2.warpAffine(
        soft, turn, (width, height), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    noise = rng.standard_normal((2, height, width), dtype=np.float32)
    # Slow noise bends edges over some 10 px, fast noise frays them; both stay well under a pixel.
    slow = cv2.GaussianBlur(noise[0], (0, 0), 4.0) * 1.2
    return np.asarray(soft + slow + 0.05 * noise[1] > 0.5)


def _draw_one(
    copper: Mask, taken: Mask, rng: np.random.Generator, kind: DefectKind, size_px: tuple[int, int]
) -> Mask | None:
    """The pixels to flip for one defect of this kind, or None where no try fits."""
    material = copper if kind.removes else ~copper
    depth = np.asarray(cv2.distanceTransform(material.astype(np.uint8), cv2.DIST_L2, 5), np.float32)
    sites = _sites(material, depth, kind, size_px)
    sites[taken] = False
    rows, columns = np.nonzero(sites)
    before = _count_pieces(copper)
    margin = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * MARGIN_PX + 1, 2 * MARGIN_PX + 1))
    for _ in range(TRIES if len(rows) else 0):
        pick = int(rng.integers(len(rows)))
        mask = _stroke(depth, rng, (int(columns[pick]), int(rows[pick])), kind, size_px) & material
        if not mask.any() or (mask & taken).any() or _on_border(mask):
            continue
        width, height = cv2.boundingRect(mask.astype(np.uint8))[2:]
        if not size_px[0] <= max(width, height) <= size_px[1]:
            continue
        if kind.site == "inward" and depth[mask].max() < MIN_DEPTH_PX:
            continue
        if kind.site == "inside" and depth[mask].min() <= MARGIN_PX:
            continue
        if not _does(kind, before, _count_pieces(copper ^ mask)):
            continue
        if kind.site != "across":
            grown = (cv2.dilate(mask.astype(np.uint8), margin) > 0) & material
            if not _does(kind, before, _count_pieces(copper ^ grown)):
                continue
        if kind.removes and kind.site == "across" and _smallest_piece_px(copper, mask) < MIN_PIECE_PX:
            continue
        return np.asarray(mask)
    return None


def _sites(material: Mask, depth: NDArray[np.float32], kind: DefectKind, size_px: tuple[int, int]) -> Mask:
    """Where strokes of this kind may start: centre lines of narrow material, its edges, or its inside."""
    if kind.site == "across":
        ridge = depth >= cv2.dilate(depth, np.ones((3, 3), np.uint8)) - 0.2
        return np.asarray(ridge & (depth > 1.5) & (depth < size_px[1] / 2))
    if kind.site == "inward":
        return np.asarray(material & (depth < 1.5))
    return np.asarray(depth > MARGIN_PX + 2.0)


def _stroke(
    depth: NDArray[np.float32],
    rng: np.random.Generator,
    start: tuple[int, int],
    kind: DefectKind,
    size_px: tuple[int, int],
) -> Mask:
    """A brush stroke of uneven width, (H, W), that starts at (x, y) or has its middle there."""
    x, y = start
    least, most = size_px
    radii = rng.uniform(1.5, max(2.0, most / 5), 2)
    angle = rng.uniform(-np.pi, np.pi)
    if kind.site == "across":
        reach = float(depth[y, x]) + rng.uniform(1.0, 4.0)
        span = (-reach, reach)
    elif kind.site == "inward":
        slope = np.array(
            [_at(depth, x + 2, y) - _at(depth, x - 2, y), _at(depth, x, y + 2) - _at(depth, x, y - 2)]
        )
        angle = np.arctan2(slope[1], slope[0]) + rng.uniform(-0.7, 0.7)
        span = (-2.0, rng.uniform(MIN_DEPTH_PX, max(most / 2, MIN_DEPTH_PX + 1)))
    else:
        half = max(rng.uniform(least, most) / 2 - radii.mean(), 0.5)
        span = (-half, half)
    along, across = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
    bend = rng.uniform(-0.2, 0.2, 4)[:, None] * (span[1] - span[0]) * across
    points = np.array(start) + np.linspace(*span, 4)[:, None] * along + bend
    return _brush(depth.shape, points, radii)


def _brush(shape: tuple[int, ...], points: Points, radii: NDArray[np.float64]) -> Mask:
    image = np.zeros(shape, np.uint8)
    steps = np.linspace(0, 1, 40)
    xs = np.interp(steps, np.linspace(0, 1, len(points)), points[:, 0])
    ys = np.interp(steps, np.linspace(0, 1, len(points)), points[:, 1])
    for x, y, radius in zip(xs, ys, np.interp(steps, [0, 1], radii), strict=True):
        # 4 fractional bits: centres and radii to 1/16 px.
        cv2.circle(image, (round(x * 16), round(y * 16)), round(radius * 16), 1, -1, cv2.LINE_8, 4)
    return image > 0


def _at(depth: NDArray[np.float32], x: int, y: int) -> float:
    height, width = depth.shape
    return float(depth[min(max(y, 0), height - 1), min(max(x, 0), width - 1)])


def _count_pieces(copper: Mask) -> tuple[int, int]:
    """Pieces of copper, pieces of laminate."""
    pieces = cv2.connectedComponents(copper.astype(np.uint8), connectivity=8)[0] - 1
    voids = cv2.connectedComponents((~copper).astype(np.uint8), connectivity=4)[0] - 1
    return pieces, voids


def _does(kind: DefectKind, before: tuple[int, int], after: tuple[int, int]) -> bool:
    """Whether (pieces, voids) changed as this kind of defect changes them."""
    pieces, voids = after[0] - before[0], after[1] - before[1]
    return pieces == kind.pieces and kind.voids in (None, voids)


def _smallest_piece_px(copper: Mask, mask: Mask) -> int:
    """Area of the smallest piece that is left of the net under `mask`."""
    nets = cv2.connectedComponents(copper.astype(np.uint8), connectivity=8)[1]
    rest = np.isin(nets, np.unique(nets[mask])) & ~mask
    return int(
        cv2.connectedComponentsWithStats(rest.astype(np.uint8), connectivity=8)[2][1:, cv2.CC_STAT_AREA].min()
    )


def _box_around(mask: Mask) -> BoxXyxy:
    left, top, width, height = cv2.boundingRect(mask.astype(np.uint8))
    right, bottom = left + width + BOX_MARGIN_PX, top + height + BOX_MARGIN_PX
    return (
        float(max(left - BOX_MARGIN_PX, 0)),
        float(max(top - BOX_MARGIN_PX, 0)),
        float(min(right, mask.shape[1])),
        float(min(bottom, mask.shape[0])),
    )


def _on_border(mask: Mask) -> bool:
    return bool(mask[:3].any() or mask[-3:].any() or mask[:, :3].any() or mask[:, -3:].any())
