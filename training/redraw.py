"""Boxes drawn anew by what differs from the golden reference: one convention for sets of several annotators.

Annotators frame the same defect tightly, loosely, or with the pad around it. An IoU then measures habit.
For pictures in register with their reference the pixels themselves tell where the defect ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ConfigError
from inspect_vit.image_io import read_image
from inspect_vit.results import Sample

DIFFERENT = 24
"""A pixel differs when one of its channels does by more: above the noise of JPEG."""
SLACK_PX = 2
"""A defect may reach this far out of its label."""


def redraw(samples: Sequence[Sample], *, margin_px: int) -> tuple[list[Sample], int]:
    """The samples with boxes that are the bounds of the difference inside each label, each `margin_px` wider.

    The difference is opened with a 3x3 square, which drops noise. A label in which nothing differs stays.

    Returns:
        The samples, and how many labels stayed as they are.

    Raises:
        ConfigError: a sample without a reference.
    """
    redrawn, kept = [], 0
    for sample in samples:
        if sample.reference is None:
            raise ConfigError(f"{sample.image} has no reference to redraw its boxes by")
        pictures = [read_image(path)[0] for path in (sample.image, sample.reference)]
        different = (cv2.absdiff(*pictures).max(-1) > DIFFERENT).astype(np.uint8)
        boxes = sample.boxes.copy()
        for i, box in enumerate(sample.boxes):
            bounds = _bounds(different, box)
            if bounds is None:
                kept += 1
            else:
                height, width = different.shape
                limits = np.array([width, height, width, height], np.float32)
                margin = margin_px * np.array([-1, -1, 1, 1], np.float32)
                boxes[i] = np.clip(bounds + margin, 0, limits)
        redrawn.append(replace(sample, boxes=boxes))
    return redrawn, kept


def _bounds(different: NDArray[np.uint8], box: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """box_xyxy of what differs in a label, (4,), or None."""
    left, top = (max(int(edge) - SLACK_PX, 0) for edge in np.floor(box[:2]))
    right, bottom = (int(edge) + SLACK_PX for edge in np.ceil(box[2:]))
    inside = cv2.morphologyEx(different[top:bottom, left:right], cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    rows, columns = np.nonzero(inside)
    if not len(rows):
        return None
    return np.array(
        [left + columns.min(), top + rows.min(), left + columns.max() + 1, top + rows.max() + 1], np.float32
    )
