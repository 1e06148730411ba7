"""Boards larger than a tile: tiles that overlap, and their raw maps blended into one map of the board.

Tiles begin at multiples of the model's size, so the attention windows of the 4 and 16 px levels are the same
in every tile and on the board in one piece. Two things differ: a token at a tile's border has no neighbours
beyond it, and the 32 px level attends to its whole tile, not to the whole board. So on a large board that
level's context is at most one tile, as much as on the boards of a tile and less that the model is used on
otherwise; what lies further away has no say in a call, and a tile's attention is in multiples of uniform
attention over that tile.

Where tiles overlap, each has weight 0 within a margin of its border, then a weight that rises evenly; the
weights of all tiles sum to 1 in every cell. So maps have no seams, and no defect is judged where it is cut.

Shape letters: C maps, h, w cells of the padded board, r rows of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inspect_vit.errors import ConfigError

TILE_PX = 1280
"""Longest side that is inspected in one piece. Twice the side of DeepPCB's pictures."""
OVERLAP_SHARE = 1 / 4
"""Least overlap of tiles by their side: 320 px, one window of the 16 px level. It costs 1.4 to 1.8 times."""
MARGIN_SHARE = 1 / 5
"""Margin in which a tile has no say, by the overlap: 64 px, half of the largest defect that is never cut."""

Span = tuple[int, int]
"""(start, end) along one axis, px, end exclusive."""


class Tile(NamedTuple):
    """A rectangle of the padded board, px, bottom and right exclusive."""

    top: int
    left: int
    bottom: int
    right: int

    def of(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Its part of (H, W, ...); less at the right and bottom, where the board ends before its padding."""
        return picture[self.top : self.bottom, self.left : self.right]


@dataclass(frozen=True)
class Plan:
    """How a board is cut: each row of tiles has each of the columns. Starts rise; the first is 0."""

    rows: tuple[Span, ...]
    columns: tuple[Span, ...]
    overlap_px: int

    @property
    def num_tiles(self) -> int:
        return len(self.rows) * len(self.columns)

    @property
    def tiles(self) -> list[Tile]:
        """Row by row."""
        return [Tile(top, left, bottom, right) for top, bottom in self.rows for left, right in self.columns]


def tile_side(step: int, tile_px: int | None = None) -> int:
    """The side of a tile for a model that takes multiples of `step` px; the default, or the one asked for.

    Raises:
        ConfigError: a side that is not a multiple of the step, or too short to overlap.
    """
    if tile_px is None:
        return step * max(2, math.ceil(TILE_PX / step))
    if tile_px % step or tile_px < 2 * step:
        nearest = step * max(2, round(tile_px / step))
        raise ConfigError(f"tile_px: {tile_px}, wanted a multiple of {step} from {2 * step}, as {nearest}")
    return tile_px


def plan_tiles(height: int, width: int, *, step: int, tile_px: int) -> Plan:
    """Cut a board of that size, px, into as few tiles of at most tile_px as overlap enough, alike in size."""
    overlap = step * math.ceil(OVERLAP_SHARE * tile_px / step)
    rows, columns = (
        _spans(step * math.ceil(side / step), step=step, tile_px=tile_px, overlap=overlap)
        for side in (height, width)
    )
    return Plan(rows, columns, overlap)


def _spans(length: int, *, step: int, tile_px: int, overlap: int) -> tuple[Span, ...]:
    if length <= tile_px:
        return ((0, length),)
    count = math.ceil((length - overlap) / (tile_px - overlap))
    side = step * math.ceil((length + (count - 1) * overlap) / (count * step))
    starts = [step * round(i * (length - side) / ((count - 1) * step)) for i in range(count)]
    return tuple((start, start + side) for start in starts)


def tile_around(
    box: tuple[float, float, float, float], height: int, width: int, *, step: int, tile_px: int
) -> Tile:
    """The tile of the padded board whose middle lies nearest to a box's, box_xyxy px."""
    (top, bottom), (left, right) = (
        _span_around((low + high) / 2, step * math.ceil(side / step), step, tile_px)
        for low, high, side in ((box[1], box[3], height), (box[0], box[2], width))
    )
    return Tile(top, left, bottom, right)


def _span_around(middle: float, length: int, step: int, tile_px: int) -> Span:
    start = step * round((middle - tile_px / 2) / step)
    start = max(0, min(start, length - tile_px))
    return start, min(start + tile_px, length)


def weights(spans: tuple[Span, ...], overlap_px: int, unit_px: int) -> list[NDArray[np.float32]]:
    """The say of each span in its own units of unit_px px, 0..1; sums to 1 wherever spans overlap.

    Raises:
        ConfigError: a stretch that lies in no tile, or in tiles' margins only.
    """
    length, margin = spans[-1][1], MARGIN_SHARE * overlap_px
    total = np.zeros(length // unit_px)
    raw = []
    for start, end in spans:
        middle = np.arange(start + unit_px / 2, end, unit_px)
        inside = np.full(len(middle), np.inf)
        if start > 0:
            inside = np.minimum(inside, middle - start)
        if end < length:
            inside = np.minimum(inside, end - middle)
        raw.append(((inside - margin) / (overlap_px - 2 * margin)).clip(0, 1))
        total[start // unit_px : end // unit_px] += raw[-1]
    if total.min() <= 0:
        place = int(total.argmin()) * unit_px
        raise ConfigError(f"the tiles {spans} leave the stretch at {place} px without an answer")
    return [
        (part / total[start // unit_px : end // unit_px]).astype(np.float32)
        for part, (start, end) in zip(raw, spans, strict=True)
    ]


def blend_rows(
    plan: Plan, run: Callable[[Tile], tuple[Tensor, ...]], *, cell_px: int, weight_px: int | None = None
) -> Iterator[tuple[int, tuple[Tensor, ...]]]:
    """Run tile by tile, hand on each stretch of the board's rows as soon as no later tile changes it.

    Memory is that of one row of tiles. A board of one tile is handed on as it is.

    Args:
        run: a tile to its raw maps, (C, rows, columns) each, on cells of cell_px.
        weight_px: weights are equal within squares of that side, so what is equal there stays so; default
            cell_px.

    Yields:
        The first row, and the maps (C, r, w) from there on; top to bottom, without gaps.
    """
    if plan.num_tiles == 1:
        yield 0, run(plan.tiles[0])
        return
    fine = (weight_px or cell_px) // cell_px
    by_row, by_column = (
        [part.repeat(fine) for part in weights(spans, plan.overlap_px, fine * cell_px)]
        for spans in (plan.rows, plan.columns)
    )
    num_columns = plan.columns[-1][1] // cell_px
    begun: tuple[Tensor, ...] = ()
    for i, (top, bottom) in enumerate(plan.rows):
        num_rows = (bottom - top) // cell_px
        total: tuple[Tensor, ...] = ()
        for (left, right), across in zip(plan.columns, by_column, strict=True):
            maps = run(Tile(top, left, bottom, right))
            total = total or tuple(part.new_zeros(len(part), num_rows, num_columns) for part in maps)
            weight = torch.from_numpy(by_row[i][:, None] * across).to(maps[0].device)
            for whole, part in zip(total, maps, strict=True):
                whole[:, :, left // cell_px : right // cell_px] += part * weight
        for whole, above in zip(total, begun, strict=bool(begun)):
            whole[:, : above.shape[1]] += above
        done = num_rows if i + 1 == len(plan.rows) else (plan.rows[i + 1][0] - top) // cell_px
        begun = tuple(whole[:, done:].clone() for whole in total)
        yield top // cell_px, tuple(whole[:, :done] for whole in total)
