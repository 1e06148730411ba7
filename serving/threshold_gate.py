"""Whether a recipe's threshold may be changed, decided by reviewed boards that nothing was trained on.

A target allows k of n boards to be missed, and k follows from n alone, so that an engineer may look at these
boards before proposing a threshold. What passes is still no claim about all boards: of those that passed,
people saw only the ones drawn for audit. See `threshold_calibration` for what is claimed afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from inspect_vit.calibration import Target
from inspect_vit.guarantee import CONFIDENCE
from inspect_vit.intervals import lower_bound, misses_allowed, trials_needed, upper_bound
from serving.errors import ThresholdRefusedError
from serving.preview import ClassScores, ReviewedBoard, point_at
from serving.threshold_schemas import BeforeAfter, ThresholdGate, ThresholdRequest
from serving.threshold_trials import Trials

MARGIN = 0.02
"""Share of boards that may be newly missed where the recipe has no target, CONFIDENCE sure."""
MAX_NAMED = 5
"""Boards that a refusal names."""


@dataclass(frozen=True)
class Examined:
    """Reviewed boards of the acceptance part, what was called on them and what would be."""

    boards: Sequence[ReviewedBoard]
    classes: Mapping[str, ClassScores]
    """By class that was called, the calls of `trials` among them."""
    trials: Trials = field(default_factory=Trials)

    def scores(self, label: str) -> ClassScores:
        return self.classes.get(label) or ClassScores()

    @property
    def keys(self) -> set[str]:
        return {board.key for board in self.boards}

    @property
    def good(self) -> set[str]:
        """Boards of which every picture passed and shows no defect: a random draw of those that passed."""
        return self.keys - {board.key for board in self.boards if not (board.is_good and board.is_audited)}


def decide(
    examined: Examined, asked: ThresholdRequest, in_force: float, targets: Sequence[Target]
) -> tuple[BeforeAfter, ThresholdGate]:
    """What the change does.

    Raises:
        ThresholdRefusedError: it is not supported; says by how many boards.
    """
    one = examined.scores(asked.label)
    before = {key for key, score in one.boards.items() if score < in_force}
    after = {key for key, score in one.boards.items() if score < asked.threshold}
    good = examined.good
    called = examined.trials.newly_called & good
    bound = upper_bound(len(called), len(good), confidence=CONFIDENCE) if good else None
    if asked.threshold > in_force:
        words = _raised(asked, in_force, one, sorted(after - before), targets)
    else:
        words = _lowered(asked, in_force, sorted(called), len(good), bound, len(before - after))
    gate = ThresholdGate(
        boards=len(examined.keys),
        num_defect_boards=len(one.boards),
        boards_newly_missed=len(after - before),
        boards_newly_found=len(before - after),
        num_good_boards=len(good),
        boards_newly_called=len(called),
        bound=bound,
        not_inspected=len(examined.trials.not_inspected),
        words=words,
    )
    return BeforeAfter(before=point_at(one, in_force), after=point_at(one, asked.threshold)), gate


def target_of(label: str, targets: Sequence[Target]) -> Target | None:
    """The strictest of the class's own targets, else of those for all classes, asked of this class."""
    own = [target for target in targets if target.label == label]
    shared = [target for target in targets if target.label is None]
    chosen = min(own or shared, key=lambda target: (target.max_miss_rate, -target.confidence), default=None)
    return None if chosen is None else chosen.model_copy(update={"label": label})


def _raised(
    asked: ThresholdRequest,
    in_force: float,
    one: ClassScores,
    newly: Sequence[str],
    targets: Sequence[Target],
) -> tuple[str, ...]:
    """Words of a higher threshold. Raises ThresholdRefusedError."""
    n, target = len(one.boards), target_of(asked.label, targets)
    told = f"{len(newly)} of {n} boards with a confirmed defect of class {asked.label} would be newly missed"
    if target is None:
        # The gate of a new model, held against what was found before.
        target = Target(label=asked.label, max_miss_rate=MARGIN, confidence=CONFIDENCE)
        counted, what = len(newly), "without a target, the gate's margin for boards newly missed"
    else:
        counted, what = one.boards_missed(asked.threshold), "the recipe's target"
    allowed = misses_allowed(n, target.max_miss_rate, confidence=target.confidence)
    if counted > allowed:
        lack = _lack(target, _more_boards(target, counted, n))
        raise ThresholdRefusedError(
            f"threshold: {asked.threshold:g} for {asked.label} instead of {in_force:g}: {told}; "
            f"{what}: {_asked(target)}: {counted} of {n} boards missed, {lack}",
            hint=_named("newly missed", newly) or "review more boards with such a defect, then propose again",
        )
    return (f"{told}; {what} allows {allowed}, and {counted} count",)


def _lowered(
    asked: ThresholdRequest,
    in_force: float,
    called: Sequence[str],
    num_good: int,
    bound: float | None,
    num_found: int,
) -> tuple[str, ...]:
    """Words of a lower threshold. Raises ThresholdRefusedError."""
    told = f"{len(called)} of {num_good} good boards that passed would be called"
    if bound is not None:
        told += f", at most {100 * bound:.3g} % of such boards, {100 * CONFIDENCE:g} % sure"
    if (called or not num_good) and not asked.accept_false_calls:
        unknown = "" if num_good else ": none of the acceptance part was reviewed, so nothing is known"
        named = _named("newly called", called)
        anyway = "send accept_false_calls: true to store it all the same"
        raise ThresholdRefusedError(
            f"threshold: {asked.threshold:g} for {asked.label} instead of {in_force:g}: {told}{unknown}",
            hint=f"{named}; {anyway}" if named else anyway,
        )
    return told, f"on {num_found} boards a defect of class {asked.label} was missed and all are now found"


def _more_boards(target: Target, missed: int, n: int) -> int | None:
    """Further boards, all found, that would support the target; None: none would."""
    rate, confidence = target.max_miss_rate, target.confidence
    if n and lower_bound(missed, n, confidence=confidence) > rate:
        return None
    return trials_needed(missed, rate, confidence=confidence) - n


def _asked(target: Target) -> str:
    what = "defect" if target.label is None else f"defect of class {target.label}"
    rate, confidence = 100 * target.max_miss_rate, 100 * target.confidence
    return f"at most {rate:g} % of boards with a {what} have one missed, {confidence:g} % sure"


def _lack(target: Target, more: int | None) -> str:
    if more is None:
        return "more boards would not help, more is missed than that"
    return f"needs {more} more boards with a confirmed defect of class {target.label}, all found"


def _named(what: str, keys: Sequence[str]) -> str:
    if not keys:
        return ""
    more = f" and {len(keys) - MAX_NAMED} more" if len(keys) > MAX_NAMED else ""
    return f"{what}: {', '.join(keys[:MAX_NAMED])}{more}"
