"""What the colours of each layer mean: read off the very tables that the tiles are painted with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from inspect_vit.colours import ATTENTION_RANGE, LEVEL_COLOURS, RELEVANCE_TABLE, THRESHOLD_AT
from inspect_vit.differences import PIXEL_DIFFERS
from inspect_vit.map_tiles import (
    ATTENTION_RGBA,
    DEFECT_RGBA,
    DIFFERENCE_END,
    attention_value,
    paint_gate,
    table_colour,
)
from serving.picture_schemas import LegendReport, LegendStop

NUM_STEPS = 16
JUST_BELOW = 127 / 255
"""The last value of a scale that is painted as below the threshold."""


def defect_legend(thresholds: Mapping[str, float], label: str | None) -> LegendReport:
    """Of one class, or of all: in probability where they share one threshold, else relative to it."""
    shared = {thresholds[label]} if label is not None else set(thresholds.values())
    # The same clip as the scale's own, so that a threshold of 0 or 1 has a legend too.
    threshold = min(max(shared.pop(), 1e-6), 1 - 1e-6) if len(shared) == 1 else THRESHOLD_AT
    steps = sorted({*(step / NUM_STEPS for step in range(NUM_STEPS + 1)), JUST_BELOW})
    values = np.interp(steps, [0.0, THRESHOLD_AT, 1.0], [0.0, threshold, 1.0])
    whose = f"the class {label!r}" if label is not None else "the likeliest class"
    if shared:
        unit, words = "of the way", "0: probability 0; 0.5: the class's own threshold; 1: probability 1"
    else:
        unit, words = "probability", f"probability that a place is a defect of {whose}"
    return LegendReport(
        stops=_stops(DEFECT_RGBA, steps, [float(value) for value in values]),
        threshold=threshold,
        unit=unit,
        words=f"{words}; what is below the threshold is nearly transparent",
    )


def attention_legend(level: str) -> LegendReport:
    low, high = np.log2(ATTENTION_RANGE)
    steps = [index / (high - low) for index in range(int(high - low) + 1)]
    return LegendReport(
        stops=_stops(ATTENTION_RGBA, steps, [attention_value(step) for step in steps]),
        threshold=1.0,
        unit="times uniform",
        words=f"attention of the {level} px level; 1 is what each place gets when nothing stands out",
    )


def gate_legend() -> LegendReport:
    """The colour of each level where it decides alone."""
    alone = paint_gate(np.eye(len(LEVEL_COLOURS), dtype=np.float32)[None])[0]
    return LegendReport(
        stops=tuple(
            LegendStop(value=1.0, rgba=_rgba(colour), name=f"{level} px")
            for level, colour in zip(LEVEL_COLOURS, alone, strict=True)
        ),
        threshold=None,
        unit="share",
        words="share of each level in the gate at a place, not what decided; where none leads it is faint",
    )


def difference_legend() -> LegendReport:
    steps = [step / NUM_STEPS for step in range(NUM_STEPS + 1)]
    return LegendReport(
        stops=_stops(RELEVANCE_TABLE, steps, [DIFFERENCE_END * (2 * step - 1) for step in steps]),
        threshold=float(PIXEL_DIFFERS),
        unit="grey levels",
        words="board minus reference: orange where the board is brighter, blue where it is darker; "
        "from the threshold on, either way, a pixel counts as different",
    )


def picture_legend(layer: str) -> LegendReport:
    """A layer that shows the board or its reference as they are."""
    what = "the board as posted" if layer == "image" else "the golden reference, laid under the board"
    return LegendReport(stops=(), threshold=None, unit="", words=what)


def _stops(table: NDArray[np.uint8], steps: list[float], values: list[float]) -> tuple[LegendStop, ...]:
    return tuple(
        LegendStop(value=value, rgba=table_colour(table, step))
        for step, value in zip(steps, values, strict=True)
    )


def _rgba(colour: NDArray[np.uint8]) -> tuple[int, int, int, int]:
    red, green, blue, alpha = (int(value) for value in colour)
    return red, green, blue, alpha
