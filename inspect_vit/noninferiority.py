"""Is a candidate as good as its base on the same boards, up to a margin? Exact, and nothing is assumed.

Both models inspect each board, so what counts is where they disagree, as in McNemar's test. The unit is the
board: defects of one board share lamp, focus and process. Of n boards let b be those that got worse and c
those that got better. b is binomial, so b of n has the exact upper bound of Clopper and Pearson (Biometrika
26, 1934), and the test "bound <= margin" passes a candidate that truly worsens a larger share than the margin
with a chance of at most 1 - confidence. Where several such tests must all pass, no correction is due: a
candidate with any true fault passes only if the test of that fault errs (intersection-union test, Berger,
Technometrics 24, 1982).
"""

from __future__ import annotations

from dataclasses import dataclass

from inspect_vit.gate_report import Result
from inspect_vit.intervals import clopper_pearson, misses_allowed, trials_needed, upper_bound


@dataclass(frozen=True)
class Judgement:
    """What so many boards say."""

    result: Result
    bound: float | None
    """Upper bound of the share that got worse; None for no board."""
    needs: int
    """Further boards, none of them worse, with which it would pass; 0 unless insufficient."""


def judge(worse: int, n: int, *, margin: float, confidence: float) -> Judgement:
    """Whether at most a share `margin` of such boards gets worse.

    Pass: so sure. Fail: a larger share of these boards did, so that more like them would not help.
    Insufficient: too few boards to tell.
    """
    bound = upper_bound(worse, n, confidence=confidence) if n else None
    if misses_allowed(n, margin, confidence=confidence) >= worse:
        return Judgement("pass", bound, 0)
    if worse > margin * n:
        return Judgement("fail", bound, 0)
    return Judgement("insufficient", bound, trials_needed(worse, margin, confidence=confidence) - n)


def net_bound(worse: int, better: int, n: int, *, confidence: float) -> float | None:
    """Upper bound of the share that got worse less the share that got better; None for no board.

    The upper bound of one less the lower bound of the other, each wrong with half the chance (Bonferroni).
    """
    if not n:
        return None
    high, low = (clopper_pearson(count, n, confidence=confidence) for count in (worse, better))
    return high[1] - low[0]


def judge_net(
    worse: int, better: int, n: int, *, margin: float, confidence: float
) -> tuple[Judgement, float | None]:
    """As `judge`, but boards that got better may also make up for those that got worse; and the net bound.

    For what counts by its total, as false calls do. Either bound within the margin passes. A candidate that
    raises the total by more than the margin also worsens more than the margin, so each of the two errs with a
    chance of at most 1 - confidence. So does either of them, which the tests compute for many n: where hardly
    any board gets better the net bound is the wider one, and where many do, too many get worse for the other.
    """
    plain, net = judge(worse, n, margin=margin, confidence=confidence), None
    if n:
        net = net_bound(worse, better, n, confidence=confidence)
        assert net is not None
        if plain.result != "pass" and net <= margin:
            plain = Judgement("pass", plain.bound, 0)
        elif plain.result == "fail" and worse - better <= margin * n:
            needed = trials_needed(worse, margin, confidence=confidence)
            plain = Judgement("insufficient", plain.bound, needed - n)
    return plain, net
