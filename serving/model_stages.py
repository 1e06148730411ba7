"""The rows that say which version is in which stage since when: added, never changed, the newest counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from serving.audit import record, utc_now
from serving.model_tables import ModelStageRow
from serving.recipes import pinned_version
from serving.roles import Actor

PRODUCTION, SHADOW, RETIRED = "production", "shadow", "retired"
"""Kinds of stage."""
STARTED, PROMOTED, ROLLED_BACK = "started", "promoted", "rolled back"
"""Deeds that put a version into production."""
NO_PIN = ""
"""The recipe of boards whose recipe pins nothing, or that have none."""


def newest_stage(session: Session, *, recipe: str = NO_PIN, kind: str = PRODUCTION) -> ModelStageRow | None:
    query = select(ModelStageRow).where(ModelStageRow.recipe == recipe, ModelStageRow.kind == kind)
    return session.scalar(query.order_by(ModelStageRow.id.desc()).limit(1))


def put_stage(
    session: Session,
    version: str,
    actor: Actor,
    *,
    deed: str,
    recipe: str = NO_PIN,
    kind: str = PRODUCTION,
    replaced: str | None = None,
    share: float | None = None,
    reason: str = "",
    gate: dict[str, Any] | None = None,
    gate_words: Sequence[str] = (),
    is_override: bool = False,
) -> None:
    """Add a row and its record in the audit trail to the transaction of `session`.

    What goes into production, and what comes out, no longer runs beside there.

    Args:
        gate, gate_words: the gate's document, and what it said; of one that could not judge the words alone.
    """
    session.add(
        ModelStageRow(
            recipe=recipe,
            version=version,
            kind=kind,
            deed=deed,
            replaced=replaced,
            share=share,
            at=utc_now(),
            actor=actor.name or "",
            reason=reason,
            gate=None if gate is None else json.dumps(gate, allow_nan=False),
            is_override=is_override,
        )
    )
    details: dict[str, Any] = {"recipe": recipe or None, "replaced": replaced, "reason": reason}
    if kind == PRODUCTION:
        details |= {"gate": None if gate is None else gate.get("result"), "override": is_override}
        details["gate_words"] = list(gate_words)
    if share is not None:
        details["share"] = share
    action = f"model_{'shadowed' if kind == SHADOW else deed.replace(' ', '_')}"
    record(session, actor, action, object_name=version, details=details, model_version=version or None)
    if kind == PRODUCTION:
        _end_shadows(session, {version, replaced}, actor, recipe=recipe, because=deed)


def _end_shadows(
    session: Session, versions: set[str | None], actor: Actor, *, recipe: str, because: str
) -> None:
    """End what of these versions runs beside a recipe's boards; of '': beside those of all without a pin."""
    # A new revision of the recipe may be waiting: its conflict, if there is one, is for whoever commits.
    with session.no_autoflush:
        beside = [row for row in _newest_shadows(session) if row.version in versions]
        ended = [
            row
            for row in beside
            if row.recipe == recipe or (recipe == NO_PIN and pinned_version(session, row.recipe) is None)
        ]
    for row in ended:
        put_stage(
            session,
            row.version,
            actor,
            deed=SHADOW,
            recipe=row.recipe,
            kind=SHADOW,
            share=0.0,
            reason=f"{because}: it no longer runs beside",
        )


def shadows_in_force(database: Engine) -> dict[str, tuple[str, float]]:
    """By recipe, '' where none is pinned: the candidate that runs beside, and on what share of the boards."""
    with Session(database) as session:
        return {row.recipe: (row.version, row.share or 0.0) for row in _newest_shadows(session)}


def _newest_shadows(session: Session) -> list[ModelStageRow]:
    """The row of each recipe beside whose boards a candidate runs now."""
    newest = select(func.max(ModelStageRow.id)).where(ModelStageRow.kind == SHADOW)
    query = select(ModelStageRow).where(ModelStageRow.id.in_(newest.group_by(ModelStageRow.recipe)))
    return [row for row in session.scalars(query) if row.share]
