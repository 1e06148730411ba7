"""Where a point of the posted picture lies in the reference's frame: matrix, row slips, local field.

Points are (x, y) in pixels with the centre of the first pixel at (0, 0). From picture to reference:

    q = p + offset of the part of the picture that p lies in     parts are split at the slips, row by row
    r = matrix q                                                 3x3, shift, turn, scale, shear, perspective
    x with x + field(x) = r                                      smooth, small; none for most boards
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Points = Floats
Matrix = Floats
ROWS_AT_ONCE = 256
"""Rows of a dense map that are worked out together: bounds memory."""
GRID_PX = 8
"""A dense map is exact at points this far apart and linear between them; what bends it is much longer."""


@dataclass(frozen=True)
class Slip:
    """A line scan lost or repeated lines: from `row` on, everything lies `offset` px elsewhere."""

    row: float
    """First row of the posted picture after the slip."""
    offset: tuple[float, float]
    """(x, y) that brings rows from here to the next slip in line with the rows above the first slip."""


@dataclass(frozen=True)
class BoardMap:
    """The map between a posted picture and its reference. Immutable."""

    matrix: Matrix
    """(3, 3): slip-corrected pixels of the posted picture to pixels of the reference."""
    board_shape: tuple[int, int]
    """(height, width) of the posted picture."""
    reference_shape: tuple[int, int]
    slips: tuple[Slip, ...] = ()
    """Sorted by row."""
    field: Floats | None = None
    """(rows, columns, 2): control points of a uniform cubic B-spline over the reference, (x, y) px."""

    def to_reference(self, points: Points) -> Points:
        """(N, 2) pixels of the posted picture to pixels of the reference."""
        points = np.asarray(points, np.float64).reshape(-1, 2)
        moved = points.copy()
        for first, last, offset in self.parts():
            inside = (points[:, 1] >= first - 0.5) & (points[:, 1] < last - 0.5)
            moved[inside] += offset
        target = project(self.matrix, moved)
        if self.field is None:
            return target
        found = target
        for _ in range(10):  # the field changes by less than a tenth of a pixel per pixel
            found = target - self._field_at(found)
        return found

    def to_board(self, points: Points) -> Points:
        """(N, 2) pixels of the reference to pixels of the posted picture.

        What a slip repeated is found in the upper of its two places; what it lost has no true place, and lies
        beyond the rows of the part below the slip.
        """
        points = np.asarray(points, np.float64).reshape(-1, 2)
        if self.field is not None:
            points = points + self._field_at(points)
        return self._unslip(project(np.linalg.inv(self.matrix), points))[0]

    def warp(self, picture: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """The posted picture, or any picture of its size, as the reference sees it.

        Returns:
            (H, W, ...) in the reference's size, and (H, W) where the posted picture covers it; edge pixels
            are repeated elsewhere.
        """
        height, width = self.reference_shape
        covered = np.empty((height, width), np.bool_)
        warped = np.empty((height, width, *picture.shape[2:]), np.uint8)
        for rows, places, seen in self.dense():
            covered[rows] = seen
            warped[rows] = take(picture, places, cv2.INTER_CUBIC).reshape(warped[rows].shape)
        return warped, covered

    def bring(self, picture: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """The reference, or any picture of its size, as the posted picture sees it: `warp` the other way.

        Returns:
            (H, W, ...) in the posted picture's size, and (H, W) where the reference covers it; edge pixels
            are repeated elsewhere.
        """
        height, width = self.board_shape
        limit = np.array(self.reference_shape[::-1], np.float32) - 0.5
        covered = np.empty((height, width), np.bool_)
        brought = np.empty((height, width, *picture.shape[2:]), np.uint8)
        for first, last, _ in self.parts():
            start, stop = round(max(first, 0.0)), round(min(last, float(height)))
            for top in range(start, stop, ROWS_AT_ONCE):
                rows = slice(top, min(top + ROWS_AT_ONCE, stop))
                places = _between(self.to_reference, top, rows.stop, width)
                covered[rows] = ((places >= -0.5) & (places <= limit)).all(-1)
                brought[rows] = take(picture, places, cv2.INTER_CUBIC).reshape(brought[rows].shape)
        return brought, covered

    def dense(self) -> Iterator[tuple[slice, NDArray[np.float32], NDArray[np.bool_]]]:
        """Rows of the reference, their places in the posted picture (n, W, 2), and whether it covers them."""
        height, width = self.reference_shape
        inverse = np.linalg.inv(self.matrix)

        def place(points: Points) -> Points:
            return project(inverse, points if self.field is None else points + self._field_at(points))

        for top in range(0, height, ROWS_AT_ONCE):
            bottom = min(top + ROWS_AT_ONCE, height)
            placed = _between(place, top, bottom, width)
            flat, seen = self._unslip(placed.reshape(-1, 2))
            shape = placed.shape[:2]
            yield slice(top, bottom), flat.reshape(*shape, 2).astype(np.float32), seen.reshape(shape)

    def parts(self) -> Iterator[tuple[float, float, Floats]]:
        """(first row, row after the last, offset) of each part between slips."""
        rows = [-np.inf, *(slip.row for slip in self.slips), np.inf]
        offsets = [(0.0, 0.0), *(slip.offset for slip in self.slips)]
        for first, last, offset in zip(rows[:-1], rows[1:], offsets, strict=True):
            yield first, last, np.asarray(offset)

    def axes(self) -> tuple[Floats, Floats]:
        """What the matrix makes of a step of 1 px along x and along y in the middle of the posted picture."""
        height, width = self.board_shape
        middle = np.array([(width - 1) / 2, (height - 1) / 2])
        at = project(self.matrix, middle + np.array([[0, 0], [1, 0], [0, 1]]))
        return at[1] - at[0], at[2] - at[0]

    def angle_degrees(self) -> float:
        """How far the posted picture is turned, clockwise as seen."""
        across, down = self.axes()
        return float(np.degrees(np.arctan2(across[1] - down[0], across[0] + down[1])))

    def scaled(self, factor: float) -> BoardMap:
        """The same map between both pictures reduced `factor` times (area means, left and top edges kept)."""
        matrix = shrink(factor) @ self.matrix @ np.linalg.inv(shrink(factor))
        slips = tuple(Slip(s.row / factor, (s.offset[0] / factor, s.offset[1] / factor)) for s in self.slips)
        shapes = [(int(h / factor), int(w / factor)) for h, w in (self.board_shape, self.reference_shape)]
        field = None if self.field is None else self.field / factor
        return replace(
            self,
            matrix=matrix / matrix[2, 2],
            board_shape=shapes[0],
            reference_shape=shapes[1],
            slips=slips,
            field=field,
        )

    def _unslip(self, points: Points) -> tuple[Points, NDArray[np.bool_]]:
        """Slip-corrected pixels to posted ones, and whether they are on the posted picture."""
        height, width = self.board_shape
        placed = points
        inside = np.zeros(len(points), np.bool_)
        for part, (first, last, offset) in enumerate(self.parts()):
            here = points - offset
            y = here[:, 1]
            seen = ~inside & (y >= max(first, 0) - 0.5) & (y <= min(last, height) - 0.5)
            choose = seen if part == 0 else seen | (~inside & (y >= first - 0.5 - abs(offset[1])))
            placed = here if part == 0 else np.where(choose[:, None], here, placed)
            inside |= seen
        return placed, inside & (placed[:, 0] >= -0.5) & (placed[:, 0] <= width - 0.5)

    def _basis(self, positions: Floats, axis: int) -> Floats:
        if self.field is None:
            return np.empty((len(positions), 0))
        return spline_basis(positions, self.reference_shape[axis], self.field.shape[axis])

    def _field_at(self, points: Points) -> Points:
        """The field at (N, 2) pixels of the reference."""
        assert self.field is not None
        down, across = self._basis(points[:, 1], 0), self._basis(points[:, 0], 1)
        values: Points = np.einsum("ni,nj,ijc->nc", down, across, self.field, optimize=True)
        return values


def project(matrix: Matrix, points: Points) -> Points:
    """(N, 2) points through a (3, 3) projective map."""
    x, y = points[:, 0], points[:, 1]
    depth = matrix[2, 0] * x + matrix[2, 1] * y + matrix[2, 2]
    across = (matrix[0, 0] * x + matrix[0, 1] * y + matrix[0, 2]) / depth
    return np.stack((across, (matrix[1, 0] * x + matrix[1, 1] * y + matrix[1, 2]) / depth), -1)


def _between(place: Callable[[Points], Points], top: int, bottom: int, width: int) -> NDArray[np.float32]:
    """(bottom - top, width, 2) places of a block of pixels, from those of a grid that is GRID_PX wide."""
    num = bottom - top
    # the last knots lie on the block's last row: below it may be a slip
    down = np.minimum(np.arange(-(-(num - 1) // GRID_PX) + 1) * GRID_PX, num - 1)
    across = np.arange(-(-width // GRID_PX) + 1) * GRID_PX
    x, y = np.meshgrid(across, down + top)
    knots = place(np.stack((x, y), -1).reshape(-1, 2)).reshape(len(down), len(across), 2).astype(np.float32)
    at = np.interp(np.arange(num), down, np.arange(len(down)))
    above = at.astype(np.intp)
    below, share = np.minimum(above + 1, len(down) - 1), (at - above).astype(np.float32)[:, None, None]
    rows = knots[above] + share * (knots[below] - knots[above])
    steps = np.arange(GRID_PX, dtype=np.float32)[:, None] / GRID_PX
    dense = rows[:, :-1, None] + steps * (rows[:, 1:, None] - rows[:, :-1, None])
    return np.asarray(dense.reshape(num, -1, 2)[:, :width], np.float32)


def take(picture: NDArray[Any], places: NDArray[np.float32], interpolation: int) -> NDArray[Any]:
    """(H, W, ...) picture at (h, w, 2) places (x, y); its edge pixels are repeated outside."""
    # the stubs of OpenCV do not know that one map of pairs needs no second map
    return np.asarray(
        cv2.remap(picture, places, None, interpolation, borderMode=cv2.BORDER_REPLICATE)  # type: ignore[call-overload]
    )


def shrink(factor: float) -> Matrix:
    """(3, 3): pixels to pixels of the picture reduced `factor` times; centres of pixels are whole numbers."""
    offset = 0.5 / factor - 0.5
    return np.array([[1 / factor, 0, offset], [0, 1 / factor, offset], [0, 0, 1]])


def spline_basis(positions: Floats, length: int, num: int) -> Floats:
    """(N, num) weights of `num` control points at N positions on an axis of `length` px (cubic B-spline)."""
    t = np.clip((positions + 0.5) / length, 0, 1) * (num - 3)
    first = np.clip(np.floor(t).astype(np.intp), 0, num - 4)
    u = t - first
    weights = np.stack(((1 - u) ** 3, 3 * u**3 - 6 * u**2 + 4, -3 * u**3 + 3 * u**2 + 3 * u + 1, u**3), -1)
    basis = np.zeros((len(positions), num))
    np.put_along_axis(basis, first[:, None] + np.arange(4), weights / 6, axis=1)
    return basis
