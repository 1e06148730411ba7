"""The audit trail: who did what, to what, when, with which model. Rows are added, never changed or deleted.

Whoever changes something records it in the same database transaction: there is no change without its row and
no row without its change. Keys and session tokens never come here.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from serving.account_schemas import AuditEntry
from serving.database import AuditRow
from serving.roles import Actor

WITHOUT_KEYS = "(without keys)"
"""Stands for the actor while keys are off: nobody was asked for a name."""


def utc_now(later: timedelta = timedelta()) -> str:
    """The time as 2026-11-30T08:15:00.123+00:00; such texts sort as the times do."""
    return (datetime.now(UTC) + later).isoformat(timespec="milliseconds")


def record(
    session: Session,
    actor: Actor,
    action: str,
    *,
    object_name: str = "",
    details: dict[str, Any] | None = None,
    model_version: str | None = None,
) -> None:
    """Add a row to the transaction of `session`; it stands once that is committed.

    Args:
        action: what was done, as key_created: a noun and a past participle, at most 40 characters.
        object_name: what it was done to, at most 200 characters.
        details: what else must be known later; no secret.
    """
    session.add(
        AuditRow(
            time=utc_now(),
            actor=actor.name or WITHOUT_KEYS,
            role=actor.role.value,
            action=action,
            object=object_name,
            details=json.dumps(details or {}, sort_keys=True),
            model_version=model_version,
        )
    )


def record_alone(engine: Engine, actor: Actor, action: str, **more: Any) -> None:
    """Record what changes nothing in the database; `more` as `record` takes it."""
    with Session(engine) as session:
        record(session, actor, action, **more)
        session.commit()


def read_audit(
    engine: Engine,
    *,
    limit: int,
    before: int | None = None,
    actor: str | None = None,
    action: str | None = None,
) -> list[AuditEntry]:
    """Up to `limit` entries, newest first, of those older than the entry `before`."""
    query = select(AuditRow).order_by(AuditRow.id.desc()).limit(limit)
    if before is not None:
        query = query.where(AuditRow.id < before)
    if actor is not None:
        query = query.where(AuditRow.actor == actor)
    if action is not None:
        query = query.where(AuditRow.action == action)
    with Session(engine) as session:
        return [_to_entry(row) for row in session.scalars(query)]


def _to_entry(row: AuditRow) -> AuditEntry:
    return AuditEntry(
        id=row.id,
        time=datetime.fromisoformat(row.time),
        actor=row.actor,
        role=row.role,
        action=row.action,
        object=row.object,
        details=json.loads(row.details),
        model_version=row.model_version,
    )
