"""Points, pixels, boxes and cell maps travel between the posted picture and the reference by the same map."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from inspect_vit.registration import Registration
from inspect_vit.registration_map import Slip

TURNED = np.array([[1.008, -0.034, 12.0], [0.036, 0.991, -14.0], [6e-6, -4e-6, 1]])
"""Two degrees, 1 % either way, a shift, slight perspective."""


def test_points_go_there_and_back() -> None:
    field = np.random.default_rng(1).normal(0, 1.5, (13, 13, 2))
    found = Registration(TURNED, (640, 640), (640, 640), (Slip(300, (2.0, 9.0)),), field)
    points = np.random.default_rng(0).uniform(0, 639, (500, 2))
    assert np.abs(found.to_board(found.to_reference(points)) - points).max() < 0.05


def test_pixels_go_where_points_go() -> None:
    field = np.random.default_rng(1).normal(0, 1.5, (13, 13, 2))
    found = Registration(TURNED, (640, 640), (600, 700), (Slip(300, (2.0, 9.0)),), field)
    dots = np.zeros((640, 640, 3), np.uint8)
    places = np.array([[100, 80], [520, 150], [330, 420], [90, 590]])
    for x, y in places:
        cv2.circle(dots, (int(x), int(y)), 4, (255, 255, 255), -1)
    warped, covered = found.warp(dots)
    assert warped.shape == (600, 700, 3) and covered.shape == (600, 700)
    for x, y in found.to_reference(places.astype(float)):
        near = warped[int(y) - 12 : int(y) + 13, int(x) - 12 : int(x) + 13, 0].astype(float)
        rows, columns = np.mgrid[int(y) - 12 : int(y) + 13, int(x) - 12 : int(x) + 13]
        assert (near * columns).sum() / near.sum() == pytest.approx(x, abs=0.2)
        assert (near * rows).sum() / near.sum() == pytest.approx(y, abs=0.2)
    lost = found.to_board(np.argwhere(~covered)[:, ::-1].astype(float))
    outside = (lost < -0.5).any(1) | (lost > 639.5).any(1)
    assert (outside | (np.abs(lost[:, 1] - 295) < 12)).all()


def test_boxes_and_maps_come_back_to_the_posted_picture() -> None:
    found = Registration(np.array([[1, 0, 16.0], [0, 1, -8], [0, 0, 1]]), (640, 640), (640, 640))
    boxes = found.warp_boxes(np.array([[100.0, 200.0, 140.0, 260.0], [0.0, 0.0, 30.0, 30.0]]))
    assert boxes == pytest.approx(np.array([[84, 208, 124, 268], [0, 8, 14, 38]]), abs=1e-6)
    cells = np.zeros((2, 160, 160), np.float32)
    cells[1, 50, 60] = 1
    back = found.warp_map(cells)
    assert back.shape == (2, 160, 160)
    assert np.argwhere(back > 0.5).tolist() == [[1, 52, 56]]
    assert found.warp_map(np.ones((160, 160), np.float32))[:, -4:].max() == 0
