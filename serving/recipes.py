"""Recipes in the store: every PUT is a new revision, none is ever changed, and a deleted recipe keeps them.

A recipe's settings and the list of its references are one row a revision; reference pictures are files named
by their SHA-256, which no retention touches.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from inspect_vit.recipe import Recipe
from serving.audit import record, utc_now
from serving.database import RecipeRow
from serving.errors import NotFoundError, RevisionConflictError
from serving.roles import Actor

ADDED, REPLACED, DELETED = "recipe_added", "recipe_replaced", "recipe_deleted"


@dataclass(frozen=True)
class ReferenceFile:
    """One golden reference of a recipe."""

    name: str
    sha256: str
    width: int
    height: int
    boards: tuple[tuple[float, float], ...] = ()
    """Residual (px) and difference (grey levels) of each good board it was built from."""


@dataclass(frozen=True)
class StoredRecipe:
    """One revision."""

    name: str
    revision: int
    created: datetime
    actor: str
    recipe: Recipe
    references: tuple[ReferenceFile, ...]


def put_recipe(
    engine: Engine,
    name: str,
    recipe: Recipe,
    references: tuple[ReferenceFile, ...],
    actor: Actor,
    *,
    expected: int | None = None,
    model_version: str | None = None,
    because: Mapping[str, Any] | None = None,
    beside: Callable[[Session], None] = lambda _: None,
) -> StoredRecipe:
    """Store a new revision.

    Args:
        expected: the revision that the caller read, 0 for a recipe that must be new; None: whatever is there.
        because: what else the audit trail tells of it.
        beside: adds to the transaction what stands or falls with the revision.

    Raises:
        RevisionConflictError: another revision is there.
    """
    with Session(engine, expire_on_commit=False) as session:
        last = _last(session, name)
        current = 0 if last is None or last.is_deleted else last.revision
        if expected is not None and expected != current:
            raise _conflict(name, current, expected)
        row = RecipeRow(
            name=name,
            revision=1 + (0 if last is None else last.revision),
            created=utc_now(),
            actor=actor.name or "",
            is_deleted=False,
            recipe=recipe.model_dump_json(),
            reference_files=json.dumps([vars(one) for one in references]),
        )
        session.add(row)
        action = REPLACED if current else ADDED
        details = {"revision": row.revision, "references": [one.sha256 for one in references]}
        details |= because or {}
        record(session, actor, action, object_name=name, details=details, model_version=model_version)
        beside(session)
        try:
            session.commit()
        except IntegrityError as error:  # another request stored the same revision first
            raise _conflict(name, row.revision, current) from error
    return _to_recipe(row)


def delete_recipe(engine: Engine, name: str, actor: Actor) -> None:
    """Take a recipe out of use; its revisions stay readable. Raises NotFoundError."""
    with Session(engine) as session:
        last = _last(session, name)
        if last is None or last.is_deleted:
            raise _missing(name)
        row = RecipeRow(
            name=name,
            revision=last.revision + 1,
            created=utc_now(),
            actor=actor.name or "",
            is_deleted=True,
            recipe=last.recipe,
            reference_files=last.reference_files,
        )
        session.add(row)
        record(session, actor, DELETED, object_name=name, details={"revision": last.revision})
        try:
            session.commit()
        except IntegrityError as error:
            raise _conflict(name, row.revision, last.revision) from error


def get_recipe(engine: Engine, name: str, revision: int | None = None) -> StoredRecipe:
    """A revision, by default the newest of a recipe that is in use. Raises NotFoundError."""
    with Session(engine) as session:
        if revision is None:
            row = _last(session, name)
        else:
            row = session.scalar(
                select(RecipeRow).where(RecipeRow.name == name, RecipeRow.revision == revision)
            )
    if row is None or row.is_deleted:
        raise _missing(name, revision)
    return _to_recipe(row)


def list_recipes(engine: Engine) -> list[StoredRecipe]:
    """The newest revision of every recipe in use, by name."""
    newest = select(RecipeRow.name, func.max(RecipeRow.revision).label("revision")).group_by(RecipeRow.name)
    last = newest.subquery()
    query = (
        select(RecipeRow)
        .join(last, (RecipeRow.name == last.c.name) & (RecipeRow.revision == last.c.revision))
        .where(RecipeRow.is_deleted.is_(False))
        .order_by(RecipeRow.name)
    )
    with Session(engine) as session:
        return [_to_recipe(row) for row in session.scalars(query)]


def pinned_version(session: Session, name: str) -> str | None:
    """The model version that the newest revision of a recipe pins."""
    row = _last(session, name)
    return None if row is None else Recipe.model_validate_json(row.recipe).model_version


def list_revisions(engine: Engine, name: str) -> list[StoredRecipe]:
    """All revisions of a recipe, newest first, also of one that was deleted. Raises NotFoundError."""
    query = select(RecipeRow).where(RecipeRow.name == name, RecipeRow.is_deleted.is_(False))
    with Session(engine) as session:
        found = [_to_recipe(row) for row in session.scalars(query.order_by(RecipeRow.revision.desc()))]
    if not found:
        raise _missing(name)
    return found


def _last(session: Session, name: str) -> RecipeRow | None:
    query = select(RecipeRow).where(RecipeRow.name == name).order_by(RecipeRow.revision.desc()).limit(1)
    return session.scalar(query)


def _to_recipe(row: RecipeRow) -> StoredRecipe:
    references = tuple(
        ReferenceFile(**{**one, "boards": tuple(tuple(fit) for fit in one["boards"])})
        for one in json.loads(row.reference_files)
    )
    return StoredRecipe(
        name=row.name,
        revision=row.revision,
        created=datetime.fromisoformat(row.created),
        actor=row.actor,
        recipe=Recipe.model_validate_json(row.recipe),
        references=references,
    )


def _missing(name: str, revision: int | None = None) -> NotFoundError:
    what = f"recipe {name!r}" if revision is None else f"revision {revision} of recipe {name!r}"
    return NotFoundError(f"there is no {what}", hint="GET /v1/recipes lists those in use")


def _conflict(name: str, found: int, expected: int) -> RevisionConflictError:
    there = f"revision {found}" if found else "no such recipe"
    return RevisionConflictError(
        f"recipe {name!r}: the change is for revision {expected or '(none)'}, and there is {there}",
        hint="read it again, repeat the change there, and send its revision as If-Match",
    )
