"""Confidence intervals of the measures: how far a figure may be from the truth given its n."""

from __future__ import annotations

import numpy as np
from scipy.stats import beta

from inspect_vit.matching import Matches


def clopper_pearson(count: int, n: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Exact two-sided interval of a proportion, count of n; (NaN, NaN) for n = 0.

    Source: Clopper and Pearson, Biometrika 26 (1934).
    """
    assert 0 <= count <= n
    if n == 0:
        return float("nan"), float("nan")
    tail = (1.0 - confidence) / 2.0
    low = float(beta.ppf(tail, count, n - count + 1)) if count else 0.0
    high = float(beta.ppf(1.0 - tail, count + 1, n - count)) if count < n else 1.0
    return low, high


def upper_bound(count: int, n: int, *, confidence: float = 0.95) -> float:
    """Exact one-sided upper bound of a proportion, count of n; NaN for n = 0."""
    return clopper_pearson(count, n, confidence=2.0 * confidence - 1.0)[1]


def bootstrap_ap(
    matches: Matches, *, resamples: int = 1000, confidence: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Percentile interval of the pooled AP when images are drawn anew with replacement; NaN without truths.

    Cost: resamples x detections. A detection of an image drawn k times counts k times.
    """
    if not matches.num_truths:
        return float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    truths_per_image = np.bincount(matches.truth_images, minlength=matches.num_images)
    values = []
    for _ in range(resamples):
        drawn = rng.integers(matches.num_images, size=matches.num_images)
        draws = np.bincount(drawn, minlength=matches.num_images)
        weights = draws[matches.images]
        hits = weights * matches.correct
        precision = np.cumsum(hits) / np.maximum(np.cumsum(weights), 1)
        num_truths = int(draws @ truths_per_image)
        if num_truths:
            values.append(float(hits @ precision) / num_truths)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return float(low), float(high)
