"""Model versions in the store: which there are, and which one inspects what.

Two things decide. The newest row for the recipe '' says which version inspects boards without a recipe and
those whose recipe pins none; a recipe's newest revision says which version it pins. Servers follow both.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict
from sqlalchemy import Engine, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from serving.audit import record, utc_now
from serving.errors import ModelMismatchError, ModelRefusedError, NotFoundError, VersionGoneError
from serving.model_files import MODEL, check_version, folder_of, read_manifest, sha256_of, write_version
from serving.model_stages import (
    RETIRED,
    newest_stage,
    put_stage,
    shadows_in_force,
)
from serving.model_tables import ModelRow
from serving.recipes import get_recipe, list_recipes
from serving.roles import Actor

if TYPE_CHECKING:
    from inspect_vit.checkpoint import CheckpointMetadata


class Facts(BaseModel):
    """What a checkpoint says of itself, kept in its row so that a list opens no file."""

    model_config = ConfigDict(frozen=True)

    classes: tuple[str, ...]
    needs_reference: bool
    data_fingerprint: str
    git_revision: str
    created: str


@dataclass(frozen=True)
class StoredModel:
    """One version."""

    version: str
    name: str
    parent: str | None
    added: str
    actor: str
    sha256: str
    facts: Facts
    report: dict[str, Any] | None
    """The table of before and after that came with it."""
    is_retired: bool


def add_version(
    database: Engine,
    home: Path,
    checkpoint: Path,
    *,
    parent: str | None = None,
    actor: Actor,
    report: dict[str, Any] | None = None,
) -> StoredModel:
    """Copy a checkpoint into the store as a candidate.

    The same one again changes nothing, and repairs its folder if that is damaged.

    Args:
        parent: the version it was made from; default: what the checkpoint's own training record says.

    Raises:
        CheckpointError: the file cannot be loaded.
        ModelRefusedError: the version is there with other thresholds.
    """
    from inspect_vit.checkpoint import read_metadata

    header = read_metadata(checkpoint)
    with Session(database) as session:
        row = session.get(ModelRow, header.version)
    if row is not None and row.sha256 == sha256_of(checkpoint):
        with suppress(ModelRefusedError, VersionGoneError):
            check_version(home, row.version)
            return _to_model(row)
    if parent is None:
        told = header.training.get("parent")
        parent = str(told.get("version") if isinstance(told, dict) else told)[:64] if told else None
    who, now = actor.name or "", utc_now()
    metadata = write_version(home, checkpoint, parent=parent, added=now, actor=who, report=report)
    version = metadata.version
    sha256 = read_manifest(folder_of(home, version)).files[MODEL]
    with Session(database) as session:
        row = session.get(ModelRow, version)
        if row is None:
            row = ModelRow(
                version=version,
                name=metadata.name,
                parent=parent,
                added=now,
                actor=who,
                sha256=sha256,
                facts=_facts(metadata).model_dump_json(),
                report=None if report is None else json.dumps(report, allow_nan=False),
                is_retired=False,
            )
            session.add(row)
            details = {"name": metadata.name, "parent": parent, "sha256": sha256}
            record(session, actor, "model_added", object_name=version, details=details, model_version=version)
        elif row.sha256 != sha256:
            row.sha256 = sha256
            details = {"name": metadata.name, "sha256": sha256}
            record(session, actor, "model_repaired", object_name=version, details=details)
        try:
            session.commit()
        except IntegrityError:
            session.rollback()  # Another process added the same one.
    return find_model(database, version)


def version_file(home: Path, version: str) -> Path:
    """The model file of a version, checked to be as it was added.

    Raises:
        NotFoundError, VersionGoneError, ModelRefusedError: no version, no folder, or a damaged one.
    """
    return check_version(home, version)


def find_model(database: Engine, version: str) -> StoredModel:
    """Raises NotFoundError."""
    with Session(database) as session:
        row = session.get(ModelRow, version)
    if row is None:
        raise NotFoundError(
            f"there is no model version {version[:40]!r}",
            hint="GET /v1/models or inspect-vit models list shows those there are",
        )
    return _to_model(row)


def list_models(database: Engine) -> list[StoredModel]:
    """All versions, the newest first."""
    with Session(database) as session:
        query = select(ModelRow).order_by(ModelRow.added.desc(), ModelRow.version)
        return [_to_model(row) for row in session.scalars(query)]


def production(database: Engine, recipe: str | None = None) -> str:
    """The version that inspects the boards of a recipe, or with None those without one.

    Raises:
        NotFoundError: no such recipe, or nothing is in production yet.
        ModelMismatchError: the recipe pins a version that the store does not have.
    """
    pinned = None if recipe is None else get_recipe(database, recipe).recipe.model_version
    if pinned is not None:
        check_pin(database, recipe or "", pinned)
        return pinned
    with Session(database) as session:
        row = newest_stage(session)
    if row is None:
        raise NotFoundError(
            "no model version is in production yet", hint="the first start of the service makes one"
        )
    return row.version


def check_pin(database: Engine, recipe: str, version: str) -> None:
    """Raises ModelMismatchError for a version that the store does not have."""
    try:
        find_model(database, version)
    except NotFoundError as error:
        raise ModelMismatchError(
            f"recipe {recipe!r} is pinned to model version {version}, which is not in the store",
            hint="inspect-vit models add FILE adds it; or store the recipe anew with another version or none",
        ) from error


def recipes_using(database: Engine) -> dict[str, list[str]]:
    """By version, the recipes in use that it inspects, whether they pin it or follow the one without pin."""
    try:
        unpinned = production(database)
    except NotFoundError:
        unpinned = ""
    using: dict[str, list[str]] = {}
    for stored in list_recipes(database):
        using.setdefault(stored.recipe.model_version or unpinned, []).append(stored.name)
    return using


def retire(database: Engine, version: str, *, actor: Actor, reason: str) -> StoredModel:
    """Flag a version as one that is not promoted any more. Its files stay: inspections name it.

    Raises:
        NotFoundError: no such version.
        ModelRefusedError: it is in use.
    """
    model = find_model(database, version)
    if model.is_retired:
        return model
    used_by = recipes_using(database).get(version, [])
    with Session(database) as session:
        default = newest_stage(session)
        if default is not None and default.version == version:
            raise _in_use(version, "is in production for boards whose recipe pins no version")
        if used_by:
            raise _in_use(version, f"inspects recipe {', '.join(used_by[:5])}")
        if version in {shadow for shadow, _ in shadows_in_force(database).values()}:
            raise _in_use(version, "runs beside the one in production; end that with share 0")
        row = session.get(ModelRow, version)
        assert row is not None, "rows of versions are never deleted"
        row.is_retired = True
        put_stage(session, version, actor, deed=RETIRED, kind=RETIRED, reason=reason)
        session.commit()
    return find_model(database, version)


def _facts(metadata: CheckpointMetadata) -> Facts:
    return Facts(
        classes=metadata.model.class_names,
        needs_reference=metadata.needs_reference,
        data_fingerprint=metadata.data_fingerprint,
        git_revision=metadata.git_revision,
        created=metadata.created,
    )


def _to_model(row: ModelRow) -> StoredModel:
    return StoredModel(
        version=row.version,
        name=row.name,
        parent=row.parent,
        added=row.added,
        actor=row.actor,
        sha256=row.sha256,
        facts=Facts.model_validate_json(row.facts),
        report=None if row.report is None else json.loads(row.report),
        is_retired=row.is_retired,
    )


def _in_use(version: str, how: str) -> ModelRefusedError:
    return ModelRefusedError(f"model version {version} {how}", hint="promote another version there first")
