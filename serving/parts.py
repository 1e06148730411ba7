"""Which boards teach and which only examine: decided by the board, once and for ever.

A board is its serial number, or its picture where none was read, so that every picture of one board
falls on one side, whatever was reviewed or inspected since. A picture that comes again, with another serial
or with none, is of the board that it was of first. No random number goes in: the same board answers the same
on every server and after every restore. A larger share moves boards from the part that teaches to the part
that examines, and none the other way.
"""

import hashlib
from collections.abc import Collection
from typing import Literal

from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from serving.database import InspectionRow

__all__ = ["Part", "board_names", "part_of"]

Part = Literal["train", "acceptance"]
AT_ONCE = 500


def board_names(engine: Engine, images: Collection[str]) -> dict[str, str]:
    """The board that each picture is of, by the picture's SHA-256, whatever came of its inspections."""
    names: dict[str, str] = {}
    every = sorted(images)
    for some in (every[at : at + AT_ONCE] for at in range(0, len(every), AT_ONCE)):
        first = select(func.min(InspectionRow.id)).where(InspectionRow.image_sha256.in_(some))
        first = first.group_by(InspectionRow.image_sha256)
        columns = (InspectionRow.image_sha256, InspectionRow.serial)
        with Session(engine) as session:
            rows = session.execute(select(*columns).where(InspectionRow.id.in_(first))).all()
        names |= {image: serial or image[:16] for image, serial in rows}
    return names


def part_of(board: str, share: float) -> Part:
    """The part that a board belongs to.

    Args:
        board: as `board_names` names it.
        share: of all boards, 0 to 1, that belongs to the acceptance part (INSPECT_VIT_ACCEPTANCE_SHARE).
    """
    digest = hashlib.sha256(f"board:{board}".encode()).digest()
    return "acceptance" if int.from_bytes(digest[:8], "big") < share * 2.0**64 else "train"
