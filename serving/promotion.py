"""Which version goes into production and comes out again, for one recipe or for boards without a pin."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from inspect_vit.config import validate
from inspect_vit.gate_report import Gate
from inspect_vit.recipe import Recipe
from serving.attempts import hold_name
from serving.errors import (
    GateRefusedError,
    ModelMismatchError,
    ModelRefusedError,
    NotFoundError,
    RevisionConflictError,
)
from serving.gate_check import NEXT_STEP, check_gate, check_loads
from serving.model_stages import NO_PIN, PRODUCTION, PROMOTED, ROLLED_BACK, put_stage
from serving.model_tables import ModelStageRow
from serving.recipes import StoredRecipe, get_recipe, list_revisions, put_recipe
from serving.registry import StoredModel, find_model, production, version_file
from serving.roles import Actor


@dataclass(frozen=True)
class Promotion:
    """What a promotion or a rollback came to."""

    version: str
    """In production from now on."""
    recipe: str | None
    replaced: str | None
    """The version that was until now."""
    is_changed: bool
    """False: it was in production already, and nothing was stored."""
    revision: int | None = None
    """New revision of the recipe."""
    is_override: bool = False
    """It went ahead although the gate did not pass."""


def promote(
    database: Engine,
    home: Path,
    version: str,
    *,
    recipe: str | None,
    actor: Actor,
    gate: dict[str, Any] | None,
    unjudged: str = "",
    override_reason: str | None = None,
    reason: str = "",
) -> Promotion:
    """Put a version into production: for one recipe, or with None for all boards whose recipe pins none.

    A recipe gets a new revision that pins the version, with the calibration that the gate made.

    Args:
        gate: the document that `inspect-vit evaluate --against` wrote.
        unjudged: why it wrote none, where it was asked.
        override_reason: goes ahead without a gate that passed; kept with the promotion and in the audit
            trail.

    Raises:
        NotFoundError: no such version or recipe.
        ModelRefusedError, VersionGoneError: it is retired, its files are damaged or gone, or it cannot be
            loaded. No override helps there.
        GateRefusedError: the gate did not pass, or compared something else.
        ConfigError: the recipe names a class that the version does not know.
        RevisionConflictError: the recipe was changed meanwhile.
    """
    model = usable(database, home, version)
    stored = None if recipe is None else get_recipe(database, recipe)
    replaced = _in_production(database, recipe)
    if version == (replaced if stored is None else stored.recipe.model_version):
        return Promotion(version, recipe, replaced, is_changed=False)
    document = None if gate is None else validate(gate, Gate, source="the gate's answer")
    why, is_override = (override_reason or "").strip(), False
    try:
        check_gate(document, version, replaced, recipe, unjudged)
    except GateRefusedError:
        if not why:
            raise
        is_override = True
        check_loads(home, version)

    def note(session: Session) -> None:
        put_stage(
            session,
            version,
            actor,
            deed=PROMOTED,
            recipe=recipe or NO_PIN,
            replaced=replaced,
            reason=why or reason,
            gate=gate,
            gate_words=(unjudged,) if unjudged else () if document is None else document.words,
            is_override=is_override,
        )

    if stored is None:
        _follow(database, note, replaced)
        return Promotion(version, recipe, replaced, is_changed=True, is_override=is_override)
    calibration = None if document is None else document.calibration
    settings = stored.recipe.model_copy(update={"model_version": version, "calibration": calibration})
    settings.check_classes(model.facts.classes)
    revision = _revise(database, stored, settings, actor, note)
    return Promotion(version, recipe, replaced, is_changed=True, revision=revision, is_override=is_override)


def rollback(
    database: Engine, home: Path, version: str, *, recipe: str | None, actor: Actor, reason: str
) -> Promotion:
    """Take a version out of production again: back to the last one before it that was not rolled back itself.

    A recipe gets a new revision with the version and the calibration of that earlier revision; all else of
    it stays as it is now.

    Raises:
        NotFoundError: no such recipe.
        ModelRefusedError, VersionGoneError: the version is not in production there, or nothing before it
            can be gone back to.
        RevisionConflictError: the recipe was changed meanwhile.
    """
    stored = None if recipe is None else get_recipe(database, recipe)
    current = _in_production(database, recipe) if stored is None else stored.recipe.model_version
    whose = "boards whose recipe pins no version" if recipe is None else f"recipe {recipe!r}"
    if version != current:
        raise ModelRefusedError(
            f"model version {version} is not in production for {whose}: "
            f"{'that pins none' if current is None else f'{current} is'}",
            hint="GET /v1/models or inspect-vit models list says what is",
        )
    undone = _rolled_back(database, recipe)
    if stored is None:
        earlier: Sequence[str | None] = [row.version for row in _deeds(database, None)]
    else:
        revisions = list_revisions(database, stored.name)
        earlier = [each.recipe.model_version for each in reversed(revisions)]
    candidates = [n for n, each in enumerate(earlier) if each != version and (each or "") not in undone]
    if not candidates:
        raise ModelRefusedError(
            f"nothing was in production for {whose} before model version {version}",
            hint="promote another version: inspect-vit models promote",
        )
    before = earlier[candidates[-1]]
    if before is not None:
        usable(database, home, before)

    def note(session: Session) -> None:
        put_stage(
            session,
            before or "",
            actor,
            deed=ROLLED_BACK,
            recipe=recipe or NO_PIN,
            replaced=version,
            reason=reason,
        )

    if stored is None:
        _follow(database, note, version)
        return Promotion(before or "", recipe, version, is_changed=True)
    calibration = revisions[len(revisions) - 1 - candidates[-1]].recipe.calibration
    settings = stored.recipe.model_copy(update={"model_version": before, "calibration": calibration})
    revision = _revise(database, stored, settings, actor, note)
    return Promotion(before or production(database), recipe, version, is_changed=True, revision=revision)


def check_put_pin(database: Engine, name: str, settings: Recipe) -> None:
    """That settings stored by hand do not go round the gate.

    What they pin is pinned already, or in production for boards whose recipe pins nothing.

    Raises:
        GateRefusedError: they pin another version.
    """
    wanted = settings.model_version
    if wanted is None or wanted == production(database):
        return
    try:
        there = get_recipe(database, name).recipe.model_version
    except NotFoundError:
        there = None
    if wanted != there:
        raise GateRefusedError(
            f"recipe {name!r} cannot be moved to model version {wanted} by storing it",
            hint=f"store it with model_version {json.dumps(there)}, then promote: {NEXT_STEP}",
        )


def usable(database: Engine, home: Path, version: str) -> StoredModel:
    """A version that may go into use. Raises NotFoundError, ModelRefusedError, VersionGoneError."""
    model = find_model(database, version)
    if model.is_retired:
        raise ModelRefusedError(f"model version {version} is retired", hint="promote another version")
    version_file(home, version)
    return model


def _in_production(database: Engine, recipe: str | None) -> str | None:
    """None: there is none yet, or the recipe pins one that is not in the store."""
    try:
        return production(database, recipe)
    except (NotFoundError, ModelMismatchError):
        return None


def _revise(
    database: Engine, stored: StoredRecipe, settings: Recipe, actor: Actor, note: Callable[[Session], None]
) -> int:
    return put_recipe(
        database,
        stored.name,
        settings,
        stored.references,
        actor,
        expected=stored.revision,
        model_version=settings.model_version,
        beside=note,
    ).revision


def _follow(database: Engine, note: Callable[[Session], None], replaced: str | None) -> None:
    """Add the row that boards without a pin follow.

    Raises:
        RevisionConflictError: another came first.
    """
    with Session(database) as session:
        hold_name(session, "model_stages")
        note(session)
        session.flush()
        # The row that was just added holds all others off, so what is read now is what it comes after.
        newest = select(ModelStageRow).where(ModelStageRow.recipe == NO_PIN, ModelStageRow.kind == PRODUCTION)
        rows = session.scalars(newest.order_by(ModelStageRow.id.desc()).limit(2)).all()
        found = rows[1].version if len(rows) > 1 else None
        if found != replaced:
            raise RevisionConflictError(
                f"model version {found} went into production meanwhile, where {replaced} was",
                hint="look at what is in production now, and decide again",
            )
        session.commit()


def _deeds(database: Engine, recipe: str | None) -> list[ModelStageRow]:
    """Rows of what went into production, oldest first."""
    query = select(ModelStageRow).where(
        ModelStageRow.recipe == (recipe or NO_PIN), ModelStageRow.kind == PRODUCTION
    )
    with Session(database) as session:
        return list(session.scalars(query.order_by(ModelStageRow.id)))


def _rolled_back(database: Engine, recipe: str | None) -> set[str]:
    """Versions that were taken out of production there and not promoted since."""
    undone: set[str] = set()
    for row in _deeds(database, recipe):
        if row.deed == ROLLED_BACK and row.replaced is not None:
            undone.add(row.replaced)
        else:
            undone.discard(row.version)
    return undone
