"""Challenge boards: boards with known defects that are shown to the line, which must call them all.

One that is not called whole locks its recipe: until an engineer clears the lock, every other board of it gets
verdict ERROR. The lock and the inspection that caused it are one transaction, and no board is stored as
inspected after it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import Engine, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from inspect_vit.results import InspectionResult, Verdict
from serving.audit import record, utc_now
from serving.challenge_schemas import ChallengeBoard, ChallengeReport, ChallengeRequest, ChallengeState
from serving.database import InspectionRow
from serving.errors import FieldError, OvertakenError
from serving.line_tables import ChallengeRow, ChallengeRunRow
from serving.recipes import get_recipe
from serving.roles import SERVICE, Actor
from serving.uploads import check_label

STORED, LOCKED, UNLOCKED = "challenge_stored", "recipe_locked", "recipe_unlocked"
HOW_TO_UNLOCK = "an engineer clears it with POST /v1/recipes/NAME/challenge/clear"


@dataclass(frozen=True)
class Challenge:
    """What is asked of one recipe, and how it stands."""

    recipe: str
    boards: tuple[ChallengeBoard, ...] = ()
    every_hours: float | None = None
    changed: str = ""
    shown: str | None = None
    locked: str | None = None
    why: str = ""

    def board(self, serial: str | None) -> ChallengeBoard | None:
        return next((one for one in self.boards if one.serial == serial), None)

    @property
    def due(self) -> datetime | None:
        """When a board must have been shown."""
        if not self.boards or self.every_hours is None:
            return None
        return datetime.fromisoformat(self.shown or self.changed) + timedelta(hours=self.every_hours)

    def warnings(self, now: datetime) -> tuple[str, ...]:
        due = self.due
        if due is None or now <= due:
            return ()
        since = due.isoformat(timespec="minutes")
        return (f"challenge overdue: a challenge board of recipe {self.recipe!r} was due at {since}",)


@dataclass(frozen=True)
class Run:
    """One inspection of a challenge board."""

    challenge: Challenge
    board: ChallengeBoard
    missing: tuple[str, ...]
    """Expected classes that were not called."""
    error: str = ""
    """Why the board was not inspected; empty: it was."""

    @property
    def why(self) -> str:
        """Why the recipe is to be locked; empty: all was called."""
        if self.error:
            return f"challenge board {self.board.serial!r} was not inspected: {self.error}"
        if self.missing:
            return f"challenge board {self.board.serial!r}: {', '.join(self.missing)} not called"
        return ""


def find_challenge(engine: Engine, recipe: str) -> Challenge:
    """The challenge of a recipe; one without boards where none was stored."""
    with Session(engine) as session:
        return _of(session, recipe)


def judge(challenge: Challenge, board: ChallengeBoard, result: InspectionResult) -> Run:
    """Compare what was called at or above the thresholds with what the board has."""
    called = Counter(one.label for one in result.defects if one.score >= result.thresholds[one.label])
    missing = tuple((Counter(board.labels) - called).elements())
    error = "; ".join(result.reasons) if result.verdict is Verdict.ERROR else ""
    return Run(challenge, board, missing, error)


def keep(session: Session, run: Run, inspection: str, *, model_version: str) -> None:
    """Store what a challenge board showed, and lock its recipe if need be, in the caller's transaction."""
    recipe = run.challenge.recipe
    row = ChallengeRunRow(
        inspection=inspection, recipe=recipe, serial=run.board.serial, is_found=run.why == ""
    )
    session.add(row)
    change = update(ChallengeRow).where(ChallengeRow.recipe == recipe)
    if not run.why:
        if not _was_posted_before(session, inspection):
            session.execute(change.values(shown=utc_now()))
        return
    locking = change.where(ChallengeRow.locked.is_(None)).values(locked=utc_now(), why=run.why)
    if session.execute(locking.returning(ChallengeRow.recipe)).first() is not None:
        details = {"inspection": inspection, "why": run.why}
        record(session, SERVICE, LOCKED, object_name=recipe, details=details, model_version=model_version)


def check_open(session: Session, recipe: str) -> None:
    """See to it, until the transaction ends, that a recipe is not locked. Raises OvertakenError: it is."""
    query = select(ChallengeRow.locked).where(ChallengeRow.recipe == recipe).with_for_update(read=True)
    if session.scalar(query) is not None:
        raise OvertakenError(f"recipe {recipe!r} was locked meanwhile")


def while_locked(result: InspectionResult, challenge: Challenge) -> InspectionResult:
    """What becomes of a board of a locked recipe: it does not count as inspected."""
    causes = result.reasons if result.verdict is Verdict.ERROR else ()
    return replace(
        result,
        verdict=Verdict.ERROR,
        reasons=(f"recipe locked: {challenge.why}", *causes),
        defects=(),
        num_defects=0,
        differences=(),
    )


def put_challenge(
    engine: Engine, recipe: str, asked: ChallengeRequest, actor: Actor, *, class_names: Sequence[str]
) -> Challenge:
    """Store which boards are shown and how often; a lock stays as it is.

    Raises:
        NotFoundError: no such recipe.
        FieldError: a serial that is named twice or cannot be one, or a class the model does not know.
    """
    _check(asked, class_names)
    get_recipe(engine, recipe)
    values = {
        "boards": json.dumps([one.model_dump() for one in asked.boards]),
        "every_hours": asked.every_hours,
        "changed": utc_now(),
    }
    with Session(engine) as session:
        kind = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite
        statement = kind.insert(ChallengeRow).values(recipe=recipe, why="", **values)
        session.execute(statement.on_conflict_do_update(index_elements=["recipe"], set_=values))
        details = {"serials": [one.serial for one in asked.boards], "every_hours": asked.every_hours}
        record(session, actor, STORED, object_name=recipe, details=details)
        session.commit()
        return _of(session, recipe)


def clear(engine: Engine, recipe: str, reason: str, actor: Actor) -> Challenge:
    """Unlock a recipe; one that is not locked stays as it is. Raises NotFoundError."""
    get_recipe(engine, recipe)
    with Session(engine) as session:
        was = _of(session, recipe)
        change = update(ChallengeRow).where(ChallengeRow.recipe == recipe, ChallengeRow.locked.is_not(None))
        cleared = session.execute(change.values(locked=None, why="").returning(ChallengeRow.recipe)).first()
        if cleared is not None:
            details = {"reason": reason, "why": was.why, "since": was.locked}
            record(session, actor, UNLOCKED, object_name=recipe, details=details)
        session.commit()
        return _of(session, recipe)


def report_of(challenge: Challenge) -> ChallengeReport:
    since, shown = challenge.locked, challenge.shown
    return ChallengeReport(
        recipe=challenge.recipe,
        boards=challenge.boards,
        every_hours=challenge.every_hours,
        shown=None if shown is None else datetime.fromisoformat(shown),
        state=ChallengeState(
            locked=since is not None,
            since=None if since is None else datetime.fromisoformat(since),
            why=challenge.why,
            due=challenge.due,
        ),
    )


def _of(session: Session, recipe: str) -> Challenge:
    row = session.get(ChallengeRow, recipe, populate_existing=True)
    if row is None:
        return Challenge(recipe)
    return Challenge(
        recipe=row.recipe,
        boards=tuple(ChallengeBoard.model_validate(one) for one in json.loads(row.boards)),
        every_hours=row.every_hours,
        changed=row.changed,
        shown=row.shown,
        locked=row.locked,
        why=row.why,
    )


def _was_posted_before(session: Session, inspection: str) -> bool:
    """Whether an earlier inspection has the same picture: an old picture shows nothing of today's line."""
    picture = select(InspectionRow.image_sha256).where(InspectionRow.id == inspection).scalar_subquery()
    earlier = select(InspectionRow.id).where(InspectionRow.image_sha256 == picture)
    return session.scalar(earlier.where(InspectionRow.id < inspection).limit(1)) is not None


def _check(asked: ChallengeRequest, class_names: Sequence[str]) -> None:
    serials = [one.serial for one in asked.boards]
    for number, serial in enumerate(serials):
        field = f"boards.{number}.serial"
        if check_label(field, serial) != serial.strip():
            raise FieldError(f"{field}: {serial!r} begins or ends with a space")
        if serial in serials[:number]:
            raise FieldError(f"{field}: {serial!r} is named twice", hint="name all its classes in one place")
    for number, board in enumerate(asked.boards):
        if unknown := sorted(set(board.labels) - set(class_names)):
            raise FieldError(
                f"boards.{number}.labels: class {', '.join(unknown)} is not known to the model",
                hint=f"it knows {', '.join(class_names)}",
            )
