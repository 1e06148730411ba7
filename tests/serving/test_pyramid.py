"""Pyramids of a picture and what is cut from them, on their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from serving.crops import crop_window
from serving.errors import StorageFullError
from serving.tiles_pyramid import Grid, Pyramid, check_room, halve


def test_halving_takes_means_of_four_and_repeats_an_odd_edge() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (4099, 7, 3), np.uint8)
    padded = np.pad(picture, ((0, 1), (0, 1), (0, 0)), mode="edge").astype(float)
    wanted = padded.reshape(2050, 2, 4, 2, 3).mean((1, 3))
    assert np.abs(halve(picture) - wanted).max() <= 0.5


@pytest.mark.parametrize(
    ("width", "height", "max_level"), [(16, 512, 0), (513, 16, 1), (1024, 1, 1), (1025, 1, 2), (16384, 9, 5)]
)
def test_the_lowest_level_is_the_first_that_fits_a_tile(width: int, height: int, max_level: int) -> None:
    grid = Grid(width, height)
    assert grid.max_level == max_level
    assert max(grid.size(0)) <= 512
    assert grid.size(max_level) == (width, height)


def test_a_pyramid_moves_to_a_file_that_nobody_sees(tmp_path: Path) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (701, 1090, 3), np.uint8)
    pyramid = Pyramid(picture)
    before = [step.copy() for step in pyramid.steps]
    pyramid.settle(tmp_path)
    assert list(tmp_path.iterdir()) == []
    for step, wanted in zip(pyramid.steps, before, strict=True):
        np.testing.assert_array_equal(step, wanted)
        assert step.base is not None, "the file is read, not a copy in memory"
    assert pyramid.nbytes == sum(step.nbytes for step in before)


def test_room_for_inspections_stays_free(tmp_path: Path) -> None:
    check_room(1000, 1000, tmp_path, min_free_bytes=0)
    with pytest.raises(StorageFullError, match="to look at this board"):
        check_room(1000, 1000, tmp_path, min_free_bytes=10**18)


@pytest.mark.parametrize("size", [1, 7, 63, 64, 100, 300, 1090, 2048])
def test_a_crop_is_as_large_as_asked_and_not_larger(size: int) -> None:
    grid = Grid(1090, 701)
    for box in ((0, 0, 1090, 701), (7, 9, 71, 40), (5, 3, 6, 700)):
        window = crop_window(grid, box, size)
        longest = max(box[2] - box[0], box[3] - box[1])
        assert max(window.width, window.height) == (size // longest * longest if size >= longest else size)
        left, top, right, bottom = (edge << window.step for edge in window.rect)
        # What is read reaches at most a drawn pixel beyond the box.
        reach = max(1.0, longest / size)
        assert box[0] - reach < left <= box[0] < box[2] <= right < box[2] + reach
        assert box[1] - reach < top <= box[1] < box[3] <= bottom < box[3] + reach
