"""Matching and thresholds against examples worked by hand and against a slow, obvious implementation."""

from __future__ import annotations

import numpy as np
import pytest

from inspect_vit.errors import ConfigError
from inspect_vit.matching import Detections, Truths, box_iou, leave_out_ignored, located, match_images
from inspect_vit.thresholds import best_f_point, choose_thresholds

A, B = 0, 1
LEFT, RIGHT, FAR = (0, 0, 10, 10), (20, 0, 30, 10), (80, 80, 90, 90)


def detections(*rows: tuple[tuple[float, ...], float, int]) -> Detections:
    boxes, scores, labels = zip(*rows, strict=True) if rows else ((), (), ())
    return Detections(
        np.array(boxes, np.float32).reshape(-1, 4), np.array(scores, np.float32), np.array(labels, np.int64)
    )


def truths(*rows: tuple[tuple[float, ...], int]) -> Truths:
    boxes, labels = zip(*rows, strict=True) if rows else ((), ())
    return Truths(np.array(boxes, np.float32).reshape(-1, 4), np.array(labels, np.int64))


# The call of highest score sits on the first defect with the wrong class.
EXAMPLE = (
    [detections((FAR, 0.6, A), (LEFT, 0.9, B), (LEFT, 0.8, A), (RIGHT, 0.7, B))],
    [truths((LEFT, A), (RIGHT, B))],
)


def test_iou_of_boxes_with_exclusive_right_and_bottom() -> None:
    boxes = np.array([[0, 0, 10, 10], [10, 0, 20, 10], [0, 0, 0, 0]], np.float32)
    others = np.array([[5, 0, 15, 10], [0, 0, 0, 0]], np.float32)
    # Half of each box is shared: 50 / 150. The empty boxes share nothing.
    np.testing.assert_allclose(box_iou(boxes, others), [[1 / 3, 0], [1 / 3, 0], [0, 0]])


def test_shipped_matching_gives_a_truth_to_the_best_score_and_compares_classes_afterwards() -> None:
    matches = match_images(*EXAMPLE)
    assert matches.scores.tolist() == pytest.approx([0.9, 0.8, 0.7, 0.6])
    assert matches.truths.tolist() == [0, -1, 1, -1]
    assert matches.correct.tolist() == [False, False, True, False]
    assert matches.outside.tolist() == [False, False, False, True]
    assert matches.found().tolist() == [True, True]
    assert matches.recalled().tolist() == [False, True]


def test_same_class_matching_lets_the_right_class_find_the_defect() -> None:
    matches = match_images(*EXAMPLE, matching="same-class")
    assert matches.truths.tolist() == [-1, 0, 1, -1]
    assert matches.correct.tolist() == [False, True, True, False]


def test_class_blind_matching_counts_every_class_as_right() -> None:
    assert match_images(*EXAMPLE, matching="class-blind").correct.tolist() == [True, False, True, False]


def test_shipped_matching_serves_truths_in_label_order_and_same_class_by_overlap() -> None:
    call = [detections(((3, 0, 13, 10), 0.9, A))]
    # IoU 7 / 13 with the first truth, 9 / 11 with the second.
    labelled = [truths(((0, 0, 10, 10), A), ((4, 0, 14, 10), A))]
    assert match_images(call, labelled).truths.tolist() == [0]
    assert match_images(call, labelled, matching="same-class").truths.tolist() == [1]


@pytest.mark.parametrize("matching", ["shipped", "same-class"])
def test_an_overlap_of_exactly_the_limit_finds_nothing(matching: str) -> None:
    call = [detections(((0, 0, 100, 1), 0.9, A))]
    for width, truth in ((33, -1), (34, 0)):
        matches = match_images(call, [truths(((0, 0, width, 1), A))], matching=matching)
        assert matches.truths.tolist() == [truth]


def test_a_call_that_only_touches_a_box_is_outside() -> None:
    call = [detections(((10, 0, 20, 10), 0.9, A), ((9, 9, 20, 20), 0.8, A))]
    assert match_images(call, [truths((LEFT, A))]).outside.tolist() == [True, False]


def test_images_do_not_mix() -> None:
    calls = [detections((LEFT, 0.5, A)), detections(), detections((LEFT, 0.9, A), (LEFT, 0.4, A))]
    labelled = [truths(), truths((LEFT, A)), truths((RIGHT, A), (LEFT, A))]
    matches = match_images(calls, labelled)
    assert matches.images.tolist() == [2, 0, 2]
    assert matches.truths.tolist() == [2, -1, -1]
    assert matches.truth_images.tolist() == [1, 2, 2]
    assert matches.outside.tolist() == [False, True, False]
    assert matches.num_images == 3


def obvious_matching(calls, labelled, limit, matching):
    """Lists of (score, correct, outside) by nested loops over plain tuples."""

    def overlap(a, b):
        width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        shared = max(width, 0) * max(height, 0)
        return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)

    rows = []
    for image_calls, image_truths in zip(calls, labelled, strict=True):
        columns = image_calls.boxes.tolist(), image_calls.scores.tolist(), image_calls.labels.tolist()
        found = sorted(zip(*columns, strict=True), key=lambda row: -row[1])
        wanted = list(zip(image_truths.boxes.tolist(), image_truths.labels.tolist(), strict=True))
        used, hits = set(), set()
        if matching == "shipped":
            for box, label in wanted:
                for i, (call_box, _, call_label) in enumerate(found):
                    if i not in used and overlap(call_box, box) > limit:
                        used.add(i)
                        if call_label == label:
                            hits.add(i)
                        break
        else:
            for i, (call_box, _, call_label) in enumerate(found):
                best, best_overlap = None, limit
                for j, (box, label) in enumerate(wanted):
                    if j not in used and label == call_label and overlap(call_box, box) > best_overlap:
                        best, best_overlap = j, overlap(call_box, box)
                if best is not None:
                    used.add(best)
                    hits.add(i)
        for i, (call_box, score, _) in enumerate(found):
            rows.append((score, i in hits, all(overlap(call_box, box) == 0 for box, _ in wanted)))
    return sorted(rows, key=lambda row: -row[0])


def random_boards(seed: int) -> tuple[list[Detections], list[Truths]]:
    """Crowded boards: many boxes overlap, about half the classes are wrong; all scores differ."""
    rng = np.random.default_rng(seed)
    calls, labelled = [], []
    scores = rng.permutation(400) / 400
    for image in range(20):
        corners = rng.uniform(0, 60, (rng.integers(0, 8), 2))
        boxes = np.concatenate([corners, corners + rng.uniform(8, 24, corners.shape)], 1).astype(np.float32)
        labels = rng.integers(0, 3, len(boxes))
        labelled.append(Truths(boxes, labels))
        near = np.concatenate(
            [boxes + rng.uniform(-3.9, 3.9, boxes.shape), boxes + rng.uniform(-1, 1, boxes.shape)]
        )
        guesses = np.where(rng.random(len(near)) < 0.5, np.tile(labels, 2), rng.integers(0, 3, len(near)))
        calls.append(
            Detections(near.astype(np.float32), scores[image * 20 :][: len(near)].astype(np.float32), guesses)
        )
    return calls, labelled


@pytest.mark.parametrize("matching", ["shipped", "same-class"])
@pytest.mark.parametrize("seed", range(8))
def test_matching_agrees_with_nested_loops(seed: int, matching: str) -> None:
    calls, labelled = random_boards(seed)
    for limit in (0.33, 0.5, 0.75):
        expected = obvious_matching(calls, labelled, limit, matching)
        matches = match_images(calls, labelled, matching=matching, iou_above=limit)
        assert list(zip(matches.scores, matches.correct, matches.outside, strict=True)) == expected
    assert 0 < sum(row[1] for row in expected) < len(expected)


@pytest.mark.parametrize("matching", ["shipped", "same-class", "class-blind"])
def test_one_matching_serves_every_threshold(matching: str) -> None:
    calls, labelled = random_boards(99)
    whole = match_images(calls, labelled, matching=matching)
    for threshold in (0.2, 0.5, 0.8):
        kept = match_images([d.select(d.scores >= threshold) for d in calls], labelled, matching=matching)
        assert kept.correct.tolist() == whole.correct[whole.scores >= threshold].tolist()
        assert kept.truths.tolist() == whole.truths[whole.scores >= threshold].tolist()


def test_reaching_uses_the_threshold_of_each_class() -> None:
    kept = detections((LEFT, 0.5, A), (LEFT, 0.4, B), (LEFT, 0.3, B)).reaching(
        np.array([0.6, 0.4], np.float32)
    )
    assert kept.labels.tolist() == [B]
    assert kept.scores.tolist() == pytest.approx([0.4])


def test_best_f_of_the_example() -> None:
    # After 1, 2, 3, 4 calls the shipped matching has 0, 0, 1, 1 hits: 2 x 1 / (3 + 2) is the best.
    point = best_f_point(match_images(*EXAMPLE))
    assert (point.f_score, point.threshold) == pytest.approx((0.4, 0.7))
    assert (point.true_positives, point.calls, point.truths) == (1, 3, 2)
    assert (point.precision, point.recall) == pytest.approx((1 / 3, 1 / 2))
    # 0, 1, 2, 2 hits of the right class: 2 x 2 / (3 + 2).
    point = best_f_point(match_images(*EXAMPLE, matching="same-class"))
    assert (point.f_score, point.threshold) == pytest.approx((0.8, 0.7))


def test_best_f_accepts_calls_of_equal_score_together() -> None:
    calls = [detections((LEFT, 0.5, A), (FAR, 0.5, A), (FAR, 0.5, A))]
    point = best_f_point(match_images(calls, [truths((LEFT, A))]))
    assert (point.calls, point.f_score) == (3, 0.5)


def test_best_f_without_calls_accepts_nothing() -> None:
    point = best_f_point(match_images([detections()], [truths((LEFT, A))]))
    assert (point.threshold, point.f_score, point.recall, point.calls) == (np.inf, 0.0, 0.0, 0)
    assert np.isnan(point.precision)


def test_shared_threshold_lies_midway_below_the_last_call_accepted() -> None:
    assert choose_thresholds(*EXAMPLE, ["a", "b"]) == pytest.approx({"a": 0.65, "b": 0.65})


def test_threshold_per_class_sees_that_class_alone() -> None:
    # Class a: 0.8 right, 0.6 wrong. Class b: 0.9 wrong, 0.7 right: all of b is accepted. c has no truth.
    chosen = choose_thresholds(*EXAMPLE, ["a", "b", "c"], per_class=True)
    assert chosen == pytest.approx({"a": 0.7, "b": 0.7, "c": 0.65})


def test_thresholds_without_calls_or_without_labels() -> None:
    assert choose_thresholds([detections()], [truths((LEFT, A))], ["a"]) == {"a": 0.5}
    with pytest.raises(ConfigError, match="none of the 1 images has a labelled defect"):
        choose_thresholds([detections((LEFT, 0.5, A))], [truths()], ["a"])


def test_calls_in_an_ignored_box_count_for_nothing_but_those_on_a_truth_do() -> None:
    boxes = np.array([[10, 10, 30, 30], [50, 50, 60, 60], [70, 70, 90, 90], [95, 0, 115, 20]], np.float32)
    found = Detections(boxes, np.array([0.9, 0.8, 0.7, 0.6], np.float32), np.zeros(4, np.int64))
    truths = Truths(np.array([[11, 11, 31, 31]], np.float32), np.zeros(1, np.int64))
    crowd = np.array([[0, 0, 100, 65]], np.float32)
    # 1 lies on the truth, 2 inside the crowd, 3 outside it, 4 by a quarter in it.
    kept = leave_out_ignored(found, truths, crowd)
    assert kept.scores.tolist() == pytest.approx([0.9, 0.7, 0.6])
    assert len(leave_out_ignored(found, truths, np.zeros((0, 4), np.float32))) == 4


def test_located_asks_for_the_centre_of_any_call_alone() -> None:
    wide = Truths(
        np.array([[0, 0, 100, 10], [200, 0, 210, 10], [0, 50, 10, 60]], np.float32), np.array([0, 1, 2])
    )
    calls = Detections(
        # The centre in the first box at IoU 0.04; beside the second; none for the third.
        np.array([[90, 2, 96, 8], [206, 0, 222, 10]], np.float32),
        np.array([0.9, 0.8]),
        np.array([1, 1]),
    )
    nothing = Detections(np.zeros((0, 4), np.float32), np.zeros(0), np.zeros(0, np.int64))
    assert located([calls, nothing], [wide, wide]).tolist() == [True, False, False, False, False, False]
