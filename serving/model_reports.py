"""Model versions as GET /v1/models and `inspect-vit models` show them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Engine as Database
from sqlalchemy import select
from sqlalchemy.orm import Session

from inspect_vit.gate_report import Gate
from serving.errors import NotFoundError
from serving.model_files import check_version
from serving.model_schemas import Deed, FigureRow, ModelComparison, ModelEvent, ModelReport, Stage
from serving.model_stages import NO_PIN, PRODUCTION, PROMOTED, ROLLED_BACK, shadows_in_force
from serving.model_tables import ModelStageRow
from serving.recipes import list_recipes
from serving.registry import StoredModel, find_model, list_models, production, recipes_using

_DEEDS: dict[str, Deed] = {"shadow": "shadow", "retired": "retired"}


def model_reports(
    database: Database, loaded: Collection[str] = (), refused: Mapping[str, str] | None = None
) -> list[ModelReport]:
    """All versions, the one added last first.

    Args:
        loaded: versions in the memory of a process.
        refused: why it could not load others.
    """
    using, shadows = recipes_using(database), {version for version, _ in shadows_in_force(database).values()}
    try:
        default = production(database)
    except NotFoundError:
        default = None
    pins = {stored.name: stored.recipe.model_version for stored in list_recipes(database)}
    with Session(database) as session:
        rows = session.scalars(select(ModelStageRow).order_by(ModelStageRow.id)).all()
    return [
        _report(
            model,
            [row for row in rows if model.version in (row.version, row.replaced)],
            recipes=using.get(model.version, []),
            pinned_by=[name for name, version in pins.items() if version == model.version],
            is_default=model.version == default,
            is_shadow=model.version in shadows,
            is_loaded=model.version in loaded,
            refused=(refused or {}).get(model.version),
        )
        for model in list_models(database)
    ]


def model_report(
    database: Database, version: str, loaded: Collection[str] = (), refused: Mapping[str, str] | None = None
) -> ModelReport:
    """One version. Raises NotFoundError."""
    find_model(database, version)
    return next(report for report in model_reports(database, loaded, refused) if report.version == version)


def compare_models(database: Database, home: Path, a: str, b: str) -> ModelComparison:
    """The figures of two versions side by side.

    Raises:
        NotFoundError: no such version.
        VersionGoneError, ModelRefusedError: its files are gone or damaged.
    """
    ours, theirs = (_figures(find_model(database, version), home) for version in (a, b))
    names = [*ours, *(name for name in theirs if name not in ours)]
    rows = tuple(FigureRow(figure=name, a=ours.get(name), b=theirs.get(name)) for name in names)
    return ModelComparison(a=a, b=b, rows=rows)


def _report(
    model: StoredModel,
    rows: list[ModelStageRow],
    *,
    recipes: list[str],
    pinned_by: list[str],
    is_default: bool,
    is_shadow: bool,
    is_loaded: bool,
    refused: str | None,
) -> ModelReport:
    stage: Stage = "candidate"
    if model.is_retired:
        stage = "retired"
    elif is_default or recipes:
        stage = "production"
    elif is_shadow:
        stage = "shadow"
    promoted = [row for row in rows if row.version == model.version and row.deed == PROMOTED]
    gate = promoted[-1].gate if promoted else None
    added = ModelEvent(
        at=datetime.fromisoformat(model.added),
        actor=model.actor,
        recipe=None,
        deed="added",
        reason="" if model.parent is None else f"made from {model.parent}",
        override=False,
    )
    return ModelReport(
        version=model.version,
        name=model.name,
        stage=stage,
        parent=model.parent,
        classes=model.facts.classes,
        needs_reference=model.facts.needs_reference,
        added=datetime.fromisoformat(model.added),
        actor=model.actor,
        data_fingerprint=model.facts.data_fingerprint,
        git_revision=model.facts.git_revision,
        recipes=tuple(recipes),
        is_default=is_default,
        loaded=is_loaded,
        refused=refused,
        report=model.report,
        gate=None if gate is None else Gate.model_validate_json(gate),
        overrides=_overrides(model.version, rows, [*([NO_PIN] if is_default else []), *pinned_by]),
        history=(added, *filter(None, (_event(model.version, row) for row in rows))),
    )


def _overrides(version: str, rows: list[ModelStageRow], places: list[str]) -> tuple[ModelEvent, ...]:
    """Of the places where a version is in production, how it came there where the gate did not let it."""
    # What came back by a rollback is there by its own promotion, earlier.
    promoted = [row for row in rows if row.kind == PRODUCTION and row.deed != ROLLED_BACK]
    newest = {row.recipe: row for row in promoted if row.version == version}
    return tuple(
        event
        for place in places
        if place in newest and newest[place].is_override
        if (event := _event(version, newest[place])) is not None
    )


def _event(version: str, row: ModelStageRow) -> ModelEvent | None:
    """What a row says of a version; None: another took its place, which is that one's deed."""
    reason, deed = row.reason, _DEEDS.get(row.deed, "promoted")
    if row.version != version:
        if row.deed != ROLLED_BACK:
            return None
        deed = "rolled back"
    elif row.deed == ROLLED_BACK:
        reason = f"{row.replaced} was rolled back{f': {reason}' if reason else ''}"
    if row.deed == "shadow":
        ended = f"ended: {row.reason}" if row.reason else "ended"
        reason = f"on {row.share:.0%} of the boards" if row.share else ended
    return ModelEvent(
        at=datetime.fromisoformat(row.at),
        actor=row.actor,
        recipe=row.recipe or None,
        deed=deed,
        reason=reason,
        override=row.is_override,
    )


def _figures(model: StoredModel, home: Path) -> dict[str, float | str | None]:
    from inspect_vit.checkpoint import read_metadata

    path = check_version(home, model.version)
    metadata = read_metadata(path)
    found: dict[str, float | str | None] = {
        "name": model.name,
        "parent": model.parent,
        "added": model.added,
        "classes": ", ".join(model.facts.classes),
        "needs a reference": "yes" if model.facts.needs_reference else "no",
        "data fingerprint": model.facts.data_fingerprint or None,
        "git revision": model.facts.git_revision or None,
        "file, MB": round(path.stat().st_size / 1e6, 2),
    }
    for mode, limits in metadata.thresholds.items():
        told = mode.replace("_", " ")
        found |= {f"threshold of {label}, {told}": round(limit, 4) for label, limit in limits.items()}
    found |= _numbers("validation", metadata.training.get("validation"))
    table = model.report or {}
    for row in table.get("classes") or ():
        found |= {f"AP of {row.get('label')}, {when}": row.get(when) for when in ("before", "after")}
    found |= _numbers("false calls", table.get("false_calls"))
    return found


def _numbers(name: str, tree: Any) -> dict[str, float | str | None]:
    """The numbers of a tree of mappings, each under its path."""
    if isinstance(tree, Mapping):
        parts = (_numbers(f"{name}, {key}".replace("_", " "), value) for key, value in tree.items())
        return {path: value for part in parts for path, value in part.items()}
    if isinstance(tree, int | float) and json.dumps(tree) not in ("NaN", "Infinity", "-Infinity"):
        return {name: float(tree)}
    return {}
