"""The part of a board that a question about one place is answered on: on a large board, the tile around it.

Shape letters: H, W pixels of the board, h, w = ceil(H / 4), ceil(W / 4) its cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inspect_vit.cells import CELL_PX, cells_of
from inspect_vit.inspector import Inspector
from inspect_vit.results import BoxXyxy, Defect
from inspect_vit.tiling import Tile, tile_around


@dataclass(frozen=True)
class CloseUp:
    """One tile of a board; all of it where the board is no larger."""

    image: NDArray[np.uint8]
    reference: NDArray[np.uint8] | None
    tile: Tile
    size: tuple[int, int]
    """(H, W) of the board."""

    @property
    def is_whole(self) -> bool:
        return self.image.shape[:2] == self.size

    def defect(self, defect: Defect) -> Defect:
        """A defect of the board in pixels of the close-up, cut to it."""
        (left, top), (height, width) = (self.tile.left, self.tile.top), self.image.shape[:2]
        x0, y0, x1, y1 = defect.box_xyxy
        box = (max(x0 - left, 0), max(y0 - top, 0), min(x1 - left, width), min(y1 - top, height))
        return replace(defect, box_xyxy=box)

    def query(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Weights of the board's cells (h, w) as those of the close-up's cells."""
        rows, columns = cells_of(*self.image.shape[:2])
        top, left = self.tile.top // CELL_PX, self.tile.left // CELL_PX
        return query[top : top + rows, left : left + columns]

    def place(self, part: NDArray[np.float32], unit_px: int) -> NDArray[np.float32]:
        """A map of the close-up in units of unit_px (..., rows, columns) on the whole board, 0 elsewhere."""
        if self.is_whole:
            return part
        shape = tuple(-(-side // unit_px) for side in self.size)
        whole = np.zeros((*part.shape[:-2], *shape), np.float32)
        top, left = self.tile.top // unit_px, self.tile.left // unit_px
        whole[..., top : top + part.shape[-2], left : left + part.shape[-1]] = part
        return whole


def close_up(
    inspector: Inspector,
    image: NDArray[np.uint8],
    *,
    reference: NDArray[np.uint8] | None,
    box: BoxXyxy,
) -> CloseUp:
    """The tile of a board (H, W, 3) whose middle lies nearest to a box's. Raises as `Inspector.inspect`."""
    inspector.check(image, reference)
    height, width = image.shape[:2]
    tile = tile_around(
        box, height, width, step=inspector.metadata.model.size_multiple, tile_px=inspector.tile_px
    )
    golden = None if reference is None else tile.of(reference)
    return CloseUp(tile.of(image), golden, tile, (height, width))


def query_box(query: NDArray[np.float32]) -> BoxXyxy:
    """The box, px, around the cells (h, w) that a query asks; all of them where it asks none."""
    rows, columns = np.nonzero(query > 0)
    if not len(rows):
        return 0.0, 0.0, float(CELL_PX * query.shape[1]), float(CELL_PX * query.shape[0])
    return (
        float(CELL_PX * columns.min()),
        float(CELL_PX * rows.min()),
        float(CELL_PX * (columns.max() + 1)),
        float(CELL_PX * (rows.max() + 1)),
    )
