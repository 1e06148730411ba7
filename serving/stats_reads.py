"""What the figures are counted from: narrow rows of the store, no reports and no pictures.

Only `read_boards` says which inspections count, from an index that has all it needs; what else is read is of
all inspections of the time, without a look at their large rows.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.orm import Session

from inspect_vit.results import Verdict
from serving.database import InspectionRow, RecipeRow
from serving.ids import first_id_at
from serving.line_tables import CallRow, ChallengeRunRow, ElectricalTestRow, PrunedDayRow
from serving.review_tables import QueueRow, ReviewRow

ROWS_AT_ONCE, IDS_AT_ONCE = 5000, 500
MAX_PLACES = 5000


@dataclass(frozen=True)
class Span:
    """Which inspections are counted: from `since`, before `until`, of one recipe or of all."""

    since: datetime
    until: datetime
    recipe: str | None = None

    def holds(self, inspection: Any) -> ColumnElement[bool]:
        """Whether the id in a column is of the span's time."""
        first, end = first_id_at(self.since.timestamp()), first_id_at(self.until.timestamp())
        return and_(inspection >= first, inspection < end)


class Board(NamedTuple):
    """One inspection."""

    id: str
    verdict: str
    attempt: int | None
    serial: str | None
    recipe: str | None
    revision: int | None
    state: str | None
    final: str | None
    is_hasty: bool | None
    is_drawn: bool | None
    review: int | None
    """Revision of the newest, 0: nobody yet. These five are None where the queue has no row of it."""


class Words(NamedTuple):
    """What a finished review says."""

    inspection: str
    calls: dict[int, tuple[str, str]]
    """By number of the call: word, and class after review."""
    missed: tuple[str, ...]
    """Classes of what was added."""


def at_one_moment(session: Session) -> None:
    """Let all that a session reads be of the moment of its first query, whatever is stored meanwhile."""
    if session.get_bind().dialect.name == "sqlite":
        session.connection().exec_driver_sql("BEGIN")
    else:
        session.connection(execution_options={"isolation_level": "REPEATABLE READ"})


def complete_since(session: Session) -> datetime | None:
    """From when on nothing was deleted, by whole UTC days; None: nothing ever was."""
    last = session.scalar(select(func.max(PrunedDayRow.day)))
    return None if last is None else datetime.fromisoformat(last).replace(tzinfo=UTC) + timedelta(days=1)


def read_boards(session: Session, span: Span) -> Iterator[Board]:
    """All inspections but those of challenge boards, oldest first."""
    query = (
        select(
            InspectionRow.id,
            InspectionRow.verdict,
            InspectionRow.attempt,
            InspectionRow.serial,
            InspectionRow.recipe,
            InspectionRow.recipe_revision,
            QueueRow.state,
            QueueRow.final,
            QueueRow.hasty,
            QueueRow.audit,
            QueueRow.revision,
        )
        .outerjoin(QueueRow, QueueRow.inspection == InspectionRow.id)
        .where(*_counted(span))
        .order_by(InspectionRow.id)
        .execution_options(yield_per=ROWS_AT_ONCE)
    )
    for row in session.execute(query):
        yield Board._make(row)


def count_challenges(session: Session, span: Span) -> int:
    query = select(func.count()).select_from(ChallengeRunRow).where(span.holds(ChallengeRunRow.inspection))
    if span.recipe is not None:
        query = query.where(ChallengeRunRow.recipe == span.recipe)
    return session.scalar(query) or 0


def read_words(session: Session, span: Span) -> Iterator[Words]:
    """The finished reviews that were not hasty."""
    query = (
        select(QueueRow.inspection, ReviewRow.document)
        .join(
            ReviewRow,
            (ReviewRow.inspection == QueueRow.inspection) & (ReviewRow.revision == QueueRow.revision),
        )
        .where(QueueRow.state == "done", QueueRow.hasty.is_(False), span.holds(QueueRow.inspection))
        .execution_options(yield_per=ROWS_AT_ONCE)
    )
    for inspection, text in session.execute(query):
        document = json.loads(text)
        yield Words(inspection, words_of(document), tuple(one["label"] for one in document.get("missed", ())))


def words_of(document: dict[str, Any]) -> dict[int, tuple[str, str]]:
    """By number of the call: word, and class after review."""
    return {one["defect"]: (one["word"], one["label"]) for one in document.get("calls", ())}


def read_calls(session: Session, span: Span) -> Iterator[tuple[str, int, str]]:
    """Inspection, number and class of every listed call."""
    query = (
        select(CallRow.inspection, CallRow.defect, CallRow.label)
        .where(span.holds(CallRow.inspection))
        .execution_options(yield_per=ROWS_AT_ONCE)
    )
    yield from session.execute(query)


def read_places(session: Session, span: Span) -> tuple[list[CallRow], int]:
    """The newest calls whose place is known, and how many there are."""
    query = select(CallRow).join(InspectionRow, InspectionRow.id == CallRow.inspection)
    query = query.where(span.holds(CallRow.inspection), CallRow.x.is_not(None), *_counted(span))
    newest = query.order_by(CallRow.inspection.desc(), CallRow.defect).limit(MAX_PLACES)
    number = session.scalar(select(func.count()).select_from(query.subquery())) or 0
    return list(session.scalars(newest)), number


def failed_tests(session: Session, span: Span) -> set[str]:
    """Inspections that passed a board, by verdict or by review, which then failed test.

    Boards that were not inspected, and reviews that were too quick, are in no figure.
    """
    query = (
        select(ElectricalTestRow.inspection)
        .join(InspectionRow, InspectionRow.id == ElectricalTestRow.inspection)
        .outerjoin(QueueRow, QueueRow.inspection == ElectricalTestRow.inspection)
        .where(
            ElectricalTestRow.result == "fail", span.holds(ElectricalTestRow.inspection), _counts_as_passed()
        )
        .where(*_counted(span))
    )
    return set(session.scalars(query))


def word_pairs(session: Session, span: Span, counted: Container[str]) -> Iterator[tuple[str, str]]:
    """For each call that two people gave a word: the last words of the two who gave theirs last, who came
    first first.

    counted: the inspections that count.
    """
    query = (
        select(ReviewRow.inspection)
        .join(QueueRow, QueueRow.inspection == ReviewRow.inspection)
        .where(ReviewRow.kind == "verification", QueueRow.hasty.is_(False), span.holds(ReviewRow.inspection))
        .group_by(ReviewRow.inspection)
        .having(func.count(ReviewRow.actor.distinct()) > 1)
    )
    twice = [inspection for inspection in session.scalars(query) if inspection in counted]
    for start in range(0, len(twice), IDS_AT_ONCE):
        words: dict[tuple[str, int], dict[str, str]] = {}
        said = (
            select(ReviewRow.inspection, ReviewRow.actor, ReviewRow.document)
            .where(
                ReviewRow.inspection.in_(twice[start : start + IDS_AT_ONCE]), ReviewRow.kind == "verification"
            )
            .order_by(ReviewRow.inspection, ReviewRow.revision)
        )
        for inspection, actor, text in session.execute(said):
            for defect, (word, _) in words_of(json.loads(text)).items():
                of_call = words.setdefault((inspection, defect), {})
                of_call.pop(actor, None)
                of_call[actor] = word
        for of_call in words.values():
            if len(of_call) > 1:
                first, second = list(of_call.values())[-2:]
                yield first, second


def areas_mm2(session: Session, used: Iterable[tuple[str | None, int | None]]) -> dict[Any, float]:
    """By recipe and revision: area of the board side, where it is known in mm.

    The recipe's board_mm; without it, the mean of its references at its px_per_mm.
    """
    areas = {}
    for name, revision in used:
        row = None if name is None or revision is None else session.get(RecipeRow, (name, revision))
        if row is None:
            continue
        recipe, references = json.loads(row.recipe), json.loads(row.reference_files)
        if recipe.get("board_mm"):
            width, height = recipe["board_mm"]
            areas[name, revision] = width * height
        elif recipe.get("px_per_mm") and references:
            areas_px = [one["width"] * one["height"] for one in references]
            areas[name, revision] = sum(areas_px) / len(areas_px) / recipe["px_per_mm"] ** 2
    return areas


def _counted(span: Span) -> list[ColumnElement[bool]]:
    """Which inspections are counted: those in the span, but not those of challenge boards."""
    challenged = select(ChallengeRunRow.inspection).where(ChallengeRunRow.inspection == InspectionRow.id)
    conditions = [span.holds(InspectionRow.id), ~challenged.exists()]
    return conditions if span.recipe is None else [*conditions, InspectionRow.recipe == span.recipe]


def _counts_as_passed() -> ColumnElement[bool]:
    """Of an inspection joined with its row of the queue: the board went on as a good one."""
    is_good = and_(
        InspectionRow.verdict == Verdict.FAIL.value, QueueRow.final == "good", QueueRow.hasty.is_(False)
    )
    return or_(InspectionRow.verdict == Verdict.PASS.value, is_good)
