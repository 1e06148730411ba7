"""One shot in another guise is near, one board with other defects is a board, two boards are neither."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from training.checks.duplicates import compare_thumbs, confirm, find_pairs, turned
from training.checks.pictures import THUMB_SIDE_PX, _thumb

from .conftest import Picture, draw_board, save


def pairs_of(pictures: list[Picture]) -> list[tuple[int, int, int, str]]:
    found = find_pairs([_thumb(picture) for picture in pictures])
    return [(p.first, p.second, p.turn, p.likeness) for _, pairs in found for p in pairs]


def as_jpeg(picture: Picture, quality: int) -> Picture:
    data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_GRAYSCALE), np.uint8)


GUISES = {
    "saved again": lambda p: as_jpeg(p, 60),
    "smaller": lambda p: cv2.resize(p, None, fx=0.6, fy=0.6, interpolation=cv2.INTER_AREA),
    "darker": lambda p: np.asarray(0.7 * p + 10, np.uint8),
    "moved": lambda p: np.roll(p, (4, -6), (0, 1)),
    "turned": lambda p: np.rot90(p),
    "upside down": lambda p: np.rot90(p, 2),
    "mirrored": lambda p: p[:, ::-1],
    "mirrored and turned": lambda p: np.rot90(p[:, ::-1]),
}


@pytest.mark.parametrize("guise", GUISES)
def test_one_shot_in_another_guise_is_found_among_others(guise: str, tmp_path: Path) -> None:
    boards = [draw_board(seed) for seed in range(6)]
    copy = np.ascontiguousarray(GUISES[guise](boards[2]))
    found = pairs_of([*boards, copy])
    assert [(first, second, likeness) for first, second, _, likeness in found] == [(2, 6, "near")]
    save(tmp_path / "first.png", boards[2])
    save(tmp_path / "second.png", copy)
    assert confirm(tmp_path / "first.png", tmp_path / "second.png", found[0][2]) == "near"


def test_the_turn_says_what_brings_the_second_onto_the_first() -> None:
    board = draw_board(3)
    for turn in range(8):
        other = turned(board, turn)
        (found,) = pairs_of([board, other])
        np.testing.assert_array_equal(turned(other, found[2]), board)


def test_the_same_board_with_another_defect_is_the_same_board_and_no_copy(tmp_path: Path) -> None:
    first, second = draw_board(4), draw_board(4)
    first[60:72, 100:112] = 255 - first[66, 106]
    second[200:212, 300:312] = 255 - second[206, 306]
    assert pairs_of([first, second]) == [(0, 1, 0, "board")]


def test_a_defect_too_small_for_the_thumb_is_seen_at_full_size(tmp_path: Path) -> None:
    first = draw_board(5, height=1600, width=2000)
    second = first.copy()
    second[800:807, 900:907] = 255 - second[803, 903]
    assert max(first.shape) > 7 * THUMB_SIDE_PX  # the spot is smaller than one pixel there
    assert pairs_of([first, second]) == [(0, 1, 0, "near")]
    save(tmp_path / "first.png", first)
    save(tmp_path / "second.png", second)
    assert confirm(tmp_path / "first.png", tmp_path / "second.png", 0) == "board"


def test_other_boards_are_not_alike_even_binary_ones() -> None:
    boards = [draw_board(seed) for seed in range(30)]
    assert pairs_of(boards) == []
    assert pairs_of([np.where(board > 120, 255, 0).astype(np.uint8) for board in boards]) == []


def test_blank_pictures_are_not_called_alike() -> None:
    assert pairs_of([np.full((200, 200), 250, np.uint8), np.full((200, 200), 249, np.uint8)]) == []


def test_pictures_of_other_proportions_are_not_compared() -> None:
    board = draw_board(7)
    assert compare_thumbs(_thumb(board), _thumb(np.ascontiguousarray(board[:, :300]))) is None
