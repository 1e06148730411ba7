"""Pyramids of tiles: a board at full size and at half, a quarter, ... of it, cut into tiles of one size.

Level 0 fits into one tile, the highest level is the board itself; a pixel of a level covers 2 x 2 of the
next. A pyramid comes to lie in a file without a name: the system keeps in memory what is looked at, and gives
the disk's room back when the pyramid is dropped or the process dies, however it dies.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from inspect_vit.drawing import Picture, Rect
from serving.errors import NotFoundError, StorageFullError
from serving.schemas import StoredReport

TILE_PX = 512
STRIP_ROWS = 2048
"""Rows that are halved together, even: bounds memory."""


@dataclass(frozen=True)
class Grid:
    """Which tiles a board of width x height px has."""

    width: int
    height: int

    @property
    def max_level(self) -> int:
        return (-(-max(self.width, self.height) // TILE_PX) - 1).bit_length()

    def step(self, level: int) -> int:
        """Times that a level is halved: a pixel of it covers 2^step px of the board."""
        return self.max_level - level

    def size(self, level: int) -> tuple[int, int]:
        """(width, height) of a level, px."""
        side = 1 << self.step(level)
        return -(-self.width // side), -(-self.height // side)

    def rect(self, level: int, column: int, row: int) -> Rect:
        """Where a tile lies, px of its level; those at the right and lower edge are smaller.

        Raises:
            NotFoundError: there is no such tile.
        """
        if not 0 <= level <= self.max_level:
            raise NotFoundError(f"level {level}: the levels of this board are 0 to {self.max_level}")
        width, height = self.size(level)
        left, top = TILE_PX * column, TILE_PX * row
        if not (0 <= left < width and 0 <= top < height):
            columns, rows = -(-width // TILE_PX), -(-height // TILE_PX)
            raise NotFoundError(f"tile {column}_{row}: level {level} has {columns} columns and {rows} rows")
        return left, top, min(left + TILE_PX, width), min(top + TILE_PX, height)


def grid_of(report: StoredReport) -> Grid:
    return Grid(report.image.width, report.image.height)


class Pyramid:
    """One picture at all levels: in memory when it is made, so that the first tile need not wait for the
    disk, and from `settle` on in its file. Safe to cut from in several threads meanwhile."""

    def __init__(self, picture: Picture) -> None:
        halved = [picture]
        for _ in range(Grid(picture.shape[1], picture.shape[0]).max_level):
            halved.append(halve(halved[-1]))
        self.steps: tuple[Picture, ...] = tuple(halved)
        """(height, width, 3) RGB each: the full size, half of it, a quarter, ..."""
        self.nbytes = sum(step.nbytes for step in halved)

    def part(self, step: int, rect: Rect) -> Picture:
        """A part of the picture halved `step` times, rect in its pixels."""
        left, top, right, bottom = rect
        return np.array(self.steps[step][top:bottom, left:right])

    def settle(self, folder: Path) -> None:
        """Move to a file without a name in a folder.

        Raises:
            OSError: no room; the pyramid stays in memory.
        """
        with tempfile.TemporaryFile(dir=folder) as file:
            for step in self.steps:
                file.write(np.ascontiguousarray(step).data)
            file.flush()
            flat = np.asarray(np.memmap(file, np.uint8, mode="r"))
        parts = np.split(flat, np.cumsum([step.size for step in self.steps])[:-1])
        self.steps = tuple(part.reshape(step.shape) for part, step in zip(parts, self.steps, strict=True))


def check_room(width: int, height: int, folder: Path, *, min_free_bytes: int) -> None:
    """Raises StorageFullError when a pyramid would leave less on the disk than inspections are to have."""
    wanted = 4 * width * height
    free = shutil.disk_usage(folder).free
    if free - wanted < min_free_bytes:
        raise StorageFullError(
            f"{free / 1e6:.0f} MB free on the disk of {folder}, wanted {(wanted + min_free_bytes) / 1e6:.0f} "
            "MB to look at this board",
            hint="make room on that disk, or lower INSPECT_VIT_MIN_FREE_MB; /image has the board as posted",
        )


def halve(picture: Picture) -> Picture:
    """(H, W, 3) -> (ceil(H / 2), ceil(W / 2), 3): means of 2 x 2, an odd last row or column repeated."""
    height, width = picture.shape[:2]
    half = np.empty((-(-height // 2), -(-width // 2), 3), np.uint8)
    for top in range(0, height, STRIP_ROWS):
        strip = picture[top : top + STRIP_ROWS]
        rows = len(strip)
        if rows % 2 or width % 2:
            strip = np.pad(strip, ((0, rows % 2), (0, width % 2), (0, 0)), mode="edge")
        out = half[top // 2 : top // 2 + -(-rows // 2)]
        cv2.resize(strip, (out.shape[1], len(out)), dst=out, interpolation=cv2.INTER_AREA)
    return half
