"""Where boxes begin, and peaks that are found whatever the bands they come in."""

from __future__ import annotations

import torch

from inspect_vit.heads import PeakFinder, boxes_from_distances, vote


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
    return sorted((round(score, 5), label, *(round(edge, 3) for edge in box)) for score, label, box in calls)


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


def test_a_box_is_the_vote_of_the_cells_around_its_peak() -> None:
    scores = torch.zeros(1, 5, 6)
    scores[0, 2, 3], scores[0, 2, 4], scores[0, 1, 3] = 0.8, 0.4, 0.4
    distances = torch.full((4, 5, 6), 100.0)  # what has no score has no vote
    distances[:, 2, 3] = torch.tensor([10.0, 10.0, 10.0, 10.0])
    distances[:, 2, 4] = torch.tensor([14.0, 10.0, 6.0, 10.0])  # the same box, seen from 4 px further right
    distances[:, 1, 3] = torch.tensor([10.0, 6.0, 10.0, 20.0])  # the same but for its lower edge: 6 px beyond
    finder = PeakFinder(stride=4, min_score=0.5, sure_score=0.5, num_unsure=10)
    logits = torch.where(scores > 0, scores, torch.tensor(1e-30)).logit()
    finder.add(0, logits, distances, is_last=True)
    weights = torch.tensor([0.64, 0.16, 0.16])
    lower = 20 + 6 * weights[2] / weights.sum()
    torch.testing.assert_close(finder.best().boxes, torch.tensor([[4.0, 0.0, 24.0, lower]]))


def test_cells_without_an_answer_have_no_vote() -> None:
    logits = torch.full((1, 5, 6), -9.0)
    logits[0, 2, 3] = 3.0
    distances = torch.full((4, 5, 6), 8.0)
    distances[1, 1, 3] = torch.nan
    distances[2, 2, 2] = torch.inf
    logits[0, 3, 4] = torch.nan
    label, row, column = (torch.tensor([value]) for value in (0, 2, 3))
    voted = vote(logits.sigmoid(), distances, label, row, column, stride=4)
    torch.testing.assert_close(voted, torch.full((4, 1), 8.0), atol=0.01, rtol=0)


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
