"""Boards that come back: the number of each attempt, and who sent a picture first."""

from __future__ import annotations

from sqlalchemy import ColumnElement, func, select, text
from sqlalchemy.orm import Session

from serving.database import InspectionRow


def lock_serial(session: Session, serial: str) -> None:
    """Let one transaction at a time number a serial's attempts. SQLite has one writer anyway."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(hashtext(:serial))"), {"serial": serial})


def attempt_of(serial: str, image_sha256: str) -> ColumnElement[int]:
    """The attempt an inspection to be inserted is: evaluated by the database within the INSERT.

    The same picture under the same serial is a request that was sent again and keeps its number; another
    picture is the next attempt.
    """
    same_board = select(InspectionRow.attempt).where(InspectionRow.serial == serial)
    resent = same_board.where(InspectionRow.image_sha256 == image_sha256).limit(1)
    latest = select(func.max(InspectionRow.attempt)).where(InspectionRow.serial == serial)
    return func.coalesce(resent.scalar_subquery(), latest.scalar_subquery() + 1, 1)


def first_sender(session: Session, image_sha256: str) -> tuple[str, str] | None:
    """Id and serial of the first inspection that has these picture bytes and a serial, or None."""
    found = session.execute(
        select(InspectionRow.id, InspectionRow.serial)
        .where(InspectionRow.image_sha256 == image_sha256, InspectionRow.serial.is_not(None))
        .order_by(InspectionRow.id)
        .limit(1)
    ).first()
    return None if found is None else (found[0], str(found[1]))
