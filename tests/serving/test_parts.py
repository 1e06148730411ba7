"""The part of a board never changes: neither with this code nor with what else is stored."""

from __future__ import annotations

import hashlib
from contextlib import closing

import pytest

from serving.config import ServingConfig
from serving.dataset_schemas import DatasetFilter
from serving.datasets import select_boards
from serving.parts import part_of
from serving.preview import read_reviewed
from serving.store import Store
from tests.serving.verified import Verified, draw_pair


@pytest.mark.parametrize(
    ("board", "place"),
    [
        ("PCB-0001", 0.5107524574861786),
        ("PCB-0002", 0.7205394189098915),
        ("20260101-000000-abcdef", 0.7592583340124863),
        ("\u00dcn\u00ef-7", 0.9286804267483845),
    ],
)
def test_a_board_keeps_its_part_for_ever(board: str, place: float) -> None:
    """The places were worked out once; boards in the field have been divided by them since."""
    assert part_of(board, place - 1e-9) == "train"
    assert part_of(board, place + 1e-9) == "acceptance"


def test_what_teaches_and_what_examines_a_threshold_agree(config: ServingConfig) -> None:
    """Of boards with a serial and without, and of a picture that comes again under another one."""
    with closing(Store(config)) as store:
        line = Verified(store)
        for n in range(30):
            line.review(line.inspect(serial=f"SN-{n}" if n % 2 else None, recipe="top"))
        for n in range(10):
            line.review(line.inspect(serial=f"again {n}", recipe="top", image=draw_pair(n + 1)[0]))
        boards = read_reviewed(store.engine, "top", line.boards.result.model_version)
        examines = {board.inspection: part_of(board.board, 0.5) for board in boards}
        taught = select_boards(store.engine, DatasetFilter(), acceptance_share=0.5).boards
        assert len(taught) == 30
        assert {board.inspection: board.part for board in taught}.items() <= examines.items()
        assert len(examines) == 40
        assert set(examines.values()) == {"train", "acceptance"}


def test_the_share_is_kept_and_a_larger_one_takes_none_back() -> None:
    serials = [hashlib.md5(str(n).encode()).hexdigest() for n in range(4000)]
    before: set[str] = set()
    for share in (0.0, 0.1, 0.3, 0.7, 1.0):
        examined = {serial for serial in serials if part_of(serial, share) == "acceptance"}
        # Four standard deviations of a binomial draw.
        assert abs(len(examined) / 4000 - share) <= 4 * (share * (1 - share) / 4000) ** 0.5
        assert before <= examined
        before = examined
