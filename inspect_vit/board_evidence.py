"""What the calls of one model find and what they call in vain on labelled boards, apart from any threshold.

Letters: N calls and M defects of one picture; T defects, F false calls of all, K classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspect_vit.calibration import FoundBy
from inspect_vit.matching import IOU_ABOVE, BoolArray, Detections, FloatArray, IntArray, Truths, box_iou


@dataclass(frozen=True)
class Evidence:
    """The defects and the false calls of all calibration boards."""

    num_boards: int
    defect_boards: IntArray
    """(T,) the board that each lies on, 0 to num_boards - 1."""
    defect_labels: IntArray
    """(T,)"""
    finding_scores: NDArray[np.float64]
    """(T, K) highest score of a call of each class that finds the defect; 0 where none does."""
    false_boards: IntArray
    """(F,)"""
    false_labels: IntArray
    """(F,)"""
    false_scores: NDArray[np.float64]
    """(F,)"""
    lowest_score: float
    """Calls under it were not listed."""


def gather(
    detections: Sequence[Detections],
    truths: Sequence[Truths],
    boards: Sequence[object],
    num_classes: int,
    *,
    lowest_score: float,
) -> Evidence:
    """Pool pictures into boards.

    Args:
        detections, truths: one entry per picture, calls from `lowest_score` up.
        boards: key of the board that each picture shows.
    """
    keys = {key: number for number, key in enumerate(dict.fromkeys(boards))}
    numbers = np.array([keys[key] for key in boards], np.int64)
    finding, outside = [np.zeros((0, num_classes))], [np.zeros(0, np.bool_)]
    for calls, defects in zip(detections, truths, strict=True):
        iou = box_iou(calls.boxes, defects.boxes)  # (N, M)
        reached = np.where(iou > IOU_ABOVE, calls.scores.astype(np.float64)[:, None], 0.0)
        per_class = [reached[calls.labels == label].max(axis=0, initial=0.0) for label in range(num_classes)]
        finding.append(np.stack(per_class, axis=1))
        outside.append(np.all(iou <= 0.0, axis=1))
    is_false = np.concatenate(outside)
    calls_of = np.repeat(numbers, [len(calls) for calls in detections])
    no_labels, no_scores = np.zeros(0, np.int64), np.zeros(0)
    return Evidence(
        num_boards=len(keys),
        defect_boards=np.repeat(numbers, [len(defects) for defects in truths]),
        defect_labels=np.concatenate([no_labels, *(defects.labels for defects in truths)]),
        finding_scores=np.concatenate(finding),
        false_boards=calls_of[is_false],
        false_labels=np.concatenate([no_labels, *(calls.labels for calls in detections)])[is_false],
        false_scores=np.concatenate([no_scores, *(calls.scores for calls in detections)])[is_false],
        lowest_score=lowest_score,
    )


def missed_defects(evidence: Evidence, thresholds: FloatArray, found_by: FoundBy) -> BoolArray:
    """(T,) whether no call that reaches its threshold finds the defect."""
    reached = (evidence.finding_scores >= thresholds) & (evidence.finding_scores > 0.0)
    if found_by == "any class":
        return np.asarray(~reached.any(axis=1))
    return np.asarray(~reached[np.arange(len(reached)), evidence.defect_labels])


def misses_by_board(
    evidence: Evidence, thresholds: FloatArray, label: int | None, found_by: FoundBy
) -> tuple[int, int]:
    """Boards with a defect of the class (None: of any) on which any is missed, and how many have one."""
    wanted = of_class(evidence, label)
    missed = wanted & missed_defects(evidence, thresholds, found_by)
    return len(np.unique(evidence.defect_boards[missed])), len(np.unique(evidence.defect_boards[wanted]))


def of_class(evidence: Evidence, label: int | None) -> BoolArray:
    """(T,) whether a defect is of the class; None: all are."""
    if label is None:
        return np.ones(len(evidence.defect_labels), np.bool_)
    return np.asarray(evidence.defect_labels == label)
