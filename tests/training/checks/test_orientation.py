"""Boxes drawn on the stored pixels of a picture that EXIF turns: found, and turned the right way."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from inspect_vit.results import Sample
from training.checks.orientation import turn_boxes
from training.checks.pictures import examine
from training.checks.verdicts import judge_picture

from .conftest import Picture, draw_board


def turned_by_exif(stored: Picture, orientation: int) -> bytes:
    """A PNG whose pixels are `stored` and whose EXIF asks to turn them."""
    exif = Image.Exif()
    exif[274] = orientation
    data = io.BytesIO()
    Image.fromarray(stored).save(data, format="PNG", exif=exif)
    return data.getvalue()


@pytest.mark.parametrize("orientation", range(2, 9))
def test_boxes_turn_as_pillow_turns_the_picture(orientation: int) -> None:
    stored = np.zeros((60, 90), np.uint8)
    stored[10:25, 50:58] = 255
    with Image.open(io.BytesIO(turned_by_exif(stored, orientation))) as image:
        upright = np.asarray(ImageOps.exif_transpose(image))
    y, x = np.nonzero(upright)
    boxes = turn_boxes(np.array([[50, 10, 58, 25]], np.float32), upright.shape[::-1], orientation)
    assert boxes.tolist() == [[x.min(), y.min(), x.max() + 1, y.max() + 1]]


def kinds_of(
    tmp_path: Path,
    stored: Picture,
    orientation: int,
    boxes: list[tuple[int, int, int, int]],
    *,
    reference: Picture | None = None,
    told: tuple[str, ...] = (),
) -> list[str]:
    image, other = tmp_path / "board.png", tmp_path / "reference.png"
    image.write_bytes(turned_by_exif(stored, orientation))
    if reference is not None:
        other.write_bytes(turned_by_exif(reference, orientation))
    sample = Sample(
        image,
        np.array(boxes, np.float32),
        ("open",) * len(boxes),
        reference=None if reference is None else other,
    )
    return [finding.kind for finding in judge_picture(sample, examine(sample), told)]


def test_boxes_that_fit_the_stored_picture_only(tmp_path: Path) -> None:
    stored = draw_board(0)  # 400 x 320, upright 320 x 400
    assert kinds_of(tmp_path, stored, 6, [(350, 100, 390, 140)], told=("size-mismatch",)) == [
        "labels-rotated",
        "box-outside",
    ]
    assert kinds_of(tmp_path, stored, 6, [(250, 350, 290, 390)]) == ["turned-by-exif"]
    assert kinds_of(tmp_path, stored, 6, [(100, 100, 140, 140)], told=("size-mismatch",)) == [
        "labels-rotated"
    ]
    assert kinds_of(tmp_path, stored, 1, [(100, 100, 140, 140)], told=("size-mismatch",)) == []


def test_the_reference_tells_when_sizes_do_not(tmp_path: Path) -> None:
    """A half turn: every box fits both ways, but the defects are where the turned boxes are."""
    reference = draw_board(1)
    stored = reference.copy()
    places = [(60, 50), (300, 90), (200, 220)]
    for x, y in places:
        stored[y : y + 12, x : x + 12] = 255 - stored[y + 6, x + 6]
    on_stored = [(x - 8, y - 8, x + 20, y + 20) for x, y in places]
    upright = [(400 - right, 320 - bottom, 400 - left, 320 - top) for left, top, right, bottom in on_stored]
    found = kinds_of(tmp_path, stored, 3, on_stored, reference=reference)
    assert "labels-rotated" in found
    assert kinds_of(tmp_path, stored, 3, upright, reference=reference) == ["turned-by-exif"]
