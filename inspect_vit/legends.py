"""What the colours mean, drawn small: a bar for a scale, a triangle for the mix of three levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspect_vit.annotation import TEXT_PX
from inspect_vit.colours import (
    ATTENTION_RANGE,
    ATTENTION_TABLE,
    DEFECT_TABLE,
    LEVEL_COLOURS,
    RELEVANCE_END,
    RELEVANCE_TABLE,
    THRESHOLD_AT,
    gate_colour,
    rollout_scale,
)
from inspect_vit.drawing import DIM_INK, INK, PAPER, Colour, Picture, draw_text, fill, text_width

WARNING: Colour = (240, 228, 66)
"""Okabe-Ito yellow: the lightest of the set, told from the ink by every kind of colour-blindness."""


@dataclass(frozen=True)
class Note:
    """What is to be known of a picture beside its scale: one word or two, and short lines below."""

    title: str
    lines: tuple[str, ...] = ()
    is_warning: bool = False


def defect_legend(unit: float, *, table: NDArray[np.uint8] = DEFECT_TABLE) -> Picture:
    """The defect scale with the threshold marked."""
    ticks = [(0.0, "0"), (THRESHOLD_AT, "threshold"), (1.0, "1")]
    return _bar("defect probability", table, ticks, mark=THRESHOLD_AT, unit=unit)


def attention_legend(unit: float, level: str) -> Picture:
    """The attention scale of one level; uniform attention is marked."""
    low, high = np.log2(ATTENTION_RANGE)
    ticks = [
        (float((np.log2(value) - low) / (high - low)), name)
        for value, name in ((0.25, "1/4"), (1.0, "1"), (8.0, "8"), (64.0, "64"))
    ]
    return _bar(f"attention ({level} px), x uniform", ATTENTION_TABLE, ticks, mark=ticks[1][0], unit=unit)


def rollout_legend(unit: float) -> Picture:
    """The scale of roll-out: the share of the defect's attention that one cell of 4 px got."""
    values = ((1e-5, "0.001 %"), (1e-3, "0.1 %"), (1e-1, "10 %"))
    ticks = [(float(rollout_scale(np.array(value, np.float32))), name) for value, name in values]
    return _bar("roll-out, share per 4 px cell", ATTENTION_TABLE, ticks, mark=None, unit=unit)


def relevance_legend(unit: float) -> Picture:
    """The relevance scale: blue against the call, orange for it, in logits per cell of 4 px."""
    ticks = [(0.0, f"{-RELEVANCE_END:g}"), (0.5, "0"), (1.0, f"{RELEVANCE_END:g}")]
    return _bar("against / for the call, logits", RELEVANCE_TABLE, ticks, mark=0.5, unit=unit)


def gate_legend(unit: float) -> Picture:
    """A triangle whose corners are the levels alone and whose middle is all of them alike."""
    size = round(TEXT_PX * unit)
    pad = round(8 * unit)
    side = round(64 * unit)
    rise = round(side * 0.866)
    wide = text_width("16 px", size)
    picture = np.empty((2 * pad + 3 * size + rise, 2 * pad + side + wide + pad, 3), np.uint8)
    picture[:] = PAPER
    draw_text(picture, "gate share", (pad, pad + round(0.8 * size)), size, ink=INK)

    # Barycentric shares of each pixel of the triangle: 4 px at the top, 16 px left, 32 px right.
    rows, columns = np.mgrid[0:rise, 0:side].astype(np.float32)
    top_share = 1 - (rows + 0.5) / rise
    right_share = (columns + 0.5) / side - top_share / 2
    left_share = 1 - top_share - right_share
    inside = (left_share >= 0) & (right_share >= 0)
    colour = gate_colour({"4": top_share, "16": left_share, "32": right_share})
    left, top = pad + wide // 2, pad + 2 * size
    area = picture[top : top + rise, left : left + side]
    area[inside] = np.rint(colour[inside]).clip(0, 255).astype(np.uint8)

    names = {"4": (left + side // 2 + pad, top + size), "16": (pad, top + rise + size)}
    names["32"] = (left + side - wide // 2, top + rise + size)
    for level, origin in names.items():
        draw_text(picture, f"{level} px", origin, size, ink=DIM_INK)
    return picture


def level_swatches(unit: float) -> Picture:
    """The level colours in one row, for where a triangle does not fit."""
    size = round(TEXT_PX * unit)
    pad = round(8 * unit)
    step = size + text_width("16 px", size) + 2 * pad
    picture = np.empty((2 * size, step * len(LEVEL_COLOURS), 3), np.uint8)
    picture[:] = PAPER
    for index, (level, colour) in enumerate(LEVEL_COLOURS.items()):
        left = index * step
        fill(picture, (left, size // 2, left + size, size // 2 + size), colour)
        draw_text(picture, f"{level} px", (left + size + pad // 2, round(1.35 * size)), size, ink=DIM_INK)
    return picture


def _bar(
    title: str,
    table: NDArray[np.uint8],
    ticks: Sequence[tuple[float, str]],
    *,
    mark: float | None,
    unit: float,
) -> Picture:
    size = round(TEXT_PX * unit)
    pad = round(8 * unit)
    length, thick = round(180 * unit), round(9 * unit)
    picture = np.empty((2 * pad + 3 * size + thick, 2 * pad + length, 3), np.uint8)
    picture[:] = PAPER
    draw_text(picture, title, (pad, pad + round(0.8 * size)), size, ink=INK)

    top = pad + round(1.4 * size)
    ramp = table[np.linspace(0, 255, length).round().astype(int)]
    picture[top : top + thick, pad : pad + length] = ramp
    if mark is not None:
        at = pad + round(mark * length)
        half = max(1, round(unit))
        fill(picture, (at - half, top - half * 2, at + half, top + thick + half * 2), INK)

    baseline = top + thick + round(1.3 * size)
    for position, name in ticks:
        wide = text_width(name, size)
        left = round(pad + position * length - wide / 2)
        left = min(max(left, pad), pad + length - wide)
        draw_text(picture, name, (left, baseline), size, ink=DIM_INK)
    return picture


def draw_note(note: Note, unit: float) -> Picture:
    """A note alone; a warning has a bright bar on its left and bright words."""
    size = round(TEXT_PX * unit)
    pad = round(8 * unit)
    wide = max(text_width(line, size) for line in note.lines) if note.lines else 0
    wide = max(wide, text_width(note.title, size, bold=note.is_warning))
    step = round(1.35 * size)
    picture = np.empty((pad + step * (1 + len(note.lines)), 2 * pad + wide, 3), np.uint8)
    picture[:] = PAPER
    baseline = round(0.5 * pad + size)
    ink = WARNING if note.is_warning else INK
    draw_text(picture, note.title, (pad, baseline), size, bold=note.is_warning, ink=ink)
    for number, line in enumerate(note.lines, start=1):
        draw_text(picture, line, (pad, baseline + number * step), size, ink=DIM_INK)
    if note.is_warning:
        fill(picture, (0, 0, max(2, pad // 3), len(picture)), WARNING)
    return picture


def with_note(legend: Picture, note: Note, unit: float) -> Picture:
    """A legend with a note under it."""
    noted = draw_note(note, unit)
    width = max(legend.shape[1], noted.shape[1])
    picture = np.empty((legend.shape[0] + noted.shape[0], width, 3), np.uint8)
    picture[:] = PAPER
    picture[: len(legend), : legend.shape[1]] = legend
    picture[len(legend) :, : noted.shape[1]] = noted
    return picture
