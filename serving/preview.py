"""What other thresholds of a recipe would do, by the boards that people have reviewed.

Scores mean the same only within one model version and reference mode, so only such boards count. The unit of
a bound is the board, as in `inspect_vit.guarantee`: one on which any defect of the class is missed counts as
one miss. Pictures of one serial are one board.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from inspect_vit.calibration import Mode, Target
from inspect_vit.guarantee import CONFIDENCE
from inspect_vit.intervals import lower_bound, misses_allowed, trials_needed, upper_bound
from inspect_vit.results import Verdict
from serving.database import InspectionRow
from serving.line_tables import CallRow, ChallengeRunRow
from serving.parts import board_names
from serving.preview_schemas import ClassPreview, Preview, TargetState, ThresholdPoint
from serving.review_tables import QueueRow, ReviewRow
from serving.stats_reads import words_of

MAX_INSPECTIONS = 20_000
"""The newest that are read."""
MAX_POINTS = 200
IDS_AT_ONCE = 500
NEVER = -1.0
"""Score of a defect that no call proposed."""
CAVEAT = (
    "Counted on reviewed boards. Of boards that passed, only those drawn for audit were looked at, so that "
    "defects that were never proposed are undercounted; miss_bound holds for boards such as were reviewed. "
    "inspect-vit calibrate gives the bound for all boards."
)


@dataclass(frozen=True)
class ReviewedBoard:
    """One inspection and what people said of it."""

    inspection: str
    key: str
    """Of the board: its serial, or else the inspection."""
    board: str
    """By which it belongs to a part: `serving.parts`."""
    revision: int
    """Of its review."""
    score: float
    """Highest centre score anywhere, rounded to 4 decimals: at thresholds above it nothing is called."""
    is_good: bool
    """No call is real, and nothing was missed."""
    is_audited: bool
    has_reference: bool
    words: dict[int, str]
    """By number of the call."""
    missed: tuple[str, ...]


@dataclass
class ClassScores:
    """What is known of one class, by the class that was called."""

    real: list[float] = field(default_factory=list)
    false: list[float] = field(default_factory=list)
    false_boards: list[str] = field(default_factory=list)
    """The board of each false call."""
    num_process_indicators: int = 0
    missed: int = 0
    boards: dict[str, float] = field(default_factory=dict)
    """By board with such a defect: the lowest score among them, NEVER where one was not proposed."""

    def add_defect(self, board: str, score: float) -> None:
        self.boards[board] = min(score, self.boards.get(board, 1.0))

    def add_false_call(self, board: str, score: float) -> None:
        self.false.append(score)
        self.false_boards.append(board)

    def boards_missed(self, threshold: float) -> int:
        return sum(score < threshold for score in self.boards.values())


def read_reviewed(engine: Engine, recipe: str, model_version: str) -> list[ReviewedBoard]:
    """The newest boards of a recipe by that model version whose review is finished, newest first; not those
    whose review was hasty, and no challenge boards."""
    challenged = select(ChallengeRunRow.inspection).where(ChallengeRunRow.inspection == InspectionRow.id)
    query = (
        select(
            InspectionRow.id,
            InspectionRow.serial,
            InspectionRow.image_sha256,
            InspectionRow.verdict,
            InspectionRow.reference_sha256,
            QueueRow.revision,
            QueueRow.score,
            QueueRow.final,
            ReviewRow.document,
        )
        .join(QueueRow, QueueRow.inspection == InspectionRow.id)
        .join(
            ReviewRow,
            (ReviewRow.inspection == QueueRow.inspection) & (ReviewRow.revision == QueueRow.revision),
        )
        .where(
            InspectionRow.recipe == recipe,
            InspectionRow.model_version == model_version,
            InspectionRow.verdict != Verdict.ERROR.value,
            QueueRow.state == "done",
            QueueRow.hasty.is_(False),
            ~challenged.exists(),
        )
        .order_by(InspectionRow.id.desc())
        .limit(MAX_INSPECTIONS)
    )
    with Session(engine) as session:
        rows = session.execute(query).all()
    names = board_names(engine, {row.image_sha256 for row in rows})
    found = []
    for inspection, serial, image, verdict, reference, revision, score, final, text in rows:
        document = json.loads(text)
        found.append(
            ReviewedBoard(
                inspection=inspection,
                key=inspection if serial is None else f"serial {serial}",
                # Retention may have taken it meanwhile.
                board=names.get(image, image[:16]),
                revision=revision,
                score=score,
                is_good=final == "good",
                is_audited=verdict == Verdict.PASS.value,
                has_reference=reference is not None,
                words={defect: word for defect, (word, _) in words_of(document).items()},
                missed=tuple(one["label"] for one in document.get("missed", ())),
            )
        )
    return found


def mode_of(boards: Sequence[ReviewedBoard], *, has_references: bool) -> Mode:
    """The mode of the newest board; without boards, by whether the recipe or the model wants references."""
    with_reference = boards[0].has_reference if boards else has_references
    return "with_reference" if with_reference else "without_reference"


def make_preview(
    engine: Engine,
    boards: Sequence[ReviewedBoard],
    *,
    recipe: str,
    model_version: str,
    mode: Mode,
    thresholds: Mapping[str, float],
    targets: Iterable[Target],
    label: str | None = None,
) -> Preview:
    """The preview of `boards`, those of another mode left out.

    Args:
        thresholds: in force now, of every class the model knows.
        label: only this class; None: all.
    """
    boards = [board for board in boards if board.has_reference == (mode == "with_reference")]
    classes = gather(engine, boards)
    targets = list(targets)
    names = list(dict.fromkeys([*thresholds, *sorted(classes)]))
    together: dict[str, bool] = {}
    for name, one in classes.items():
        threshold = thresholds.get(name, 0.0)
        for key, score in one.boards.items():
            together[key] = together.get(key, False) or score < threshold
    return Preview(
        recipe=recipe,
        model_version=model_version,
        reference_mode=mode,
        confidence=CONFIDENCE,
        boards=len({board.key for board in boards}),
        audited=len({board.key for board in boards if board.is_audited}),
        classes=tuple(
            _preview(name, classes.get(name, ClassScores()), thresholds.get(name), targets)
            for name in names
            if label in (None, name)
        ),
        targets=tuple(
            _state(target, sum(together.values()), len(together))
            for target in targets
            if target.label is None
        ),
        words=CAVEAT,
    )


def gather(
    engine: Engine, boards: Sequence[ReviewedBoard], *, scores: Mapping[tuple[str, int], float] | None = None
) -> dict[str, ClassScores]:
    """The scores of every class on `boards`.

    Args:
        scores: by inspection and index among its missed defects, those of calls that would find them.
    """
    scores = scores or {}
    classes = defaultdict[str, ClassScores](ClassScores)
    by_inspection = {board.inspection: board for board in boards}
    ids = list(by_inspection)
    with Session(engine) as session:
        for start in range(0, len(ids), IDS_AT_ONCE):
            query = select(CallRow.inspection, CallRow.defect, CallRow.label, CallRow.score)
            query = query.where(CallRow.inspection.in_(ids[start : start + IDS_AT_ONCE]))
            for inspection, defect, label, score in session.execute(query):
                board, one = by_inspection[inspection], classes[label]
                word = board.words.get(defect)
                if word == "real":
                    one.real.append(score)
                    one.add_defect(board.key, score)
                elif word == "false_call":
                    one.add_false_call(board.key, score)
                elif word == "process_indicator":
                    one.num_process_indicators += 1
    for board in boards:
        for n, label in enumerate(board.missed):
            found = scores.get((board.inspection, n))
            classes[label].add_defect(board.key, NEVER if found is None else found)
            if found is None:
                classes[label].missed += 1
            else:
                classes[label].real.append(found)
    return classes


def _preview(
    label: str, one: ClassScores, threshold: float | None, targets: Sequence[Target]
) -> ClassPreview:
    return ClassPreview(
        label=label,
        threshold=threshold,
        real=tuple(sorted(one.real, reverse=True)),
        false_calls=tuple(sorted(one.false, reverse=True)),
        num_process_indicators=one.num_process_indicators,
        missed=one.missed,
        boards=len(one.boards),
        points=_points(one, threshold),
        targets=tuple(
            _state(target, one.boards_missed(threshold or 0.0), len(one.boards))
            for target in targets
            if target.label == label
        ),
    )


def _points(one: ClassScores, threshold: float | None) -> tuple[ThresholdPoint, ...]:
    if threshold is None:
        return ()
    above = sorted({threshold, *(score for score in (*one.real, *one.false) if score > threshold)})
    if len(above) > MAX_POINTS:
        above = [above[at] for at in np.linspace(0, len(above) - 1, MAX_POINTS).round().astype(int)]
    return tuple(point_at(one, at) for at in above)


def point_at(one: ClassScores, threshold: float) -> ThresholdPoint:
    """What a threshold does to the calls of a class."""
    n = len(one.boards)
    return ThresholdPoint(
        threshold=threshold,
        misses=one.missed + sum(score < threshold for score in one.real),
        false_calls=sum(score >= threshold for score in one.false),
        miss_bound=upper_bound(one.boards_missed(threshold), n, confidence=CONFIDENCE) if n else None,
    )


def _state(target: Target, missed: int, n: int) -> TargetState:
    """Of a target, with so many of n boards missed at the threshold in force."""
    rate, confidence = target.max_miss_rate, target.confidence
    what = "defect" if target.label is None else f"defect of class {target.label}"
    asked = f"at most {100 * rate:g} % of boards with a {what} have one missed, {100 * confidence:g} % sure"
    more: int | None = 0
    lack = "the reviewed boards support it"
    if misses_allowed(n, rate, confidence=confidence) < missed or n == 0:
        if n and lower_bound(missed, n, confidence=confidence) > rate:
            more, lack = None, "more boards would not help, more is missed than that"
        else:
            more = trials_needed(missed, rate, confidence=confidence) - n
            lack = f"needs {more} more boards with a confirmed {what}, all found"
    return TargetState(
        target=target, more_boards=more, words=f"{asked}: {missed} of {n} boards missed; {lack}"
    )
