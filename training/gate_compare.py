"""Base and candidate on the same boards: which defects and boards got worse, and what that says.

Letters: I pictures, T counted defects of all pictures, K classes of the candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspect_vit.board_evidence import gather, missed_defects
from inspect_vit.calibration import FoundBy
from inspect_vit.gate_report import (
    MAX_LISTED,
    ClassResult,
    FalseCallResult,
    MissedDefect,
    NewCall,
    NewClass,
    SizeBucket,
)
from inspect_vit.matching import (
    IOU_ABOVE,
    BoolArray,
    Detections,
    FloatArray,
    IntArray,
    Truths,
    box_iou,
    leave_out_ignored,
)
from inspect_vit.noninferiority import judge, judge_net
from inspect_vit.results import BoxXyxy
from training.evaluate import truths_of
from training.gate_runs import Look
from training.gate_set import Board, Classes

SIZES_PX = (8.0, 16.0, 32.0, 64.0)
"""Upper ends of the size buckets; longer defects are a bucket of their own."""


@dataclass(frozen=True)
class Question:
    """What is asked of the candidate."""

    margin: float
    false_call_margin: float
    confidence: float
    found_by: FoundBy


@dataclass(frozen=True)
class Truth:
    """The acceptance set as arrays."""

    boards: Sequence[Board]
    truths: list[Truths]
    """(I,) labels index the candidate's classes."""
    numbers: IntArray
    """(I,) number of the board that each picture shows."""
    sizes_px: NDArray[np.float64]
    """(T,)"""

    @property
    def pictures(self) -> IntArray:
        """(T,) the picture of each defect."""
        return np.repeat(np.arange(len(self.truths)), [len(t) for t in self.truths])

    @property
    def labels(self) -> IntArray:
        """(T,)"""
        return np.concatenate([np.zeros(0, np.int64), *(t.labels for t in self.truths)])

    @property
    def boxes(self) -> FloatArray:
        """(T, 4)"""
        return np.concatenate([np.zeros((0, 4), np.float32), *(t.boxes for t in self.truths)])


@dataclass(frozen=True)
class Verdicts:
    """One model at its thresholds."""

    calls: list[Detections]
    """(I,) the calls that count; labels index the candidate's classes, K for a class that was retired."""
    errors: BoolArray
    """(I,) verdict ERROR."""
    found: BoolArray
    """(T,) defects that a call finds."""
    outside: list[BoolArray]
    """(I,) of each picture's calls, those that share no area with any defect."""

    def stopped(self, numbers: IntArray) -> set[int]:
        """Boards with a false call or an ERROR, of the pictures' board numbers (I,)."""
        return {
            int(number)
            for number, outside, is_error in zip(numbers, self.outside, self.errors, strict=True)
            if is_error or outside.any()
        }


def as_truth(boards: Sequence[Board], classes: Classes, sizes_px: Sequence[Sequence[float]]) -> Truth:
    """The boards as arrays; sizes_px: for each picture those of its counted defects."""
    index = {name: label for label, name in enumerate(classes.names)}
    keys = {key: number for number, key in enumerate(dict.fromkeys(board.key for board in boards))}
    return Truth(
        boards,
        [truths_of(board.sample, index) for board in boards],
        np.array([keys[board.key] for board in boards], np.int64),
        np.array([size for sizes in sizes_px for size in sizes], np.float64),
    )


def calls_of(looks: Sequence[Look], truth: Truth) -> list[Detections]:
    """Each picture's calls but for those in ignored boxes, as an evaluation counts them."""
    return [
        leave_out_ignored(look.detections, defects, board.sample.boxes[board.sample.is_ignored])
        for look, board, defects in zip(looks, truth.boards, truth.truths, strict=True)
    ]


def at_thresholds(
    looks: Sequence[Look],
    truth: Truth,
    thresholds: FloatArray,
    places: Sequence[int],
    *,
    num_classes: int,
    found_by: FoundBy,
) -> Verdicts:
    """What a model calls.

    Args:
        thresholds: by the model's own classes.
        places: for each of them its place among the candidate's classes, num_classes for a retired one.
    """
    moved = np.asarray(places, np.int64)
    counted = []
    for calls in calls_of(looks, truth):
        reached = calls.select(calls.scores.astype(np.float64) >= thresholds[calls.labels])
        counted.append(Detections(reached.boxes, reached.scores, moved[reached.labels]))
    pictures = range(len(looks))
    evidence = gather(counted, truth.truths, pictures, num_classes + 1, lowest_score=0.0)
    return Verdicts(
        counted,
        np.array([look.is_error for look in looks], np.bool_),
        ~missed_defects(evidence, np.zeros(num_classes + 1), found_by),
        [
            np.asarray(np.all(box_iou(calls.boxes, defects.boxes) <= 0.0, axis=1), np.bool_)
            for calls, defects in zip(counted, truth.truths, strict=True)
        ],
    )


def compare_classes(
    base: Verdicts,
    candidate: Verdicts,
    truth: Truth,
    classes: Classes,
    question: Question,
    *,
    base_looks: Sequence[Look],
    candidate_looks: Sequence[Look],
) -> tuple[ClassResult, ...]:
    """One result for each class that both know, in the candidate's order."""
    pictures, labels, boxes = truth.pictures, truth.labels, truth.boxes
    numbers = truth.numbers[pictures]
    newly = base.found & ~candidate.found
    places = np.asarray(classes.of_base, np.int64)
    results = []
    for label in classes.shared:
        own = labels == label
        lost = np.flatnonzero(own & newly)
        num_boards, worse = len(np.unique(numbers[own])), len(np.unique(numbers[lost]))
        judged = judge(worse, num_boards, margin=question.margin, confidence=question.confidence)
        missed = []
        for i in lost[:MAX_LISTED].tolist():
            picture, wanted = int(pictures[i]), label if question.found_by == "own class" else None
            board, looks = truth.boards[picture], (base_looks[picture], candidate_looks[picture])
            scores = [
                _best_score(look.detections, kinds, boxes[i], wanted)
                for look, kinds in zip(looks, (places, np.arange(len(classes.names))), strict=True)
            ]
            assert scores[0] is not None
            missed.append(
                MissedDefect(
                    picture=board.name,
                    group=board.sample.group,
                    box_xyxy=_box(boxes[i]),
                    size_px=float(truth.sizes_px[i]),
                    base_score=scores[0],
                    candidate_score=scores[1],
                )
            )
        results.append(
            ClassResult(
                label=classes.names[label],
                result=judged.result,
                num_defects=int(np.count_nonzero(own)),
                num_boards=num_boards,
                base_missed=int(np.count_nonzero(own & ~base.found)),
                candidate_missed=int(np.count_nonzero(own & ~candidate.found)),
                newly_missed=len(lost),
                newly_found=int(np.count_nonzero(own & candidate.found & ~base.found)),
                boards_newly_missed=worse,
                bound=judged.bound,
                needs=judged.needs,
                by_size=_by_size(truth.sizes_px[own], newly[own]),
                missed=tuple(missed),
            )
        )
    return tuple(results)


def compare_false_calls(
    base: Verdicts, candidate: Verdicts, truth: Truth, classes: Classes, question: Question
) -> FalseCallResult:
    """Boards that the candidate stops for nothing and the base does not."""
    stopped_by_base, stopped = (side.stopped(truth.numbers) for side in (base, candidate))
    newly, cleared = stopped - stopped_by_base, stopped_by_base - stopped
    num_boards = len(set(truth.numbers.tolist()))
    judged, net = judge_net(
        len(newly),
        len(cleared),
        num_boards,
        margin=question.false_call_margin,
        confidence=question.confidence,
    )
    calls = []
    for picture, board in enumerate(truth.boards):
        if int(truth.numbers[picture]) not in newly:
            continue
        where = {"picture": board.name, "group": board.sample.group}
        if candidate.errors[picture]:
            calls.append(NewCall(**where, label=None, score=None, box_xyxy=None))
        false = candidate.calls[picture].select(candidate.outside[picture])
        calls += [
            NewCall(**where, label=classes.names[label], score=score, box_xyxy=_box(box))
            for label, score, box in zip(false.labels, false.scores.tolist(), false.boxes, strict=True)
        ]
    return FalseCallResult(
        result=judged.result,
        num_boards=num_boards,
        base_boards=len(stopped_by_base),
        candidate_boards=len(stopped),
        newly=len(newly),
        cleared=len(cleared),
        bound=judged.bound,
        net_bound=net,
        needs=judged.needs,
        calls=tuple(calls[:MAX_LISTED]),
    )


def count_new_classes(candidate: Verdicts, truth: Truth, classes: Classes) -> tuple[NewClass, ...]:
    """What the candidate finds of the classes that the base does not know."""
    new = [label for label in range(len(classes.names)) if label not in classes.shared]
    return tuple(
        NewClass(
            label=classes.names[label],
            num_defects=int(np.count_nonzero(truth.labels == label)),
            found=int(np.count_nonzero((truth.labels == label) & candidate.found)),
        )
        for label in new
    )


def _best_score(calls: Detections, places: IntArray, box: FloatArray, label: int | None) -> float | None:
    """Of the calls that would find the defect in the box, whatever their thresholds; None for none."""
    there = box_iou(calls.boxes, box[None])[:, 0] > IOU_ABOVE
    if label is not None:
        there &= places[calls.labels] == label
    return float(calls.scores[there].max()) if there.any() else None


def _by_size(sizes_px: FloatArray, newly: BoolArray) -> tuple[SizeBucket, ...]:
    buckets, low = [], 0.0
    for high in (*SIZES_PX, np.inf):
        inside = (sizes_px > low) & (sizes_px <= high)
        if inside.any():
            buckets.append(
                SizeBucket(
                    max_px=None if high == np.inf else high,
                    n=int(np.count_nonzero(inside)),
                    newly_missed=int(np.count_nonzero(inside & newly)),
                )
            )
        low = high
    return tuple(buckets)


def _box(box: FloatArray) -> BoxXyxy:
    left, top, right, bottom = (round(float(edge), 2) for edge in box)
    return left, top, right, bottom
