"""Thresholds with the fewest false calls that keep a miss rate, for boards like the calibration boards.

The unit is the board. Defects of one board share lamp, focus and process, so they are not independent trials;
boards are. A board on which any defect is missed counts as one miss, whatever the others on it do.

Why the data may choose the threshold and still be quoted: how many boards may be missed, k of n, follows from
the target alone, before any score is seen. The threshold is then the (k + 1)-th smallest of the n board
scores, the largest under which a board is found whole. Wilks (Annals of Mathematical Statistics 12, 1941):
such an order statistic leaves out more than a share p of the population with a chance of at most
P(Binomial(n, p) <= k), for scores of any distribution. As misses only rise with the threshold, this is also
the fixed-sequence test of Angelopoulos et al., "Learn then Test" (arXiv:2110.01052, section 3), from the
lowest threshold up. Searching over each class's threshold for one claim would be no fixed sequence and not
keep it: thresholds of several classes move together, along a path that the checkpoint fixed.

Letters: T defects, K classes, n boards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspect_vit.board_evidence import Evidence, missed_defects, misses_by_board, of_class
from inspect_vit.calibration import Claim, ClassFigures, FalseCalls, FoundBy, Target
from inspect_vit.intervals import lower_bound, misses_allowed, trials_needed, upper_bound
from inspect_vit.matching import BoolArray, FloatArray

CONFIDENCE = 0.95
"""Of the bounds that nobody asked for."""
_EDGE = 1e-9


@dataclass(frozen=True)
class Choice:
    """Thresholds (K,) in class order, and what they do on the boards they were chosen on."""

    thresholds: FloatArray
    claims: tuple[Claim, ...]
    classes: tuple[ClassFigures, ...]
    false_calls: FalseCalls
    joint_confidence: float


def choose(
    evidence: Evidence,
    class_names: Sequence[str],
    own_thresholds: FloatArray,
    targets: Sequence[Target],
    *,
    found_by: FoundBy = "own class",
) -> Choice:
    """Thresholds with the fewest false calls that keep every target the boards can support.

    A target they cannot support changes no threshold and says how many boards it lacks. Each kept claim
    allows thresholds up to a limit; the lowest limit of a class counts, and lowering keeps every other claim.
    A class without a target of its own or an overall one, or without a defect among the boards, is never
    raised above the checkpoint's own threshold.

    Args:
        own_thresholds: (K,) the checkpoint's, chosen on other boards.
    """
    own = np.asarray(own_thresholds, np.float64).clip(_EDGE, 1.0 - _EDGE)
    num_classes = len(class_names)
    labels = [None if target.label is None else list(class_names).index(target.label) for target in targets]
    limits: list[FloatArray] = []
    raisable = np.zeros(num_classes, np.bool_)
    for target, label in zip(targets, labels, strict=True):
        scores = _board_scores(evidence, _offsets(evidence, own, found_by), label)
        allowed = misses_allowed(len(scores), target.max_miss_rate, confidence=target.confidence)
        if not 0 <= allowed < len(scores) or np.isneginf(scores[allowed]):
            continue
        together = label is None or found_by == "any class"
        moved = np.ones(num_classes, np.bool_) if together else np.arange(num_classes) == label
        offset = _lowered(evidence, own, moved, float(scores[allowed]))
        limit = np.maximum(_sigmoid(_logit(own) + offset), evidence.lowest_score)
        limits.append(np.where(moved, limit, np.inf))
        raisable |= np.bool_(True) if label is None else np.arange(num_classes) == label
    raisable &= np.isin(np.arange(num_classes), evidence.defect_labels)
    # A limit that no claim sets is the checkpoint's own threshold.
    thresholds = np.min([*limits, np.full(num_classes, np.inf)], axis=0)
    thresholds = np.where(np.isinf(thresholds) | ~raisable, np.minimum(thresholds, own), thresholds)
    claims = tuple(
        _claim(evidence, target, label, thresholds, found_by)
        for target, label in zip(targets, labels, strict=True)
    )
    lost = sum(1.0 - claim.confidence for claim in claims if claim.kept)
    return Choice(
        thresholds=thresholds,
        claims=claims,
        classes=tuple(
            _figures(evidence, name, label, thresholds, own, found_by, claims)
            for label, name in [*enumerate(class_names), (None, None)]
        ),
        false_calls=_false_calls(evidence, thresholds, own),
        joint_confidence=max(0.0, 1.0 - lost),
    )


def _offsets(evidence: Evidence, own: FloatArray, found_by: FoundBy) -> NDArray[np.float64]:
    """(T,) how far, in logits, thresholds may rise from the checkpoint's own and still find each defect."""
    offsets = _logit(evidence.finding_scores) - _logit(own)
    if found_by == "any class":
        return np.asarray(offsets.max(axis=1, initial=-np.inf))
    return np.asarray(offsets[np.arange(len(offsets)), evidence.defect_labels])


def _board_scores(evidence: Evidence, offsets: FloatArray, label: int | None) -> NDArray[np.float64]:
    """(n,) rising: for each board with such a defect, the offset up to which all of them are found."""
    wanted = of_class(evidence, label)
    lowest = np.full(evidence.num_boards, np.inf)
    np.minimum.at(lowest, evidence.defect_boards[wanted], offsets[wanted])
    return np.sort(lowest[np.unique(evidence.defect_boards[wanted])])


def _lowered(evidence: Evidence, own: FloatArray, moved: BoolArray, offset: float) -> float:
    """Midway from the offset down to the next call of the classes that move.

    Costs no false call on these boards, keeps the claim, and rounding in another attention backend does not
    carry a call across. It stops at the checkpoint's own thresholds, which are lowered only as far as needed.
    """
    finding = _logit(evidence.finding_scores)[:, moved] - _logit(own)[moved]
    false = moved[evidence.false_labels]
    others = _logit(evidence.false_scores[false]) - _logit(own)[evidence.false_labels[false]]
    unlisted = _logit(np.array([evidence.lowest_score])) - _logit(own)[moved].min()
    below = np.concatenate([finding.ravel(), others, unlisted])
    below = below[(below < offset) & np.isfinite(below)]
    midway = (offset + float(below.max())) / 2.0 if len(below) else offset - _EDGE
    return max(midway, 0.0) if offset > 0.0 else midway


def _claim(
    evidence: Evidence, target: Target, label: int | None, thresholds: FloatArray, found_by: FoundBy
) -> Claim:
    rate, confidence = target.max_miss_rate, target.confidence
    missed, n = misses_by_board(evidence, thresholds, label, found_by)
    anyway, _ = misses_by_board(evidence, np.zeros(len(thresholds)), label, found_by)
    allowed = misses_allowed(n, rate, confidence=confidence)
    kept = allowed >= anyway
    assert not kept or missed <= allowed
    bound = upper_bound(allowed, n, confidence=confidence) if kept else None
    hopeless = n > 0 and lower_bound(anyway, n, confidence=confidence) > rate
    more = 0 if kept else None
    if not kept and not hopeless:
        more = trials_needed(anyway, rate, confidence=confidence) - n
    what = "defect" if label is None else f"defect of class {target.label}"
    asked = f"at most {100 * rate:g} % of boards with a {what} have one missed, {100 * confidence:g} % sure"
    if bound is not None:
        words = f"{asked}: {missed} of {n} boards missed, bound {100 * bound:.3g} %"
    else:
        why = f"; on {anyway} of {n} no call finds it at any threshold" if anyway else ""
        lack = (
            "more boards would not help, the model misses more than that"
            if more is None
            else f"needs {more} more boards with a confirmed {what}, all found"
        )
        words = f"insufficient for: {asked}: {n} boards{why}; {lack}"
    return Claim(
        **dict(target),
        kept=kept,
        num_defects=int(np.count_nonzero(of_class(evidence, label))),
        num_boards=n,
        boards_missed=missed,
        boards_missed_anyway=anyway,
        bound=bound,
        more_boards=more,
        words=words,
    )


def _figures(
    evidence: Evidence,
    name: str | None,
    label: int | None,
    thresholds: FloatArray,
    own: FloatArray,
    found_by: FoundBy,
    claims: Sequence[Claim],
) -> ClassFigures:
    """Counts at the thresholds chosen. Without a kept claim the bound is that of the checkpoint's own
    thresholds, which were fixed before these boards were seen; thresholds that are no higher miss no more."""
    wanted = of_class(evidence, label)
    missed, n = misses_by_board(evidence, thresholds, label, found_by)
    missed_own, _ = misses_by_board(evidence, own, label, found_by)
    matter = np.ones(len(own), np.bool_)
    if label is not None and found_by == "own class":
        matter = np.arange(len(own)) == label
    stays = bool(np.all(thresholds[matter] <= own[matter]))
    bound = upper_bound(missed_own, n, confidence=CONFIDENCE) if n and stays else None
    bound = next((claim.bound for claim in claims if claim.label == name and claim.kept), bound)
    return ClassFigures(
        label=name,
        threshold=None if label is None else float(thresholds[label]),
        own_threshold=None if label is None else float(own[label]),
        num_defects=int(np.count_nonzero(wanted)),
        defects_missed=int(np.count_nonzero(wanted & missed_defects(evidence, thresholds, found_by))),
        num_boards=n,
        boards_missed=missed,
        bound=bound,
    )


def _false_calls(evidence: Evidence, thresholds: FloatArray, own: FloatArray) -> FalseCalls:
    reached = evidence.false_scores >= thresholds[evidence.false_labels]
    reached_own = evidence.false_scores >= own[evidence.false_labels]
    return FalseCalls(
        num_calls=int(np.count_nonzero(reached)),
        num_boards=evidence.num_boards,
        boards_with=len(np.unique(evidence.false_boards[reached])),
        per_board=float(np.count_nonzero(reached) / evidence.num_boards),
        per_board_own=float(np.count_nonzero(reached_own) / evidence.num_boards),
    )


def _logit(scores: FloatArray) -> NDArray[np.float64]:
    """-inf for 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(scores) - np.log1p(-np.minimum(scores, 1.0 - _EDGE)), np.float64)


def _sigmoid(logits: FloatArray) -> NDArray[np.float64]:
    return np.asarray(1.0 / (1.0 + np.exp(-logits)), np.float64)
