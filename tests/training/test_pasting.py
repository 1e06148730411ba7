"""Examples are pasted where they make sense, pixel for pixel, and labelled where they lie."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.results import Sample
from training.pasting import GAP_PX, cut_examples, paste


def _tracks(side: int, period: int, *, upright: bool) -> NDArray[np.uint8]:
    """White ground, black tracks of 8 px."""
    lines = np.where(np.arange(side) % period < 8, 0, 255).astype(np.uint8)
    grey = np.broadcast_to(lines[:, None], (side, side))
    grey = grey.T if upright else grey
    return np.ascontiguousarray(np.repeat(grey[..., None], 3, 2))


def _write(folder: Path, name: str, picture: NDArray[np.uint8]) -> Path:
    cv2.imwrite(str(folder / name), picture)
    return folder / name


def _short(folder: Path) -> Sample:
    """A bridge of 4 px from the track at rows 24..31 to that at rows 48..55."""
    reference = _tracks(160, 24, upright=False)
    board = reference.copy()
    board[32:48, 80:84] = 0
    box = np.array([[72, 24, 92, 56]], np.float32)
    return Sample(
        _write(folder, "b.png", board), box, ("short",), reference=_write(folder, "r.png", reference)
    )


def test_a_short_is_pasted_from_track_to_track(tmp_path: Path) -> None:
    examples = cut_examples([_short(tmp_path)], ["short"])
    assert [int(example.mask.sum()) for example in examples] == [16 * 4]
    good = _tracks(320, 24, upright=True)
    found = 0
    for seed in range(6):
        made = paste(examples, good, good, np.zeros((0, 4), np.float32), np.random.default_rng(seed), most=3)
        for box, (mask, (left, top)) in zip(made.boxes, made.masks, strict=True):
            found += 1
            rows, columns = np.nonzero(mask)
            x1, x2, y1, y2 = left + columns.min(), left + columns.max(), top + rows.min(), top + rows.max()
            assert y2 - y1 < x2 - x1  # it lies across upright tracks
            dark = good[:, :, 0] == 0
            middle = (y1 + y2) // 2
            assert dark[middle, x1 - 4 : x1 + 3].any() and dark[middle, x2 - 2 : x2 + 5].any()
            assert box[0] < x1 and x2 < box[2] and box[1] < y1 and y2 < box[3]
    assert found >= 9


def test_pasting_changes_nothing_but_the_defects_and_keeps_off_what_is_taken(tmp_path: Path) -> None:
    examples = cut_examples([_short(tmp_path)], ["short"])
    good = _tracks(320, 24, upright=False)
    taken = np.array([[0, 0, 200, 320]], np.float32)
    made = paste(examples, good, good, taken, np.random.default_rng(1), most=4)
    assert made.labels
    allowed = np.zeros(good.shape[:2], np.uint8)
    for mask, (left, top) in made.masks:
        allowed[top : top + mask.shape[0], left : left + mask.shape[1]] |= mask
    near = cv2.dilate(allowed, np.ones((3, 3), np.uint8)) > 0
    assert np.array_equal(made.board[~near], good[~near])
    assert not np.array_equal(made.board, good)
    assert allowed[:, : 200 + GAP_PX].sum() == 0


def test_nothing_is_pasted_where_nothing_matches(tmp_path: Path) -> None:
    examples = cut_examples([_short(tmp_path)], ["short"])
    blank = np.full((320, 320, 3), 255, np.uint8)
    assert (
        paste(examples, blank, blank, np.zeros((0, 4), np.float32), np.random.default_rng(0), most=4).labels
        == []
    )


def test_without_outline_or_reference_no_pixels_are_known(tmp_path: Path) -> None:
    sample = _short(tmp_path)
    alone = Sample(sample.image, sample.boxes, sample.labels)
    assert cut_examples([alone], ["short"]) == []
