"""Thresholds of a model that learnt new classes: old ones stay where they still do what they did."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspect_vit.checkpoint import ReferenceMode
from inspect_vit.matching import Detections, Matches, Truths, match_images
from inspect_vit.thresholds import choose_thresholds, operating_point
from training.metrics import of_class

FLAGGED_SHARE = 0.005
"""Old boards on which a new class may be called outside every label: at most this share, and none of fewer
than 200. A known defect called by the new name is no false call."""
CAUTION = 0.9
"""A threshold is put this far below the worst example held back: the next one may score less."""
LOWEST, HIGHEST = 0.1, 0.95
ENOUGH = 20
"""Defects of an old class from which on what is found of them may move its threshold."""


@dataclass(frozen=True)
class Measured:
    """One model's calls on the boards held back, in one reference mode. Lists have an entry per board."""

    calls: list[Detections]
    truths: list[Truths]
    is_old: list[bool]
    """Whether the board is an old one, on which every old defect has its label; else it shows an example."""

    def old(self) -> tuple[list[Detections], list[Truths]]:
        """The old boards alone."""
        kept = [i for i, is_old in enumerate(self.is_old) if is_old]
        return [self.calls[i] for i in kept], [self.truths[i] for i in kept]


def usual_threshold(old_thresholds: Collection[float], mode: ReferenceMode, *, new_bias: float) -> float:
    """Where the threshold of a new class lies if nothing speaks against it: the median of the old ones.

    With a reference it is as much lower as the logits of new classes were lowered, which serves their names
    and not their scores. Without one false calls are many, and a class known from few examples is not
    called lightly.
    """
    usual = statistics.median(old_thresholds)
    if mode == "without_reference":
        return usual
    return usual / (usual + math.exp(new_bias) * (1.0 - usual))


def new_threshold(measured: Measured, label: int, *, usual: float) -> float:
    """The usual threshold; lower where it would miss an example held back, and higher where it would flag old
    boards, which counts more."""
    calls, truths = of_class(measured.calls, measured.truths, label)
    matches = match_images(calls, truths)
    wanted = usual
    if matches.num_truths:
        found = matches.scores[matches.correct]
        if len(found):
            wanted = min(usual, CAUTION * float(found.min()))
    false = _false_scores(measured, label)
    quiet = _above(false, math.floor(FLAGGED_SHARE * len(false)))
    return float(np.clip(max(wanted, quiet), LOWEST, HIGHEST))


def kept_thresholds(
    before: Measured,
    after: Measured,
    old_thresholds: Mapping[str, float],
    names: Mapping[str, str | None],
    old_names: Sequence[str],
) -> dict[str, float]:
    """Of the classes that were known: as they were, unless the old boards show that they now do otherwise.

    Learning moves scores up and down together, so both sides of a threshold are looked at. A class that would
    flag more boards than before gets a higher one, but none at which it finds fewer defects. Where the scores
    of its defects rose, the threshold follows half the way: escapes and false calls share the gain. Where its
    F score fell all the same, it is chosen anew on at least ENOUGH defects if that helps.
    """
    chosen = {}
    new_names = tuple(names)
    for label, (name, origin) in enumerate(names.items()):
        if origin is None:
            continue
        threshold, old_label = old_thresholds[origin], old_names.index(origin)
        was = match_images(*of_class(*before.old(), old_label))
        own = of_class(*after.old(), label)
        now = match_images(*own)
        called = int((_false_scores(before, old_label) >= threshold).sum())
        found = int((was.scores[was.correct] >= threshold).sum())
        highest = max(threshold, min(_finding(now, found), HIGHEST))
        quiet = float(np.clip(_above(_false_scores(after, label), called), threshold, highest))
        old_f = operating_point(was, threshold).f_score
        if found >= ENOUGH:
            gained = threshold + _finding(now, found) - _finding(was, found)
            threshold = (quiet + float(np.clip(gained, quiet, highest))) / 2
        else:
            threshold = quiet
        if now.num_truths >= ENOUGH and operating_point(now, threshold).f_score < old_f:
            again = choose_thresholds(*own, new_names)[name]
            if operating_point(now, again).f_score > operating_point(now, threshold).f_score:
                threshold = again
        chosen[name] = threshold
    return chosen


def _false_scores(measured: Measured, label: int) -> NDArray[np.float64]:
    """The best score of the class outside every label, for every old board; 0 where there is none."""
    calls, truths = measured.old()
    matches = match_images([own.select(own.labels == label) for own in calls], truths)
    best = np.zeros(len(calls))
    np.maximum.at(best, matches.images[matches.outside], matches.scores[matches.outside])
    return best


def _above(scores: NDArray[np.float64], allowed: int) -> float:
    """A threshold that at most `allowed` of the scores reach."""
    ordered = np.sort(scores)[::-1]
    return float(ordered[allowed]) * 1.02 if len(ordered) > allowed else 0.0


def _finding(matches: Matches, count: int) -> float:
    """The highest threshold that still finds that many defects; 0 where none does."""
    found = np.sort(matches.scores[matches.correct])[::-1]
    if not count:
        return 1.0
    return float(found[count - 1]) if count <= len(found) else 0.0
