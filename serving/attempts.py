"""Boards that come back: the number of each attempt, and who sent a picture first."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import ColumnElement, func, select, text
from sqlalchemy.orm import Session

from serving.database import InspectionRow


class Sender(NamedTuple):
    """The first inspection of a picture that came with a serial."""

    inspection: str
    serial: str
    actor: str | None
    """Name of the key that posted it; None: the server asked for no key."""


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


def first_sender(session: Session, image_sha256: str) -> Sender | None:
    """Whose these picture bytes are: the first inspection that has them and a serial, or None."""
    found = session.execute(
        select(InspectionRow.id, InspectionRow.serial, InspectionRow.actor)
        .where(InspectionRow.image_sha256 == image_sha256, InspectionRow.serial.is_not(None))
        .order_by(InspectionRow.id)
        .limit(1)
    ).first()
    return None if found is None else Sender(found[0], str(found[1]), found[2])
