"""The picture's numbers: what they are, and what moves each."""

from __future__ import annotations

from dataclasses import astuple

import cv2
import numpy as np
import pytest

from inspect_vit import picture_statistics as module
from inspect_vit.picture_statistics import picture_statistics


@pytest.fixture(scope="module")
def board() -> np.ndarray:
    """(192, 256, 3), nothing above 220."""
    rng = np.random.default_rng(0)
    board = np.full((192, 256, 3), 200, np.uint8)
    for _ in range(12):
        start, end = (tuple(int(v) for v in rng.integers(0, 190, 2)) for _ in range(2))
        cv2.line(board, start, end, (40, 70, 45), 7)
    return np.asarray((board + rng.normal(0, 4, board.shape)).clip(0, 220), np.uint8)


def test_they_are_the_mean_the_spread_and_the_edges_of_the_grey_picture(board: np.ndarray) -> None:
    grey = (board.astype(np.float64) @ [0.299, 0.587, 0.114]).round()
    wide = np.pad(grey, 1, mode="reflect")
    edges = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:] - 4 * grey
    found = picture_statistics(board)
    assert found.mean_grey == pytest.approx(grey.mean(), abs=0.1)
    assert found.contrast == pytest.approx(grey.std(), abs=0.1)
    assert found.sharpness == pytest.approx(np.sqrt((edges**2).mean()) / grey.std(), rel=0.02)


def test_less_light_moves_mean_and_contrast_and_less_focus_moves_the_sharpness(board: np.ndarray) -> None:
    first = picture_statistics(board)
    dim = picture_statistics((board * 0.9).round().astype(np.uint8))
    assert dim.mean_grey / first.mean_grey == pytest.approx(0.9, abs=0.003)
    assert dim.contrast / first.contrast == pytest.approx(0.9, abs=0.003)
    assert dim.sharpness / first.sharpness == pytest.approx(1.0, abs=0.02)
    soft = picture_statistics(np.asarray(cv2.GaussianBlur(board, (0, 0), 1.0), np.uint8))
    assert soft.mean_grey == pytest.approx(first.mean_grey, rel=0.003)
    assert soft.sharpness < 0.6 * first.sharpness


def test_a_large_picture_is_read_in_parts(board: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = picture_statistics(board)
    monkeypatch.setattr(module, "PART_PX", 40 * board.shape[1])
    assert astuple(picture_statistics(board)) == pytest.approx(astuple(whole), rel=0.02)


def test_a_flat_picture_has_no_sharpness() -> None:
    assert astuple(picture_statistics(np.full((8, 8, 3), 90, np.uint8))) == (90.0, 0.0, 0.0)
