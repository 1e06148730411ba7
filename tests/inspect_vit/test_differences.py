"""What the network calls nothing is still seen when it is large, and calls are measured by what differs."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from inspect_vit import Inspector, Verdict
from inspect_vit.alignment import as_posted, lay_under
from inspect_vit.checkpoint import default_checkpoint
from inspect_vit.differences import large_differences, longest_px
from inspect_vit.image_io import read_image

Picture = NDArray[np.uint8]
NO_CALLS = np.zeros((0, 4), np.float32)


@pytest.fixture(scope="module")
def golden(project: Path) -> Picture:
    return read_image(project / "data_samples" / "board_01_temp.png")[0]


@pytest.fixture(scope="module")
def shipped() -> Inspector:
    return Inspector(default_checkpoint(), device="cpu")


def with_area(golden: Picture, value: int, *, size: int = 96) -> Picture:
    """The board with a square of another tone where that changes most."""
    grey = cv2.cvtColor(golden, cv2.COLOR_RGB2GRAY).astype(np.float32)
    change = cv2.boxFilter(np.abs(grey - value), -1, (size, size))
    half = size // 2
    inner = change[half : -half or None, half : -half or None]
    y, x = np.unravel_index(int(inner.argmax()), inner.shape)
    spoilt = golden.copy()
    spoilt[y : y + size, x : x + size] = value
    return spoilt


@pytest.mark.parametrize("value", [0, 255])
def test_a_large_area_that_no_call_names_is_found_where_it_is(golden: Picture, value: int) -> None:
    spoilt = with_area(golden, value)
    (box, *_) = large_differences(spoilt, golden, NO_CALLS)
    truly = np.argwhere((spoilt != golden).any(-1))
    top, left, bottom, right = *truly.min(0), *(truly.max(0) + 1)
    assert box[0] >= left - 16
    assert box[1] >= top - 16
    assert box[2] <= right + 16
    assert box[3] <= bottom + 16
    called = np.array([[left, top, right, bottom]], np.float32)
    assert large_differences(spoilt, golden, called) == ()
    ignore = np.zeros((160, 160), np.bool_)
    ignore[top // 4 - 4 : bottom // 4 + 4, left // 4 - 4 : right // 4 + 4] = True
    assert large_differences(spoilt, golden, NO_CALLS, ignore=ignore) == ()


def test_small_defects_and_other_light_are_no_large_difference(project: Path) -> None:
    for name in ("board_01", "board_02", "colour_01", "colour_02"):
        board, reference = (
            read_image(project / "data_samples" / f"{name}_{kind}.png")[0] for kind in ("test", "temp")
        )
        laid = lay_under(board, reference)
        assert laid.picture is not None
        assert large_differences(board, laid.picture, NO_CALLS) == (), name
        darker = np.asarray(board * 0.85, np.uint8)
        assert large_differences(darker, laid.picture, NO_CALLS) == (), name


def test_the_verdict_is_fail_and_says_where(shipped: Inspector, golden: Picture) -> None:
    """A network that calls nothing: thresholds at 1."""
    spoilt = with_area(golden, 0)
    deaf = Inspector.__new__(Inspector)
    deaf.__dict__.update(shipped.__dict__)
    limits = {mode: dict.fromkeys(own, 1.0) for mode, own in shipped.metadata.thresholds.items()}
    deaf.metadata = shipped.metadata.model_copy(update={"thresholds": limits})
    result = deaf.inspect(spoilt, reference=as_posted(spoilt, golden))
    assert (result.verdict, result.num_defects) == (Verdict.FAIL, 0)
    assert len(result.differences) >= 1
    assert "does not look like the reference" in result.reasons[0]


def test_a_call_is_as_long_as_what_differs_in_it(golden: Picture) -> None:
    board = golden.copy()
    board[300:309, 200:227] = 255 - board[300:309, 200:227]
    box = (190.0, 290.0, 240.0, 320.0)
    assert longest_px(board, golden, box) == 27
    assert longest_px(board, None, box) == 50
    assert longest_px(golden, golden, box) == 50
