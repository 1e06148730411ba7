"""What was painted onto a board is found where it is; what only moved, or is in other light, is not."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from inspect_vit.image_io import read_image
from training.checks.differences import compare_pair
from training.formats.deeppcb import read_deeppcb

from .conftest import Picture, draw_board

NONE = np.zeros((0, 4), np.float32)


def rgb(grey: Picture) -> Picture:
    return np.dstack([grey] * 3)


def test_a_spot_is_found_in_its_place_unless_a_box_covers_it() -> None:
    reference = draw_board(0)
    board = reference.copy()
    board[150:160, 200:212] = 255 - board[155, 206]
    facts = compare_pair(rgb(board), rgb(reference), NONE)
    assert facts.num_differences == 1
    np.testing.assert_allclose(facts.uncovered, [[200, 150, 212, 160]], atol=3)
    covered = compare_pair(rgb(board), rgb(reference), np.array([[190, 140, 222, 170]], np.float32))
    assert len(covered.uncovered) == 0
    assert covered.unchanged == ()


def test_a_box_where_nothing_changed_is_named() -> None:
    board = draw_board(1)
    boxes = np.array([[30, 30, 60, 60], [100, 100, 130, 130]], np.float32)
    spotted = board.copy()
    spotted[110:118, 110:118] = 255 - spotted[114, 114]
    assert compare_pair(rgb(spotted), rgb(board), boxes).unchanged == (0,)


def test_a_spot_is_found_under_a_shift_and_the_shift_alone_is_no_difference() -> None:
    large = draw_board(2, height=400, width=500)
    board, reference = large[40:360, 50:450].copy(), large[44:364, 43:443]
    still = compare_pair(rgb(board), rgb(reference), NONE)
    np.testing.assert_allclose(still.shift_px, (-7, 4), atol=0.2)
    assert len(still.uncovered) == 0
    board[200:212, 250:262] = 255 - board[206, 256]
    spotted = compare_pair(rgb(board), rgb(reference), NONE)
    assert len(spotted.uncovered) == 1
    np.testing.assert_allclose(spotted.uncovered[0], (250, 200, 262, 212), atol=5)


def test_an_almost_blank_pair_is_judged_by_its_differences_not_by_its_correlation() -> None:
    """As picture 77000053 of DeepPCB: the edge of a pad, wider on the reference, and a labelled blob."""
    board, reference = np.full((640, 640), 255, np.uint8), np.full((640, 640), 255, np.uint8)
    for picture, centre, radius in ((board, (162, 58), 16), (reference, (162, 57), 17)):
        cv2.circle(picture, centre, radius, 0, -1)
        picture[48:80] = 255
    cv2.circle(board, (230, 325), 11, 0, -1)
    boxes = np.array([[205, 300, 255, 350]], np.float32)
    facts = compare_pair(rgb(board), rgb(reference), boxes)
    assert (facts.agreement, facts.shift_px) == (1.0, (0.0, 0.0))
    assert (facts.uncovered.tolist(), facts.unchanged) == ([], ())
    unlabelled = compare_pair(rgb(board), rgb(reference), NONE)
    np.testing.assert_allclose(unlabelled.uncovered, [[219, 314, 242, 337]], atol=3)


def test_labelled_defects_do_not_count_against_the_reference() -> None:
    """A board whose labelled half is another board agrees; without the label it does not."""
    reference, other = draw_board(4), draw_board(5)
    board = reference.copy()
    board[:, : board.shape[1] // 2] = other[:, : board.shape[1] // 2]
    box = np.array([[0, 0, board.shape[1] // 2, board.shape[0]]], np.float32)
    assert compare_pair(rgb(board), rgb(reference), box).agreement > 0.99
    assert compare_pair(rgb(board), rgb(reference), NONE).agreement < 0.9


def test_other_light_and_noise_are_no_difference() -> None:
    rng = np.random.default_rng(0)
    reference = draw_board(3)
    board = np.clip(0.7 * reference + 30 + rng.normal(0, 4, reference.shape), 0, 255).astype(np.uint8)
    facts = compare_pair(rgb(board), rgb(reference), NONE)
    assert facts.num_differences == 0
    assert facts.agreement > 0.98


def test_a_spot_that_only_colour_shows_is_found() -> None:
    reference = rgb(draw_board(4))
    board = reference.copy()
    ground = board[160:172, 60:72]
    ground[:] = (10, 75, 10)  # luma as the ground: 0.299 x 10 + 0.587 x 75 + 0.114 x 10 = 48
    reference[150:182, 50:82] = 48
    board[150:182, 50:60] = board[150:182, 72:82] = board[150:160, 50:82] = board[172:182, 50:82] = 48
    facts = compare_pair(board, reference, NONE)
    np.testing.assert_allclose(facts.uncovered, [[60, 160, 72, 172]], atol=3)


def test_a_local_stretch_is_no_difference_but_a_spot_in_it_is() -> None:
    board = draw_board(5, height=480, width=640)
    stretched = np.asarray(cv2.resize(board, (650, 480)), np.uint8)[:, 5:645]
    still = compare_pair(rgb(board), rgb(stretched), NONE)
    assert still.num_differences > 0  # else this test shows nothing
    assert len(still.uncovered) == 0
    spotted = board.copy()
    spotted[300:314, 560:574] = 255 - spotted[307, 567]
    found = compare_pair(rgb(spotted), rgb(stretched), NONE).uncovered
    assert len(found) == 1
    assert abs(found[0][0] - 560) < 6 and abs(found[0][1] - 300) < 6


def test_other_boards_do_not_agree() -> None:
    facts = compare_pair(rgb(draw_board(6)), rgb(draw_board(7)), NONE)
    assert facts.agreement < 0.5


@pytest.fixture(scope="module")
def deeppcb_pairs(deeppcb_root: Path) -> list[tuple[Picture, Picture, np.ndarray]]:  # type: ignore[type-arg]
    samples = read_deeppcb(deeppcb_root, "trainval")[3::125]
    assert all(sample.reference for sample in samples)
    return [(read_image(s.image)[0], read_image(s.reference)[0], s.boxes) for s in samples if s.reference]


def test_on_real_pairs_labels_and_differences_agree(
    deeppcb_pairs: list[tuple[Picture, Picture, np.ndarray]],
) -> None:  # type: ignore[type-arg]
    """With labels hidden, nearly all defects are found as uncovered, and little else."""
    labelled = hit = extra = 0
    for board, reference, boxes in deeppcb_pairs:
        found = compare_pair(board, reference, NONE).uncovered
        size = np.minimum(found[:, None, 2:], boxes[None, :, 2:]) - np.maximum(
            found[:, None, :2], boxes[None, :, :2]
        )
        overlap = (size > 0).all(-1)
        labelled += len(boxes)
        hit += int(overlap.any(0).sum())
        extra += int((~overlap.any(1)).sum())
    assert labelled > 50
    assert hit >= 0.9 * labelled
    assert extra <= 2


def test_on_real_pairs_every_box_shows_a_change(
    deeppcb_pairs: list[tuple[Picture, Picture, np.ndarray]],
) -> None:  # type: ignore[type-arg]
    for board, reference, boxes in deeppcb_pairs:
        assert compare_pair(board, reference, boxes).unchanged == ()
