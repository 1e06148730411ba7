"""Which part of a board is cut out, at which level of its pyramid, and how large it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.drawing import Rect
from inspect_vit.results import BoxXyxy
from serving.attention import read_rect
from serving.errors import FieldError
from serving.tiles_pyramid import Grid
from serving.wire import read_number

DEFAULT_SIZE_PX, LARGEST_SIZE_PX = 512, 2048
CLOSE_SIDE_PX, CLOSE_MARGIN = 64, 1.6
"""The square around a call: at least so many px, or so many times the call."""


@dataclass(frozen=True)
class Window:
    """A part of a board as it is drawn; the same of every layer, so that one can be laid over the other."""

    step: int
    """Times that the pyramid's picture is halved."""
    rect: Rect
    """px of that picture."""
    width: int
    height: int
    """px that it is drawn at."""
    is_lossless: bool = False
    """Each pixel of the board counts: it is drawn as it is or as a square."""

    def fit(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the part (rows, columns, ...) at the drawn size: pixels repeated, or their means."""
        rows, columns = values.shape[:2]
        if (rows, columns) == (self.height, self.width):
            return values
        how = cv2.INTER_NEAREST if self.width >= columns and self.height >= rows else cv2.INTER_AREA
        resized = cv2.resize(values, (self.width, self.height), interpolation=how)
        return np.asarray(resized)


def tile_window(grid: Grid, level: int, column: int, row: int) -> Window:
    """A tile at its own size. Raises NotFoundError."""
    left, top, right, bottom = rect = grid.rect(level, column, row)
    return Window(grid.step(level), rect, right - left, bottom - top)


def crop_window(grid: Grid, box: Rect, size_px: int) -> Window:
    """A box, px of the board: enlarged a whole number of times, or shrunk until the longer side is size_px.

    A shrunk crop is right to a pixel of itself.
    """
    left, top, right, bottom = box
    width, height = right - left, bottom - top
    longest = max(width, height)
    if zoom := size_px // longest:
        return Window(0, box, zoom * width, zoom * height, is_lossless=True)
    step = min((longest // size_px).bit_length() - 1, grid.max_level)
    side = 1 << step
    rect = (left // side, top // side, -(-right // side), -(-bottom // side))
    drawn = (max(1, round(width * size_px / longest)), max(1, round(height * size_px / longest)))
    return Window(step, rect, *drawn)


def read_crop(query: dict[str, str], grid: Grid) -> Window:
    """The parameters box (default: all of the board) and size (longer side, px) of a crop.

    Raises:
        FieldError: a wrong value, or a box that does not lie on the board.
    """
    size = read_number("size", query.get("size", str(DEFAULT_SIZE_PX)), most=LARGEST_SIZE_PX)
    box = read_rect("box", query["box"]) if "box" in query else (0, 0, grid.width, grid.height)
    if box[2] > grid.width or box[3] > grid.height:
        raise FieldError(
            f"box: {','.join(map(str, box))} does not lie on the board of {grid.width} x {grid.height} px"
        )
    return crop_window(grid, box, size)


def box_around(box_xyxy: BoxXyxy, width: int, height: int) -> Rect:
    """A square around a call, with some of its surroundings, that lies on the board."""
    left, top, right, bottom = box_xyxy
    side = round(max(CLOSE_SIDE_PX, CLOSE_MARGIN * max(right - left, bottom - top)))
    across, down = min(side, width), min(side, height)
    x = min(max(round((left + right - across) / 2), 0), width - across)
    y = min(max(round((top + bottom - down) / 2), 0), height - down)
    return x, y, x + across, y + down
