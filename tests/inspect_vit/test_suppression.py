"""Suppression without a loop over calls is the greedy one, and its cost in Python does not grow with them."""

from __future__ import annotations

import sys
from types import FrameType

import numpy as np
import pytest
import torch
from torchvision.ops import nms

from inspect_vit.suppression import suppress


def boxes_at(rng: np.random.Generator, num: int, board_px: float, sides: tuple[float, float]) -> np.ndarray:
    corner = rng.uniform(0, board_px, (num, 2))
    side = np.exp(rng.uniform(*np.log(sides), (num, 2)))
    return np.concatenate([corner, corner + side], 1).astype(np.float32)


@pytest.mark.parametrize("max_iou", [0.2, 0.5, 0.8])
@pytest.mark.parametrize(
    ("num", "board_px", "sides"),
    [(400, 100, (1, 40)), (3000, 600, (8, 60)), (2000, 600, (2, 1500)), (900, 3000, (300, 320))],
)
def test_it_is_the_greedy_one(num: int, board_px: float, sides: tuple[float, float], max_iou: float) -> None:
    boxes = boxes_at(np.random.default_rng(num), num, board_px, sides)
    scores = torch.linspace(1, 0.1, num)
    kept = suppress(boxes, max_iou)
    assert kept.tolist() == nms(torch.from_numpy(boxes), scores, max_iou).tolist()
    assert len(kept) < num or max_iou > 0.5


def test_a_chain_of_overlaps_keeps_every_other_box() -> None:
    left = 10.0 * np.arange(101)
    boxes = np.stack([left, np.zeros(101), left + 40, np.full(101, 40.0)], 1).astype(np.float32)
    assert suppress(boxes, 0.5).tolist() == list(range(0, 101, 2))


def test_no_box_and_boxes_without_area() -> None:
    assert suppress(np.zeros((0, 4), np.float32), 0.5).tolist() == []
    assert suppress(np.zeros((3, 4), np.float32), 0.5).tolist() == [0, 1, 2]


def test_work_in_python_does_not_grow_with_the_calls() -> None:
    def num_calls(num: int) -> int:
        boxes = boxes_at(np.random.default_rng(0), num, 10 * num**0.5, (24, 36))
        count = 0

        def note(frame: FrameType, event: str, argument: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(note)
        try:
            suppress(boxes, 0.5)
        finally:
            sys.setprofile(None)
        return count

    few, many = num_calls(500), num_calls(20_000)
    assert many < 3 * few + 300
