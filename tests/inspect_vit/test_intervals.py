"""Exact statements about a proportion, against closed forms and against the definition."""

from __future__ import annotations

from math import comb

import pytest

from inspect_vit.intervals import lower_bound, misses_allowed, trials_needed, upper_bound


def chance(misses: int, n: int, rate: float) -> float:
    """Of so few misses or fewer, by adding up."""
    return sum(comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(misses + 1))


@pytest.mark.parametrize(
    ("misses", "rate", "confidence", "trials"),
    [(0, 0.01, 0.95, 299), (0, 0.05, 0.95, 59), (1, 0.01, 0.95, 473), (0, 0.10, 0.90, 22), (0, 0.5, 0.5, 1)],
)
def test_trials_needed_are_the_published_ones(
    misses: int, rate: float, confidence: float, trials: int
) -> None:
    assert trials_needed(misses, rate, confidence=confidence) == trials
    assert misses_allowed(trials, rate, confidence=confidence) == misses
    assert misses_allowed(trials - 1, rate, confidence=confidence) == misses - 1


@pytest.mark.parametrize("n", [0, 1, 30, 61, 120])
@pytest.mark.parametrize("rate", [0.02, 0.2])
def test_misses_allowed_are_the_most_that_the_bound_bears(n: int, rate: float) -> None:
    fitting = [k for k in range(n) if chance(k, n, rate) <= 0.05]
    allowed = misses_allowed(n, rate)
    assert allowed == max(fitting, default=-1)
    if allowed >= 0:
        assert upper_bound(allowed, n) <= rate < upper_bound(allowed + 1, n)


def test_the_bounds_are_where_the_chance_is_a_twentieth() -> None:
    assert chance(3, 50, upper_bound(3, 50)) == pytest.approx(0.05)
    assert 1 - chance(2, 50, lower_bound(3, 50)) == pytest.approx(0.05)
    assert lower_bound(0, 9) == 0.0
