"""What tests of reviews and the queue say of made-up inspections."""

from __future__ import annotations

import json
from typing import Any

from serving.review_posting import Posted, post_disposition, post_verification
from serving.review_schemas import DispositionRequest, Verification
from serving.roles import Actor, Role
from serving.schemas import StoredReport
from serving.store import Store

ANNA, BEN = Actor("anna", Role.OPERATOR), Actor("ben", Role.OPERATOR)


def with_calls(report: StoredReport, *labels: str, score: float = 0.91) -> StoredReport:
    """The report with these calls instead of its own, each 0.01 below the one before."""
    one = report.defects[0]
    calls = [
        one.model_copy(update={"id": n, "label": label, "score": round(max(score - n / 100, 0.0), 4)})
        for n, label in enumerate(labels, start=1)
    ]
    return report.model_copy(update={"defects": tuple(calls), "num_defects": len(calls), "score": score})


def verify(store: Store, inspection: str, expects: int, *words: str, by: Actor = ANNA, **more: Any) -> Posted:
    """Post a word for each call, from the first on, of class short."""
    calls = [{"defect": n, "word": word, "label": "short"} for n, word in enumerate(words, start=1)]
    body = {"expects": expects, "calls": calls, "missed": [], "checked": True, **more}
    return post_verification(store, inspection, Verification.model_validate_json(json.dumps(body)), by)


def dispose(store: Store, inspection: str, expects: int, what: str | None, *, by: Actor = ANNA) -> Posted:
    body = {"expects": expects, "disposition": what, "note": "as seen"}
    asked = DispositionRequest.model_validate_json(json.dumps(body))
    return post_disposition(store, inspection, asked, by)
