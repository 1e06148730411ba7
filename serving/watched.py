"""What is watched of a recipe's boards, one number each, and how its drift is told.

Attention itself costs a second pass through the network, so the gate shares, which every inspection has,
stand for it: they say on which level the network decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspect_vit.results import InspectionResult, Verdict
from serving.control_chart import Chart

if TYPE_CHECKING:
    from inspect_vit.picture_statistics import PictureStatistics
    from inspect_vit.registration import Registration

TINY = 1e-6


@dataclass(frozen=True)
class Statistic:
    """A number whose steadiness is watched, on a scale where its spread is the same high and low."""

    words: str
    least_spread: float
    """On that scale: smaller changes than this are no drift, however steady the line is."""
    scale: Callable[[float], float]
    unscale: Callable[[float], float]
    is_relative: bool = False
    """Drift is told in percent of the baseline."""
    unit: str = ""

    def describe(self, chart: Chart) -> str:
        """Where the number is now and where it was."""
        now, before = self.unscale(chart.level), self.unscale(chart.mean)
        if self.is_relative:
            change = now / before - 1
            where = "above" if change > 0 else "below"
            return f"{self.words} is {abs(change):.1%} {where} the recipe's baseline"
        return f"{self.words} is {now:.3g}{self.unit}, baseline {before:.3g}{self.unit}"


def _log(value: float) -> float:
    return math.log(max(value, TINY))


def _logit(share: float) -> float:
    clipped = min(max(share, TINY), 1 - TINY)
    return math.log(clipped / (1 - clipped))


def _share(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def _of_count(count: float) -> float:
    """Counts of like boards have spread 1 on this scale, few or many (Anscombe 1948)."""
    return 2 * math.sqrt(count + 0.375)


def _count(scaled: float) -> float:
    return max((scaled / 2) ** 2 - 0.375, 0.0)


def _same(value: float) -> float:
    return value


STATISTICS: dict[str, Statistic] = {
    "mean_grey": Statistic("mean grey", 0.003, _log, math.exp, is_relative=True),
    "contrast": Statistic("contrast", 0.003, _log, math.exp, is_relative=True),
    "sharpness": Statistic("sharpness", 0.01, _log, math.exp, is_relative=True),
    "top_score": Statistic("top score of passing boards", 0.25, _logit, _share),
    "num_calls": Statistic("number of calls", 1.0, _of_count, _count),
    "residual": Statistic("registration residual", 0.1, _log, math.exp, unit=" px"),
    "inliers": Statistic("share of matching structure", 0.005, _same, _same),
    "gate_4": Statistic("gate share of the 4 px level", 0.003, _same, _same),
    "gate_16": Statistic("gate share of the 16 px level", 0.003, _same, _same),
    "gate_32": Statistic("gate share of the 32 px level", 0.003, _same, _same),
}
"""By the name in metrics and alarms."""


def measure(
    picture: PictureStatistics, registration: Registration | None, result: InspectionResult | None
) -> dict[str, float]:
    """The watched numbers of one board, by name, each on its statistic's scale.

    result: None where the network was not asked. Of a board that was not inspected (verdict ERROR) there are
    no numbers, as it may be another product or no board at all.
    """
    raw = {"mean_grey": picture.mean_grey, "contrast": picture.contrast, "sharpness": picture.sharpness}
    if registration is not None:
        raw |= {"residual": registration.residual_px, "inliers": registration.inliers}
    if result is not None:
        if result.verdict is Verdict.ERROR:
            return {}
        if result.verdict is Verdict.PASS:
            raw["top_score"] = result.score
        raw["num_calls"] = float(result.num_defects)
        raw |= {f"gate_{level}": float(shares.mean()) for level, shares in result.gate_maps.items()}
    return {name: STATISTICS[name].scale(value) for name, value in raw.items() if math.isfinite(value)}
