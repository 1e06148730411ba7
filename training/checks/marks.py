"""Labels that were painted into the picture: a network would learn the frames and look good in tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from training.checks.alignment import Picture

REACH_PX = 4
"""A frame is looked for this far inside and outside of its box."""
APART_PX = 5
"""Lines so far inside and outside of a frame must not have its colour: a plane of copper is no frame."""
SAME_COLOUR = 48
"""Largest difference per channel from the frame's colour; JPEG blurs thin lines."""
MIN_SHARE, MAX_SHARE_BESIDE = 0.85, 0.4
"""Share of a frame's pixels that have its colour, on each side of the box; and of the lines beside it."""


def find_painted_boxes(picture: Picture, boxes: NDArray[np.float32]) -> list[int]:
    """Numbers of the boxes along which a frame of one colour runs.

    Args:
        picture: (H, W, 3) RGB.
        boxes: (N, 4), px.
    """
    return [number for number, box in enumerate(boxes) if _has_frame(picture, box)]


def _has_frame(picture: Picture, box: NDArray[np.float32]) -> bool:
    for grow in range(-REACH_PX, REACH_PX + 1):
        sides = _sides(picture, box, grow)
        if sides is None:
            continue
        colour = np.median(np.concatenate(sides), axis=0)
        if min(_share(side, colour) for side in sides) < MIN_SHARE:
            continue
        beside = [_sides(picture, box, grow + step) for step in (-APART_PX, APART_PX)]
        lines = [np.concatenate(line) for line in beside if line is not None]
        if lines and max(_share(line, colour) for line in lines) <= MAX_SHARE_BESIDE:
            return True
    return False


def _sides(picture: Picture, box: NDArray[np.float32], grow: int) -> list[Picture] | None:
    """Pixels, (n, 3), along the four sides of the box grown by so many px, as far as they are in the picture.

    None for a box without area, or with less than two sides in the picture.
    """
    height, width = picture.shape[:2]
    left, top = np.floor(box[:2]).astype(int).tolist()
    right, bottom = (np.ceil(box[2:]).astype(int) - 1).tolist()
    left, top, right, bottom = left - grow, top - grow, right + grow, bottom + grow
    if right - left < 2 * APART_PX or bottom - top < 2 * APART_PX:
        return None
    rows, columns = slice(max(top, 0), bottom + 1), slice(max(left, 0), right + 1)
    sides = [picture[y, columns] for y in (top, bottom) if 0 <= y < height]
    sides += [picture[rows, x] for x in (left, right) if 0 <= x < width]
    return sides if len(sides) > 1 and all(map(len, sides)) else None


def _share(pixels: Picture, colour: NDArray[np.float64]) -> float:
    return float((np.abs(pixels - colour).max(axis=1) <= SAME_COLOUR).mean())
