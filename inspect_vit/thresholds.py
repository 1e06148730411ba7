"""Score thresholds of one model and reference mode, chosen on labelled pictures it was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inspect_vit.errors import ConfigError
from inspect_vit.matching import IOU_ABOVE, Detections, Matches, Truths, match_images

THRESHOLD_WITHOUT_CALLS = 0.5


@dataclass(frozen=True)
class OperatingPoint:
    """What one score threshold does; rates are NaN where nothing can be counted."""

    threshold: float
    """Calls with at least this score count; +inf where there is no call at all."""
    precision: float
    recall: float
    f_score: float
    """2 TP / (calls + truths)."""
    true_positives: int
    calls: int
    truths: int


def operating_point(matches: Matches, threshold: float) -> OperatingPoint:
    """Count the calls that reach `threshold`, one for all classes."""
    reached = matches.scores >= threshold
    hits, calls = int(np.count_nonzero(matches.correct & reached)), int(np.count_nonzero(reached))
    num_truths = matches.num_truths
    return OperatingPoint(
        threshold=threshold,
        precision=hits / calls if calls else float("nan"),
        recall=hits / num_truths if num_truths else float("nan"),
        f_score=2 * hits / (calls + num_truths) if calls + num_truths else float("nan"),
        true_positives=hits,
        calls=calls,
        truths=num_truths,
    )


def best_f_point(matches: Matches) -> OperatingPoint:
    """The threshold, one of the scores, with the highest pooled F; the highest such threshold on a tie."""
    scores, num_truths = matches.scores, matches.num_truths
    if not len(scores):
        return operating_point(matches, float("inf"))
    hits = np.cumsum(matches.correct)
    f_scores = 2 * hits / (np.arange(1, len(scores) + 1) + num_truths)
    # Calls of equal score are accepted together or not at all.
    last_of_score = np.append(scores[1:] < scores[:-1], True)
    best = int(np.where(last_of_score, f_scores, -1.0).argmax())
    return operating_point(matches, float(scores[best]))


def choose_thresholds(
    detections: Sequence[Detections],
    truths: Sequence[Truths],
    class_names: Sequence[str],
    *,
    per_class: bool = False,
    iou_above: float = IOU_ABOVE,
) -> dict[str, float]:
    """The threshold of each class that maximises F under the shipped matching, pooled over classes.

    A threshold lies midway between the lowest score accepted and the next one below, so that rounding in
    another attention backend does not move a call across it. Where there is no call at all, it is 0.5.

    Args:
        detections, truths: one entry per image; detections from as low a score as the model lists.
        per_class: choose for each class alone, over its own detections and truths; a class that lacks either
            keeps the shared threshold.

    Raises:
        ConfigError: no labelled defect in any image.
    """
    if not any(len(image_truths) for image_truths in truths):
        raise ConfigError(f"cannot choose thresholds: none of the {len(truths)} images has a labelled defect")
    shared = _midway(match_images(detections, truths, iou_above=iou_above))
    chosen = dict.fromkeys(class_names, shared)
    if per_class:
        for label, name in enumerate(class_names):
            own = match_images(
                [d.select(d.labels == label) for d in detections],
                [t.select(t.labels == label) for t in truths],
                iou_above=iou_above,
            )
            if own.num_truths and len(own.scores):
                chosen[name] = _midway(own)
    return chosen


def _midway(matches: Matches) -> float:
    if not len(matches.scores):
        return THRESHOLD_WITHOUT_CALLS
    accepted = best_f_point(matches).threshold
    below = matches.scores[matches.scores < accepted]
    return (accepted + float(below[0])) / 2 if len(below) else accepted
