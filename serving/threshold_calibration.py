"""The calibration of a recipe after one of its thresholds was set by hand: what still holds, what does not.

Reviewed boards are no sample of all boards: each that failed was looked at, but of those that passed only the
ones drawn for audit, so that they show nearly every defect that was called and few that were not. They decide
whether a change does harm, and carry no claim of their own. A claim that was made on labelled boards outlives
the change where no defect can be missed by it: thresholds that fall, or of other classes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from inspect_vit.calibration import (
    Calibration,
    CalibrationReport,
    Claim,
    ClassFigures,
    FalseCalls,
    FoundBy,
    Mode,
    Target,
)
from inspect_vit.matching import IOU_ABOVE
from serving.audit import utc_now
from serving.threshold_gate import Examined

UNKNOWN = 2.0
"""Stands for the threshold of a class that the model does not know: no score reaches it."""
NOT_CLAIMED = "of boards that passed, only those drawn are looked at; inspect-vit calibrate makes this claim"


def recalibrated(
    examined: Examined,
    *,
    thresholds: Mapping[str, float],
    own_thresholds: Mapping[str, float],
    changed: str,
    is_raised: bool,
    targets: Sequence[Target],
    before: CalibrationReport | None,
    found_by: FoundBy,
    model: tuple[str, str],
    mode: Mode,
    recipe: str,
    camera: str | None,
) -> Calibration:
    """A calibration that holds these thresholds, counted on the reviewed boards of the acceptance part.

    Args:
        thresholds: by class, the new one among them.
        changed: the class whose threshold is new.
        before: what the thresholds promised until now; None: nothing.
        found_by: which calls find a defect in it.
        model: name and version.
    """
    claims = tuple(
        _still_holds(target, before, None if not is_raised else changed, found_by)
        or _not_claimed(target, examined, thresholds)
        for target in targets
    )
    false = [
        (label, board, score)
        for label, one in examined.classes.items()
        for board, score in zip(one.false_boards, one.false, strict=True)
    ]
    reached = [(board, score) for label, board, score in false if score >= thresholds.get(label, UNKNOWN)]
    reached_own = [score for label, _, score in false if score >= own_thresholds.get(label, UNKNOWN)]
    num_boards = len(examined.keys)
    said = sorted(f"{board.inspection}:{board.revision}" for board in examined.boards)
    return Calibration(
        model_name=model[0],
        model_version=model[1],
        reference_mode=mode,
        recipe=recipe,
        camera=camera,
        date=utc_now(),
        data=f"reviewed boards of recipe {recipe}, acceptance part; calls that lay below the thresholds then "
        "in force are not known",
        data_fingerprint=hashlib.sha256("\n".join(said).encode()).hexdigest(),
        unit="group",
        num_pictures=len(examined.boards),
        num_boards=num_boards,
        not_inspected=len(examined.trials.not_inspected),
        found_by=found_by,
        min_iou=IOU_ABOVE,
        thresholds=dict(thresholds),
        claims=claims,
        joint_confidence=max(0.0, 1.0 - sum(1.0 - claim.confidence for claim in claims if claim.kept)),
        classes=(
            *(_figures(label, examined, thresholds, own_thresholds) for label in thresholds),
            _figures(None, examined, thresholds, own_thresholds),
        ),
        false_calls=FalseCalls(
            num_calls=len(reached),
            num_boards=num_boards,
            boards_with=len({board for board, _ in reached}),
            per_board=len(reached) / max(num_boards, 1),
            per_board_own=len(reached_own) / max(num_boards, 1),
        ),
    )


def _still_holds(
    target: Target, before: CalibrationReport | None, raised: str | None, found_by: FoundBy
) -> Claim | None:
    """The claim that was made for a target, if it is valid and no defect it counts can be missed now.

    raised: the class whose threshold rose; None: none did.
    """
    if before is None or not before.valid:
        return None
    if raised is not None and (found_by != "own class" or target.label in (None, raised)):
        return None
    made = (claim for claim in before.claims if claim.kept and dict(target).items() <= dict(claim).items())
    return next(made, None)


def _not_claimed(target: Target, examined: Examined, thresholds: Mapping[str, float]) -> Claim:
    missed, n, num_defects, _ = _counts(target.label, examined, thresholds)
    anyway = _counts(target.label, examined, dict.fromkeys(thresholds, 0.0))[0]
    return Claim(
        **dict(target),
        kept=False,
        num_defects=num_defects,
        num_boards=n,
        boards_missed=missed,
        boards_missed_anyway=anyway,
        bound=None,
        more_boards=None,
        words=f"not claimed: a threshold was set by hand, {missed} of {n} reviewed boards missed; "
        f"{NOT_CLAIMED}",
    )


def _figures(
    label: str | None,
    examined: Examined,
    thresholds: Mapping[str, float],
    own_thresholds: Mapping[str, float],
) -> ClassFigures:
    missed, n, num_defects, defects_missed = _counts(label, examined, thresholds)
    return ClassFigures(
        label=label,
        threshold=None if label is None else thresholds[label],
        own_threshold=None if label is None else own_thresholds[label],
        num_defects=num_defects,
        defects_missed=defects_missed,
        num_boards=n,
        boards_missed=missed,
        bound=None,
    )


def _counts(
    label: str | None, examined: Examined, thresholds: Mapping[str, float]
) -> tuple[int, int, int, int]:
    """Of a class or of all: boards with one missed, boards with one, defects, and of these the missed ones.

    A class that the model does not know is missed whatever its score.
    """
    missed: set[str] = set()
    boards: set[str] = set()
    num_defects = defects_missed = 0
    for name, one in examined.classes.items():
        if label not in (None, name):
            continue
        threshold = thresholds.get(name, UNKNOWN)
        boards |= one.boards.keys()
        missed |= {key for key, score in one.boards.items() if score < threshold}
        num_defects += len(one.real) + one.missed
        defects_missed += one.missed + sum(score < threshold for score in one.real)
    return len(missed), len(boards), num_defects, defects_missed
