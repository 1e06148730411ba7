"""The part of a board never changes: neither with this code nor with what else is stored."""

from __future__ import annotations

import hashlib

import pytest

from serving.parts import part_of

ID = "20260101000000abcdef"


@pytest.mark.parametrize(
    ("serial", "inspection", "place"),
    [
        ("PCB-0001", "any", 0.5107524574861786),
        ("PCB-0002", "any", 0.7205394189098915),
        (None, "20260101-000000-abcdef", 0.7592583340124863),
        ("", "20260101-000000-abcdef", 0.7592583340124863),
        ("\u00dcn\u00ef-7", "any", 0.9286804267483845),
    ],
)
def test_a_board_keeps_its_part_for_ever(serial: str | None, inspection: str, place: float) -> None:
    """The places were worked out once; boards in the field have been divided by them since."""
    assert part_of(serial, inspection, place - 1e-9) == "train"
    assert part_of(serial, inspection, place + 1e-9) == "acceptance"


def test_a_part_is_the_boards_not_the_pictures() -> None:
    for n in range(200):
        parts = {part_of(f"SN-{n}", picture, 0.5) for picture in ("one", "another", ID)}
        assert len(parts) == 1
    assert {part_of(None, f"picture {n}", 0.5) for n in range(200)} == {"train", "acceptance"}


def test_the_share_is_kept_and_a_larger_one_takes_none_back() -> None:
    serials = [hashlib.md5(str(n).encode()).hexdigest() for n in range(4000)]
    before: set[str] = set()
    for share in (0.0, 0.1, 0.3, 0.7, 1.0):
        examined = {serial for serial in serials if part_of(serial, ID, share) == "acceptance"}
        # Four standard deviations of a binomial draw.
        assert abs(len(examined) / 4000 - share) <= 4 * (share * (1 - share) / 4000) ** 0.5
        assert before <= examined
        before = examined
