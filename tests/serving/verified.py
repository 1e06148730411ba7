"""Verified inspections with real pictures, for tests of data sets and of what is learnt from them."""

from __future__ import annotations

import dataclasses
from typing import Any

import cv2
import numpy as np

from inspect_vit.results import Defect, IntakeReport, Verdict
from serving.ids import IdClock
from serving.schemas import make_report
from serving.store import Store
from tests.serving.boards import Boards
from tests.serving.reviewing import dispose, verify

WIDTH, HEIGHT = 320, 256
Box = tuple[float, float, float, float]


def draw_pair(seed: int) -> tuple[bytes, bytes]:
    """A board of many tracks as PNG, and its golden reference, which lacks the board's one blob."""
    rng = np.random.default_rng(seed)
    golden = np.full((HEIGHT, WIDTH, 3), 210, np.uint8)
    for _ in range(40):
        x, y, length = (int(value) for value in rng.integers(8, 240, 3))
        end = (x + length // 3, y) if rng.random() < 0.5 else (x, y + length // 3)
        cv2.line(golden, (x, y), end, (40, 70, 45), int(rng.integers(3, 7)))
    board = np.clip(golden.astype(int) + rng.integers(-3, 4, golden.shape), 0, 255).astype(np.uint8)
    cv2.circle(board, (100 + seed % 50, 60), 5, (40, 70, 45), -1)
    return tuple(cv2.imencode(".png", picture)[1].tobytes() for picture in (board, golden))  # type: ignore[return-value]


class Verified:
    """Adds boards to a store, and what people said of them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.boards = Boards()
        self.ids = IdClock(None)
        self.num = 0

    def inspect(
        self,
        *calls: tuple[str, Box],
        serial: str | None = None,
        recipe: str | None = None,
        verdict: str | None = None,
        image: bytes | None = None,
        reference: bytes | None = b"",
        num_defects: int | None = None,
    ) -> str:
        """The id of a new inspection. reference: b"": that of the drawn board; None: none."""
        self.num += 1
        board, golden = draw_pair(self.num)
        inspection, created = self.ids.next()
        shares = {"4": 1.0, "16": 0.0, "32": 0.0}
        defects = tuple(Defect(label, 0.9, box, 16, shares) for label, box in calls)
        result = dataclasses.replace(
            self.boards.result,
            verdict=Verdict(verdict or ("FAIL" if calls else "PASS")),
            defects=defects,
            num_defects=len(defects) if num_defects is None else num_defects,
            width=WIDTH,
            height=HEIGHT,
        )
        report = make_report(
            result,
            IntakeReport(format="PNG", mode="RGB", bit_depth=8, width=WIDTH, height=HEIGHT),
            inspection_id=inspection,
            created=created,
            serial=serial,
            recipe=recipe,
            timings_ms={},
        )
        self.boards.add(
            self.store, report, image=image or board, reference=golden if reference == b"" else reference
        )
        return inspection

    def review(
        self, inspection: str, *words: tuple[str, str], missed: list[dict[str, Any]] | None = None
    ) -> None:
        """Say (word, class) of each call in turn, and what was missed; a bad board goes to rework."""
        calls = [
            {"defect": n, "word": word, "label": label} for n, (word, label) in enumerate(words, start=1)
        ]
        posted = verify(self.store, inspection, 0, calls=calls, missed=missed or [])
        if posted.review.final == "bad":
            dispose(self.store, inspection, posted.review.revision, "rework")

    def scratch(self, *, serial: str | None = None, recipe: str | None = None) -> str:
        """A board that passed and on which a person drew a scratch."""
        inspection = self.inspect(serial=serial, recipe=recipe)
        self.review(inspection, missed=[{"label": "scratch", "box_xyxy": [90, 50, 160, 70]}])
        return inspection
