"""Has a number that should stay where it is begun to move? A control chart for one statistic.

Two cumulative sums, one for each direction (Page 1954, "Continuous inspection schemes"), of how far each
board lies from the boards before it in spreads of those. The baseline learns while it watches (Hawkins 1987,
"Self-starting cusum charts for location and scale"), so that a lamp that fades from the first board on is
noticed too, and is frozen after BASELINE_BOARDS. Where the number is now is told by an exponentially weighted
mean (Roberts 1959, "Control chart tests based on geometric moving averages").

SLACK and LIMIT are chosen so that a steady line raises less than one false alarm in 10 000 boards per
statistic though the baseline is learnt from 50 boards alone, and though the numbers have heavy tails, are
skewed, or stay high or low for a few boards (autocorrelation 0.3): see `tests/serving/test_control_chart.py`.
"""

from __future__ import annotations

import math

from pydantic import FiniteFloat

from inspect_vit.config import Frozen

BASELINE_BOARDS = 50
FIRST_BOARDS = 10
"""Boards that are only learnt from: fewer say too little about the spread to judge the next."""
SLACK = 1.0
"""Spreads that a board may be off for nothing; a shift of twice that is found soonest."""
LIMIT = 10.0
"""Sum, in spreads, at which there is an alarm."""
FURTHEST = 5.0
"""Spreads that one board counts at most: three boards at least make an alarm, one odd board never does."""
LEVEL_WEIGHT = 0.2


class Excursion(Frozen):
    """One cumulative sum."""

    total: FiniteFloat = 0.0
    since: str | None = None
    """Time at which it last left zero: where the change began, if there is one."""
    is_alarm: bool = False
    """It reached LIMIT and has not been back at zero."""

    def add(self, off: float, time: str) -> Excursion:
        """After one more board; the total stays at LIMIT at most, so that it is back soon after the cause
        is gone."""
        total = min(self.total + off - SLACK, LIMIT)
        if total <= 0:
            return Excursion()
        is_alarm = self.is_alarm or total >= LIMIT
        return Excursion(total=total, since=self.since or time, is_alarm=is_alarm)


class Chart(Frozen):
    """What is known of one statistic; every board makes a new one."""

    num_learnt: int = 0
    mean: FiniteFloat = 0.0
    squares: FiniteFloat = 0.0
    """Sum of squared distances from the mean of what was learnt (Welford 1962)."""
    level: FiniteFloat = 0.0
    above: Excursion = Excursion()
    below: Excursion = Excursion()

    @property
    def excursion(self) -> Excursion | None:
        """The direction in which there is an alarm."""
        return next((one for one in (self.above, self.below) if one.is_alarm), None)

    def spread(self, least: float) -> float:
        """Standard deviation of what was learnt, at least `least`: less of a change matters to nobody."""
        if self.num_learnt < 2:
            return least
        return max(math.sqrt(self.squares / (self.num_learnt - 1)), least)

    def off(self, value: float, *, least_spread: float) -> float:
        """How far off a value is, as a normal deviate, at most FURTHEST either way.

        The mean and the spread are estimates, so the quotient is Student's t; it is made normal as by Wallace
        1959, "Bounds on normal approximations to Student's and the chi-square distributions".
        """
        n = self.num_learnt
        t = (value - self.mean) / (self.spread(least_spread) * math.sqrt(1 + 1 / n))
        v = n - 1
        z = (8 * v + 1) / (8 * v + 3) * math.sqrt(v * math.log1p(t * t / v))
        return math.copysign(min(z, FURTHEST), t)

    def observe(self, value: float, *, time: str, least_spread: float) -> Chart:
        """The chart after one more board."""
        if self.num_learnt < FIRST_BOARDS:
            return self._learn(value).restarted()
        z = self.off(value, least_spread=least_spread)
        seen = self.model_copy(
            update={
                "level": self.level + LEVEL_WEIGHT * (value - self.level),
                "above": self.above.add(z, time),
                "below": self.below.add(-z, time),
            }
        )
        # Nothing is learnt from an odd board: it would widen the spread for all that come after it.
        is_learnt = self.num_learnt < BASELINE_BOARDS and seen.excursion is None and abs(z) < FURTHEST
        return seen._learn(value) if is_learnt else seen

    def restarted(self) -> Chart:
        """The same baseline, and no change since."""
        return self.model_copy(update={"above": Excursion(), "below": Excursion(), "level": self.mean})

    def _learn(self, value: float) -> Chart:
        n = self.num_learnt + 1
        mean = self.mean + (value - self.mean) / n
        squares = self.squares + (value - self.mean) * (value - mean)
        return self.model_copy(update={"num_learnt": n, "mean": mean, "squares": squares})
