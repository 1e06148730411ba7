"""Exact outlines of defects, as label files state them: polygons with holes, or pixels as run lengths.

Numpy alone: the network's modules reach this file through `results` and need no OpenCV.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ConfigError

if TYPE_CHECKING:
    from inspect_vit.results import BoxXyxy

Ring = NDArray[np.float64]
"""(n, 2) x, y in px of the upright picture, sub-pixel, n >= 3, not closed. Pixel (0, 0) spans 0..1."""


@dataclass(frozen=True, eq=False)
class Polygon:
    """One part of a shape. A hole belongs to no part; what lies inside a hole is a part of its own."""

    exterior: Ring
    holes: tuple[Ring, ...] = ()

    def __post_init__(self) -> None:
        for ring in (self.exterior, *self.holes):
            if ring.ndim != 2 or ring.shape[1] != 2 or len(ring) < 3 or not np.isfinite(ring).all():
                points = np.array2string(ring, threshold=6, separator=", ").replace("\n", "")
                raise ConfigError(f"a ring of a polygon is {points}; wanted 3 or more finite points x, y")


@dataclass(frozen=True, eq=False)
class Shape:
    """Exact outline of one defect: polygons (disjoint parts, holes) or pixels as COCO run lengths."""

    polygons: tuple[Polygon, ...] = ()
    runs: tuple[int, ...] | None = None
    """Lengths of runs in column order (down, then right), the first outside; they sum to height x width."""
    size: tuple[int, int] | None = None
    """(height, width) of the picture that `runs` cover."""

    def __post_init__(self) -> None:
        if bool(self.polygons) == (self.runs is not None):
            raise ConfigError("a shape is made of polygons or of runs; give one of the two")
        if self.runs is None:
            return
        if self.size is None or min(self.size) < 1:
            raise ConfigError(f"runs need the size (height, width) of their picture, not {self.size}")
        if min(self.runs, default=0) < 0 or sum(self.runs) != self.size[0] * self.size[1]:
            raise ConfigError(
                f"runs sum to {sum(self.runs)} pixels, none negative; a picture of {self.size[0]} x "
                f"{self.size[1]} (height x width) has {self.size[0] * self.size[1]}"
            )

    @classmethod
    def from_mask(
        cls, mask: NDArray[np.bool_], *, at: tuple[int, int] = (0, 0), size: tuple[int, int] | None = None
    ) -> Shape:
        """Keep exactly these pixels.

        Args:
            mask: (h, w), the picture or a window of it.
            at: (left, top) of that window in the picture.
            size: (height, width) of the picture; the mask's own where it is the picture.
        """
        height, width = size or mask.shape
        left, top = at
        if left < 0 or top < 0 or top + mask.shape[0] > height or left + mask.shape[1] > width:
            raise ConfigError(
                f"a mask of {mask.shape} at {at} (left, top) leaves its {height} x {width} picture"
            )
        columns = np.pad(mask.T != 0, ((0, 0), (1, 1)))
        edges = np.flatnonzero(columns[:, 1:] != columns[:, :-1])
        column, row = np.divmod(edges, mask.shape[0] + 1)
        edges = (column + left) * height + row + top
        starts, ends = edges[::2], edges[1::2]
        # A run that leaves one column at its foot goes on at the head of the next.
        joined = starts[1:] == ends[:-1]
        starts, ends = starts[np.r_[True, ~joined][: len(starts)]], ends[np.r_[~joined, True][: len(ends)]]
        marks = np.concatenate([[0], np.stack([starts, ends], 1).ravel(), [height * width]])
        runs = np.diff(marks).tolist()
        return cls(runs=tuple(runs[:-1] if runs[-1] == 0 and len(runs) > 1 else runs), size=(height, width))

    def mask(self, height: int, width: int) -> NDArray[np.bool_]:
        """(height, width), True where the defect is: where a pixel's centre lies inside a polygon (even-odd
        rule), left and top edges included.

        Raises:
            ConfigError: runs made for a picture of another size.
        """
        mask = np.zeros((height, width), np.bool_)
        self.paint(mask, True)
        return mask

    def paint(self, canvas: NDArray[np.uint8] | NDArray[np.bool_], value: int) -> None:
        """Write `value` into the (height, width) canvas where `mask` is True, at the cost of its window."""
        left, top, window = self.window(canvas.shape[0], canvas.shape[1])
        canvas[top : top + window.shape[0], left : left + window.shape[1]][window] = value

    def window(self, height: int, width: int) -> tuple[int, int, NDArray[np.bool_]]:
        """(left, top) of a window around what of the shape lies in the picture, and the mask there."""
        if self.runs is not None and self.size != (height, width):
            raise ConfigError(f"this shape was drawn on a picture of {self.size}, not {(height, width)}")
        box = np.array(self.bounds())
        left, top = np.clip(np.floor(box[:2]), 0, (width, height)).astype(int).tolist()
        right, bottom = np.clip(np.ceil(box[2:]), 0, (width, height)).astype(int).tolist()
        mask = np.zeros((bottom - top, right - left), np.bool_)
        if not mask.size:
            return left, top, mask
        if self.runs is not None:
            starts, ends = self._spans()
            flat = np.zeros((right - left) * height + 1, np.int8)
            flat[starts - left * height] += 1
            flat[ends - left * height] -= 1
            columns = np.cumsum(flat[:-1], dtype=np.int8).reshape(right - left, height)
            return left, top, columns.T[top:bottom] > 0
        for polygon in self.polygons:
            part = _inside(polygon.exterior - (left, top), mask.shape)
            for hole in polygon.holes:
                part &= ~_inside(hole - (left, top), mask.shape)
            mask |= part
        return left, top, mask

    def bounds(self) -> BoxXyxy:
        """Smallest box around the shape, right and bottom exclusive; all 0 for runs without a pixel."""
        if self.size is None:
            points = np.concatenate([polygon.exterior for polygon in self.polygons])
            (left, top), (right, bottom) = points.min(0).tolist(), points.max(0).tolist()
            return left, top, right, bottom
        starts, ends = self._spans()
        if not len(starts):
            return 0.0, 0.0, 0.0, 0.0
        height = self.size[0]
        left, right = int(starts[0]) // height, (int(ends[-1]) - 1) // height + 1
        wraps = starts // height != (ends - 1) // height
        top = 0 if wraps.any() else int((starts % height).min())
        bottom = height if wraps.any() else int(((ends - 1) % height).max()) + 1
        return float(left), float(top), float(right), float(bottom)

    def _spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and last + 1 pixel, in column order, of each run inside that is not empty."""
        marks = np.cumsum(np.array(self.runs, np.int64))
        starts, ends = marks[:-1:2], marks[1::2]
        filled = starts < ends
        return starts[filled], ends[filled]


def _inside(ring: Ring, size: tuple[int, ...]) -> NDArray[np.bool_]:
    """(height, width): pixels whose centre is inside by the even-odd rule.

    Each edge flips all pixels right of it in the rows whose centre line it crosses.
    """
    height, width = size
    x0, y0 = ring.T
    x1, y1 = np.roll(ring, -1, 0).T
    first = np.ceil(np.clip(np.minimum(y0, y1) - 0.5, 0, height)).astype(np.int64)
    last = np.ceil(np.clip(np.maximum(y0, y1) - 0.5, 0, height)).astype(np.int64)
    count = last - first
    edge = np.repeat(np.arange(len(ring)), count)
    row = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + first[edge]
    share = (row + 0.5 - y0[edge]) / (y1 - y0)[edge]
    x = x0[edge] + share * (x1 - x0)[edge]
    column = np.ceil(np.clip(x - 0.5, 0, width)).astype(np.int64)
    flips = np.zeros((height, width + 1), np.uint8)
    np.bitwise_xor.at(flips, (row, column), 1)
    return np.bitwise_xor.accumulate(flips, 1)[:, :width] > 0
