"""Proposals for defects: where on a board a shape of each kind could lie, and how it could look.

Proposals are cheap and often wrong; training/defects.py decides which of them are what they should be.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from training.defect_kinds import DefectKind
from training.strokes import Mask, Patch, Points, bent_line, draw_blob, draw_stroke, roughen, trimmed

DRY_SHARE = {True: 0.2, False: 0.06}
"""Share of ragged shapes where copper is removed, and where it is added, as seen in DeepPCB."""
_NUM_RAYS = 24
_OVERLAP_PX = (0.5, 3.0)


class Proposer:
    """Finds places on one board. `copper` (H, W), 0 and 1, is the live picture that defects are drawn in."""

    def __init__(
        self,
        copper: NDArray[np.uint8],
        rng: np.random.Generator,
        size_px: tuple[int, int],
        *,
        scale: float,
        even: bool,
        clearance_px: int,
    ) -> None:
        self.copper = copper
        self.rng = rng
        self.size_px = size_px
        self.scale = scale
        self.even = even
        self.clearance_px = clearance_px
        self._sites: dict[tuple[str, bool], NDArray[np.int64]] = {}

    @cached_property
    def _copper_depth(self) -> NDArray[np.float32]:
        return np.asarray(cv2.distanceTransform(self.copper, cv2.DIST_L2, 3), np.float32)

    @cached_property
    def _laminate_depth(self) -> NDArray[np.float32]:
        return np.asarray(cv2.distanceTransform(1 - self.copper, cv2.DIST_L2, 3), np.float32)

    def shapes(self, kind: DefectKind, pieces: NDArray[np.int32] | None, tries: int) -> Iterator[Patch]:
        """Up to `tries` shapes of a kind; `pieces` (H, W) makes those from side to side join two pieces."""
        depth = self._copper_depth if kind.removes else self._laminate_depth
        sites = self._sites_of(kind, depth)
        if not len(sites):
            return
        for _ in range(tries):
            row, column = divmod(int(sites[self.rng.integers(len(sites))]), depth.shape[1])
            length, width = self._size(kind)
            if kind.site == "across":
                shape = self._across(column, row, length, width, kind, pieces)
            elif kind.site == "inward":
                shape = self._inward(column, row, length, width, depth)
            else:
                shape = self._inside(column, row, length, width, depth)
            if shape is not None:
                shape = self._cut(shape, (column, row), kind, depth)
            if shape is not None:
                yield shape

    def holes(self, holes: Mask) -> Iterator[Patch]:
        """Each hole with copper all around, filled, in random order."""
        _, pieces, boxes, _ = cv2.connectedComponentsWithStats(1 - self.copper, connectivity=4)
        found, areas = np.unique(pieces[holes & (self.copper == 0)], return_counts=True)
        for place in self.rng.permutation(len(found)).tolist():
            left, top, width, height, area = boxes[found[place]].tolist()
            # A hole is a piece of laminate by itself; its edge may be a little off the drill's.
            if self.size_px[0] <= max(width, height) <= self.size_px[1] and area < 2 * areas[place] + 12:
                inside = pieces[top : top + height, left : left + width] == found[place]
                yield Patch(left, top, np.asarray(inside))

    def _size(self, kind: DefectKind) -> tuple[float, float]:
        """Length and width in px, the length inside the asked sizes."""
        least, most = self.size_px
        length, width = 0.0, self.scale * kind.width_px[0]
        width *= float(np.exp(kind.width_px[1] * self.rng.standard_normal()))
        if not self.even:
            lengths = kind.length_px[0] * self.scale * np.exp(kind.length_px[1] * self.rng.standard_normal(8))
            fit = lengths[(lengths >= least) & (lengths <= most)]
            length = float(fit[0]) if len(fit) else 0.0
        if not length:
            length = float(np.exp(self.rng.uniform(np.log(least), np.log(most + 1))))
            # Sizes far from the usual ones keep their usual proportions.
            width *= length / (kind.length_px[0] * self.scale)
        if kind.site != "across":
            width = min(width, length)
        return length, max(width, 1.5)

    def _sites_of(self, kind: DefectKind, depth: NDArray[np.float32]) -> NDArray[np.int64]:
        """Flat indices of the pixels where shapes of this kind may start."""
        key = (kind.site, kind.removes)
        if key not in self._sites:
            if kind.site == "across":
                at = (depth > 0) & (depth < self.size_px[1] / 2 + 1)
            elif kind.site == "inward":
                at = (depth > 0) & (depth < 1.5)
            else:
                at = depth > self.clearance_px + 1
            self._sites[key] = np.flatnonzero(at)
        return self._sites[key]

    def _across(
        self, x: int, y: int, length: float, width: float, kind: DefectKind, pieces: NDArray[np.int32] | None
    ) -> Patch | None:
        """A stroke through (x, y) from one side of the material to the other, or to another piece."""
        reach = min(self.size_px[1], int(1.4 * length)) + 1
        xs, ys, inside = _rays(x, y, reach, self.copper.shape)
        ended = self.copper[ys, xs] != int(kind.removes)
        ended &= inside
        steps = ended.argmax(axis=1)  # px to the first pixel of the other material, less one
        half = _NUM_RAYS // 2
        lengths = steps[:half] + steps[half:] + 1
        good = ended.any(axis=1)
        good = good[:half] & good[half:] & (lengths <= reach)
        if pieces is not None:
            rays = np.arange(_NUM_RAYS)
            ends = pieces[ys[rays, steps], xs[rays, steps]]
            good &= ends[:half] != ends[half:]
        ways = np.flatnonzero(good)
        if not len(ways):
            return None
        shortest = self.rng.random() < 0.6
        way = int(ways[lengths[ways].argmin()] if shortest else self.rng.choice(ways))
        angle = 2 * np.pi * way / _NUM_RAYS
        along = np.array([np.cos(angle), np.sin(angle)])
        over = self.rng.uniform(*_OVERLAP_PX, 2)
        centre = np.array([x, y], np.float64)
        start, end = centre - along * (steps[way + half] + over[0]), centre + along * (steps[way] + over[1])
        side = np.array([-along[1], along[0]]) * self.rng.normal(0.0, 0.12, 2)[:, None] * lengths[way]
        if self.rng.random() < 0.15 and width > 0.5 * lengths[way]:
            return draw_blob(
                (start + end) / 2, float(np.hypot(*(end - start))) + width / 3, width, angle, self.rng
            )
        return self._stroke(bent_line(start + side[0], end + side[1], self.rng), width, angle, kind.removes)

    def _inward(
        self, x: int, y: int, length: float, width: float, depth: NDArray[np.float32]
    ) -> Patch | None:
        """A stroke or blob that starts on the edge at (x, y) and goes in, or along it."""
        slope = np.array(
            [_at(depth, x + 2, y) - _at(depth, x - 2, y), _at(depth, x, y + 2) - _at(depth, x, y - 2)]
        )
        if not slope.any():
            return None
        angle = float(np.arctan2(slope[1], slope[0]))
        start, removes = np.array([x, y], np.float64), depth is self._copper_depth
        if self.rng.random() < 0.45:
            along_edge = self.rng.random() < 0.5
            deep = (width if along_edge else length) * self.rng.uniform(0.1, 0.4)
            inward = np.array([np.cos(angle), np.sin(angle)])
            lies = angle + (np.pi / 2 if along_edge else 0.0) + self.rng.normal(0.0, 0.3)
            patch = draw_blob(start + inward * deep, length, width, lies, self.rng)
            return self._dry(patch, lies, removes)
        angle += self.rng.uniform(-0.9, 0.9)
        along = np.array([np.cos(angle), np.sin(angle)])
        tip = max(length - width / 2 + 1, 1.0)
        line = bent_line(start - along * (width / 2 + 1), start + along * tip, self.rng)
        return self._stroke(line, width, angle, removes)

    def _inside(
        self, x: int, y: int, length: float, width: float, depth: NDArray[np.float32]
    ) -> Patch | None:
        """A blob or stroke around (x, y)."""
        if depth[y, x] < width / 2 + self.clearance_px:
            return None
        centre, angle = np.array([x, y], np.float64), self.rng.uniform(-np.pi, np.pi)
        if self.rng.random() < 0.6:
            return self._dry(
                draw_blob(centre, length, width, angle, self.rng), angle, depth is self._copper_depth
            )
        along = np.array([np.cos(angle), np.sin(angle)]) * max(length - width, 1.0) / 2
        line = bent_line(centre - along, centre + along, self.rng, bend=0.4)
        return self._stroke(line, min(width, length * 0.7), angle, depth is self._copper_depth)

    def _stroke(self, line: Points, width: float, angle: float, removes: bool) -> Patch:
        return self._dry(draw_stroke(line, width, self.rng), angle, removes)

    def _dry(self, patch: Patch, angle: float, removes: bool) -> Patch:
        dry = self.rng.random() < DRY_SHARE[removes] and min(patch.mask.shape) > 6
        return roughen(patch, angle, self.rng) if dry else patch

    def _cut(
        self, patch: Patch, start: tuple[int, int], kind: DefectKind, depth: NDArray[np.float32]
    ) -> Patch | None:
        """The largest piece of the shape that lies in its material, holes filled, if its size is as asked."""
        height, width = self.copper.shape
        rows, columns = patch.view
        if rows.start < 0 or columns.start < 0 or rows.stop > height or columns.stop > width:
            return None
        material = self.copper[patch.view] == int(kind.removes)
        mask = (patch.mask & material).view(np.uint8)
        # Removed copper is new laminate, which connects by sides only.
        count, labels, boxes, _ = cv2.connectedComponentsWithStats(
            mask, connectivity=4 if kind.removes else 8
        )
        if count == 1:
            return None
        largest = 1 + int(boxes[1:, cv2.CC_STAT_AREA].argmax())
        least, most = self.size_px
        if not least <= max(boxes[largest, cv2.CC_STAT_WIDTH], boxes[largest, cv2.CC_STAT_HEIGHT]) <= most:
            return None
        kept = trimmed(Patch(patch.left, patch.top, labels == largest))
        kept = Patch(kept.left, kept.top, _filled(kept.mask, material, kept, patch, kind.removes))
        if kind.site == "inward":
            deep = float(depth[kept.view][kept.mask].max())
            side = max(kept.mask.shape)
            if deep < min(4.0 * self.scale, max(2.0, side / 3)):
                return None
        return kept


def _filled(mask: Mask, material: Mask, kept: Patch, whole: Patch, removes: bool) -> Mask:
    """The mask with the crumbs that it encloses: material that it cuts off from the rest of its patch."""
    outside = np.pad(~mask, 1, constant_values=True).view(np.uint8)
    count, labels = cv2.connectedComponents(outside, connectivity=8 if removes else 4)
    if count == 2:  # the mask and one outside
        return mask
    top, left = kept.top - whole.top, kept.left - whole.left
    own = material[top : top + mask.shape[0], left : left + mask.shape[1]]
    return np.asarray(mask | ((labels[1:-1, 1:-1] != labels[0, 0]) & own))


@lru_cache(maxsize=256)
def _ray_offsets(reach: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    angles = 2 * np.pi * np.arange(_NUM_RAYS)[:, None] / _NUM_RAYS
    steps = np.arange(1, reach + 1)
    return np.rint(np.cos(angles) * steps).astype(np.int64), np.rint(np.sin(angles) * steps).astype(np.int64)


def _rays(
    x: int, y: int, reach: int, shape: tuple[int, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Mask]:
    """Columns, rows and whether they are inside the picture, (rays, reach), walking out from (x, y)."""
    dx, dy = _ray_offsets(reach)
    xs, ys = dx + x, dy + y
    inside = (xs >= 0) & (ys >= 0) & (xs < shape[1]) & (ys < shape[0])
    return xs.clip(0, shape[1] - 1), ys.clip(0, shape[0] - 1), inside


def _at(depth: NDArray[np.float32], x: int, y: int) -> float:
    height, width = depth.shape
    return float(depth[min(max(y, 0), height - 1), min(max(x, 0), width - 1)])
