"""Measures of one evidence map, as pure functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from inspect_vit.perturbation import BoolMap, FloatMap

SHARES = (0.0, 0.001, 0.002, 0.004, 0.007, 0.01, 0.02, 0.03, 0.05, 0.1, 0.3, 1.0)
"""Shares of the region that are replaced, of a region of 6400 cells: a defect is seldom 5 % of it."""
FLIP_AT = SHARES.index(0.01)


def cell_counts(num_cells: int, num_allowed: int) -> list[int]:
    """How many cells each of SHARES is, the last one all that may be replaced."""
    counts = [min(round(share * num_cells), num_allowed) for share in SHARES]
    return [*counts[:-1], num_allowed]


def area_under(curve: Sequence[float]) -> float:
    """Mean score over the share, 0 to 100 %, by trapezoids (Petsiuk et al. 2018); curve: one per SHARES."""
    return float(np.trapezoid(curve, SHARES))


def area_under_log(curve: Sequence[float]) -> float:
    """Mean score over the logarithm of the share, 0.1 to 100 %: what happens below 5 % counts by half."""
    places = np.log10(SHARES[1:])
    return float(np.trapezoid(curve[1:], places) / (places[-1] - places[0]))


def energy_inside(evidence: FloatMap, true: BoolMap) -> float:
    """Share of a map's sum that lies in the true defect (Wang et al. 2020); NaN for an empty map.

    evidence: >= 0, and true: both over the same cells, in any shape.
    """
    total = float(evidence.sum(dtype=np.float64))
    return float(evidence[true].sum(dtype=np.float64)) / total if total > 0.0 else float("nan")


def rank_correlation(one: FloatMap, other: FloatMap) -> float:
    """Spearman's, ties by their mean rank, over cells where either map is above 0; NaN where one is constant.

    Attention windows fix where a map can be above 0 at all: cells beyond them would make any two maps alike.
    """
    shown = (one > 0) | (other > 0)
    ranks = [rankdata(values[shown]) for values in (one, other)]
    if shown.sum() < 2 or min(np.ptp(ranks[0]), np.ptp(ranks[1])) == 0.0:
        return float("nan")
    return float(np.corrcoef(*ranks)[0, 1])


def bootstrap_mean(
    values: NDArray[np.float64], *, seed: int, resamples: int = 1000, confidence: float = 0.95
) -> dict[str, float]:
    """Mean of the values that are not NaN, their n, and the mean's percentile interval; NaN without any."""
    values = values[~np.isnan(values)]
    if not len(values):
        return {"value": float("nan"), "low": float("nan"), "high": float("nan"), "n": 0}
    drawn = np.random.default_rng(seed).integers(len(values), size=(resamples, len(values)))
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(values[drawn].mean(1), [tail, 1.0 - tail])
    return {"value": float(values.mean()), "low": float(low), "high": float(high), "n": len(values)}
