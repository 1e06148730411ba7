"""Measures of quality against figures worked out by hand, and against COCO's own evaluator."""

from __future__ import annotations

import time

import numpy as np
import pytest

from inspect_vit.intervals import clopper_pearson, upper_bound
from inspect_vit.matching import Detections, Truths, match_images
from training.intervals import bootstrap_ap
from training.metrics import (
    average_precision,
    coco_map,
    deployed_detections,
    false_calls,
    misses,
    precision_recall,
    proportion,
    summarise,
)

NAMES = ("a", "b", "c")
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


EXAMPLE = (
    [detections((FAR, 0.6, A), (LEFT, 0.9, B), (LEFT, 0.8, A), (RIGHT, 0.7, B)), detections()],
    [truths((LEFT, A), (RIGHT, B)), truths()],
)


def random_boards(seed: int, num_images: int = 40) -> tuple[list[Detections], list[Truths]]:
    rng = np.random.default_rng(seed)
    calls, labelled = [], []
    for _ in range(num_images):
        corners = rng.uniform(0, 200, (rng.integers(0, 9), 2))
        boxes = np.concatenate([corners, corners + rng.uniform(15, 50, corners.shape)], 1)
        labels = rng.integers(0, len(NAMES), len(boxes))
        labelled.append(Truths(boxes.astype(np.float32), labels))
        near = np.concatenate(
            [boxes + rng.uniform(-7, 7, boxes.shape), boxes + rng.uniform(-3, 3, boxes.shape)]
        )
        guesses = np.where(
            rng.random(len(near)) < 0.8, np.tile(labels, 2), rng.integers(0, len(NAMES), len(near))
        )
        calls.append(Detections(near.astype(np.float32), rng.random(len(near)).astype(np.float32), guesses))
    return calls, labelled


def test_average_precision_sums_precision_at_each_true_positive() -> None:
    # Hits at ranks 1 and 4 of 5 calls, 3 truths: (1/1 + 2/4) / 3.
    assert average_precision(np.array([True, False, False, True, False]), 3) == pytest.approx(0.5)
    assert average_precision(np.zeros(0, np.bool_), 3) == 0.0
    assert np.isnan(average_precision(np.zeros(2, np.bool_), 0))


def test_precision_recall_after_each_call() -> None:
    precision, recall = precision_recall(np.array([True, False, True]), 4)
    np.testing.assert_allclose(precision, [1, 1 / 2, 2 / 3])
    np.testing.assert_allclose(recall, [1 / 4, 1 / 4, 1 / 2])


def test_summary_of_the_worked_example() -> None:
    report = summarise(*EXAMPLE, NAMES, thresholds={"a": 0.7, "b": 0.95, "c": 0.5})
    assert (report["images"], report["detections"], report["truths"]) == (2, 4, 2)
    assert report["truths_per_class"] == {"a": 1, "b": 1, "c": 0}
    assert report["absent_classes"] == ["c"]

    # By score: wrong class on a, surplus on a, hit on b, call on nothing. One hit at rank 3, 2 truths.
    assert report["shipped"]["ap"] == pytest.approx(1 / 3 / 2)
    # Each class alone: a hits at rank 1; b hits at rank 2. c is absent and not in the mean.
    for name in ("shipped", "same_class"):
        assert report[name]["ap_per_class"] == pytest.approx({"a": 1.0, "b": 0.5, "c": np.nan}, nan_ok=True)
        assert report[name]["mean_ap"] == pytest.approx(0.75)
    # The right class finds a at rank 2 and b at rank 3.
    assert report["same_class"]["ap"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    # Whatever the class: hits at ranks 1 and 3.
    assert report["class_blind_ap"] == pytest.approx((1 + 2 / 3) / 2)
    assert report["shipped"]["best_f"]["f_score"] == pytest.approx(0.4)
    assert report["same_class"]["best_f"]["f_score"] == pytest.approx(0.8)
    # At the thresholds only the call of a at 0.8 stands, and it is right: 2 x 1 / (1 + 2).
    deployed = report["shipped"]["deployed"]
    assert (deployed["calls"], deployed["true_positives"], deployed["precision"]) == (1, 1, 1.0)
    assert deployed["f_score"] == pytest.approx(2 / 3)
    assert report["coco"]["map50"] == pytest.approx(0.75)
    assert report["coco"]["map50_95"] == pytest.approx(0.75)
    assert np.isnan(report["coco"]["ap50_per_class"]["c"])


@pytest.mark.parametrize("labelled", [truths(), truths((LEFT, A))])
def test_summary_without_any_call(labelled: Truths) -> None:
    report = summarise([detections()], [labelled], NAMES, thresholds=dict.fromkeys(NAMES, 0.5))
    expected = 0.0 if len(labelled) else np.nan
    for value in (report["shipped"]["ap"], report["same_class"]["mean_ap"], report["coco"]["map50"]):
        assert value == pytest.approx(expected, nan_ok=True)
    assert report["shipped"]["deployed"]["calls"] == 0


@pytest.mark.parametrize("seed", range(3))
def test_coco_agrees_with_our_same_class_matching(seed: int) -> None:
    calls, labelled = random_boards(seed)
    report = coco_map(calls, labelled, NAMES)
    by_limit = []
    for limit in np.arange(0.5, 1.0, 0.05):
        matches = match_images(calls, labelled, matching="same-class", iou_above=limit)
        by_limit.append([interpolated_ap(matches, label) for label in range(len(NAMES))])
    np.testing.assert_allclose(list(report["ap50_per_class"].values()), by_limit[0], atol=1e-12)
    np.testing.assert_allclose(
        list(report["ap50_95_per_class"].values()), np.mean(by_limit, axis=0), atol=1e-12
    )
    assert report["map50"] == pytest.approx(np.mean(by_limit[0]))
    assert 0.1 < report["map50_95"] < report["map50"] < 0.95


def interpolated_ap(matches, label: int) -> float:
    """COCO's AP: at 101 recalls, the best precision at that recall or beyond."""
    precision, recall = precision_recall(
        matches.correct[matches.labels == label], np.count_nonzero(matches.truth_labels == label)
    )
    return float(np.mean([max(precision[recall >= r], default=0.0) for r in np.linspace(0, 1, 101)]))


def test_false_calls_per_image_panel_side_and_square_metre() -> None:
    calls = [detections((FAR, 0.9, A), (FAR, 0.8, B)), detections((LEFT, 0.9, A)), detections(), detections()]
    labelled = [truths((LEFT, A)), truths((LEFT, A)), truths(), truths()]
    report = false_calls(match_images(calls, labelled), total_px=4 * 640 * 640, px_per_mm=48.0)
    assert (report["count"], report["images"], report["per_image"]) == (2, 4, 0.5)
    assert (report["images_with"]["count"], report["images_with"]["n"]) == (1, 4)
    # 640 px are 13.333 mm, so an image is 177.78 mm2; a panel side of 457.2 x 609.6 mm holds 1567.74 of them.
    assert report["area_mm2"] == pytest.approx(4 * (640 / 48) ** 2)
    assert report["per_panel_side"] == pytest.approx(0.5 * 457.2 * 609.6 / 177.7778, rel=1e-6)
    assert report["per_m2"] == pytest.approx(0.5e6 / 177.7778, rel=1e-6)


def test_misses_tell_wrong_class_from_escape_and_board_passed() -> None:
    calls = [detections((LEFT, 0.9, B)), detections((FAR, 0.9, A)), detections(), detections()]
    labelled = [truths((LEFT, A), (RIGHT, A)), truths((LEFT, A)), truths((LEFT, A)), truths()]
    report = misses(match_images(calls, labelled))
    # All four defects lack a call of their class, one is found under another; one board has no call at all.
    assert (report["miss_rate"]["count"], report["miss_rate"]["n"]) == (4, 4)
    assert (report["escape_rate"]["count"], report["escape_rate"]["ppm"]) == (3, 750_000)
    assert (report["boards_passed"]["count"], report["boards_passed"]["n"]) == (1, 3)


def test_exact_intervals_are_the_published_ones() -> None:
    # No event in n: the bounds are 1 - (tail)^(1/n) in closed form.
    assert clopper_pearson(0, 10) == pytest.approx((0.0, 1 - 0.025**0.1))
    assert clopper_pearson(10, 10) == pytest.approx((0.025**0.1, 1.0))
    assert upper_bound(0, 100) == pytest.approx(1 - 0.05**0.01)
    # Tabled: 5 of 10.
    assert clopper_pearson(5, 10) == pytest.approx((0.1871, 0.8129), abs=5e-5)
    assert np.isnan(clopper_pearson(0, 0)).all()
    assert proportion(1, 4)["value"] == 0.25
    assert np.isnan(proportion(0, 0)["value"])


def test_bootstrap_interval_of_the_ap() -> None:
    alike = ([detections((LEFT, 0.9, A))] * 5, [truths((LEFT, A), (RIGHT, B))] * 5)
    assert bootstrap_ap(match_images(*alike), resamples=50) == pytest.approx((0.5, 0.5))

    few, many = (match_images(*random_boards(0, num_images)) for num_images in (20, 320))
    widths = []
    for matches in (few, many):
        low, high = bootstrap_ap(matches, resamples=200)
        assert low < average_precision(matches.correct, matches.num_truths) < high
        widths.append(high - low)
    # Sixteen times the images: a quarter of the width, give or take the resampling.
    assert widths[0] / widths[1] == pytest.approx(4, rel=0.5)
    assert bootstrap_ap(few, resamples=50, seed=1) == bootstrap_ap(few, resamples=50, seed=1)


def test_deployed_detections_use_the_threshold_named_for_each_class() -> None:
    calls = [detections((LEFT, 0.5, A), (LEFT, 0.5, B))]
    kept = deployed_detections(calls, NAMES, {"c": 0.0, "a": 0.51, "b": 0.5})
    assert kept[0].labels.tolist() == [B]


def test_five_hundred_images_are_scored_in_seconds_of_one_core() -> None:
    calls, labelled = random_boards(5, 500)
    start = time.process_time()
    summarise(calls, labelled, NAMES, thresholds=dict.fromkeys(NAMES, 0.5))
    assert time.process_time() - start < 10.0
