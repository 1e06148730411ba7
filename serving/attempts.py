"""Boards that come back: the number of each attempt, and who sent a picture first."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import ColumnElement, func, select, text
from sqlalchemy.orm import Session

from serving.database import InspectionRow
from serving.errors import OvertakenError


class Sender(NamedTuple):
    """The first inspection of a picture that came with a serial."""

    inspection: str
    serial: str
    actor: str | None
    """Name of the key that posted it; None: the server asked for no key."""


def lock_serial(session: Session, serial: str) -> None:
    """Let one transaction at a time number a serial's attempts."""
    hold_name(session, serial)


def attempt_of(serial: str, image_sha256: str) -> ColumnElement[int]:
    """The attempt an inspection to be inserted is: evaluated by the database within the INSERT.

    The same picture under the same serial is a request that was sent again and keeps its number; another
    picture is the next attempt.
    """
    same_board = select(InspectionRow.attempt).where(InspectionRow.serial == serial)
    resent = same_board.where(InspectionRow.image_sha256 == image_sha256).limit(1)
    latest = select(func.max(InspectionRow.attempt)).where(InspectionRow.serial == serial)
    return func.coalesce(resent.scalar_subquery(), latest.scalar_subquery() + 1, 1)


def check_sender(session: Session, inspection: str, *, image_sha256: str, serial: str) -> None:
    """See to it, until the transaction ends, that this inspection's picture was not first stored under
    another serial.

    Raises:
        OvertakenError: it was.
    """
    hold_name(session, image_sha256)
    first = first_sender(session, image_sha256, besides=inspection)
    if first is not None and first.serial != serial:
        raise OvertakenError(f"inspection {first.inspection} of another serial has the same picture")


def first_sender(session: Session, image_sha256: str, *, besides: str = "") -> Sender | None:
    """The first inspection, besides one, that has these picture bytes and a serial; or None."""
    found = session.execute(
        select(InspectionRow.id, InspectionRow.serial, InspectionRow.actor)
        .where(InspectionRow.image_sha256 == image_sha256, InspectionRow.serial.is_not(None))
        .where(InspectionRow.id != besides)
        .order_by(InspectionRow.id)
        .limit(1)
    ).first()
    return None if found is None else Sender(found[0], str(found[1]), found[2])


def hold_name(session: Session, name: str) -> None:
    """Hold a name until the transaction ends. SQLite has one writer anyway."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": name})
