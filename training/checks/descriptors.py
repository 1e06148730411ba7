"""What a box shows, as a short vector: for asking which boxes look alike."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from training.checks.alignment import Picture

SIDE_PX = 32
"""Side to which each crop is resized."""
CONTEXT = 1.25
"""Side of the crop over the longest side of the box."""
CELLS, DIRECTIONS = 4, 8
LENGTH = CELLS**2 * DIRECTIONS
_CELL = np.arange(SIDE_PX) * CELLS // SIDE_PX
_CELL_OF = _CELL[:, None] * CELLS + _CELL


def describe_boxes(grey: Picture, boxes: NDArray[np.float32]) -> NDArray[np.float32]:
    """(N, LENGTH): the share of gradient that each part of the crop has in each direction, as its root.

    Two vectors differ little where edges run alike, whatever the light. Their length is 1, for a flat crop 0.

    Args:
        grey: (H, W).
    """
    rows = np.zeros((len(boxes), LENGTH), np.float32)
    for row, box in zip(rows, boxes, strict=True):
        crop = _crop(grey, box)
        x, y = (cv2.Sobel(crop, cv2.CV_32F, *axis) for axis in ((1, 0), (0, 1)))
        length, angle = (np.asarray(part) for part in cv2.cartToPolar(x, y))
        direction = np.floor(angle * (DIRECTIONS / (2 * np.pi)) + 0.5).astype(np.int64) % DIRECTIONS
        sums = np.bincount((_CELL_OF * DIRECTIONS + direction).ravel(), length.ravel(), LENGTH)
        row[:] = np.sqrt(sums / max(float(sums.sum()), 1e-6))
    return rows


def _crop(grey: Picture, box: NDArray[np.float32]) -> Picture:
    """The square around a box, (SIDE_PX, SIDE_PX); beyond the picture its edge goes on."""
    x, y = ((box[:2] + box[2:]) / 2).tolist()
    side = max(round(CONTEXT * float((box[2:] - box[:2]).max())), 2)
    window = cv2.getRectSubPix(grey, (side, side), (x - 0.5, y - 0.5))
    return np.asarray(cv2.resize(window, (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_AREA), np.uint8)
