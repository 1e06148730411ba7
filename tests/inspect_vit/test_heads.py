"""Where boxes begin, and peaks that are found whatever the bands they come in."""

from __future__ import annotations

import torch

from inspect_vit.heads import PeakFinder, boxes_from_distances


def test_distances_start_at_the_middle_of_a_cell() -> None:
    boxes = boxes_from_distances(torch.zeros(1, 4, 2, 3), stride=4)
    assert boxes[0, :, 1, 2].tolist() == [10, 6, 10, 6]


def peaks_of(logits: torch.Tensor, distances: torch.Tensor, bands: list[int]) -> list[tuple[float, ...]]:
    finder = PeakFinder(stride=4, min_score=0.2, sure_score=0.5, num_unsure=5000)
    top = 0
    for rows in bands:
        end = top + rows
        finder.add(top, logits[:, top:end], distances[:, top:end], is_last=end == logits.shape[1])
        top = end
    best = finder.best()
    assert best.scores.tolist() == sorted(best.scores.tolist(), reverse=True)
    calls = zip(best.scores.tolist(), best.labels.tolist(), best.boxes.tolist(), strict=True)
    return sorted((round(score, 5), label, *box) for score, label, box in calls)


def test_bands_of_any_height_give_the_peaks_of_the_whole() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 24, 30, generator=generator) * 2
    distances = torch.randint(1, 40, (4, 24, 30), generator=generator).float()
    whole = peaks_of(logits, distances, [24])
    scores = logits.sigmoid()
    by_hand = 0
    for label in range(3):
        for row in range(24):
            for column in range(30):
                around = scores[label, max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
                value = scores[label, row, column]
                by_hand += bool(value >= 0.2 and value == around.max())
    assert len(whole) == by_hand > 100
    for bands in ([1] * 24, [8, 8, 8], [2, 1, 19, 1, 1], [23, 1]):
        assert peaks_of(logits, distances, bands) == whole


def test_of_unsure_peaks_the_best_stay_and_of_sure_ones_all() -> None:
    logits = torch.full((1, 20, 20), -9.0)
    spots = [(2 * (i // 10), 2 * (i % 10)) for i in range(100)]
    for i, (row, column) in enumerate(spots):
        logits[0, row, column] = -2 + 0.04 * i  # 50 of them below score 0.5
    few = PeakFinder(stride=4, min_score=0.01, sure_score=0.5, num_unsure=10)
    many = PeakFinder(stride=4, min_score=0.01, sure_score=0.5, num_unsure=70)
    for finder in (few, many):
        finder.add(0, logits, torch.ones(4, 20, 20), is_last=True)
    assert len(few.best().scores) == 50
    assert few.best().scores.min() >= 0.5
    torch.testing.assert_close(many.best().scores.logit(), 1.96 - 0.04 * torch.arange(70), atol=1e-4, rtol=0)
