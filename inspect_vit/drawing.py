"""Text, boxes and blending on (H, W, 3) uint8 RGB pictures; the pieces that overlays are drawn with."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]
Rect = tuple[int, int, int, int]
"""(left, top, right, bottom) in whole pixels, right and bottom exclusive."""
Colour = tuple[int, int, int]

INK: Colour = (236, 239, 244)
DIM_INK: Colour = (160, 168, 180)
PAPER: Colour = (17, 21, 28)
"""Dark ground of legends, labels and sheets."""

STRIP_ROWS = 256


def text_width(text: str, size_px: int, *, bold: bool = False) -> int:
    """Width of one line in px; `size_px` is the height of its letters with their stems and tails."""
    extent = cv2.getTextSize((1, 1), text, (0, 0), _face(), size_px, _weight(bold))
    return int(extent[0] + extent[2])


def draw_text(
    picture: Picture,
    text: str,
    origin: tuple[int, int],
    size_px: int,
    *,
    bold: bool = False,
    ink: Colour = INK,
) -> None:
    """Write one line in place, from origin = (left, baseline)."""
    cv2.putText(picture, text, origin, ink, _face(), size_px, _weight(bold))


def _face() -> cv2.FontFace:
    return cv2.FontFace("sans")


def _weight(bold: bool) -> int:
    return 600 if bold else 400


def fill(picture: Picture, rect: Rect, colour: Colour, *, opacity: float = 1.0) -> None:
    """Fill the part of a rectangle that lies in the picture, in place."""
    left, top, right, bottom = (max(edge, 0) for edge in rect)
    area = picture[top:bottom, left:right]
    if area.size:
        area[:] = np.rint(area * (1 - opacity) + np.asarray(colour) * opacity).astype(np.uint8)


def outline(picture: Picture, rect: Rect, colour: Colour, *, thickness: int) -> None:
    """Draw a frame whose inner edge is the rectangle: not one pixel inside it is touched."""
    left, top, right, bottom = rect
    t = thickness
    for side in (
        (left - t, top - t, right + t, top),
        (left - t, bottom, right + t, bottom + t),
        (left - t, top, left, bottom),
        (right, top, right + t, bottom),
    ):
        fill(picture, side, colour)


def blend(base: Picture, colour: Picture, opacity: NDArray[np.float32]) -> Picture:
    """Mix base and colour (H, W, 3) by opacity (H, W), 0..1; in strips, to fit large boards in memory."""
    mixed = np.empty_like(base)
    for top in range(0, len(base), STRIP_ROWS):
        rows = slice(top, top + STRIP_ROWS)
        weight = opacity[rows, :, None]
        mixed[rows] = np.rint(base[rows] + (colour[rows] - base[rows].astype(np.float32)) * weight)
    return mixed


def upsample(cells: NDArray[np.float32], height: int, width: int) -> NDArray[np.float32]:
    """Cells of 4 px, (h, w) or (h, w, C) -> (height, width[, C]), smooth between the cells' centres."""
    rows, columns = cells.shape[:2]
    full = cv2.resize(cells, (columns * 4, rows * 4), interpolation=cv2.INTER_LINEAR)
    return np.asarray(full[:height, :width], np.float32)


def grey_of(picture: Picture) -> NDArray[np.uint8]:
    return np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY), np.uint8)
