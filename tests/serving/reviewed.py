"""Inspections with reviews at chosen moments, for tests of what is counted from them."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from inspect_vit.results import Defect, IntakeReport, Verdict
from serving.ids import IdClock
from serving.review_tables import QueueRow, ReviewRow
from serving.schemas import make_report
from serving.store import Store
from tests.serving.boards import Boards

Call = tuple[str, float]


class Line:
    """Adds inspections and what people said of them to a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.boards = Boards()
        self.num_pictures = 0

    def inspect(
        self,
        moment: str,
        verdict: str,
        *calls: Call,
        serial: str | None = None,
        recipe: str | None = None,
        revision: int | None = None,
        at: Sequence[tuple[float, float]] = (),
        picture: bytes | None = None,
        has_reference: bool = True,
    ) -> str:
        """The id of a new inspection; `at` are the places of its calls on the reference "top"."""
        inspection, created = IdClock(None, now_s=lambda: datetime.fromisoformat(moment).timestamp()).next()
        shares = {"4": 1.0, "16": 0.0, "32": 0.0}
        defects = tuple(
            Defect(label, score, (4.0 * n, 2.0, 4.0 * n + 3.0, 7.0), 16, shares)
            for n, (label, score) in enumerate(calls)
        )
        places = {defect.box_xyxy: place for defect, place in zip(defects, at, strict=False)}
        report = make_report(
            dataclasses.replace(
                self.boards.result,
                verdict=Verdict(verdict),
                defects=defects,
                num_defects=len(defects),
                with_reference=has_reference,
            ),
            IntakeReport(format="PNG", mode="L", bit_depth=8, width=30, height=22),
            inspection_id=inspection,
            created=created,
            serial=serial,
            recipe=recipe,
            recipe_revision=revision,
            reference_name="top" if has_reference else None,
            on_reference=places.get,
            timings_ms={},
        )
        self.num_pictures += 1
        self.boards.add(
            self.store,
            report,
            image=picture or b"picture %d" % self.num_pictures,
            reference=b"golden" if has_reference else None,
        )
        # Which of the boards that passed are drawn for audit is the test's to say.
        self.place(inspection, audit=False, due=verdict != "PASS")
        return inspection

    def place(self, inspection: str, **changes: object) -> None:
        """Its row of the queue, made where there is none, with these changes."""
        with Session(self.store.engine) as session:
            row = session.get(QueueRow, inspection) or QueueRow(
                inspection=inspection, created="", verdict="", score=0.0, uncertainty=0.0, num_defects=0,
                labels="[]", audit=False, due=False, revision=0, state="open", hasty=False,
            )  # fmt: skip
            for name, value in changes.items():
                setattr(row, name, value)
            session.merge(row)
            session.commit()

    def review(
        self,
        inspection: str,
        *words: tuple[str, str],
        final: str | None,
        missed: Sequence[str] = (),
        actor: str = "ann",
        is_hasty: bool = False,
    ) -> None:
        """One more verification: (word, class) of each call in turn. Without a final word it is not done."""
        document = {
            "calls": [
                {"defect": n, "word": word, "label": label} for n, (word, label) in enumerate(words, start=1)
            ],
            "missed": [{"label": label, "box_xyxy": [0, 0, 4, 4], "polygon": None} for label in missed],
            "checked": True,
        }
        with Session(self.store.engine) as session:
            of_this = select(func.max(ReviewRow.revision)).where(ReviewRow.inspection == inspection)
            revision = 1 + (session.scalar(of_this) or 0)
            session.add(
                ReviewRow(
                    inspection=inspection,
                    revision=revision,
                    kind="verification",
                    actor=actor,
                    at=datetime.fromtimestamp(time.time()).astimezone().isoformat(timespec="milliseconds"),
                    document=json.dumps(document),
                    num_false=0,
                )
            )
            session.commit()
        state = "open" if final is None else "done"
        self.place(inspection, revision=revision, state=state, final=final, hasty=is_hasty)
