"""Alarms in the store: raised by the service, listed, acknowledged by people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from serving.alarm_schemas import AlarmReport, DriftDetails, RepeaterDetails
from serving.audit import record
from serving.database import AlarmRow
from serving.errors import NotFoundError
from serving.roles import SERVICE, Actor

RAISED, ACKNOWLEDGED = "alarm_raised", "alarm_acknowledged"


@dataclass(frozen=True)
class View:
    """Boards that may be compared with each other."""

    recipe: str
    reference: str
    camera: str
    revision: int
    model_version: str


@dataclass(frozen=True)
class Alarm:
    """One that is about to be raised, or is there."""

    subject: str
    message: str
    details: DriftDetails | RepeaterDetails

    @property
    def kind(self) -> str:
        return "drift" if isinstance(self.details, DriftDetails) else "repeater"


def raise_alarm(session: Session, view: View, alarm: Alarm, time: str) -> None:
    """Add an alarm and its audit entry to the transaction of `session`."""
    row = AlarmRow(
        **vars(view),
        raised=time,
        kind=alarm.kind,
        subject=alarm.subject,
        message=alarm.message,
        details=alarm.details.model_dump_json(),
    )
    session.add(row)
    session.flush()
    record(
        session,
        SERVICE,
        RAISED,
        object_name=f"alarm {row.id}",
        details={"recipe": view.recipe, "revision": view.revision, "message": alarm.message},
        model_version=view.model_version,
    )


def open_alarms(session: Session, view: View) -> list[Alarm]:
    """Those of these very boards that nobody has acknowledged, oldest first."""
    query = select(AlarmRow).where(AlarmRow.acknowledged.is_(None)).order_by(AlarmRow.id)
    for name, value in vars(view).items():
        query = query.where(getattr(AlarmRow, name) == value)
    return [Alarm(row.subject, row.message, _details(row)) for row in session.scalars(query)]


def count_open(engine: Engine) -> dict[tuple[str, str, str], int]:
    """Number of open alarms by recipe, kind and subject."""
    columns = (AlarmRow.recipe, AlarmRow.kind, AlarmRow.subject)
    query = select(*columns, func.count()).where(AlarmRow.acknowledged.is_(None)).group_by(*columns)
    with Session(engine) as session:
        return {(recipe, kind, subject): n for recipe, kind, subject, n in session.execute(query)}


def list_alarms(
    engine: Engine,
    *,
    limit: int,
    before: int | None = None,
    recipe: str | None = None,
    only_open: bool = True,
) -> list[AlarmReport]:
    """Up to `limit` alarms, newest first, of those older than the alarm `before`."""
    query = select(AlarmRow).order_by(AlarmRow.id.desc()).limit(limit)
    if only_open:
        query = query.where(AlarmRow.acknowledged.is_(None))
    if before is not None:
        query = query.where(AlarmRow.id < before)
    if recipe is not None:
        query = query.where(AlarmRow.recipe == recipe)
    with Session(engine) as session:
        return [report_of(row) for row in session.scalars(query)]


def acknowledge(session: Session, alarm_id: int, actor: Actor, *, time: str, note: str) -> AlarmRow | None:
    """Mark an alarm as seen to, in the transaction of `session`; None where that was done before.

    Raises:
        NotFoundError.
    """
    row = get_row(session, alarm_id)
    if row.acknowledged is not None:
        return None
    row.acknowledged, row.acknowledged_by, row.note = time, actor.name or "", note
    record(
        session,
        actor,
        ACKNOWLEDGED,
        object_name=f"alarm {row.id}",
        details={"recipe": row.recipe, "message": row.message, "note": note},
        model_version=row.model_version,
    )
    return row


def get_row(session: Session, alarm_id: int) -> AlarmRow:
    row = session.get(AlarmRow, alarm_id)
    if row is None:
        raise NotFoundError(f"there is no alarm {alarm_id}", hint="GET /v1/alarms?state=all lists them")
    return row


def report_of(row: AlarmRow) -> AlarmReport:
    details = _details(row)
    return AlarmReport(
        id=row.id,
        raised=datetime.fromisoformat(row.raised),
        kind="drift" if row.kind == "drift" else "repeater",
        subject=row.subject,
        recipe=row.recipe,
        recipe_revision=row.revision,
        reference=row.reference,
        camera=row.camera,
        model_version=row.model_version,
        message=row.message,
        drift=details if isinstance(details, DriftDetails) else None,
        repeater=details if isinstance(details, RepeaterDetails) else None,
        acknowledged=None if row.acknowledged is None else datetime.fromisoformat(row.acknowledged),
        acknowledged_by=row.acknowledged_by,
        note=row.note,
    )


def _details(row: AlarmRow) -> DriftDetails | RepeaterDetails:
    kind = DriftDetails if row.kind == "drift" else RepeaterDetails
    return kind.model_validate_json(row.details)
