"""Exact statements about a proportion: what so many misses in so many independent trials allow to be said."""

from __future__ import annotations

from scipy.stats import beta, binom

MAX_TRIALS = 10**9
"""`trials_needed` looks no further."""


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


def lower_bound(count: int, n: int, *, confidence: float = 0.95) -> float:
    """Exact one-sided lower bound of a proportion, count of n; NaN for n = 0."""
    return clopper_pearson(count, n, confidence=2.0 * confidence - 1.0)[0]


def misses_allowed(n: int, max_rate: float, *, confidence: float = 0.95) -> int:
    """Most misses in n trials with an exact upper bound of at most `max_rate`; -1: even none is too many."""
    low, high = -1, n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _supports(middle, n, max_rate, confidence) else (low, middle - 1)
    return low


def trials_needed(misses: int, max_rate: float, *, confidence: float = 0.95) -> int:
    """Fewest trials in which so many misses still keep the upper bound at or under `max_rate`.

    299 without a miss for 1 % and 59 for 5 %, at 95 %.
    """
    low, high = misses, max(2 * misses, 1)
    while not _supports(misses, high, max_rate, confidence):
        low, high = high, 2 * high
        assert high < MAX_TRIALS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _supports(misses, middle, max_rate, confidence) else (middle, high)
    return high


def _supports(misses: int, n: int, max_rate: float, confidence: float) -> bool:
    """Whether a rate above `max_rate` shows so few misses with a chance of at most 1 - confidence.

    The Clopper-Pearson bound is at most `max_rate` exactly then, and no quantile has to be inverted.
    """
    return float(binom.cdf(misses, n, max_rate)) <= 1.0 - confidence + 1e-12
