"""Shifts are measured in the direction and length by which pictures were moved."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from training.checks.alignment import correlation, measure_shift, move

from .conftest import draw_board


@pytest.mark.parametrize(("dx", "dy"), [(0, 0), (5, -3), (-11, 2), (30, 17)])
def test_a_shift_by_whole_pixels(dx: int, dy: int) -> None:
    large = draw_board(0, height=400, width=500)
    board, reference = large[40:360, 50:450], large[40 + dy : 360 + dy, 50 + dx : 450 + dx]
    shift, places = measure_shift(board, reference)
    np.testing.assert_allclose(shift, (dx, dy), atol=0.15)
    assert len(places) >= 4
    assert np.abs(places - shift).max() < 0.5


def test_a_shift_of_a_fraction_of_a_pixel() -> None:
    fine = cv2.GaussianBlur(cv2.resize(draw_board(1), None, fx=4, fy=4), (0, 0), 3)
    board, reference = (
        cv2.resize(p, None, fx=0.25, fy=0.25, interpolation=cv2.INTER_AREA)
        for p in (fine[8:-8, 8:-8], fine[8:-8, 9:-7])
    )
    shift, _ = measure_shift(np.asarray(board, np.uint8), np.asarray(reference, np.uint8))
    np.testing.assert_allclose(shift, (0.25, 0.0), atol=0.15)


def test_moving_by_the_shift_brings_the_reference_onto_the_board() -> None:
    large = draw_board(2)
    board, reference = large[20:300, 20:380], large[27:307, 14:374]
    moved, view = move(reference, np.array([-6.0, 7.0]))
    np.testing.assert_array_equal(moved[view], board[view])
    assert (view[0].stop - view[0].start, view[1].stop - view[1].start) == (280 - 7, 360 - 6)


def test_a_stretched_reference_shows_in_its_places() -> None:
    board = draw_board(3, height=480, width=640)
    stretched = np.asarray(cv2.resize(board, (652, 480)), np.uint8)[:, 6:646]
    shift, places = measure_shift(board, stretched)
    assert abs(shift[0]) < 2
    residual = np.linalg.norm(places - shift, axis=1).max()
    assert 2.0 < residual < 6.5  # 12 px over the whole width: tile centres lie up to 4.5 px off


def test_pictures_with_nothing_in_common_are_not_moved() -> None:
    flat = np.full((320, 400), 90, np.uint8)
    shift, places = measure_shift(draw_board(4), flat)
    assert not shift.any()
    assert not len(places)


def test_correlation_agrees_with_numpy() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 256, (60, 70), dtype=np.uint8) for _ in range(2))
    assert correlation(a, b) == pytest.approx(np.corrcoef(a.ravel(), b.ravel())[0, 1], abs=1e-5)
    assert correlation(a, np.zeros_like(a)) == 0.0
