"""A made-up line, for tests of what is watched."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np

from serving.alarms import Alarm, View
from serving.drift import Board, Observation, Sight, State, judge
from serving.repeaters import Call
from serving.watched import STATISTICS

VIEW = View(recipe="panel 7", reference="top", camera="line 3", revision=1, model_version="0123456789ab")
START = datetime(2026, 11, 30, 14, 0, tzinfo=UTC)


class Line:
    """One board a minute; its mean grey is 150 with half a percent of noise, unless told otherwise."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.number = 0
        self.state = State()
        self.open: list[Alarm] = []

    def seen(self, grey: float = 150.0, *calls: Call, view: View = VIEW, **changes: object) -> Observation:
        """The next board."""
        noisy = grey * (1 + self.rng.normal(0, 0.005))
        seen = Observation(
            view=view,
            board=Board(image_sha256=f"{self.number:064d}", serial=f"SN-{self.number}"),
            inspection_id=f"{self.number:032d}",
            time=(START + timedelta(minutes=self.number)).isoformat(timespec="milliseconds"),
            measured={"mean_grey": STATISTICS["mean_grey"].scale(noisy)},
            calls=calls,
            px_per_mm=40.0,
        )
        self.number += 1
        return replace(seen, **changes)  # type: ignore[arg-type]

    def post(self, grey: float = 150.0, *calls: Call, **changes: object) -> Sight:
        """Look at the next board; nothing is stored."""
        sight = judge(self.state, self.open, self.seen(grey, *calls, **changes))  # type: ignore[arg-type]
        self.state = sight.state
        self.open += sight.alarms
        return sight
