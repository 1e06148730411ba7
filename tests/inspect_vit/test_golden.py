"""What no good board but one shows is not in the reference; boards that do not belong are named."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from inspect_vit.errors import ConfigError, ImageError
from inspect_vit.golden import build_golden
from inspect_vit.image_io import read_image

Picture = NDArray[np.uint8]


@pytest.fixture(scope="module")
def good(project: Path) -> list[Picture]:
    """Five takes of one board: moved, noisy, and each with a speck of its own."""
    clean = read_image(project / "data_samples" / "board_01_temp.png")[0]
    takes = []
    for number in range(5):
        rng = np.random.default_rng(number)
        shift = np.array([[1, 0, 2.0 * number], [0, 1, -1.5 * number]])
        take = cv2.warpAffine(clean, shift, clean.shape[1::-1], borderMode=cv2.BORDER_REPLICATE)
        cv2.circle(take, (100 + 90 * number, 320), 9, (255 * (number % 2),) * 3, -1)
        takes.append((take + rng.normal(0, 8, take.shape)).clip(0, 255).astype(np.uint8))
    return takes


def test_specks_and_noise_of_single_boards_are_gone(good: list[Picture], project: Path) -> None:
    clean = read_image(project / "data_samples" / "board_01_temp.png")[0].astype(float)
    built = build_golden(good)
    inner = slice(30, -30), slice(30, -30)
    assert np.abs(built.picture - clean)[inner].mean() < 0.8 * np.abs(good[0] - clean)[inner].mean()
    for number in range(5):
        around = slice(310, 330), slice(90 + 90 * number, 110 + 90 * number)
        assert np.abs(built.picture - clean)[around].mean() < 25
    assert all(fit.residual_px < 0.3 for fit in built.boards)
    assert len(built.boards) == 5


def test_a_board_that_differs_stands_out(good: list[Picture]) -> None:
    spoilt = good[2].copy()
    spoilt[200:400, 200:400] = 255 - spoilt[200:400, 200:400]
    differences = [fit.difference for fit in build_golden([*good[:2], spoilt, *good[3:]]).boards]
    assert int(np.argmax(differences)) == 2
    assert differences[2] > 1.5 * np.median(differences)


def test_a_board_of_another_product_is_named(good: list[Picture], project: Path) -> None:
    other = read_image(project / "data_samples" / "board_02_temp.png")[0]
    with pytest.raises(ImageError, match="good board 3 does not lie on the first: another product"):
        build_golden([*good[:2], other])
    with pytest.raises(ConfigError, match="2 good boards; wanted 3 to 20"):
        build_golden(good[:2])
