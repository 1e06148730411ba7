"""Figures of runs by variant and seed as one table, and which differences the seeds do not explain."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.stats import t as student


@dataclass(frozen=True)
class Spread:
    """How much a figure varies between seeds, pooled over the variants."""

    deviation: float
    """Standard deviation; NaN while no variant has two seeds."""
    freedom: int
    """Its degrees of freedom."""

    def mark(self, difference: float, num: int, num_default: int) -> str:
        """ "*" where a difference of means is larger than the deviation, "**" where chance rarely makes it.

        Rarely: 1 in 20 at most, by the t distribution. num, num_default: seeds behind the two means.
        """
        if not self.freedom or not abs(difference) > self.deviation:
            return ""
        error = self.deviation * math.sqrt(1 / num + 1 / num_default)
        return "**" if abs(difference) > float(student.ppf(0.975, self.freedom)) * error else "*"


def pooled(groups: Sequence[Sequence[float]]) -> Spread:
    """The spread within groups: one group per variant, one value per seed."""
    freedom = sum(len(group) - 1 for group in groups)
    squares = sum((len(group) - 1) * statistics.variance(group) for group in groups if len(group) > 1)
    return Spread(math.sqrt(squares / freedom) if freedom else math.nan, freedom)


def table(
    cells: Sequence[Mapping[str, Any]], times: Mapping[str, tuple[float, float]], *, default: str
) -> str:
    """Markdown: a row per variant in the order of the cells, each figure with its difference to the default.

    Args:
        cells: one per run: "variant", "parameters", and "figures", name -> value.
        times: per variant ms and ratio to the default's.
    """
    by_variant: dict[str, list[Mapping[str, Any]]] = {}
    for cell in cells:
        by_variant.setdefault(cell["variant"], []).append(cell)
    columns, spreads = {}, {}
    for figure in cells[0]["figures"]:
        values = {name: [cell["figures"][figure] for cell in own] for name, own in by_variant.items()}
        spreads[figure] = pooled(list(values.values()))
        columns[figure] = {name: _shown(values, name, default, spreads[figure]) for name in values}
    heads = ["", "seeds", "parameters", "ms (ratio)", *columns]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, own in by_variant.items():
        ms, ratio = times[name]
        row = [name, str(len(own)), f"{own[0]['parameters']:,}", f"{ms:.0f} ({ratio:.2f})"]
        lines.append("| " + " | ".join([*row, *(column[name] for column in columns.values())]) + " |")
    spread = ", ".join(f"{figure} {own.deviation:.4f}" for figure, own in spreads.items())
    return "\n".join(lines) + (
        f"\n\nMean over seeds +- standard deviation, difference to {default}. Spread between seeds, pooled "
        f"over variants: {spread}. * beyond that spread, as one difference in three is by chance with two "
        "seeds; ** beyond 95 % of what chance makes (t distribution, not corrected for the number of "
        "comparisons).\n"
    )


def _shown(values: Mapping[str, Sequence[float]], name: str, default: str, spread: Spread) -> str:
    own, base = values[name], values.get(default)
    mean = statistics.fmean(own)
    text = f"{mean:.4f}" + (f" +- {statistics.stdev(own):.4f}" if len(own) > 1 else "")
    if name == default or base is None:
        return text
    difference = mean - statistics.fmean(base)
    return f"{text}, {difference:+.4f} {spread.mark(difference, len(own), len(base))}".rstrip()
