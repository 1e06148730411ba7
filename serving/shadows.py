"""Shadows: on a share of the boards a candidate says what it would have said, once the answer is sent.

It never touches an answer: it runs when no board is waiting, and a board for which that moment does not come
is skipped and counted.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine as Database
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session

from inspect_vit.errors import InspectionError
from inspect_vit.results import InspectionResult, Verdict
from serving.database import InspectionRow
from serving.engine import Engine
from serving.errors import ModelRefusedError, ServingError
from serving.model_schemas import Disagreement, ShadowCalls, ShadowReport, ShadowSide
from serving.model_stages import NO_PIN, SHADOW, newest_stage, put_stage, shadows_in_force
from serving.model_tables import ShadowRunRow
from serving.promotion import usable
from serving.recipes import get_recipe
from serving.registry import find_model, production
from serving.roles import Actor
from serving.store import Store, StoredInspection

MAX_WAITING = 4
QUIET_S, CHECK_S = 5.0, 0.05
"""How long a board waits for a moment without others, and how often it looks."""
MAX_LISTED = 200

logger = logging.getLogger("inspect_vit.serving")


@dataclass(frozen=True)
class _Board:
    """A board that a candidate is to inspect."""

    inspection: str
    candidate: str
    said: ShadowSide


class Shadows:
    """The boards of one process that wait for a candidate."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store, self._engine = store, engine
        self._waiting: deque[_Board] = deque()
        self._task: asyncio.Task[None] | None = None

    async def close(self) -> None:
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def offer(self, inspection: StoredInspection, result: InspectionResult) -> None:
        """Let a board wait for the candidate, if there is one and the board is among its share."""
        report = inspection.report
        if result.verdict is Verdict.ERROR:
            return
        drawn = self._engine.models.shadow_of(report.recipe, report.model.version)
        if drawn is None or not is_drawn(report.id, drawn[1]):
            return
        board = _Board(report.id, drawn[0], side_of(result))
        self._waiting.append(board)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        while self._waiting:
            board = self._waiting.popleft()
            said = None
            try:
                if len(self._waiting) < MAX_WAITING and await self._quiet():
                    said = await self._ask(board)
            except (InspectionError, ServingError, OSError, SQLAlchemyError) as error:
                logger.warning(
                    "candidate %s did not inspect %s: %s", board.candidate, board.inspection, error
                )
            try:
                await asyncio.to_thread(_keep, self._store.engine, board, said)
            except SQLAlchemyError:
                logger.exception("what candidate %s said was not stored", board.candidate)

    async def _quiet(self) -> bool:
        for _ in range(int(QUIET_S / CHECK_S)):
            if not self._engine.num_admitted:
                return True
            await asyncio.sleep(CHECK_S)
        return False

    async def _ask(self, board: _Board) -> ShadowSide:
        """The board once more, from its stored pictures, by the candidate."""
        store = self._store

        def read() -> tuple[StoredInspection, bytes, bytes | None]:
            found = store.get(board.inspection)
            return found, store.read_image(found), store.read_reference(found)

        found, image, reference = await asyncio.to_thread(read)
        recipe = None
        if found.report.recipe is not None and found.report.recipe_revision is not None:
            recipe = await asyncio.to_thread(
                get_recipe, store.engine, found.report.recipe, found.report.recipe_revision
            )
        has_own = recipe is not None and recipe.references

        async def stays() -> bool:
            return False

        inspected = await self._engine.inspect(
            image,
            None if has_own else reference,
            min_score=None,
            recipe=recipe,
            version=board.candidate,
            client_gone=stays,
        )
        return side_of(inspected.result)


def is_drawn(inspection: str, share: float) -> bool:
    """Whether a board is among a share of all: the same boards whatever the candidate."""
    return int.from_bytes(hashlib.sha256(inspection.encode()).digest()[:8], "big") < share * 2.0**64


def side_of(result: InspectionResult) -> ShadowSide:
    """Verdict and classes of the calls at or above their threshold, whatever else is listed."""
    labels = {each.label for each in result.defects if each.score >= result.thresholds[each.label]}
    return ShadowSide(verdict=result.verdict, labels=tuple(sorted(labels)))


def set_shadow(
    database: Database, home: Path, version: str, *, share: float, recipe: str | None, actor: Actor
) -> None:
    """Let a version run beside the one in production, in place of another candidate there; share 0 ends it.

    Raises:
        NotFoundError: no such version or recipe.
        ModelRefusedError, VersionGoneError: it is in production there, retired or damaged.
    """
    if share:
        usable(database, home, version)
        if production(database, recipe) == version:
            raise ModelRefusedError(
                f"model version {version} is in production there itself", hint="name a candidate"
            )
    else:
        find_model(database, version)
    with Session(database) as session:
        there = newest_stage(session, recipe=recipe or NO_PIN, kind=SHADOW)
        is_there = there is not None and there.version == version and there.share
        if there is not None and is_there and there.share == share:
            return
        if not share and not is_there:
            return
        put_stage(session, version, actor, deed=SHADOW, recipe=recipe or NO_PIN, kind=SHADOW, share=share)
        session.commit()


def _keep(database: Database, board: _Board, said: ShadowSide | None) -> None:
    """Store what the candidate said; None: skipped."""
    calls = ""
    if said is not None:
        calls = ShadowCalls(production=board.said, candidate=said).model_dump_json()
    row = ShadowRunRow(
        inspection=board.inspection,
        version=board.candidate,
        verdict="" if said is None else said.verdict.value,
        calls=calls,
        disagreement=said is not None and said != board.said,
    )
    with Session(database) as session, suppress(IntegrityError):
        session.add(row)
        session.commit()


def shadow_report(database: Database, version: str) -> ShadowReport:
    """What a candidate said so far. Raises NotFoundError."""
    find_model(database, version)
    in_force = {
        recipe: share for recipe, (shadow, share) in shadows_in_force(database).items() if shadow == version
    }
    of_version = ShadowRunRow.version == version
    with Session(database) as session:

        def count(*conditions: object) -> int:
            query = select(func.count()).select_from(ShadowRunRow).where(of_version, *conditions)  # type: ignore[arg-type]
            return session.scalar(query) or 0

        query = (
            select(ShadowRunRow, InspectionRow.serial)
            .outerjoin(InspectionRow, InspectionRow.id == ShadowRunRow.inspection)
            .where(of_version, ShadowRunRow.disagreement.is_(True))
            .order_by(ShadowRunRow.inspection.desc())
        )
        rows = session.execute(query.limit(MAX_LISTED)).all()
        return ShadowReport(
            version=version,
            share=max(in_force.values(), default=0.0),
            recipes=tuple(recipe or None for recipe in sorted(in_force)),
            boards=count(ShadowRunRow.verdict != ""),
            skipped=count(ShadowRunRow.verdict == ""),
            disagreements=tuple(
                Disagreement(
                    inspection=row.inspection,
                    serial=serial,
                    **ShadowCalls.model_validate_json(row.calls).__dict__,
                )
                for row, serial in rows
            ),
            num_disagreements=count(ShadowRunRow.disagreement.is_(True)),
        )
