"""What a lower threshold would call on reviewed boards: found by inspecting their stored pictures again.

Calls below the thresholds of an inspection were not listed, so nothing that is stored tells them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inspect_vit.matching import IOU_ABOVE, box_iou
from inspect_vit.results import InspectionResult, Verdict
from serving.preview import ReviewedBoard
from serving.recipes import StoredRecipe
from serving.review_schemas import Document, Missed
from serving.reviews import latest_reviews
from serving.schemas import StoredReport
from serving.store import Store, StoredInspection

if TYPE_CHECKING:
    from serving.backend import Backend
    from serving.explanations import ClientGone

MAX_TRIALS = 200
"""Pictures that are inspected again for one question: a minute or so on a small machine."""
ROUNDING = 1e-4
"""Of stored scores."""


@dataclass
class Trials:
    """Calls between the new threshold and the one in force."""

    found: dict[tuple[str, int], float] = field(default_factory=dict)
    """By inspection and index among its missed defects: score of the best call that finds it."""
    false_calls: list[tuple[str, float]] = field(default_factory=list)
    """Board and score of each call that shares no area with anything that people took for a defect."""
    newly_called: set[str] = field(default_factory=set)
    """Good boards that passed, with such a call."""
    not_inspected: set[str] = field(default_factory=set)
    """Inspections whose pictures give verdict ERROR now."""


def may_call(board: ReviewedBoard, threshold: float) -> bool:
    """Whether its picture can hold a call at `threshold`: not where no score anywhere reaches it."""
    return board.score + ROUNDING >= threshold


def with_trials(boards: Sequence[ReviewedBoard], threshold: float) -> list[ReviewedBoard]:
    """The newest of `boards`, newest first, of which no more than MAX_TRIALS have to be inspected again."""
    kept, num_trials = [], 0
    for board in boards:
        num_trials += may_call(board, threshold)
        if num_trials > MAX_TRIALS:
            break
        kept.append(board)
    return kept


async def try_lower(
    backend: Backend,
    boards: Sequence[ReviewedBoard],
    recipe: StoredRecipe,
    label: str,
    *,
    version: str,
    threshold: float,
    in_force: float,
    client_gone: ClientGone,
) -> Trials:
    """Inspect again what may hold a call; call it inside `engine.admitted()`. Boards of the line go between.

    Raises:
        ClientGoneError, BusyError: as `Engine.inspect`.
    """
    trials = Trials()
    for board in boards:
        if not may_call(board, threshold):
            continue
        image, reference, document, report = await asyncio.to_thread(_stored, backend.store, board.inspection)
        inspected = await backend.engine.inspect(
            image,
            # The recipe's own are laid under the board where it has any.
            None if recipe.references else reference,
            min_score=threshold,
            recipe=recipe,
            version=version,
            client_gone=client_gone,
        )
        note_calls(trials, board, inspected.result, document, report, label, in_force=in_force)
    return trials


def note_calls(
    trials: Trials,
    board: ReviewedBoard,
    result: InspectionResult,
    document: Document,
    report: StoredReport,
    label: str,
    *,
    in_force: float,
) -> None:
    """Add what a picture's new calls of a class find, and what they call in vain."""
    if result.verdict is Verdict.ERROR:
        trials.not_inspected.add(board.inspection)
        return
    new = [defect for defect in result.defects if defect.label == label and defect.score < in_force]
    calls = _boxes([defect.box_xyxy for defect in new])
    missed = [_box(one) for one in document.missed]
    finds = (box_iou(calls, _boxes(missed)) > IOU_ABOVE).tolist()
    for n, one in enumerate(document.missed):
        scores = [defect.score for defect, hits in zip(new, finds, strict=True) if hits[n]]
        if one.label == label and scores:
            trials.found[board.inspection, n] = max(scores)
    boxes = {defect.id: defect.box_xyxy for defect in report.defects}
    spoken = [
        boxes[call.defect] for call in document.calls if call.word != "false_call" and call.defect in boxes
    ]
    touches = [bool(row.any()) for row in box_iou(calls, _boxes([*missed, *spoken]))]
    in_vain = [defect.score for defect, hit in zip(new, touches, strict=True) if not hit]
    trials.false_calls += [(board.key, score) for score in in_vain]
    if in_vain and board.is_good and board.is_audited:
        trials.newly_called.add(board.key)


def _stored(store: Store, inspection_id: str) -> tuple[bytes, bytes | None, Document, StoredReport]:
    inspection: StoredInspection = store.get(inspection_id)
    review = latest_reviews(store.engine, [inspection_id])[inspection_id]
    return store.read_image(inspection), store.read_reference(inspection), review.document, inspection.report


def _box(missed: Missed) -> tuple[float, float, float, float]:
    """The upright box around what was drawn."""
    if missed.box_xyxy is not None:
        return missed.box_xyxy
    x, y = np.array(missed.polygon, np.float64).T
    return float(x.min()), float(y.min()), float(x.max()), float(y.max())


def _boxes(boxes: Sequence[tuple[float, float, float, float]]) -> NDArray[np.float64]:
    return np.array(boxes, np.float64).reshape(-1, 4)
