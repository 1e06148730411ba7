"""Frames of labels that someone painted into the picture."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from training.checks.marks import find_painted_boxes

from .conftest import draw_board

BOXES = np.array([[60, 40, 100, 90], [200, 150, 240, 190], [0, 220, 30, 260]], np.float32)


@pytest.mark.parametrize("colour", [(0, 255, 0), (255, 0, 0), (255, 255, 255), (0, 0, 0)])
@pytest.mark.parametrize("thickness", [1, 2, 3])
def test_painted_frames_are_found_even_through_jpeg(colour: tuple[int, int, int], thickness: int) -> None:
    picture = np.dstack([draw_board(0)] * 3)
    picture[picture == 210] = 170
    picture[picture == 40] = 90
    for left, top, right, bottom in BOXES.astype(int).tolist():
        cv2.rectangle(picture, (left, top), (right - 1, bottom - 1), colour, thickness)
    again = cv2.imdecode(cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 90])[1], cv2.IMREAD_COLOR)
    assert len(find_painted_boxes(np.asarray(again, np.uint8), BOXES)) >= 2


def test_boards_without_frames_have_none() -> None:
    flat = np.full((300, 400, 3), 90, np.uint8)
    assert find_painted_boxes(flat, BOXES) == []
    rng = np.random.default_rng(0)
    hits = 0
    for seed in range(20):
        corners = rng.integers(0, (350, 270), (8, 2))
        boxes = np.hstack([corners, corners + rng.integers(20, 50, (8, 2))]).astype(np.float32)
        hits += len(find_painted_boxes(np.dstack([draw_board(seed)] * 3), boxes))
    assert hits <= 2
