"""Reviews as they are stored: the newest ones, whole histories, and all that are done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine, Select, and_, select
from sqlalchemy.orm import Session

from serving.database import InspectionRow
from serving.errors import NotFoundError
from serving.ids import first_id_at
from serving.review_rules import QUESTION, stands
from serving.review_schemas import (
    MAX_HISTORY,
    Document,
    Final,
    Review,
    ReviewEntry,
    ReviewKind,
    ReviewState,
)
from serving.review_tables import QueueRow, ReviewRow
from serving.schemas import StoredReport

AT_ONCE = 200
"""Ids in one query, and reports in memory."""


@dataclass(frozen=True)
class StoredReview:
    """The newest review of one inspection."""

    inspection: str
    revision: int
    document: Document
    state: ReviewState
    final: Final | None
    hasty: bool
    """Not to be learnt from."""
    actor: str
    """Who made the newest revision; empty: without keys."""
    at: datetime


@dataclass(frozen=True)
class StoredRevision:
    """One revision of a review."""

    revision: int
    kind: ReviewKind
    actor: str
    at: datetime
    document: Document
    """All that was said up to and with it."""


@dataclass(frozen=True)
class DoneReview:
    """An inspection and what people said of it."""

    report: StoredReport
    review: StoredReview
    audit: bool
    """A PASS that was drawn."""


def latest_reviews(engine: Engine, ids: Iterable[str]) -> dict[str, StoredReview]:
    """The newest review of each inspection that has one, by id."""
    wanted, found = list(ids), {}
    with Session(engine) as session:
        for start in range(0, len(wanted), AT_ONCE):
            some = QueueRow.inspection.in_(wanted[start : start + AT_ONCE])
            for place, row in session.execute(_newest().where(some)):
                found[place.inspection] = _review(place, row)
    return found


def done_reviews(
    engine: Engine,
    *,
    recipe: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Iterator[DoneReview]:
    """Every inspection whose review is done, oldest first, a few in memory at a time.

    Args:
        recipe: only boards of this recipe; None: all, with a recipe or without.
        since, until: only boards inspected from `since` and before `until`, by their ids' time.
    """
    query = (
        _newest()
        .add_columns(InspectionRow.report, InspectionRow.attempt)
        .join(InspectionRow, InspectionRow.id == QueueRow.inspection)
        .where(QueueRow.state == "done")
        .order_by(QueueRow.inspection)
        .limit(AT_ONCE)
    )
    if recipe is not None:
        query = query.where(InspectionRow.recipe == recipe)
    if since is not None:
        query = query.where(QueueRow.inspection >= first_id_at(since.timestamp()))
    if until is not None:
        query = query.where(QueueRow.inspection < first_id_at(until.timestamp()))
    last = ""
    while True:
        with Session(engine) as session:
            rows = session.execute(query.where(QueueRow.inspection > last)).all()
        for place, row, report, attempt in rows:
            stored = StoredReport.model_validate_json(report).model_copy(update={"attempt": attempt})
            yield DoneReview(stored, _review(place, row), place.audit)
        if len(rows) < AT_ONCE:
            return
        last = rows[-1][0].inspection


def revisions(engine: Engine, ids: Iterable[str]) -> dict[str, tuple[StoredRevision, ...]]:
    """All revisions of each inspection that has any, oldest first: who said what, before others changed it.

    `document.calls` of a revision of kind verification are the words of its actor.
    """
    wanted, found = list(ids), dict[str, list[StoredRevision]]()
    with Session(engine) as session:
        for start in range(0, len(wanted), AT_ONCE):
            query = select(ReviewRow).where(ReviewRow.inspection.in_(wanted[start : start + AT_ONCE]))
            for row in session.scalars(query.order_by(ReviewRow.inspection, ReviewRow.revision)):
                found.setdefault(row.inspection, []).append(revision_of(row))
    return {inspection: tuple(those) for inspection, those in found.items()}


def revision_of(row: ReviewRow) -> StoredRevision:
    return StoredRevision(
        revision=row.revision,
        kind="verification" if row.kind == "verification" else "disposition",
        actor=row.actor,
        at=datetime.fromisoformat(row.at),
        document=Document.model_validate_json(row.document),
    )


def read_review(engine: Engine, inspection_id: str) -> Review:
    """How the review of an inspection stands. Raises NotFoundError."""
    with Session(engine) as session:
        return review_in(session, inspection_id)


def review_in(session: Session, inspection_id: str) -> Review:
    """The same, as the transaction of `session` sees it."""
    place = session.get(QueueRow, inspection_id)
    if place is None:
        raise NotFoundError(
            f"there is no inspection {inspection_id!r}", hint="GET /v1/inspections lists them"
        )
    # Not those that were added since `place` was read.
    query = select(ReviewRow).where(
        ReviewRow.inspection == inspection_id, ReviewRow.revision <= place.revision
    )
    rows = session.scalars(query.order_by(ReviewRow.revision.desc()).limit(MAX_HISTORY)).all()
    newest = revision_of(rows[0]) if rows else None
    document = Document() if newest is None else newest.document
    state, final = _standing(place)
    return Review(
        inspection=inspection_id,
        revision=place.revision,
        state=state,
        **dict(document),
        final=final,
        hasty=place.hasty,
        question=QUESTION if place.hasty else "",
        actor=None if newest is None else newest.actor,
        at=None if newest is None else newest.at,
        history=_entries(rows),
    )


def review_at(engine: Engine, report: StoredReport, revision: int) -> Review:
    """How a review stood at one of its revisions; 0: before anybody spoke. Raises NotFoundError."""
    with Session(engine) as session:
        now = review_in(session, report.id)
        if revision == now.revision:
            return now
        row = session.get(ReviewRow, (report.id, revision)) if revision else None
        at_once = select(ReviewRow).where(ReviewRow.inspection == report.id, ReviewRow.revision <= revision)
        rows = session.scalars(at_once.order_by(ReviewRow.revision.desc()).limit(MAX_HISTORY)).all()
    if revision and row is None:
        raise NotFoundError(
            f"the review of inspection {report.id} has no revision {revision}; its newest is {now.revision}"
        )
    then = None if row is None else revision_of(row)
    document = Document() if then is None else then.document
    state, final = stands(document, report)
    return Review(
        inspection=report.id,
        revision=revision,
        state=state,
        **dict(document),
        final=final,
        hasty=False,
        question="",
        actor=None if then is None else then.actor,
        at=None if then is None else then.at,
        history=_entries(rows),
    )


def _entries(rows: Sequence[ReviewRow]) -> tuple[ReviewEntry, ...]:
    """Of rows that come newest first, oldest first."""
    return tuple(
        ReviewEntry.model_validate(
            {"revision": row.revision, "kind": row.kind, "actor": row.actor, "at": row.at}
        )
        for row in reversed(rows)
    )


def _newest() -> Select[QueueRow, ReviewRow]:
    newest = and_(ReviewRow.inspection == QueueRow.inspection, ReviewRow.revision == QueueRow.revision)
    return select(QueueRow, ReviewRow).join(ReviewRow, newest)


def _standing(place: QueueRow) -> tuple[ReviewState, Final | None]:
    final: Final | None = None if place.final is None else "bad" if place.final == "bad" else "good"
    return "done" if place.state == "done" else "open", final


def _review(place: QueueRow, row: ReviewRow) -> StoredReview:
    state, final = _standing(place)
    return StoredReview(
        inspection=place.inspection,
        revision=row.revision,
        document=Document.model_validate_json(row.document),
        state=state,
        final=final,
        hasty=place.hasty,
        actor=row.actor,
        at=datetime.fromisoformat(row.at),
    )
