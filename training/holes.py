"""Drilled holes in pictures of good boards, found only where they are certain, and boards without them.

A hole is a disc in the middle of a pad. In two tones, scans and bare artwork, it is a round piece of laminate
with a ring of copper around it. In a photograph it is a disc with copper around it that is darker than the
laminate (open) or as bright as a lamp (lit from behind), or a round pad whose solder stands in a dome (full).
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ImageError
from training.copper import CopperMap
from training.defects import DrawnDefects
from training.ground import find_ground
from training.layers import Mask
from training.paint import FEATHER_PX, paint_defects
from training.strokes import Patch, trimmed

MIN_RADIUS_PX, MAX_RADIUS_PX = 3.0, 48.0
MIN_RING_PX = 2.5
"""A pad is at least this much wider than its hole on each side."""
PAD_SHARE = 0.5
"""The ring of copper ends within two radii of the rim in so many directions: a pad, no plane."""
DARK_SHARE, DARK_LEVEL = 0.6, 70.0
"""An open hole is darker than this share of the laminate, and than this grey level."""
LAMP_LEVEL = 238.0
"""What is lit from behind is brighter."""
RIM_PX = 2
"""The wall of a hole in a photograph is about as thick, and goes with it."""
DOME_STEP = 14.0
"""Grey levels by which the middle of a dome of solder is brighter than its foot."""
DOME_AGREEING = 0.85
"""Share of the directions in which it is brighter at all."""
MIN_DOMES = 3
"""Pads alike (in radius, to 15 %) on a picture: several are pins in holes, a single one may be a test pad."""
DOME_HOLE_SHARE = 0.55
"""Of the radius of a pad full of solder: its hole."""
GROUND_SHARE = 0.5
"""Of missing holes in photographs that show what lies beside the pad; the others show the pad going on."""
_ANGLES = 32


def find_holes(picture: NDArray[np.uint8], found: CopperMap) -> Mask:
    """(H, W), True on the pixels of holes that are certain.

    Args:
        picture: (H, W) or (H, W, 3) RGB of a good board.
        found: its copper (training/copper.py).
    """
    holes = np.zeros(found.copper.shape, bool)
    if found.kind == "photograph" and picture.ndim == 3:
        _add(holes, _open_holes(picture, found))
        _add(holes, _full_holes(picture))
    _add(holes, [p for p in _discs(~found.copper, found.copper) if found.known[p.view][p.mask].all()])
    return holes


def _add(holes: Mask, patches: Sequence[Patch]) -> None:
    """Add those that lie clear of what is there, in place."""
    for patch in patches:
        left, top, right, bottom = (int(side) for side in patch.box(2, (holes.shape[0], holes.shape[1])))
        if not holes[top:bottom, left:right].any():
            holes[patch.view] |= patch.mask


def _discs(tone: Mask, copper: Mask, *, grow_px: int = 0) -> list[Patch]:
    """Round pieces of a tone with a ring of copper around them, each grown by some px."""
    height, width = copper.shape
    _, pieces, stats, centres = cv2.connectedComponentsWithStats(tone.astype(np.uint8), connectivity=4)
    found = []
    for number in range(1, len(stats)):
        left, top, wide, high, area = stats[number].tolist()
        radius = (wide + high) / 4
        round_area = np.pi / 4 * wide * high
        if not MIN_RADIUS_PX <= radius <= MAX_RADIUS_PX or abs(wide - high) > max(2.0, 0.3 * radius):
            continue
        if not 0.88 * round_area - 4 <= area <= 1.08 * round_area + 4:
            continue
        margin = grow_px + 1
        if left < margin or top < margin or left + wide + margin > width or top + high + margin > height:
            continue
        ring = _ring_px(copper, centres[number], radius + grow_px)
        if ring.min() < MIN_RING_PX or float((ring <= 2 * radius + 4).mean()) < PAD_SHARE:
            continue
        own = np.pad(pieces[top : top + high, left : left + wide] == number, grow_px)
        disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * grow_px + 1,) * 2)
        own = cv2.dilate(own.astype(np.uint8), disc) > 0
        found.append(Patch(left - grow_px, top - grow_px, own))
    return found


def _ring_px(copper: Mask, centre: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """How far copper reaches outward from the rim of a disc, (angles,), px; beyond the picture it goes on."""
    reach = int(3 * radius) + 8
    steps = np.arange(1, reach + 1)
    xs, ys = _polar(centre, np.asarray(radius + 0.5 + steps, np.float64))
    height, width = copper.shape
    xs, ys = np.rint(xs).astype(int), np.rint(ys).astype(int)
    inside = (xs >= 0) & (ys >= 0) & (xs < width) & (ys < height)
    ended = ~copper[ys.clip(0, height - 1), xs.clip(0, width - 1)] & inside
    # The rim itself is ragged by a pixel.
    ended[:, 0] = False
    return np.where(ended.any(axis=1), ended.argmax(axis=1), reach).astype(np.float64)


def _polar(
    centre: NDArray[np.float64], radii: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """x and y of points around a centre (x, y), (angles, radii)."""
    angles = 2 * np.pi * np.arange(_ANGLES)[:, None] / _ANGLES
    return centre[0] + np.cos(angles) * radii, centre[1] + np.sin(angles) * radii


def _open_holes(picture: NDArray[np.uint8], found: CopperMap) -> list[Patch]:
    """Discs darker than the laminate, or lit from behind."""
    grey = np.asarray(cv2.GaussianBlur(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY), (0, 0), 1.0), np.uint8)
    laminate = grey[found.known & ~found.copper]
    dark = min(DARK_SHARE * float(np.median(laminate)) if len(laminate) else 0.0, DARK_LEVEL)
    tones = (grey < dark, grey > LAMP_LEVEL)
    # What is inside a disc is no copper, whatever it was taken for.
    return [patch for tone in tones for patch in _discs(tone, found.copper & ~tone, grow_px=RIM_PX)]


def _full_holes(picture: NDArray[np.uint8]) -> list[Patch]:
    """The holes in round pads, several of one size, whose metal is brightest in the middle."""
    try:
        metal = find_ground(picture).metal
    except ImageError:
        return []
    plane = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY).astype(np.float32)
    grey = np.asarray(cv2.GaussianBlur(plane, (0, 0), 1.0), np.float32)
    _, _, stats, centres = cv2.connectedComponentsWithStats(metal.astype(np.uint8), connectivity=8)
    found, sizes = [], []
    for number in range(1, len(stats)):
        left, top, wide, high, area = stats[number].tolist()
        radius = (wide + high) / 4
        if not 2 * MIN_RADIUS_PX <= radius <= 2 * MAX_RADIUS_PX or abs(wide - high) > 0.3 * radius:
            continue
        if not 0.9 * np.pi / 4 * wide * high <= area <= 1.1 * np.pi / 4 * wide * high:
            continue
        if left < 1 or top < 1 or left + wide >= grey.shape[1] or top + high >= grey.shape[0]:
            continue
        middle, flank, foot = (
            _sampled(grey, *_polar(centres[number], radius * np.array(shares))).mean(axis=1)
            for shares in ((0.1, 0.2, 0.3), (0.45, 0.55), (0.6, 0.7, 0.8))
        )
        step = float(middle.mean()) - foot
        # A flat pad is darker at its edge alone.
        is_dome = step.mean() >= DOME_STEP and middle.mean() - flank.mean() >= DOME_STEP / 3
        if not is_dome or (step > 0).mean() < DOME_AGREEING:
            continue
        x, y = centres[number].tolist()
        inner = DOME_HOLE_SHARE * radius
        rows, columns = np.mgrid[top : top + high, left : left + wide]
        found.append(trimmed(Patch(left, top, np.hypot(columns - x, rows - y) <= inner)))
        sizes.append(radius)
    alike = [sum(abs(radius - other) <= 0.15 * radius for other in sizes) for radius in sizes]
    return [patch for patch, count in zip(found, alike, strict=True) if count >= MIN_DOMES]


def _sampled(
    grey: NDArray[np.float32], xs: NDArray[np.float64], ys: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Grey levels at points, of their shape."""
    places = xs.astype(np.float32), ys.astype(np.float32)
    return np.asarray(cv2.remap(grey, *places, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), np.float32)


def cover_holes(
    picture: NDArray[np.uint8], found: CopperMap, drawn: DrawnDefects, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """The photograph (H, W, 3) with the missing holes of `drawn` painted over; nothing else changes.

    A hole that was never drilled shows its pad going on over it, one that is plugged shows what lies beside
    the pad.
    """
    painted = picture.copy()
    as_ground: list[int] = []
    for number, patch in enumerate(drawn.patches):
        if rng.random() < GROUND_SHARE:
            as_ground.append(number)
        else:
            _cover_with_metal(painted, picture, patch, rng)
    if as_ground:
        chosen = DrawnDefects(
            drawn.copper,
            drawn.boxes[as_ground],
            ("pin-hole",) * len(as_ground),
            tuple(drawn.patches[number] for number in as_ground),
        )
        painted = paint_defects(painted, found.copper, chosen, rng, known=found.known)
    return painted


def _cover_with_metal(
    painted: NDArray[np.uint8], picture: NDArray[np.uint8], patch: Patch, rng: np.random.Generator
) -> None:
    """Carry the tone and the grain of the ring around a hole over it, in place."""
    reach = max(4, round(0.35 * max(patch.mask.shape) / 2)) + 2
    left, top, right, bottom = (int(side) for side in patch.box(reach, picture.shape[:2]))
    window = (slice(top, bottom), slice(left, right))
    hole = np.zeros((bottom - top, right - left), np.uint8)
    at = (slice(patch.top - top, patch.top - top + patch.mask.shape[0]),)
    hole[at[0], patch.left - left : patch.left - left + patch.mask.shape[1]] = patch.mask
    away = cv2.distanceTransform(1 - hole, cv2.DIST_L2, 5)
    near = picture[window].astype(np.float32)
    ring = ((away > 1.5) & (away <= reach)).astype(np.float32)
    # Beyond a narrow pad the ring meets other things: what is far from its middle tone is left out.
    middle = np.median(near[ring > 0], axis=0)
    off = np.abs(near - middle).max(axis=2)
    ring *= off <= max(3.0 * float(np.median(off[ring > 0])), 12.0)
    sigma = max(patch.mask.shape) / 3
    weight = np.asarray(cv2.GaussianBlur(ring, (0, 0), sigma)) + np.float32(1e-6)
    smooth = np.asarray(cv2.GaussianBlur(near * ring[..., None], (0, 0), sigma)) / weight[..., None]
    fine = near - np.asarray(cv2.GaussianBlur(near, (0, 0), 1.5))
    noise = np.asarray(cv2.GaussianBlur(rng.standard_normal(hole.shape).astype(np.float32), (0, 0), 0.7))
    # A median: glints and the edges of the pad are no grain.
    grain = noise / noise.std() * 1.48 * float(np.median(np.abs(fine[ring > 0])))
    cover = np.asarray(cv2.GaussianBlur(hole.astype(np.float32), (0, 0), FEATHER_PX))[..., None]
    below = painted[window].astype(np.float32)
    new = smooth + grain[..., None]
    painted[window] = np.rint(below + cover * (new - below)).clip(0, 255).astype(np.uint8)
