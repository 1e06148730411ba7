"""Alarms on the wire: GET /v1/alarms and what acknowledges one."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field, FiniteFloat

from inspect_vit.config import Frozen
from serving.schemas import Wire

AlarmKind = Literal["drift", "repeater"]
MAX_NOTE_CHARS = 2000


class DriftDetails(Wire):
    """How far a statistic has moved, when the alarm was raised."""

    now: FiniteFloat = Field(description="exponentially weighted mean, weight 0.2 for the newest board")
    baseline: FiniteFloat
    spreads: FiniteFloat = Field(description="their distance in spreads of the baseline; below zero: fallen")
    since: AwareDatetime = Field(description="time of the first board of the change, as estimated")
    inspection: str = Field(description="id of the board that raised the alarm")


class RepeaterDetails(Wire):
    """One place, board after board."""

    label: str
    place_px: tuple[FiniteFloat, FiniteFloat] = Field(
        description="(x, y) in the frame of the reference; without one, of the posted picture"
    )
    place_mm: tuple[FiniteFloat, FiniteFloat] | None = Field(
        description="the same from the upper left corner, where the recipe states the scale"
    )
    inspections: tuple[str, ...] = Field(description="ids, oldest first")


class AlarmReport(Wire):
    id: int
    raised: AwareDatetime
    kind: AlarmKind
    subject: str = Field(description="of a drift the statistic, of a repeater the class")
    recipe: str
    recipe_revision: int
    reference: str = Field(
        description="of the recipe's references the one that was used; (posted): one came with the board; "
        "empty: none"
    )
    camera: str
    model_version: str
    message: str
    drift: DriftDetails | None
    repeater: RepeaterDetails | None
    acknowledged: AwareDatetime | None = Field(description="null: the alarm is open")
    acknowledged_by: str | None
    note: str | None


class AlarmPage(Wire):
    alarms: tuple[AlarmReport, ...] = Field(description="newest first")
    next: str | None = Field(description="link to the next page, null on the last one")


class AcknowledgeRequest(Frozen):
    """The body of POST /v1/alarms/{id}/acknowledge; it may be left out."""

    note: str = Field("", max_length=MAX_NOTE_CHARS, description="what was found and done")
    new_baseline: bool = Field(
        False,
        description="of a drift: what is now is right, so learn the statistic anew from the next boards; "
        "default: the baseline stays, and the alarm comes again if the cause is still there",
    )
