"""Challenge boards on the wire: GET and PUT /v1/recipes/{name}/challenge, and what clears a lock."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from inspect_vit.config import Frozen
from serving.schemas import Wire

MAX_BOARDS, MAX_LABELS, MAX_LABEL_CHARS, MAX_REASON_CHARS = 50, 50, 200, 2000
LONGEST_HOURS = 8760.0

Label = Annotated[str, Field(min_length=1, max_length=MAX_LABEL_CHARS)]


class ChallengeBoard(Frozen):
    """A board with known defects."""

    serial: Label = Field(description="as it is posted with POST /v1/inspect")
    labels: tuple[Label, ...] = Field(
        min_length=1,
        max_length=MAX_LABELS,
        description="class of each defect that must be called; one that is named twice must be called twice",
    )


class ChallengeRequest(Frozen):
    """The body of PUT /v1/recipes/{name}/challenge."""

    boards: tuple[ChallengeBoard, ...] = Field(max_length=MAX_BOARDS)
    every_hours: float | None = Field(
        None,
        gt=0.0,
        le=LONGEST_HOURS,
        allow_inf_nan=False,
        description="how often one of them is to be shown; null: no warning when none is",
    )


class ClearRequest(Frozen):
    """The body of POST /v1/recipes/{name}/challenge/clear."""

    reason: str = Field(min_length=1, max_length=MAX_REASON_CHARS, description="what was found and done")


class ChallengeState(Wire):
    locked: bool = Field(description="true: every board but the challenge boards gets verdict ERROR")
    since: AwareDatetime | None = Field(description="when it was locked; null: it is not")
    why: str = Field(description="empty: not locked")
    due: AwareDatetime | None = Field(
        description="when a challenge board must have been shown; later boards warn. Null: no board "
        "or no schedule"
    )


class ChallengeReport(Wire):
    recipe: str
    boards: tuple[ChallengeBoard, ...]
    every_hours: float | None
    shown: AwareDatetime | None = Field(description="when all of a challenge board was last called")
    state: ChallengeState
