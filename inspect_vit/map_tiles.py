"""Any part of a map at any zoom, coloured, with opacity: overlays that lie on a board of any size.

A map stays on its cells of 4 px and is made finer for the part that is looked at, never for all of the
board. A pixel of level k covers 2^k x 2^k px of the board. Up to 4 px (k = 2) values run smoothly between the
centres of cells, exactly as `drawing.upsample` draws them; above, each value stands for the cells it covers:
their highest where one cell matters (defects), else their mean.

Shape letters: h, w cells of 4 px, C values of a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.cells import CELL_PX
from inspect_vit.colours import (
    ATTENTION_RANGE,
    ATTENTION_TABLE,
    DEFECT_TABLE,
    LEVEL_COLOURS,
    RELEVANCE_TABLE,
    SILENT_BELOW,
    THRESHOLD_AT,
    attention_scale,
    gate_colour,
    look_up,
)
from inspect_vit.drawing import Picture, Rect

Rgba = tuple[int, int, int, int]
CELL_LEVEL = 2
"""The level whose pixels are the cells themselves."""
GATE_OPACITY = ([1 / 3, 0.5, 1.0], [0.05, 0.25, 0.5])
"""Of the largest share: where no level leads there is little to see."""
DIFFERENCE_END = 128
"""Grey levels at the two ends of the difference scale."""


def _faded(table: NDArray[np.uint8], at: list[float], opacity: list[float]) -> NDArray[np.uint8]:
    """A colour table (256, 3) with opacity, straight between points of the scale: (256, 4)."""
    alpha = np.interp(np.linspace(0, 1, 256), at, opacity) * 255
    return np.concatenate((table, np.rint(alpha)[:, None].astype(np.uint8)), axis=1)


UNIFORM_AT = float(attention_scale(np.array(1.0, np.float32)))
# The opacity jumps at the threshold, so that the eye finds there what the verdict hangs on.
DEFECT_RGBA = _faded(
    DEFECT_TABLE, [SILENT_BELOW, THRESHOLD_AT - 1e-3, THRESHOLD_AT, 1.0], [0.0, 0.12, 0.7, 0.85]
)
ATTENTION_RGBA = _faded(ATTENTION_TABLE, [0.0, UNIFORM_AT, 1.0], [0.0, 0.08, 0.85])


@dataclass(frozen=True)
class MapLevels:
    """A map on its cells and on coarser ones."""

    levels: tuple[NDArray[np.float16], ...]
    """(h, w[, C]), (ceil(h / 2), ceil(w / 2)[, C]), ...: level CELL_LEVEL of the board and those above."""

    @property
    def nbytes(self) -> int:
        return sum(level.nbytes for level in self.levels)

    def part(self, level: int, rect: Rect) -> NDArray[np.float32]:
        """Values (rows, columns[, C]) of a part of the board, rect in pixels of the level."""
        left, top, right, bottom = rect
        if level >= CELL_LEVEL:
            return self.levels[level - CELL_LEVEL][top:bottom, left:right].astype(np.float32)
        factor = CELL_PX >> level
        cells = self.levels[0]
        # One more cell on each side: what lies between two centres hangs on both.
        first_row, first_column = max(top // factor - 1, 0), max(left // factor - 1, 0)
        around = cells[first_row : -(-bottom // factor) + 1, first_column : -(-right // factor) + 1]
        rows, columns = around.shape[:2]
        fine = cv2.resize(
            around.astype(np.float32), (columns * factor, rows * factor), interpolation=cv2.INTER_LINEAR
        )
        top, left = top - first_row * factor, left - first_column * factor
        bottom, right = bottom - first_row * factor, right - first_column * factor
        return np.asarray(fine[top:bottom, left:right], np.float32)


def map_levels(
    cells: NDArray[np.float32],
    num_levels: int,
    *,
    keep: Literal["highest", "mean"],
    scale: Callable[[NDArray[np.float32]], NDArray[np.float32]] = np.asarray,
) -> MapLevels:
    """Levels of a map (h, w[, C]).

    Args:
        num_levels: of the board, the full size counted.
        keep: what a coarser cell has of the cells it covers.
        scale: brings values onto a colour scale, after they were put together.
    """
    found = [cells]
    for _ in range(CELL_LEVEL, num_levels - 1):
        fine = found[-1]
        rows, columns = fine.shape[:2]
        edges = [(0, rows % 2), (0, columns % 2), *[(0, 0)] * (fine.ndim - 2)]
        fine = np.pad(fine, edges, mode="edge")
        if keep == "highest":
            pairs = np.maximum(fine[::2], fine[1::2])
            half = np.maximum(pairs[:, ::2], pairs[:, 1::2])
        else:
            size = (fine.shape[1] // 2, fine.shape[0] // 2)
            half = np.asarray(cv2.resize(fine, size, interpolation=cv2.INTER_AREA), np.float32)
        found.append(half)
    return MapLevels(tuple(scale(level).astype(np.float16) for level in found))


def stacked_shares(gate_maps: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    """Gate shares of the levels as one map, (h, w, 3)."""
    return np.stack([gate_maps[level] for level in LEVEL_COLOURS], axis=-1)


def paint_gate(shares: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Gate shares (h, w, 3) -> (h, w, 4) RGBA: the mixed colour of the levels, clearer where one leads."""
    colour = gate_colour({level: shares[..., index] for index, level in enumerate(LEVEL_COLOURS)})
    alpha = 255 * np.interp(shares.max(axis=-1), *GATE_OPACITY)
    rgba = np.rint(np.concatenate((colour, alpha[..., None]), axis=-1)).clip(0, 255)
    return np.asarray(rgba, np.uint8)


def paint_difference(board: Picture, reference: Picture) -> Picture:
    """Where a board differs from its reference, (H, W, 3): orange where it is brighter, blue where darker.

    Of the three channels the one that differs most counts, in grey levels.
    """
    change = board.astype(np.int16) - reference
    most = np.abs(change).argmax(axis=-1)[..., None]
    signed = np.take_along_axis(change, most, axis=-1)[..., 0].astype(np.float32)
    scale = 0.5 + 0.5 * (signed / DIFFERENCE_END).clip(-1, 1)
    return look_up(RELEVANCE_TABLE, np.asarray(scale, np.float32))


def attention_value(scale: float) -> float:
    """Undo `attention_scale`: 0..1 -> times uniform attention."""
    low, high = np.log2(ATTENTION_RANGE)
    return float(2.0 ** (low + scale * (high - low)))


def table_colour(table: NDArray[np.uint8], scale: float) -> Rgba:
    """The colour that a scale value, 0..1, is painted in; a table without opacity is opaque."""
    red, green, blue, *alpha = (int(value) for value in table[round(255 * scale)])
    return red, green, blue, alpha[0] if alpha else 255
