"""Made-up inspections, for tests of the store alone."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import numpy as np
from sqlalchemy.orm import Session

from inspect_vit.results import Defect, InspectionResult, IntakeReport, Verdict
from serving.ids import IdClock
from serving.schemas import StoredReport, make_report
from serving.store import Store


class Boards:
    """Makes reports whose ids grow, and adds them."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        gates = rng.dirichlet((1.0, 1.0, 1.0), (6, 8)).astype(np.float32)
        self.result = InspectionResult(
            verdict=Verdict.FAIL,
            reasons=("1 x short",),
            score=0.91,
            defects=(Defect("short", 0.91, (1.5, 2.0, 9.25, 14.0), 48, {"4": 0.5, "16": 0.25, "32": 0.25}),),
            defect_map=rng.random((2, 6, 8)).astype(np.float32),
            gate_maps={level: gates[..., i] for i, level in enumerate(("4", "16", "32"))},
            class_names=("open", "short"),
            thresholds={"open": 0.3, "short": 0.4},
            width=30,
            height=22,
            with_reference=True,
            model_name="nano",
            model_version="0123456789ab",
            num_defects=1,
        )
        self.ids = IdClock(None)

    def report(
        self, *, serial: str | None = None, verdict: str = "FAIL", days_ago: float | None = None
    ) -> StoredReport:
        """A report that is as good as new, or of days ago."""
        ids = self.ids
        if days_ago is not None:
            ids = IdClock(None, now_s=lambda: time.time() - 86_400 * days_ago)
        inspection_id, created = ids.next()
        return make_report(
            dataclasses.replace(self.result, verdict=Verdict(verdict)),
            IntakeReport(format="PNG", mode="L", bit_depth=8, width=30, height=22),
            inspection_id=inspection_id,
            created=created,
            serial=serial,
            recipe=None,
            timings_ms={"inference": 12.345},
        )

    def add(
        self,
        store: Store,
        report: StoredReport,
        *,
        key: str | None = None,
        digest: str = "d" * 64,
        image: bytes = b"board",
        reference: bytes | None = b"golden",
        maps: bytes = b"maps",
        beside: Callable[[Session], None] = lambda _: None,
    ) -> bool:
        """Store it; returns whether it is new."""
        _, is_new = store.add(
            report,
            image=image,
            reference=reference,
            maps=maps,
            thresholds=self.result.thresholds,
            request_sha256=digest,
            idempotency_key=key,
            beside=beside,
        )
        return is_new
