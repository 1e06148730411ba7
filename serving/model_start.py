"""Which version is in production when a server starts."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from serving.errors import ModelRefusedError, VersionGoneError
from serving.model_stages import NO_PIN, PRODUCTION, STARTED, newest_stage, put_stage
from serving.model_tables import ModelStageRow
from serving.registry import add_version, version_file
from serving.roles import SERVICE


def start_with(database: Engine, home: Path, checkpoint: Path | None) -> str:
    """The version that is in production when a server starts; it is whole.

    A checkpoint is added and goes into production, once: where another version was promoted over it since,
    that one stays, so that starting the same command again undoes no promotion. Without a checkpoint the one
    in production stays; the first start of all takes the checkpoint that is shipped.

    Raises:
        CheckpointError, ModelRefusedError, VersionGoneError: the version cannot be served.
    """
    from inspect_vit.checkpoint import default_checkpoint

    with Session(database) as session:
        newest = newest_stage(session)
    if checkpoint is None and newest is not None:
        return _whole(home, newest.version)
    added = add_version(database, home, checkpoint or default_checkpoint(), actor=SERVICE)
    with Session(database) as session:
        query = select(ModelStageRow).where(ModelStageRow.recipe == NO_PIN, ModelStageRow.kind == PRODUCTION)
        rows = session.scalars(query.order_by(ModelStageRow.id)).all()
        newest = rows[-1] if rows else None
        is_known = any(row.version == added.version for row in rows)
        if newest is not None and is_known and newest.deed != STARTED:
            return _whole(home, newest.version)
        if newest is None or newest.version != added.version:
            if added.is_retired:
                raise ModelRefusedError(
                    f"model version {added.version} is retired", hint="start with another checkpoint, or none"
                )
            reason = "started with --checkpoint" if checkpoint else "the checkpoint that is shipped"
            put_stage(
                session,
                added.version,
                SERVICE,
                deed=STARTED,
                replaced=None if newest is None else newest.version,
                reason=reason,
            )
            session.commit()
    return added.version


def _whole(home: Path, version: str) -> str:
    """The version in production, checked; an error says how to serve another."""
    try:
        version_file(home, version)
    except (ModelRefusedError, VersionGoneError) as error:
        raise type(error)(
            f"{error}; it is in production, so the service does not start",
            hint=f"inspect-vit models rollback {version} goes back to the one before; or {error.hint}",
        ) from error
    return version
