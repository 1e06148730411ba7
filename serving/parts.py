"""Which boards teach and which only examine: decided by the board, once and for ever.

A board is its serial number, or the inspection itself where none was read, so that every picture of one board
falls on one side, whatever was reviewed, deleted or inspected since. No random number goes in and no stored
state: the same board answers the same on every server and after every restore. A larger share moves boards
from the part that teaches to the part that examines, and none the other way.
"""

import hashlib
from typing import Literal

__all__ = ["Part", "part_of"]

Part = Literal["train", "acceptance"]


def part_of(serial: str | None, inspection: str, share: float) -> Part:
    """The part that a board belongs to.

    Args:
        serial: the board's number; null or empty where none is known, then `inspection` stands for the board.
        inspection: the inspection's id.
        share: of all boards, 0 to 1, that belongs to the acceptance part (INSPECT_VIT_ACCEPTANCE_SHARE).
    """
    digest = hashlib.sha256(f"board:{serial or inspection}".encode()).digest()
    return "acceptance" if int.from_bytes(digest[:8], "big") < share * 2.0**64 else "train"
