"""Procedural boards follow their seed, and their layers agree with one another."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from training.artwork import make_layers
from training.artwork_styles import STYLES


def test_boards_follow_their_seed() -> None:
    assert np.array_equal(make_layers(7, 320).copper, make_layers(7, 320).copper)
    assert not np.array_equal(make_layers(7, 320).copper, make_layers(8, 320).copper)
    assert {make_layers(seed, 128).name.rsplit("-", 1)[0] for seed in range(40)} == set(STYLES)


@pytest.mark.parametrize("seed", [0, 8, 9, 14, 21])
def test_layers_agree(seed: int) -> None:
    layers = make_layers(seed, 320)
    assert np.array_equal(layers.nets > 0, layers.copper)
    assert not (layers.copper & layers.holes).any(), "holes are drilled out of the copper"
    assert not (layers.copper & ~layers.board).any() and not (layers.silk & ~layers.board).any()
    assert not (layers.silk & layers.mask_open).any(), "nothing is printed on pads"
    for net in range(1, int(layers.nets.max()) + 1):
        row, column = np.argwhere(layers.nets == net)[0].tolist()
        board = layers.copper.astype(np.uint8)
        cv2.floodFill(board, None, (column, row), 2, flags=8)
        assert np.array_equal(board == 2, layers.nets == net), "a net is a piece of copper"


def test_another_scale_shows_more_of_the_board() -> None:
    whole, coarse = make_layers(3, 640), make_layers(3, 320, px_per_mm=24.0)
    assert coarse.size == (320, 320) and coarse.px_per_mm == 24.0
    shares = cv2.resize(whole.copper.astype(np.float32), (320, 320), interpolation=cv2.INTER_AREA)
    assert np.array_equal(coarse.copper, np.asarray(shares) > 0.5)
