"""Confidence intervals by resampling; those of proportions are exact, in inspect_vit/intervals.py."""

from __future__ import annotations

import numpy as np

from inspect_vit.matching import Matches


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
