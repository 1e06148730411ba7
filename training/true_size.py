"""How large a defect really is: DeepPCB draws boxes some 30 px wide around defects of 4 to 20 px."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

OPENINGS = (2, 3)
"""Sides, in px, of the openings under which a size is given: they drop the jitter of edges."""
UNKNOWN_SIZE = (-1, -1)
"""Of a defect whose board has no reference to compare with."""
_COPPER_ABOVE = 127


def true_size_px(
    image: NDArray[np.uint8], reference: NDArray[np.uint8], box_xyxy: NDArray[np.floating]
) -> tuple[int, int]:
    """Longest side of what differs in pixels whose middle the box holds, after a 2x2 and a 3x3 opening.

    The difference is (image XOR reference), both binarised; the largest blob left by the opening counts
    (8-connected, by area). 0 where the opening leaves nothing.

    Args:
        image, reference: (H, W) grey or (H, W, 3), 0..255, in register.
    """
    left, top, right, bottom = np.ceil(box_xyxy - 0.5).astype(int).clip(min=0)
    inside = (slice(top, bottom), slice(left, right))
    difference = _copper(image[inside]) ^ _copper(reference[inside])
    two, three = (_longest_side(difference, opening) for opening in OPENINGS)
    return two, three


def _copper(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    grey = picture if picture.ndim == 2 else cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    return (grey > _COPPER_ABOVE).astype(np.uint8)


def _longest_side(difference: NDArray[np.uint8], opening: int) -> int:
    opened = cv2.morphologyEx(difference, cv2.MORPH_OPEN, np.ones((opening, opening), np.uint8))
    _, _, blobs, _ = cv2.connectedComponentsWithStats(opened, connectivity=8)
    if len(blobs) == 1:  # the background alone
        return 0
    largest = blobs[1:][blobs[1:, cv2.CC_STAT_AREA].argmax()]
    return int(max(largest[cv2.CC_STAT_WIDTH], largest[cv2.CC_STAT_HEIGHT]))
