"""True sizes of drawn defects, and boards that are pictured twice."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from inspect_vit.image_io import read_image
from training.formats.deeppcb import read_deeppcb
from training.reimage import reimage
from training.true_size import true_size_px

BOX = np.array([10, 10, 40, 40], np.float32)


def board() -> np.ndarray:
    picture = np.zeros((64, 64, 3), np.uint8)
    picture[:, 24:28] = 255
    return picture


def test_the_largest_blob_in_the_box_counts() -> None:
    reference = board()
    image = reference.copy()
    image[20:25, 28:35] = 255  # a spur, 7 px long and 5 px high
    image[30:32, 14:16] = 255  # a speck
    image[50:62, 40:60] = 255  # outside the box
    assert true_size_px(image, reference, BOX) == (7, 7)


def test_openings_drop_what_is_thinner_than_they_are() -> None:
    reference = board()
    image = reference.copy()
    image[18, 28:38] = 255  # one px thin: the jitter of an edge
    assert true_size_px(image, reference, BOX) == (0, 0)
    image[18:20, 28:38] = 255  # two px thin
    assert true_size_px(image, reference, BOX) == (10, 0)


def test_missing_copper_is_as_large_as_added_copper() -> None:
    reference = board()
    image = reference.copy()
    image[20:26, 24:28] = 0  # an open in a track of 4 px
    assert true_size_px(image, reference, BOX) == (6, 6)
    assert true_size_px(image[..., 0], reference[..., 0], BOX) == (6, 6)


def test_a_blob_ends_where_the_box_ends() -> None:
    image, empty = np.full((64, 64, 3), 255, np.uint8), np.zeros((64, 64, 3), np.uint8)
    assert true_size_px(image, empty, np.array([-3, 60, 12.2, 80], np.float32)) == (12, 12)


def test_sizes_of_the_deeppcb_test_defects(deeppcb_root: Path) -> None:
    sizes = []
    for sample in read_deeppcb(deeppcb_root, "test"):
        assert sample.reference is not None
        image, reference = (
            cv2.imread(str(path), cv2.IMREAD_GRAYSCALE) for path in (sample.image, sample.reference)
        )
        sizes += [true_size_px(image, reference, box) for box in sample.boxes]
    counted = np.array(sizes)
    # The figures on which the size buckets were agreed.
    assert ((counted > 0) & (counted <= 8)).sum(axis=0).tolist() == [212, 462]


def test_a_board_pictured_again_is_the_same_board(sample_pair: tuple[Path, Path]) -> None:
    original, _ = read_image(sample_pair[1])
    copper = np.where(original.mean(axis=2, keepdims=True) > 127, 255, 0).astype(np.uint8).repeat(3, axis=2)
    again, shift_px = reimage(copper, np.random.default_rng(0))
    assert again.shape == copper.shape
    assert again.dtype == np.uint8
    assert 1.0 <= shift_px <= 3.0
    # Up to a shift of 3 px every difference is thinner than a defect: nothing is left after a 3 x 3 opening.
    best = min(
        _left_after_opening(again, np.roll(copper, (dy, dx), (0, 1)))
        for dy in range(-3, 4)
        for dx in range(-3, 4)
    )
    assert best <= 0.0005 * copper[..., 0].size
    assert _left_after_opening(again, copper) > best


def _left_after_opening(picture: np.ndarray, other: np.ndarray) -> int:
    difference = ((picture[..., 0] > 127) ^ (other[..., 0] > 127)).astype(np.uint8)
    opened = cv2.morphologyEx(difference, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    return int(opened[4:-4, 4:-4].sum())


def test_pictures_of_one_board_differ_from_each_other_and_repeat_with_the_seed() -> None:
    first, again, other = (reimage(board(), np.random.default_rng(seed))[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("level", [0, 255])
def test_noise_draws_no_speck_on_plain_ground(level: int) -> None:
    plain = np.full((200, 200, 3), level, np.uint8)
    for seed in range(3):
        assert np.abs(reimage(plain, np.random.default_rng(seed))[0].astype(int) - level).max() <= 2
