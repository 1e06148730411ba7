"""What is noted for the queue when an inspection is stored, and what is deleted with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from sqlalchemy import ColumnElement, and_, delete, not_, or_
from sqlalchemy.orm import Session

from inspect_vit.results import Verdict
from serving.review_tables import QueueLabelRow, QueueRow, ReviewRow
from serving.schemas import StoredReport


def queue_rows(
    report: StoredReport, thresholds: Mapping[str, float], *, audit_share: float
) -> list[QueueRow | QueueLabelRow]:
    """The rows of one inspection.

    Args:
        thresholds: by class, as they were used.
        audit_share: share of the PASS boards that are drawn to be looked at.
    """
    labels = tuple(dict.fromkeys(defect.label for defect in report.defects))
    audit = report.verdict is Verdict.PASS and is_drawn(report.id, audit_share)
    row = QueueRow(
        inspection=report.id,
        created=report.created.isoformat(timespec="microseconds"),
        verdict=report.verdict.value,
        score=report.score,
        uncertainty=uncertainty_of(report, thresholds),
        num_defects=len(report.defects) if report.num_defects is None else report.num_defects,
        labels=json.dumps(labels),
        audit=audit,
        due=audit or report.verdict is not Verdict.PASS,
        revision=0,
        state="open",
        hasty=False,
    )
    return [row, *(QueueLabelRow(inspection=report.id, label=label) for label in labels)]


def is_drawn(inspection_id: str, share: float) -> bool:
    """Whether an inspection is among the drawn ones: by its id alone, so that nobody chooses."""
    digest = hashlib.sha256(inspection_id.encode()).digest()
    return int.from_bytes(digest[:8]) < share * 2**64


def uncertainty_of(report: StoredReport, thresholds: Mapping[str, float]) -> float:
    """1 where a score lies on its threshold, falling to 0 at the ends of the scale, rounded to 4 decimals.

    Of several listed calls the most uncertain counts. A board that lists none has its highest score, whose
    class is not known: it is held against the next threshold above. A board that was not inspected (ERROR)
    has 0: no score says anything of it.
    """
    if report.verdict is Verdict.ERROR or not thresholds:
        return 0.0
    scores = [(defect.score, thresholds.get(defect.label)) for defect in report.defects]
    pairs = [(score, threshold) for score, threshold in scores if threshold is not None]
    if not pairs:
        above = [threshold for threshold in thresholds.values() if threshold > report.score]
        pairs = [(report.score, min(above, default=max(thresholds.values())))]
    return round(max(_closeness(score, threshold) for score, threshold in pairs), 4)


def _closeness(score: float, threshold: float) -> float:
    """1 at the threshold, 0 at score 0 and 1, straight in between."""
    if score < threshold:
        return score / threshold
    return 1.0 if threshold >= 1.0 else (1.0 - score) / (1.0 - threshold)


def is_waiting() -> ColumnElement[bool]:
    """Which inspections wait for a person and must be kept: every FAIL and ERROR whose review is not done,
    and every PASS that somebody has begun to review."""
    return and_(QueueRow.state == "open", or_(QueueRow.verdict != Verdict.PASS.value, QueueRow.revision > 0))


def forget(session: Session, ids: list[str]) -> list[str]:
    """Delete reviews and queue entries of those that do not wait; returns which ones.

    A review that comes in between keeps its inspection: its row is locked, and looked at again.
    """
    gone = (
        delete(QueueRow)
        .where(QueueRow.inspection.in_(ids), not_(is_waiting()))
        .returning(QueueRow.inspection)
    )
    forgotten = list(session.scalars(gone.execution_options(synchronize_session=False)))
    for table in (ReviewRow, QueueLabelRow):
        query = delete(table).where(table.inspection.in_(forgotten))
        session.execute(query.execution_options(synchronize_session=False))
    return forgotten
