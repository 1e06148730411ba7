"""New thresholds find what was held back unless old boards would be flagged; old ones stay if they serve."""

from __future__ import annotations

import math

import numpy as np
import pytest

from inspect_vit.matching import Detections, Truths
from training.new_thresholds import Measured, kept_thresholds, new_threshold, usual_threshold

BOX = np.array([[10, 10, 30, 30]], np.float32)
FAR = np.array([[100, 100, 120, 120]], np.float32)


def _calls(*calls: tuple[int, float, bool]) -> Detections:
    """(label, score, at the labelled spot) of each call."""
    boxes = [BOX[0] if hit else FAR[0] for _, _, hit in calls]
    return Detections(
        np.array(boxes, np.float32).reshape(-1, 4),
        np.array([score for _, score, _ in calls], np.float32),
        np.array([label for label, _, _ in calls], np.int64),
    )


def _truths(*labels: int) -> Truths:
    return Truths(np.repeat(BOX, len(labels), 0), np.array(labels, np.int64))


def _measured(examples: list[float], false: list[float], old_boards: int) -> Measured:
    """Class 1 is new: its scores on examples, and on old boards, most of which get no call."""
    calls = [_calls((1, score, True)) for score in examples] + [_calls((1, score, False)) for score in false]
    calls += [_calls()] * (old_boards - len(false))
    truths = [_truths(1)] * len(examples) + [_truths()] * old_boards
    return Measured(calls, truths, [False] * len(examples) + [True] * old_boards)


@pytest.mark.parametrize(
    ("examples", "false", "old_boards", "wanted"),
    [
        ([], [], 50, 0.4),  # the usual one where nothing speaks against it
        ([0.9, 0.8], [], 50, 0.4),
        ([0.9, 0.3], [], 50, 0.27),  # 0.9 of the worst example
        ([0.9, 0.3], [0.6], 50, 0.612),  # no old board of 50 may be flagged
        ([0.9, 0.3], [0.6, 0.2], 200, 0.27),  # one of 200 may
        ([], [0.99], 50, 0.95),
        ([0.05], [], 50, 0.1),
    ],
)
def test_a_new_threshold(examples: list[float], false: list[float], old_boards: int, wanted: float) -> None:
    found = new_threshold(_measured(examples, false, old_boards), 1, usual=0.4)
    assert found == pytest.approx(wanted, abs=1e-4)


def test_the_usual_threshold_follows_the_lowered_logits_where_there_is_a_reference() -> None:
    old = [0.9, 0.5, 0.2]
    assert usual_threshold(old, "without_reference", new_bias=0.75) == 0.5
    assert usual_threshold(old, "with_reference", new_bias=0.0) == 0.5
    assert usual_threshold(old, "with_reference", new_bias=0.75) == pytest.approx(1 / (1 + math.exp(0.75)))


def _old_class(scores: list[float]) -> Measured:
    return Measured(
        [_calls((0, score, True)) for score in scores], [_truths(0)] * len(scores), [True] * len(scores)
    )


def test_old_thresholds_stay_unless_the_class_does_worse_at_them() -> None:
    names, old = {"spur": "spur", "scratch": None}, ("spur",)
    well = _old_class([0.9] * 30)
    assert kept_thresholds(well, _old_class([0.8] * 30), {"spur": 0.5}, names, old) == {"spur": 0.5}
    fallen = kept_thresholds(well, _old_class([0.8] * 20 + [0.3] * 10), {"spur": 0.5}, names, old)
    assert fallen["spur"] == pytest.approx(0.3)


def test_a_few_defects_move_no_threshold() -> None:
    names, old = {"spur": "spur", "scratch": None}, ("spur",)
    found = kept_thresholds(_old_class([0.9] * 5), _old_class([0.3] * 5), {"spur": 0.5}, names, old)
    assert found == {"spur": 0.5}


def _old_boards(scores: list[float], false: list[float], quiet: int) -> Measured:
    """Boards with a defect of class 0 each, good boards with a false call each, and good ones without."""
    calls = [_calls((0, score, True)) for score in scores] + [_calls((0, score, False)) for score in false]
    truths = [_truths(0)] * len(scores) + [_truths()] * (len(false) + quiet)
    return Measured([*calls, *[_calls()] * quiet], truths, [True] * len(truths))


@pytest.mark.parametrize(
    ("scores", "false", "wanted"),
    [
        ([0.6] * 30, [0.55], 0.5),  # one board was flagged before, one is
        ([0.6] * 30, [0.55, 0.57, 0.7], 0.5814),  # all defects found and one board flagged, as before
        ([0.8] * 30, [0.55, 0.9, 0.9], 0.8),  # a higher one would miss what was found before
        ([0.95] * 10 + [0.52] * 20, [0.7, 0.6], 0.52),
        ([0.55] * 30, [], 0.5),  # never lower than it was
        ([0.8] * 30, [0.55], 0.6),  # the worst defect found rose by 0.2: half of that
        ([0.8] * 30, [0.55, 0.6, 0.7], 0.656),  # half-way from where one board is flagged
    ],
)
def test_old_classes_flag_no_more_boards_than_before_where_they_still_find_as_much(
    scores: list[float], false: list[float], wanted: float
) -> None:
    names, old = {"spur": "spur", "scratch": None}, ("spur",)
    before = _old_boards([0.6] * 25 + [0.1] * 5, [0.7], quiet=10)
    after = _old_boards(scores, false, quiet=11 - len(false))
    found = kept_thresholds(before, after, {"spur": 0.5}, names, old)
    assert found["spur"] == pytest.approx(wanted, abs=1e-4)


def test_a_known_defect_called_by_the_new_name_does_not_raise_the_new_threshold() -> None:
    boards = Measured([_calls((1, 0.9, True))] * 50, [_truths(0)] * 50, [True] * 50)
    assert new_threshold(boards, 1, usual=0.4) == 0.4
    elsewhere = Measured([_calls((1, 0.9, False))] * 50, [_truths(0)] * 50, [True] * 50)
    assert new_threshold(elsewhere, 1, usual=0.4) == pytest.approx(0.918)
