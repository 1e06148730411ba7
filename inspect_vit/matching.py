"""Detections against ground truth: which call found which defect.

Letters: N detections and M truths of one image; D detections and T truths of all images together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from inspect_vit.results import InspectionResult

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
ScalarT = TypeVar("ScalarT", bound=np.generic)

Matching = Literal["shipped", "same-class", "class-blind"]
"""shipped: as the script that comes with DeepPCB counts. For each ground truth, in label order, the free
detection of highest score with enough overlap, whatever its class; the classes are compared afterwards, so
that a wrong class is one false positive and one miss.
same-class: as COCO counts. Detections by score; each takes the free truth of its class that it overlaps most.
class-blind: the shipped matching, and every class is right."""

IOU_ABOVE = 0.33
"""DeepPCB's overlap: a detection finds a ground truth when their IoU is larger than this."""


@dataclass(frozen=True)
class Detections:
    """The calls on one image; labels index the class names."""

    boxes: FloatArray
    """(N, 4) box_xyxy, px."""
    scores: FloatArray
    """(N,), 0..1."""
    labels: IntArray
    """(N,)."""

    def __post_init__(self) -> None:
        assert self.boxes.shape == (len(self.scores), 4)
        assert self.labels.shape == self.scores.shape

    def __len__(self) -> int:
        return len(self.scores)

    def select(self, keep: BoolArray) -> Detections:
        """The detections where `keep` (N,) holds."""
        return Detections(self.boxes[keep], self.scores[keep], self.labels[keep])

    def reaching(self, thresholds: FloatArray) -> Detections:
        """The detections whose score is at least the threshold of their class; thresholds: (num_classes,)."""
        return self.select(self.scores >= thresholds[self.labels])


@dataclass(frozen=True)
class Truths:
    """The labelled defects of one image; labels index the class names."""

    boxes: FloatArray
    """(M, 4) box_xyxy, px."""
    labels: IntArray
    """(M,)."""

    def __post_init__(self) -> None:
        assert self.boxes.shape == (len(self.labels), 4)

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, keep: BoolArray) -> Truths:
        """The truths where `keep` (M,) holds."""
        return Truths(self.boxes[keep], self.labels[keep])


@dataclass(frozen=True)
class Matches:
    """The outcome over all images; the D detections by score, highest first, ties in image order."""

    scores: FloatArray
    labels: IntArray
    images: IntArray
    """(D,) index of the image of each detection."""
    truths: IntArray
    """(D,) index into the T ground truths of all images in order, -1 for a detection that found none."""
    correct: BoolArray
    """(D,) found a ground truth and, unless the matching ignores classes, its class is right."""
    outside: BoolArray
    """(D,) shares no area with any ground truth of its image."""
    truth_labels: IntArray
    truth_images: IntArray
    num_images: int

    @property
    def num_truths(self) -> int:
        return len(self.truth_labels)

    def found(self) -> BoolArray:
        """(T,) whether any detection was matched to each ground truth, whatever its class."""
        return self._hit(self.truths[self.truths >= 0])

    def recalled(self) -> BoolArray:
        """(T,) whether a detection of the right class was matched to each ground truth."""
        return self._hit(self.truths[self.correct])

    def _hit(self, indices: IntArray) -> BoolArray:
        hit = np.zeros(self.num_truths, np.bool_)
        hit[indices] = True
        return hit


def as_detections(result: InspectionResult) -> Detections:
    """The listed defects of an inspection; labels index its class names."""
    index = {name: label for label, name in enumerate(result.class_names)}
    return Detections(
        np.array([defect.box_xyxy for defect in result.defects], np.float32).reshape(-1, 4),
        np.array([defect.score for defect in result.defects], np.float32),
        np.array([index[defect.label] for defect in result.defects], np.int64),
    )


def leave_out_ignored(detections: Detections, truths: Truths, ignored: FloatArray) -> Detections:
    """Drop calls of which half or more lies in an ignored box (M, 4), unless they overlap a counted truth.

    As COCO's evaluation treats crowds: such a call is neither right nor wrong.
    """
    if not len(ignored):
        return detections
    calls, areas = detections.boxes.astype(np.float64)[:, None], ignored.astype(np.float64)[None]
    sides = np.minimum(calls[..., 2:], areas[..., 2:]) - np.maximum(calls[..., :2], areas[..., :2])
    own = (detections.boxes[:, 2:] - detections.boxes[:, :2]).astype(np.float64).prod(-1)
    inside = sides.clip(min=0.0).prod(-1).max(1) >= 0.5 * own
    counted = (box_iou(detections.boxes, truths.boxes) > IOU_ABOVE).any(1)
    return detections.select(counted | ~inside)


def located(detections: Sequence[Detections], truths: Sequence[Truths]) -> BoolArray:
    """(T,) whether the centre of any call, of whatever class, lies in each truth's box.

    Asks whether an operator is sent to the right spot; unlike an IoU it does not depend on how wide the
    annotator drew.
    """
    hits = []
    for image_detections, image_truths in zip(detections, truths, strict=True):
        centres = (image_detections.boxes[:, None, :2] + image_detections.boxes[:, None, 2:]) / 2
        low, high = image_truths.boxes[None, :, :2], image_truths.boxes[None, :, 2:]
        inside = np.asarray(((centres >= low) & (centres < high)).all(-1), np.bool_)  # (N, M)
        hits.append(np.asarray(inside.any(0), np.bool_))
    return _joined(hits, np.bool_)


def box_iou(boxes: FloatArray, others: FloatArray) -> NDArray[np.float64]:
    """Intersection over union of boxes (N, 4) with others (M, 4): (N, M); 0 where the union is empty."""
    a, b = boxes.astype(np.float64)[:, None], others.astype(np.float64)[None]
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    intersection: NDArray[np.float64] = sides.clip(min=0.0).prod(-1)
    union = (a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1) - intersection
    return intersection / np.where(union > 0.0, union, 1.0)


def match_images(
    detections: Sequence[Detections],
    truths: Sequence[Truths],
    *,
    matching: Matching = "shipped",
    iou_above: float = IOU_ABOVE,
) -> Matches:
    """Match image by image and pool; one pass serves every score threshold that all classes share.

    Detections below a threshold never take a truth from those above it: dropping them changes no other match.
    """
    offset = 0
    pooled_truths: list[IntArray] = []
    outside: list[BoolArray] = []
    for image_detections, image_truths in zip(detections, truths, strict=True):
        iou = box_iou(image_detections.boxes, image_truths.boxes)
        if matching == "same-class":
            taken = _match_by_detection(image_detections, image_truths, iou, iou_above)
        else:
            taken = _match_by_truth(image_detections, iou, iou_above)
        pooled_truths.append(np.where(taken >= 0, taken + offset, -1))
        outside.append(np.all(iou <= 0.0, axis=1))
        offset += len(image_truths)
    truth_labels = _joined([t.labels for t in truths], np.int64)
    labels = _joined([d.labels for d in detections], np.int64)
    scores = _joined([d.scores for d in detections], np.float64)
    found = _joined(pooled_truths, np.int64)
    correct = found >= 0
    if matching != "class-blind":
        correct[correct] = truth_labels[found[correct]] == labels[correct]
    order = np.argsort(-scores, kind="stable")
    return Matches(
        scores=scores[order],
        labels=labels[order],
        images=np.repeat(np.arange(len(detections)), [len(d) for d in detections])[order],
        truths=found[order],
        correct=correct[order],
        outside=_joined(outside, np.bool_)[order],
        truth_labels=truth_labels,
        truth_images=np.repeat(np.arange(len(truths)), [len(t) for t in truths]),
        num_images=len(detections),
    )


def _match_by_truth(detections: Detections, iou: NDArray[np.float64], iou_above: float) -> IntArray:
    """Each truth takes the free detection of highest score; (N,) index of the truth, -1 for none."""
    taken = np.full(len(detections), -1, np.int64)
    order = np.argsort(-detections.scores, kind="stable")
    overlaps = iou[order] > iou_above
    free = np.ones(len(detections), np.bool_)
    for truth in range(iou.shape[1]):
        candidates = np.flatnonzero(overlaps[:, truth] & free)
        if len(candidates):
            free[candidates[0]] = False
            taken[order[candidates[0]]] = truth
    return taken


def _match_by_detection(
    detections: Detections, truths: Truths, iou: NDArray[np.float64], iou_above: float
) -> IntArray:
    """Each detection, by score, takes the free truth of its class it overlaps most; (N,), -1 for none."""
    taken = np.full(len(detections), -1, np.int64)
    reachable = np.where((iou > iou_above) & (detections.labels[:, None] == truths.labels[None]), iou, 0.0)
    order = np.argsort(-detections.scores, kind="stable")
    for detection in order[reachable[order].any(axis=1)]:
        truth = int(reachable[detection].argmax())
        if reachable[detection, truth] > 0.0:
            taken[detection] = truth
            reachable[:, truth] = 0.0
    return taken


def _joined(parts: Sequence[NDArray[Any]], dtype: type[ScalarT]) -> NDArray[ScalarT]:
    return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype)
