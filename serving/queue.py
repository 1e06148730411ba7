"""The queue of boards that wait for people: filtered, ordered, paged, counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Engine, Select, and_, func, not_, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from inspect_vit.results import Verdict
from serving.database import InspectionRow
from serving.ids import first_id_at
from serving.queue_schemas import QueueCounts, QueueItem, QueueLinks, QueueOrder, QueueState
from serving.review_tables import QueueLabelRow, QueueRow

VALUES: dict[QueueOrder, InstrumentedAttribute[float] | None] = {
    "newest": None,
    "worst": QueueRow.score,
    "uncertain": QueueRow.uncertainty,
}
"""By what each order sorts before the id."""
NOT_INSPECTED = -1.0
"""Value of a board with verdict ERROR in the order `worst`, where no score says anything of it: below all
scores, so that such boards come last."""


@dataclass(frozen=True)
class Cursor:
    """The last item of a page: what comes behind it is the next one, whatever is added meanwhile."""

    id: str
    value: float = 0.0


@dataclass(frozen=True)
class QueueFilter:
    """None does not filter. Boards of recipes, serials and so on that are not there are no mistake."""

    state: QueueState = "open"
    verdict: str | None = None
    recipe: str | None = None
    label: str | None = None
    serial: str | None = None
    model: str | None = None
    since: datetime | None = None
    """Boards inspected at this time or later, by their ids."""
    until: datetime | None = None
    """Boards inspected before this time."""


def list_queue(
    engine: Engine, asked: QueueFilter, *, order: QueueOrder, limit: int, after: Cursor | None = None
) -> list[tuple[QueueItem, Cursor]]:
    """Up to `limit` boards behind `after`. Among equals the newest comes first."""
    query = _joined().where(*_conditions(asked))
    with Session(engine) as session:
        if order != "worst":
            rows = _page(session, query, VALUES[order], limit=limit, after=after)
            return [(_item(row), _cursor(row[0], order)) for row in rows]
        # One query after the other, as no index begins with whether a board was inspected.
        rows, is_inspected = [], QueueRow.verdict != Verdict.ERROR.value
        if after is None or after.value != NOT_INSPECTED:
            rows = _page(session, query.where(is_inspected), VALUES[order], limit=limit, after=after)
            after = None
        if len(rows) < limit:
            behind = query.where(not_(is_inspected))
            rows = [*rows, *_page(session, behind, None, limit=limit - len(rows), after=after)]
    return [(_item(row), _cursor(row[0], order)) for row in rows]


def _page(
    session: Session,
    query: Select[Any, Any, Any, Any, Any],
    value: InstrumentedAttribute[float] | None,
    *,
    limit: int,
    after: Cursor | None,
) -> Sequence[Any]:
    if value is not None:
        query = query.order_by(value.desc())
    if after is not None:
        is_older = QueueRow.inspection < after.id
        if value is None:
            query = query.where(is_older)
        else:
            # The first condition is all that an index can begin with.
            query = query.where(value <= after.value, or_(value < after.value, is_older))
    return session.execute(query.order_by(QueueRow.inspection.desc()).limit(limit)).all()


def count_queue(engine: Engine, asked: QueueFilter) -> QueueCounts:
    """How many boards a filter names."""
    with Session(engine) as session:
        due = _conditions(asked, with_state=False)
        by_state = _counted(
            session, select(QueueRow.state, func.count()), asked, (*due, QueueRow.due.is_(True))
        )
        named = _conditions(asked)
        by_verdict = _counted(session, select(QueueRow.verdict, func.count()), asked, named)
        of_labels = select(QueueLabelRow.label, func.count()).join(
            QueueRow, QueueRow.inspection == QueueLabelRow.inspection
        )
        by_label = _counted(session, of_labels, asked, named)
    return QueueCounts(
        open=by_state.get("open", 0),
        done=by_state.get("done", 0),
        by_verdict={verdict: by_verdict.get(verdict.value, 0) for verdict in Verdict},
        by_label=by_label,
    )


def items_of(session: Session, ids: list[str]) -> list[QueueItem]:
    """The items of these inspections, oldest first."""
    query = _joined().where(QueueRow.inspection.in_(ids)).order_by(QueueRow.inspection)
    return [_item(row) for row in session.execute(query)]


def _joined() -> Select[Any, Any, Any, Any, Any]:
    columns = (InspectionRow.serial, InspectionRow.recipe, InspectionRow.attempt, InspectionRow.model_version)
    return select(QueueRow, *columns).join(InspectionRow, InspectionRow.id == QueueRow.inspection)


def _conditions(asked: QueueFilter, *, with_state: bool = True) -> tuple[ColumnElement[bool], ...]:
    found: list[ColumnElement[bool]] = []
    if with_state and asked.state != "all":
        found += [QueueRow.due.is_(True), QueueRow.state == asked.state]
    if asked.verdict is not None:
        found.append(QueueRow.verdict == asked.verdict)
    for column, wanted in _of_inspections(asked):
        found.append(column == wanted)
    if asked.label is not None:
        has_label = and_(QueueLabelRow.inspection == QueueRow.inspection, QueueLabelRow.label == asked.label)
        found.append(select(QueueLabelRow.inspection).where(has_label).correlate(QueueRow).exists())
    if asked.since is not None:
        found.append(QueueRow.inspection >= first_id_at(asked.since.timestamp()))
    if asked.until is not None:
        found.append(QueueRow.inspection < first_id_at(asked.until.timestamp()))
    return tuple(found)


def _of_inspections(asked: QueueFilter) -> list[tuple[ColumnElement[Any], str]]:
    columns: list[tuple[Any, str | None]] = [
        (InspectionRow.recipe, asked.recipe),
        (InspectionRow.serial, asked.serial),
        (InspectionRow.model_version, asked.model),
    ]
    return [(column, wanted) for column, wanted in columns if wanted is not None]


def _counted(
    session: Session,
    query: Select[Any, Any],
    asked: QueueFilter,
    conditions: tuple[ColumnElement[bool], ...],
) -> dict[str, int]:
    if _of_inspections(asked):
        query = query.join(InspectionRow, InspectionRow.id == QueueRow.inspection)
    first = query.selected_columns[0]
    return dict(session.execute(query.where(*conditions).group_by(first).order_by(first)).all())


def _cursor(row: QueueRow, order: QueueOrder) -> Cursor:
    value = VALUES[order]
    if order == "worst" and row.verdict == Verdict.ERROR.value:
        return Cursor(row.inspection, NOT_INSPECTED)
    return Cursor(row.inspection, 0.0 if value is None else getattr(row, value.key))


def _item(row: Any) -> QueueItem:
    place, serial, recipe, attempt, model_version = row
    base = f"/v1/inspections/{place.inspection}"
    return QueueItem(
        id=place.inspection,
        created=datetime.fromisoformat(place.created),
        verdict=Verdict(place.verdict),
        serial=serial,
        recipe=recipe,
        attempt=attempt,
        model_version=model_version,
        score=place.score,
        uncertainty=place.uncertainty,
        num_defects=place.num_defects,
        labels=tuple(json.loads(place.labels)),
        state=place.state,
        disposition=place.disposition,
        final=place.final,
        audit=place.audit,
        revision=place.revision,
        links=QueueLinks(thumbnail=f"{base}/thumbnail", report=base),
    )
