"""Exact rasterisation of artwork: a pixel is set when its centre lies inside the shape.

There is no anti-aliasing and no rounding of the geometry: crossings of each pixel row with each outline are
computed in float64, then filled from centre to centre. Rows are done in bands, so memory stays small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from training.kicad_shapes import Piece

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_BAND_PX = 16_000_000


@dataclass(frozen=True)
class Flat:
    """Many pieces as arrays of discs and polygons, each with a value (its net, or 1)."""

    discs: Floats
    """(D, 3) x, y, radius."""
    disc_values: Ints
    edges: Floats
    """(E, 4) x0, y0, x1, y1, polygon after polygon."""
    owners: Ints
    """(E,) the polygon of each edge, ascending."""
    polygon_values: Ints


@dataclass(frozen=True)
class Grid:
    """Pixels over a window: (row, column) has its centre at x + (column + 0.5) / s, y + (row + 0.5) / s."""

    x: float
    y: float
    px_per_mm: float
    width: int
    height: int
    mirrored: bool = False
    """The picture seen from behind: its left column is the window's right end."""


def flatten(pieces: Iterable[tuple[Piece, int]]) -> Flat:
    """Pieces with their values as arrays.

    A stroke becomes a rectangle for each of its lines and a disc for each of its points; a filled piece adds
    its ring.
    """
    given = list(pieces)
    if not given:
        return Flat(np.zeros((0, 3)), _ints(0), np.zeros((0, 4)), _ints(0), _ints(0))
    counts = np.array([len(piece.points) for piece, _ in given])
    points = np.concatenate([piece.points for piece, _ in given])
    radius = np.repeat([piece.width / 2 for piece, _ in given], counts)
    filled = np.repeat([piece.filled for piece, _ in given], counts)
    values = np.repeat(np.array([value for _, value in given], np.int64), counts)
    owner = np.repeat(np.arange(len(given)), counts)
    # The point that follows each point in its piece; the last one is followed by the first.
    last = np.cumsum(counts) - 1
    following = np.arange(len(points)) + 1
    following[last] = last - counts + 1
    closing = np.zeros(len(points), bool)
    closing[last] = True

    drawn = radius > 0
    discs = np.column_stack([points[drawn], radius[drawn]])
    start, end = points, points[following]
    length = np.hypot(*(end - start).T)
    lines = drawn & (length > 0) & (filled | ~closing)
    quads = _rectangles(start[lines], end[lines], radius[lines], length[lines])
    rings = np.column_stack([start[filled], end[filled]])
    _, ring_of = np.unique(owner[filled], return_inverse=True)
    ring_values = values[last[[piece.filled for piece, _ in given]]]
    return Flat(
        discs,
        values[drawn],
        np.concatenate([quads, rings]),
        np.concatenate([np.repeat(np.arange(len(quads) // 4), 4), len(quads) // 4 + ring_of]),
        np.concatenate([values[lines], ring_values]),
    )


def draw_mask(flat: Flat, grid: Grid, *, even_odd: bool = False) -> NDArray[np.bool_]:
    """(H, W) True where any piece covers the pixel's centre.

    Args:
        even_odd: take all polygons as one outline with holes, instead of their union.
    """
    mask = np.zeros((grid.height, grid.width), bool)
    for top, bottom in _bands(grid):
        rows, start, stop, of = _spans(flat, grid, top, bottom, even_odd=even_odd)
        rows, start, stop, _ = _merged(rows, start, stop, np.ones_like(of), grid)
        steps = np.zeros((bottom - top, grid.width + 1), np.int8)
        np.add.at(steps, (rows, start), 1)
        np.subtract.at(steps, (rows, stop), 1)
        mask[top:bottom] = np.cumsum(steps, axis=1, dtype=np.int8)[:, :-1]
    return mask


def draw_values(flat: Flat, grid: Grid) -> tuple[NDArray[np.int32], dict[tuple[int, int], tuple[int, int]]]:
    """(H, W) the value of the piece that covers each pixel, 0 where none does.

    Returns:
        The map, and for each pair of values that met on a pixel one such (row, column); the lower value wins.
    """
    values = np.zeros((grid.height, grid.width), np.int32)
    clashes: dict[tuple[int, int], tuple[int, int]] = {}
    for top, bottom in _bands(grid):
        rows, start, stop, of = _merged(*_spans(flat, grid, top, bottom), grid)
        steps = np.zeros((bottom - top, grid.width + 1), np.int32)
        np.add.at(steps, (rows, start), of)
        np.subtract.at(steps, (rows, stop), of)
        band = values[top:bottom]
        band[:] = np.cumsum(steps, axis=1, dtype=np.int32)[:, :-1]
        # Spans of one value are merged, so those that still overlap differ in value.
        order = np.argsort(rows * (grid.width + 1) + start, kind="stable")
        reach = np.maximum.accumulate((rows * (grid.width + 1) + stop)[order])
        mixed = np.unique(rows[order[1:]][(rows * (grid.width + 1) + start)[order[1:]] < reach[:-1]])
        for row in mixed.tolist():
            here = rows == row
            spans = list(zip(of[here].tolist(), start[here].tolist(), stop[here].tolist(), strict=True))
            _paint_row(band[row], spans)
            for low, high, column in _overlaps(spans):
                clashes.setdefault((low, high), (top + row, column))
    return values, clashes


def _paint_row(line: NDArray[np.int32], spans: list[tuple[int, int, int]]) -> None:
    """Paint (value, first, after) spans; the lowest value wins."""
    line[:] = 0
    for value, first, after in sorted(spans, reverse=True):
        line[first:after] = value


def _overlaps(spans: list[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Pairs of values (low, high) whose spans overlap, with a column where they do."""
    open_spans: list[tuple[int, int, int]] = []
    for value, first, after in sorted(spans, key=lambda span: span[1]):
        open_spans = [span for span in open_spans if span[2] > first]
        for other, _, _ in open_spans:
            yield min(value, other), max(value, other), first
        open_spans.append((value, first, after))


def _spans(
    flat: Flat, grid: Grid, top: int, bottom: int, *, even_odd: bool = False
) -> tuple[Ints, Ints, Ints, Ints]:
    """Runs of covered pixels in rows [top, bottom): row - top, first column, column after the last, value."""
    parts = [
        _disc_spans(flat, grid, top, bottom),
        _polygon_spans(flat, grid, top, bottom, even_odd=even_odd),
    ]
    rows, start, stop, of = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    keep = stop > start
    return rows[keep], start[keep], stop[keep], of[keep]


def _disc_spans(flat: Flat, grid: Grid, top: int, bottom: int) -> tuple[Ints, Ints, Ints, Ints]:
    x, y = _to_px(flat.discs[:, 0], flat.discs[:, 1], grid)
    radius = flat.discs[:, 2] * grid.px_per_mm
    which, rows = _rows(y - radius, y + radius, top, bottom)
    half = np.sqrt(np.maximum(radius[which] ** 2 - (rows + 0.5 - y[which]) ** 2, 0.0))
    return rows - top, _column(x[which] - half, grid), _column(x[which] + half, grid), flat.disc_values[which]


def _polygon_spans(
    flat: Flat, grid: Grid, top: int, bottom: int, *, even_odd: bool
) -> tuple[Ints, Ints, Ints, Ints]:
    x0, y0 = _to_px(flat.edges[:, 0], flat.edges[:, 1], grid)
    x1, y1 = _to_px(flat.edges[:, 2], flat.edges[:, 3], grid)
    which, rows = _rows(np.minimum(y0, y1), np.maximum(y0, y1), top, bottom)
    share = (rows + 0.5 - y0[which]) / (y1[which] - y0[which])
    columns = _column(x0[which] + share * (x1[which] - x0[which]), grid)
    owner = np.zeros(len(which), np.int64) if even_odd else flat.owners[which]
    # Sorted by polygon, row and column, the winding number is a running sum that is zero between polygons.
    order = np.argsort((owner * grid.height + rows) * (grid.width + 1) + columns, kind="stable")
    signs = np.where(y1[which] > y0[which], 1, -1)[order]
    winding = np.arange(1, len(order) + 1) % 2 if even_odd else np.cumsum(signs)
    inside = winding != 0
    before = np.concatenate([[False], inside[:-1]]) if len(inside) else inside
    opens, closes = order[inside & ~before], order[~inside & before]
    of = flat.polygon_values[flat.owners[which[opens]]]
    return rows[opens] - top, columns[opens], columns[closes], of


def _rows(low: Floats, high: Floats, top: int, bottom: int) -> tuple[Ints, Ints]:
    """For each range [low, high) the rows in [top, bottom) with their centre in it, as (index, row) pairs."""
    first = np.clip(np.ceil(low - 0.5), top, bottom).astype(np.int64)
    after = np.clip(np.ceil(high - 0.5), top, bottom).astype(np.int64)
    count = np.maximum(after - first, 0)
    which = np.repeat(np.arange(len(low)), count)
    rows = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + first[which]
    return which, rows


def _column(x: Floats, grid: Grid) -> Ints:
    """The first pixel whose centre is not left of x, held inside the picture."""
    return np.clip(np.ceil(x - 0.5), 0, grid.width).astype(np.int64)


def _to_px(x: Floats, y: Floats, grid: Grid) -> tuple[Floats, Floats]:
    across = (x - grid.x) * grid.px_per_mm
    return grid.width - across if grid.mirrored else across, (y - grid.y) * grid.px_per_mm


def _merged(rows: Ints, start: Ints, stop: Ints, of: Ints, grid: Grid) -> tuple[Ints, Ints, Ints, Ints]:
    """The spans with those of one row and one value that touch or overlap made one."""
    if not len(rows):
        return rows, start, stop, of
    stride = grid.width + 2
    line = (rows * (int(of.max()) + 1) + of) * stride
    order = np.argsort(line + start, kind="stable")
    line, begin, reach = line[order], (line + start)[order], np.maximum.accumulate((line + stop)[order])
    first = np.flatnonzero(np.concatenate([[True], begin[1:] > reach[:-1]]))
    last = np.concatenate([first[1:], [len(rows)]]) - 1
    chosen = order[first]
    return rows[chosen], start[chosen], reach[last] - line[last], of[chosen]


def _bands(grid: Grid) -> Iterator[tuple[int, int]]:
    step = max(1, _BAND_PX // max(1, grid.width))
    for top in range(0, grid.height, step):
        yield top, min(top + step, grid.height)


def _rectangles(start: Floats, end: Floats, radius: Floats, length: Floats) -> Floats:
    """The four edges of the rectangle about each line, (4 n, 4)."""
    along = (end - start) / length[:, None] * radius[:, None]
    side = np.column_stack([-along[:, 1], along[:, 0]])
    corners = np.stack([start + side, end + side, end - side, start - side], axis=1)
    return np.concatenate([corners, np.roll(corners, -1, axis=1)], axis=2).reshape(-1, 4)


def _ints(count: int) -> Ints:
    return np.zeros(count, np.int64)
