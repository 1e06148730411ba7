"""What the promotion gate found: gate.json, which the service reads and keeps with the promotion.

`inspect-vit evaluate --against` makes it; docs/promotion.md says what the figures mean.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from inspect_vit.calibration import Calibration, FoundBy, Mode, Unit
from inspect_vit.config import Frozen
from inspect_vit.documents import load_document, save_document
from inspect_vit.results import BoxXyxy

Result = Literal["pass", "fail", "insufficient"]
JSON_NAME, PAGE_NAME, PROGRESS_NAME = "gate.json", "gate.md", "progress.json"
REFUSAL_NAME = "gate-refusal.txt"
"""Why the gate could not judge, in words; beside no gate.json."""
MAX_LISTED = 100
"""Defects of a class, and calls, that are listed; the counts are of all."""
EXIT_CODES: dict[Result, int] = {"pass": 0, "fail": 1, "insufficient": 3}


class Side(Frozen):
    """One of the two models."""

    name: str
    version: str


class AcceptanceSet(Frozen):
    """The boards that both models inspected."""

    sets: tuple[str, ...] = Field(description="each folder's set and its part, as read")
    fingerprint: str = Field(description="12 hex digits over every picture, reference and label, by content")
    pictures: int = Field(ge=0)
    boards: int = Field(ge=0)
    defects: int = Field(ge=0, description="labelled ones that count")
    left_out: int = Field(
        0,
        ge=0,
        description="labelled ones in ignore zones of the recipe or below its smallest sizes; not counted",
    )


class MissedDefect(Frozen):
    """A labelled defect that the base calls and the candidate does not."""

    picture: str
    group: str = Field(description="the board; empty where the set names none")
    box_xyxy: BoxXyxy
    size_px: float = Field(
        description="longest side of what differs from the reference after a 2x2 opening, else of the box"
    )
    base_score: float
    candidate_score: float | None = Field(description="of its best call there; null: none, or verdict ERROR")


class SizeBucket(Frozen):
    """Defects up to so many px long, and longer than those of the bucket before."""

    max_px: float | None = Field(description="null: all longer ones")
    n: int = Field(ge=0)
    newly_missed: int = Field(ge=0)


class ClassResult(Frozen):
    """One class that both models know."""

    label: str = Field(description="as the candidate names it")
    result: Result
    num_defects: int = Field(ge=0)
    num_boards: int = Field(ge=0, description="boards with such a defect: the n of the bound")
    base_missed: int = Field(ge=0, description="defects")
    candidate_missed: int = Field(ge=0, description="defects")
    newly_missed: int = Field(ge=0, description="defects that the base calls and the candidate does not")
    newly_found: int = Field(ge=0, description="defects the other way round")
    boards_newly_missed: int = Field(ge=0, description="boards on which any such defect is newly missed")
    bound: float | None = Field(
        description="upper bound of the share of boards with such a defect on which one is newly missed; "
        "null: no board has one"
    )
    needs: int = Field(
        ge=0,
        description="further boards with such a confirmed defect, none newly missed, that would make it "
        "pass; 0 unless the result is insufficient",
    )
    by_size: tuple[SizeBucket, ...]
    missed: tuple[MissedDefect, ...] = Field(description="the newly missed ones, at most 100")


class NewCall(Frozen):
    """A false call of the candidate on a board on which the base has none."""

    picture: str
    group: str
    label: str | None = Field(description="null: not called but not inspected, verdict ERROR")
    score: float | None
    box_xyxy: BoxXyxy | None


class FalseCallResult(Frozen):
    """Boards stopped for nothing: with a call that shares no area with any labelled defect, or newly with
    verdict ERROR."""

    result: Result
    num_boards: int = Field(ge=0, description="all boards: the n of the bound")
    base_boards: int = Field(ge=0)
    candidate_boards: int = Field(ge=0)
    newly: int = Field(ge=0, description="boards stopped by the candidate and not by the base")
    cleared: int = Field(ge=0, description="boards the other way round")
    bound: float | None = Field(description="upper bound of the share of boards newly stopped")
    net_bound: float | None = Field(
        description="upper bound of that share less the share of boards cleared; may be negative"
    )
    needs: int = Field(ge=0, description="further boards, none newly stopped; as of a class")
    calls: tuple[NewCall, ...] = Field(description="at most 100")


class NewClass(Frozen):
    """A class that only the candidate knows. Nothing is asked of it."""

    label: str
    num_defects: int = Field(ge=0)
    found: int = Field(ge=0)


class Gate(Frozen):
    """The answer, and everything on which it depends."""

    format: Literal[1] = 1
    result: Result
    words: tuple[str, ...] = Field(description="the verdict, then each reason: class, figures, sizes, boards")
    created: str = Field(description="UTC, ISO 8601")
    base: Side
    candidate: Side
    data: AcceptanceSet
    mode: Mode
    unit: Unit
    found_by: FoundBy
    recipe: str | None
    margin: float
    false_call_margin: float
    confidence: float
    thresholds: dict[str, float] = Field(description="of the candidate, by class: what a promotion deploys")
    base_thresholds: dict[str, float]
    calibration: Calibration | None = Field(description="of the candidate; null: its own thresholds")
    classes: tuple[ClassResult, ...]
    false_calls: FalseCallResult
    new_classes: tuple[NewClass, ...]
    retired_classes: tuple[str, ...] = Field(description="known to the base alone, and given up on purpose")


def save_gate(path: Path, gate: Gate) -> None:
    """Write the document, whole or not at all."""
    save_document(path, gate)


def load_gate(path: str | Path) -> Gate:
    """Read what `save_gate` wrote. Raises ConfigError: not there, or not such a document."""
    return load_document(path, Gate, what="gate's answer", maker="inspect-vit evaluate --against")
