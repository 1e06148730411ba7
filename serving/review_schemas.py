"""Reviews on the wire: what people say of an inspection, and how it then stands."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, ConfigDict, Field, FiniteFloat

from serving.schemas import Wire

Word = Literal["real", "false_call", "process_indicator"]
Disposition = Literal["rework", "scrap", "use_as_is", "repaired"]
ReviewState = Literal["open", "done"]
Final = Literal["good", "bad"]
ReviewKind = Literal["verification", "disposition"]

MAX_CALLS, MAX_MISSED, MAX_POINTS, MAX_NOTE_CHARS, MAX_HISTORY = 300, 300, 500, 2000, 200
Label = Annotated[str, Field(min_length=1, max_length=200)]
Point = tuple[FiniteFloat, FiniteFloat]
Revision = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Said(Wire):
    """What people say is taken as it is written: a text is no number and no yes."""

    model_config = ConfigDict(strict=True)


class CallWord(Said):
    """What a person says of one call."""

    defect: int = Field(ge=1, le=MAX_CALLS, description="id of the call in the inspection")
    word: Word
    label: Label = Field(description="the class after review; another than the report's: reclassified")


class Missed(Said):
    """A defect that was not called. Exactly one of box_xyxy and polygon is given."""

    label: Label = Field(description="its class; may be a new one")
    box_xyxy: tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat] | None = Field(
        None, description="left, top, right, bottom in pixels of the posted image"
    )
    polygon: Annotated[tuple[Point, ...], Field(min_length=3, max_length=MAX_POINTS)] | None = Field(
        None, description="its outline: (x, y) in pixels of the posted image"
    )


class Document(Said):
    """All that was said of one inspection."""

    calls: Annotated[tuple[CallWord, ...], Field(max_length=MAX_CALLS)] = ()
    missed: Annotated[tuple[Missed, ...], Field(max_length=MAX_MISSED)] = ()
    checked: bool = False
    disposition: Disposition | None = None
    note: str = ""


class Verification(Said):
    """The body of POST /v1/inspections/{id}/verifications: the whole of it, not what changed."""

    expects: Revision = Field(description="revision of the review that this was made from; 0: none yet")
    calls: Annotated[tuple[CallWord, ...], Field(max_length=MAX_CALLS)]
    missed: Annotated[tuple[Missed, ...], Field(max_length=MAX_MISSED)]
    checked: bool = Field(description="the whole board was looked at")


class DispositionRequest(Said):
    """The body of POST /v1/inspections/{id}/disposition."""

    expects: Revision = Field(description="revision of the review that this was made from; 0: none yet")
    disposition: Disposition | None = Field(description="what happens to the board; null: not decided")
    note: str = Field("", max_length=MAX_NOTE_CHARS)


class ReviewEntry(Wire):
    """One revision."""

    revision: int
    kind: ReviewKind
    actor: str = Field(description="name of the key; empty: without keys")
    at: AwareDatetime


class Review(Wire):
    """How the review of one inspection stands."""

    inspection: str
    revision: int = Field(ge=0, description="0: nobody has said anything yet")
    state: ReviewState = Field(
        description="done: every listed call has a word, the board was checked, a bad one has a disposition"
    )
    calls: tuple[CallWord, ...]
    missed: tuple[Missed, ...]
    checked: bool
    disposition: Disposition | None
    note: str
    final: Final | None = Field(
        description="bad: a call is real or something was missed; good: done otherwise; null: not yet known"
    )
    hasty: bool = Field(
        description="the verification came with more false calls than a person can have looked at; it is "
        "kept out of retraining until it is sent again"
    )
    question: str = Field(description="why the server asks back; empty: it does not")
    actor: str | None = Field(description="who made this revision")
    at: AwareDatetime | None
    history: tuple[ReviewEntry, ...] = Field(description="the newest 200 revisions, oldest first")
