"""Boxes with labels, and legends, placed so that they hide neither a defect nor each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from inspect_vit.drawing import (
    DIM_INK,
    INK,
    PAPER,
    Picture,
    Rect,
    draw_text,
    fill,
    outline,
    text_width,
)
from inspect_vit.results import Defect

TEXT_PX = 13
LEGEND_WIDTH_SHARE, LEGEND_HEIGHT_SHARE = 2 / 3, 1 / 3
"""Largest part of a picture's sides that a legend may take; on smaller pictures there is none."""


def unit_px(height: int, width: int) -> float:
    """Scale of lines and letters: 1 up to 1000 px, then with the picture, which a screen shows shrunk."""
    return max(1.0, max(height, width) / 1000)


def draw_defects(picture: Picture, defects: Sequence[Defect], thresholds: Mapping[str, float]) -> list[Rect]:
    """Frame and label defects in place; returns the rectangles that are taken now.

    Frames lie outside the boxes by a few pixels. A label is "number class score" and sits where it covers no
    other box or label; where there is no such place it shrinks to the number, then is left out. Defects that
    are listed below their threshold are dim.
    """
    height, width = picture.shape[:2]
    unit = unit_px(height, width)
    thickness = max(1, round(unit))
    frames = [
        _frame(defect, height, width, margin=round(3 * unit), thickness=thickness) for defect in defects
    ]
    taken = np.array(frames, np.int64).reshape(-1, 4)
    called = [defect.score >= thresholds[defect.label] for defect in defects]
    for frame, is_called in zip(frames, called, strict=True):
        outline(picture, frame, PAPER, thickness=2 * thickness)
        outline(picture, frame, INK if is_called else DIM_INK, thickness=thickness)
    for number, (defect, frame, is_called) in enumerate(zip(defects, frames, called, strict=True), start=1):
        for text in (f"{number} {defect.label} {defect.score:.2f}", f"{number}"):
            label = _place_label(text, frame, taken, height, width, unit, thickness)
            if label is not None:
                _draw_label(picture, text, label, unit, bold=is_called)
                taken = np.vstack([taken, label])
                break
    return [(int(left), int(top), int(right), int(bottom)) for left, top, right, bottom in taken]


def place_legend(picture: Picture, legend: Picture, taken: Sequence[Rect], heat: NDArray[np.float32]) -> bool:
    """Put a legend into the coolest corner that no box or label touches, in place; without one leave it out.

    heat: (h, w) cells of 4 px, any unit; the corner with the least of it is taken. Returns whether it is
    there.
    """
    height, width = picture.shape[:2]
    legend_height, legend_width = legend.shape[:2]
    if legend_height > LEGEND_HEIGHT_SHARE * height or legend_width > LEGEND_WIDTH_SHARE * width:
        return False
    gap = round(8 * unit_px(height, width))
    xs = (gap, width - gap - legend_width)
    ys = (height - gap - legend_height, gap)
    boxes = np.array(taken, np.int64).reshape(-1, 4)
    free = [
        (left, top, left + legend_width, top + legend_height)
        for top in ys
        for left in xs
        if not _hits((left, top, left + legend_width, top + legend_height), boxes)
    ]
    if not free:
        return False
    left, top, right, bottom = min(
        free, key=lambda r: float(heat[r[1] // 4 : r[3] // 4 + 1, r[0] // 4 : r[2] // 4 + 1].max())
    )
    area = picture[top:bottom, left:right]
    area[:] = np.rint(area * 0.1 + legend * 0.9).astype(np.uint8)
    return True


def _frame(defect: Defect, height: int, width: int, *, margin: int, thickness: int) -> Rect:
    """The box in whole pixels, grown by the margin, with room for its line inside the picture."""
    left, top, right, bottom = defect.box_xyxy
    return (
        max(int(np.floor(left)) - margin, thickness),
        max(int(np.floor(top)) - margin, thickness),
        min(int(np.ceil(right)) + margin, width - thickness),
        min(int(np.ceil(bottom)) + margin, height - thickness),
    )


def _place_label(
    text: str,
    frame: Rect,
    taken: NDArray[np.int64],
    height: int,
    width: int,
    unit: float,
    thickness: int,
) -> Rect | None:
    size = round(TEXT_PX * unit)
    wide = text_width(text, size) + round(8 * unit)
    high = round(1.4 * size)
    left, top, right, bottom = frame
    off = 2 * thickness
    above, below = top - off - high, bottom + off
    for x, y in (
        (left - thickness, above),
        (right + thickness - wide, above),
        (left - thickness, below),
        (right + thickness - wide, below),
        (right + off, top - thickness),
        (left - off - wide, top - thickness),
    ):
        x = min(max(x, 0), width - wide)
        label = (x, y, x + wide, y + high)
        inside = x >= 0 and y >= 0 and y + high <= height
        if inside and not _hits(label, taken):
            return label
    return None


def _draw_label(picture: Picture, text: str, label: Rect, unit: float, *, bold: bool) -> None:
    size = round(TEXT_PX * unit)
    left, _, _, bottom = label
    fill(picture, label, PAPER, opacity=0.85)
    ink = INK if bold else DIM_INK
    draw_text(picture, text, (left + round(4 * unit), bottom - round(0.4 * size)), size, ink=ink)


def _hits(rect: Rect, others: NDArray[np.int64]) -> bool:
    left, top, right, bottom = rect
    return bool(
        np.any(
            (others[:, 0] < right) & (left < others[:, 2]) & (others[:, 1] < bottom) & (top < others[:, 3])
        )
    )
