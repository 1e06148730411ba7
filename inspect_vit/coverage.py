"""Was all of the board inspected? PASS means that every pixel outside ignore zones was.

Shape letters: H, W pixels of the picture, h, w = ceil(H / 4), ceil(W / 4) cells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inspect_vit.cells import CELL_PX, cells_of
from inspect_vit.errors import ConfigError


def coverage(
    is_answered: NDArray[np.bool_], *, unseen: NDArray[np.bool_] | None, ignore: NDArray[np.bool_] | None
) -> tuple[float, tuple[str, ...]]:
    """Share of the cells that count of which something is known, and in words what is missing.

    Args:
        is_answered: (h, w), where the network gave numbers.
        unseen: (h, w), cells that show no board or have no reference; None: there are none.
        ignore: (h, w), cells that do not count; None: all count.
    """
    counts = np.ones_like(is_answered) if ignore is None else ~ignore
    num_cells = int(counts.sum())
    if not num_cells:
        return 0.0, ("all of the board lies in ignore zones, so nothing was inspected; check the recipe",)
    blind = np.zeros_like(counts) if unseen is None else counts & unseen
    silent = counts & ~is_answered & ~blind
    faults = []
    for missing, why in (
        (blind, "the board is not in the picture there, or there is no reference to compare it with"),
        (silent, "the model gave no finite number there; check the checkpoint and the device"),
    ):
        num_missing = int(missing.sum())
        if num_missing:
            rows, columns = np.nonzero(missing)
            faults.append(
                f"{100 * num_missing / num_cells:.2g} % of the board was not covered ({num_missing} cells of "
                f"{CELL_PX} px between x {CELL_PX * columns.min()} and {CELL_PX * (columns.max() + 1)}, "
                f"y {CELL_PX * rows.min()} and {CELL_PX * (rows.max() + 1)}): {why}"
            )
    return 1.0 - int((blind | silent).sum()) / num_cells, tuple(faults)


def any_cells(pixels: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(H, W) pixels to (h, w) cells: True where one of a cell's pixels is."""
    rows, columns = cells_of(*pixels.shape)
    cells = np.zeros((rows, columns), np.bool_)
    for row in range(CELL_PX):
        for column in range(CELL_PX):
            part = pixels[row::CELL_PX, column::CELL_PX]
            cells[: part.shape[0], : part.shape[1]] |= part
    return cells


def check_mask(mask: NDArray[np.bool_] | None, cells: tuple[int, int], name: str) -> None:
    """Raises ConfigError unless None or bool cells (h, w)."""
    if mask is not None and (mask.dtype != np.bool_ or mask.shape != cells):
        raise ConfigError(
            f"{name}: a mask of {mask.dtype} and shape {mask.shape}, wanted bool {cells}, cells of 4 px; "
            "coverage.any_cells makes it from pixels"
        )
