"""The same defect at the same place on board after board: not the boards, but a mask, a screen or a tool."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from pydantic import FiniteFloat

from inspect_vit.config import Frozen

NUM_BOARDS = 3
"""Boards running that make a repeater."""
REACH_MM, REACH_PX = 0.5, 16.0
"""How near two places are one: mm where the recipe states the scale, else px of the reference."""


class Call(NamedTuple):
    """A call at or above its threshold; its middle in the recipe's frame, px."""

    label: str
    x: float
    y: float


class Track(Frozen):
    """A place that was called on the last board, and on those before it."""

    label: str
    x: FiniteFloat
    y: FiniteFloat
    """Where it was called first, so that a track does not wander."""
    inspections: tuple[str, ...]
    """Ids, oldest first; the last NUM_BOARDS."""

    @property
    def is_repeater(self) -> bool:
        return len(self.inspections) >= NUM_BOARDS

    def reaches(self, label: str, x: float, y: float, reach_px: float) -> bool:
        return label == self.label and math.hypot(x - self.x, y - self.y) <= reach_px


def follow(
    tracks: Iterable[Track], calls: Iterable[Call], *, inspection_id: str, reach_px: float
) -> tuple[Track, ...]:
    """The tracks after one more board: those it continues, nearest first, and new ones; all others end."""
    waiting = list(tracks)
    after = []
    for call in calls:
        near = [track for track in waiting if track.reaches(*call, reach_px)]
        if not near:
            after.append(Track(label=call.label, x=call.x, y=call.y, inspections=(inspection_id,)))
            continue
        best = min(near, key=lambda track: math.hypot(call.x - track.x, call.y - track.y))
        waiting.remove(best)
        inspections = (*best.inspections, inspection_id)[-NUM_BOARDS:]
        after.append(best.model_copy(update={"inspections": inspections}))
    return tuple(after)


def reach_px(px_per_mm: float | None) -> float:
    return REACH_PX if px_per_mm is None else REACH_MM * px_per_mm
