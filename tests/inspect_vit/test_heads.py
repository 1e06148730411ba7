"""Decoding of planted answers."""

from __future__ import annotations

import numpy as np
import torch
from torchvision.ops import nms

from inspect_vit.heads import HeadOutput, boxes_from_distances, decode, suppress


def planted(*spots: tuple[int, int, int, float], size: int = 20) -> HeadOutput:
    """Centre scores at (class, row, column); every box reaches 6 px left, 8 up, 10 right, 12 down."""
    centres = torch.full((1, 3, size, size), -9.0)
    for label, row, column, score in spots:
        centres[0, label, row, column] = float(np.log(score / (1 - score)))
    distances = torch.tensor([6.0, 8.0, 10.0, 12.0]).view(1, 4, 1, 1).expand(1, 4, size, size)
    return HeadOutput(centres, distances, torch.zeros(1, 3, size, size))


def test_a_planted_centre_comes_back_as_its_box() -> None:
    calls = decode(planted((2, 5, 7, 0.8)), stride=4, min_score=0.1)[0]
    assert calls.labels.tolist() == [2]
    np.testing.assert_allclose(calls.scores, [0.8], atol=1e-6)
    # centre of cell (5, 7) is (x, y) = (30, 22)
    np.testing.assert_allclose(calls.boxes, [[24, 14, 40, 34]])


def test_only_peaks_above_the_score_are_calls_best_first() -> None:
    head = planted((0, 2, 2, 0.6), (0, 2, 3, 0.5), (1, 12, 12, 0.9), (2, 18, 3, 0.05))
    calls = decode(head, stride=4, min_score=0.1)[0]
    assert calls.labels.tolist() == [1, 0]
    assert calls.scores.tolist() == sorted(calls.scores.tolist(), reverse=True)


def test_two_classes_at_one_spot_are_one_call() -> None:
    calls = decode(planted((0, 9, 9, 0.7), (1, 9, 9, 0.6)), stride=4, min_score=0.1)[0]
    assert calls.labels.tolist() == [0]


def test_max_calls_keeps_the_best() -> None:
    spots = [(0, 4 * (i // 4) + 1, 4 * (i % 4) + 1, 0.2 + 0.05 * i) for i in range(12)]
    calls = decode(planted(*spots), stride=4, min_score=0.1, max_calls=5, max_iou=0.9)[0]
    np.testing.assert_allclose(calls.scores, [0.75, 0.7, 0.65, 0.6, 0.55], atol=1e-6)


def test_suppression_agrees_with_torchvision() -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        corner = torch.rand(60, 2, generator=generator) * 100
        boxes = torch.cat([corner, corner + torch.rand(60, 2, generator=generator) * 40 + 1], 1)
        scores = torch.linspace(1, 0.1, 60)
        assert suppress(boxes, 0.5).tolist() == nms(boxes, scores, 0.5).tolist()
    assert suppress(torch.zeros(0, 4), 0.5).tolist() == []


def test_distances_start_at_the_middle_of_a_cell() -> None:
    boxes = boxes_from_distances(torch.zeros(1, 4, 2, 3), stride=4)
    assert boxes[0, :, 1, 2].tolist() == [10, 6, 10, 6]
