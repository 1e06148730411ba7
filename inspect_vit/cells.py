"""The grid of 4 px cells that every map lies on, and which of its cells a question is about.

Shape letters: h, w = ceil(H / 4), ceil(W / 4) cells of the picture, h_l, w_l tokens of a level, K classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ConfigError
from inspect_vit.results import BoxXyxy, Defect

CELL_PX = 4
FAINT = 1e-6
"""Weight of a defect's cells where its defect map is 0: a box without any map asks all its cells alike."""


def cells_of(height: int, width: int) -> tuple[int, int]:
    """Rows and columns of the cells that cover a picture."""
    return math.ceil(height / CELL_PX), math.ceil(width / CELL_PX)


def to_cells(grid: NDArray[np.float32], cells: tuple[int, int], cells_per_token: int) -> NDArray[np.float32]:
    """A map on a level's tokens (..., h_l, w_l) as (..., h, w): every cell has the value of its token."""
    whole = np.repeat(np.repeat(grid, cells_per_token, axis=-2), cells_per_token, axis=-1)
    return np.ascontiguousarray(whole[..., : cells[0], : cells[1]])


def box_cells(box_xyxy: BoxXyxy) -> tuple[slice, slice]:
    """Rows and columns of the cells that a box touches, at least one of each."""
    left, top, right, bottom = box_xyxy
    first_row, first_column = int(top // CELL_PX), int(left // CELL_PX)
    return (
        slice(first_row, max(math.ceil(bottom / CELL_PX), first_row + 1)),
        slice(first_column, max(math.ceil(right / CELL_PX), first_column + 1)),
    )


def point_query(x: float, y: float, *, width: int, height: int) -> NDArray[np.float32]:
    """One clicked point (x, y), px, as weights of cells (h, w): 1 in its cell.

    Raises:
        ConfigError: a point outside the picture.
    """
    for name, value, side in (("x", x, width), ("y", y, height)):
        if not 0 <= value < side:
            raise ConfigError(f"{name}: {value:g}, wanted 0 to below {side}, pixels of the picture")
    query = np.zeros(cells_of(height, width), np.float32)
    query[int(y // CELL_PX), int(x // CELL_PX)] = 1.0
    return query


def defect_query(
    defect_map: NDArray[np.float32], class_names: Sequence[str], defect: Defect
) -> NDArray[np.float32]:
    """A defect as weights of cells (h, w): its class's probability under its box, 0 elsewhere.

    defect_map: (K, h, w), as in an InspectionResult.

    Raises:
        ConfigError: a class that is not among the names.
    """
    rows, columns = box_cells(defect.box_xyxy)
    query = np.zeros(defect_map.shape[1:], np.float32)
    query[rows, columns] = defect_map[label_index(defect, class_names), rows, columns] + FAINT
    return query


def label_index(defect: Defect, class_names: Sequence[str]) -> int:
    """Index of a defect's class.

    Raises:
        ConfigError: a class that is not among the names.
    """
    if defect.label not in class_names:
        raise ConfigError(f"defect class {defect.label!r}, wanted one of {', '.join(class_names)}")
    return list(class_names).index(defect.label)
