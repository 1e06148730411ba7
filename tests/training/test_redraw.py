"""Redrawn boxes are the bounds of what differs, whatever the annotator drew."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from training.redraw import redraw


def test_boxes_become_the_bounds_of_the_difference_plus_margin(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    reference = rng.integers(90, 110, (100, 120, 3)).astype(np.uint8)
    board = reference + rng.integers(0, 12, reference.shape).astype(np.uint8)
    board[30:36, 50:70] = (100, 200, 100)  # rows 30 to 35, columns 50 to 69
    board[90, 10] += 100  # a single pixel is noise
    board[95:100, 110:120] = 0  # in the corner of the picture
    for name, picture in (("board", board), ("reference", reference)):
        cv2.imwrite(str(tmp_path / f"{name}.png"), picture)
    boxes = np.array([[20, 10, 100, 60], [49, 29, 71, 37], [5, 85, 15, 95], [105, 90, 120, 100]], np.float32)
    sample = Sample(tmp_path / "board.png", boxes, ("open",) * 4, tmp_path / "reference.png")
    (redrawn,), kept = redraw([sample], margin_px=6)
    assert redrawn.boxes.tolist() == [
        [44, 24, 76, 42],
        [44, 24, 76, 42],
        [5, 85, 15, 95],
        [104, 89, 120, 100],
    ]
    assert kept == 1
    assert sample.boxes.tolist() == boxes.tolist()
    with pytest.raises(ConfigError, match="has no reference to redraw its boxes by"):
        redraw([Sample(tmp_path / "board.png", boxes, ("open",) * 4)], margin_px=6)
