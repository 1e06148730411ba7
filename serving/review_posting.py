"""Adds revisions to reviews. Of two that were made from the same revision one is taken, the other refused.

The first statement of each transaction moves the revision on, if it is still the one expected: whoever comes
second waits for the first and then finds another number. What is returned is on the disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from serving.audit import record, utc_now
from serving.errors import NotFoundError, ReviewConflictError
from serving.review_rules import HASTY_REACH_S, Span, hasty_run, new_false_calls, said, stands, stays_hasty
from serving.review_schemas import DispositionRequest, Document, Review, ReviewKind, Verification
from serving.review_tables import QueueRow, ReviewRow
from serving.reviews import review_in
from serving.roles import Actor
from serving.schemas import StoredReport
from serving.store import Store

VERIFIED, DISPOSED = "inspection_verified", "disposition_set"


@dataclass(frozen=True)
class Posted:
    """A review after somebody spoke."""

    review: Review
    words: dict[str, int]
    """New or changed words, by word."""
    is_new: bool
    """False: the request had come before, and is answered again."""


def post_verification(store: Store, inspection_id: str, asked: Verification, actor: Actor) -> Posted:
    """Add what a person says of an inspection's calls, and of what was not called.

    Raises:
        NotFoundError, FieldError.
        ReviewConflictError: somebody else spoke since the revision that was expected.
    """
    report = store.get(inspection_id).report
    return _post(
        store,
        report,
        actor,
        kind="verification",
        expects=asked.expects,
        say=lambda before: said(asked, report, before),
    )


def post_disposition(store: Store, inspection_id: str, asked: DispositionRequest, actor: Actor) -> Posted:
    """Add what happens to a board. Raises as `post_verification` does."""
    update = {"disposition": asked.disposition, "note": asked.note}
    return _post(
        store,
        store.get(inspection_id).report,
        actor,
        kind="disposition",
        expects=asked.expects,
        say=lambda before: before.model_copy(update=update),
    )


def _post(
    store: Store,
    report: StoredReport,
    actor: Actor,
    *,
    kind: ReviewKind,
    expects: int,
    say: Callable[[Document], Document],
) -> Posted:
    store.check()
    with Session(store.engine) as session:
        _lock_actor(session, actor)
        if not _take_turn(session, report.id, expects):
            return _again(session, report.id, actor, kind=kind, expects=expects, say=say)
        before = _document_at(session, report.id, expects)
        after = say(before)
        state, final = stands(after, report)
        row = ReviewRow(
            inspection=report.id,
            revision=expects + 1,
            kind=kind,
            actor=actor.name or "",
            at=utc_now(),
            document=after.model_dump_json(),
            num_false=new_false_calls(before, after),
        )
        session.add(row)
        session.flush()
        place = session.get_one(QueueRow, report.id)
        place.state, place.final, place.disposition = state, final, after.disposition
        if kind == "verification":
            run = _hasty_inspections(session, row) if row.num_false else set[str]()
            place.hasty = bool(run) or (place.hasty and stays_hasty(before, after))
            if run:
                session.execute(update(QueueRow).where(QueueRow.inspection.in_(run)).values(hasty=True))
        session.flush()
        words = _new_words(before, after)
        _record(session, actor, row, place, report, words=words, document=after)
        review = review_in(session, report.id)
        session.commit()
    return Posted(review, words, is_new=True)


def _lock_actor(session: Session, actor: Actor) -> None:
    """Let one person's requests follow each other, so that their pace is known. SQLite has one writer."""
    if session.get_bind().dialect.name == "postgresql":
        name = f"review {actor.name or ''}"
        session.execute(text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": name})


def _take_turn(session: Session, inspection_id: str, expects: int) -> bool:
    """Move the revision on if it is the one expected; holds the inspection until the transaction ends."""
    query = (
        update(QueueRow)
        .where(QueueRow.inspection == inspection_id, QueueRow.revision == expects)
        .values(revision=expects + 1)
        .returning(QueueRow.inspection)
        .execution_options(synchronize_session=False)
    )
    return session.execute(query).first() is not None


def _again(
    session: Session,
    inspection_id: str,
    actor: Actor,
    *,
    kind: ReviewKind,
    expects: int,
    say: Callable[[Document], Document],
) -> Posted:
    """The answer to a request whose turn is over: the review it made already.

    Raises:
        ReviewConflictError: it made none.
        NotFoundError: the inspection was deleted meanwhile.
    """
    query = select(ReviewRow).where(ReviewRow.inspection == inspection_id)
    newest = session.scalar(query.order_by(ReviewRow.revision.desc()).limit(1))
    if newest is None:
        if session.get(QueueRow, inspection_id) is None:
            raise NotFoundError(f"the inspection {inspection_id!r} was deleted")
        raise ReviewConflictError(
            f"expects: revision {expects}, but nobody has reviewed {inspection_id} yet",
            hint="send 0, the revision that GET .../review answers",
        )
    is_same = (newest.kind, newest.actor, newest.revision) == (kind, actor.name or "", expects + 1)
    if is_same and newest.document == say(_document_at(session, inspection_id, expects)).model_dump_json():
        return Posted(review_in(session, inspection_id), {}, is_new=False)
    who = newest.actor or "somebody without a key"
    raise ReviewConflictError(
        f"expects: revision {expects}, but the review of {inspection_id} is at revision {newest.revision}",
        hint=f"revision {newest.revision} is the {newest.kind} by {who} at {newest.at}; "
        f"look at GET /v1/inspections/{inspection_id}/review and decide again",
    )


def _document_at(session: Session, inspection_id: str, revision: int) -> Document:
    if revision == 0:
        return Document()
    row = session.get_one(ReviewRow, (inspection_id, revision))
    return Document.model_validate_json(row.document)


def _hasty_inspections(session: Session, newest: ReviewRow) -> set[str]:
    """Those whose newest verification is part of a run too fast that ends with `newest`; empty: no run."""
    reach = datetime.fromisoformat(newest.at) - timedelta(seconds=HASTY_REACH_S)
    query = (
        select(ReviewRow, QueueRow.created)
        .join(QueueRow, QueueRow.inspection == ReviewRow.inspection)
        .where(ReviewRow.actor == newest.actor, ReviewRow.at >= reach.isoformat(timespec="milliseconds"))
    )
    rows = session.execute(query).all()
    # Of two revisions in one millisecond, the one that is being added came last.
    rows = sorted(rows, key=lambda found: (found[0] is newest, found[0].at, found[0].revision), reverse=True)
    spans = [
        Span(row.num_false, datetime.fromisoformat(created), datetime.fromisoformat(row.at))
        for row, created in rows
    ]
    run = [row for row, _ in rows[: hasty_run(spans)] if row.num_false]
    verified = (
        select(ReviewRow.inspection, func.max(ReviewRow.revision))
        .where(ReviewRow.kind == "verification")
        .where(ReviewRow.inspection.in_({row.inspection for row in run}))
        .group_by(ReviewRow.inspection)
    )
    newest_of = dict(session.execute(verified).all()) if run else {}
    return {row.inspection for row in run if newest_of[row.inspection] == row.revision}


def _new_words(before: Document, after: Document) -> dict[str, int]:
    old = {call.defect: call.word for call in before.calls}
    words = Counter(str(call.word) for call in after.calls if old.get(call.defect) != call.word)
    missed = sum(one not in before.missed for one in after.missed)
    return dict(words + Counter({"missed": missed}))


def _record(
    session: Session,
    actor: Actor,
    row: ReviewRow,
    place: QueueRow,
    report: StoredReport,
    *,
    words: dict[str, int],
    document: Document,
) -> None:
    details: dict[str, Any] = {"revision": row.revision, "state": place.state, "final": place.final}
    if row.kind == "verification":
        details |= {"words": words, "checked": document.checked, "hasty": place.hasty}
    else:
        details |= {"disposition": document.disposition, "note": document.note}
    record(
        session,
        actor,
        VERIFIED if row.kind == "verification" else DISPOSED,
        object_name=f"inspection {report.id}",
        details=details,
        model_version=report.model.version,
    )
