"""Were boxes drawn on the picture as it is stored, or as EXIF turns it?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from training.checks.differences import Boxes, PairFacts, overlaps

SLACK_PX = 0.5
"""A box that reaches over the edge by less is taken as rounded."""


@dataclass(frozen=True)
class RotationFacts:
    """How boxes fare as they are, and when they are turned as EXIF turns the stored pixels."""

    outside: int
    """Boxes that leave the picture as they are."""
    outside_turned: int
    turned: Boxes
    """(N, 4) the boxes as they lie on the picture if they were drawn on the stored pixels."""
    compared: bool
    """Whether a reference showed where the defects are."""
    unchanged: int = 0
    """Boxes in which board and reference are the same."""
    explained: int = 0
    """Differences that no box covers, but a turned one does."""


def try_stored_boxes(
    boxes: Boxes, size: tuple[int, int], orientation: int, pair: PairFacts | None
) -> RotationFacts:
    """Hold the boxes against the picture both ways.

    Args:
        size: (width, height) of the upright picture.
        orientation: EXIF, 2..8.
    """
    turned = turn_boxes(boxes, size, orientation)
    explained = sum(bool(overlaps(turned, box).any()) for box in pair.uncovered) if pair else 0
    return RotationFacts(
        outside=_count_outside(boxes, size),
        outside_turned=_count_outside(turned, size),
        turned=turned,
        compared=pair is not None,
        unchanged=len(pair.unchanged) if pair else 0,
        explained=explained,
    )


def turn_boxes(boxes: Boxes, size: tuple[int, int], orientation: int) -> Boxes:
    """Boxes on the stored pixels -> on the upright picture of `size` (width, height); EXIF 2.32, tag 274."""
    left, top, right, bottom = boxes.T
    if orientation >= 5:
        left, top, right, bottom = top, left, bottom, right
    if orientation in (2, 3, 6, 7):
        left, right = size[0] - right, size[0] - left
    if orientation in (3, 4, 7, 8):
        top, bottom = size[1] - bottom, size[1] - top
    return np.stack([left, top, right, bottom], axis=1).astype(np.float32)


def contradiction(facts: RotationFacts, num_boxes: int, *, told_by_reader: bool) -> str:
    """Why the boxes must have been drawn on the stored pixels, or "".

    Args:
        told_by_reader: the label file gives the stored size, or boxes were cut at the upright picture's edge.
    """
    if facts.outside > facts.outside_turned:
        return f"{facts.outside} of {num_boxes} boxes leave the upright picture; on the stored one all fit"
    if told_by_reader:
        return "the labels fit the size of the stored picture, not that of the upright one"
    if facts.compared and facts.unchanged and 2 * facts.explained >= num_boxes:
        return (
            f"{facts.unchanged} of {num_boxes} boxes lie where nothing differs from the reference; turned, "
            f"they cover {facts.explained} differences"
        )
    return ""


def _count_outside(boxes: Boxes, size: tuple[int, int]) -> int:
    limits = np.array([*size, *size], np.float32)
    return int(((boxes < -SLACK_PX) | (boxes > limits + SLACK_PX)).any(1).sum())
