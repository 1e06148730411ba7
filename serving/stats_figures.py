"""The arithmetic of the line's figures: rates, control limits, agreement, Pareto order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from inspect_vit.intervals import clopper_pearson
from serving.stats_schemas import ParetoLine, Rate

PANEL_SIDE_MM2 = 18 * 24 * 25.4**2
"""An 18x24 inch panel side, 2787 cm2."""
TAIL = 0.00135
"""Chance beyond each control limit while nothing changes: that of three sigma of a normal distribution."""
LIMITS = (
    "p-chart: exact binomial quantiles at 0.135 % and 99.865 % around the first-pass yield of the whole span"
)


def rate(count: int, of: float, unit: str, *, is_share: bool = False) -> Rate:
    """count / of; a share of boards comes with its exact interval."""
    value = count / of if of > 0 else None
    lower = upper = None
    if is_share and value is not None:
        lower, upper = clopper_pearson(count, round(of))
    ppm = None if value is None else 1e6 * value
    return Rate(count=count, of=of, unit=unit, value=value, ppm=ppm, lower=lower, upper=upper)


def control_limits(sizes: Sequence[int], share: float) -> NDArray[np.float64]:
    """(N, 2) lower and upper limit of a share, for N samples of these sizes, all at least 1."""
    n = np.asarray(sizes, np.float64)
    quantiles = [np.asarray(binom.ppf(at, n, share)) / n for at in (TAIL, 1.0 - TAIL)]
    return np.stack(quantiles, axis=-1).clip(0.0, 1.0)


def kappa(pairs: Iterable[tuple[str, str]]) -> tuple[int, int, float | None]:
    """Pairs of words for the same call: their number, how many agree, and Cohen's kappa.

    Source: Cohen, Educational and Psychological Measurement 20 (1960). None where chance alone agrees always.
    """
    counts = Counter(pairs)
    n = counts.total()
    agreed = sum(number for (one, other), number in counts.items() if one == other)
    first, second = Counter[str](), Counter[str]()
    for (one, other), number in counts.items():
        first[one] += number
        second[other] += number
    by_chance = sum(first[word] * second[word] for word in first)
    if n == 0 or by_chance == n * n:
        return n, agreed, None
    return n, agreed, (agreed / n - by_chance / n**2) / (1 - by_chance / n**2)


def pareto(tally: dict[Any, Counter[str]]) -> tuple[ParetoLine, ...]:
    """By name the counts of a ParetoLine's fields; the most called first, then by name."""
    total = sum(counts["calls"] for counts in tally.values())
    lines, seen = [], 0
    for name, counts in sorted(tally.items(), key=lambda item: (-item[1]["calls"], item[0] or "")):
        seen += counts["calls"]
        lines.append(
            ParetoLine(
                name=name,
                **{field: counts[field] for field in FIELDS},
                share=counts["calls"] / total if total else 0.0,
                cumulative=seen / total if total else 0.0,
            )
        )
    return tuple(lines)


FIELDS = ("calls", "real", "false_calls", "process_indicators", "missed")
FIELD_OF_WORD = {"real": "real", "false_call": "false_calls", "process_indicator": "process_indicators"}
