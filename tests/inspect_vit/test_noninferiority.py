"""Is a candidate as good as its base: by adding up binomial chances, and on simulated boards."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from benchmarks.promotion import Line, at_worst, by_defect, fixed, for_target, passed
from inspect_vit.noninferiority import judge, judge_net, net_bound

AT_95 = {"confidence": 0.95}


def pmf(n: int, p: float) -> np.ndarray:
    """Chances of 0 to n of n, added up from whole numbers."""
    return np.array([comb(n, k) * p**k * (1.0 - p) ** (n - k) for k in range(n + 1)])


def share_with_chance(count: int, n: int, chance: float) -> float:
    """The share of which so few or fewer of n come with this chance, by halving."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if pmf(n, middle)[: count + 1].sum() > chance else (low, middle)
    return low


@pytest.mark.parametrize(
    ("worse", "n", "margin", "result", "needs"),
    [
        (0, 149, 0.02, "pass", 0),
        (0, 148, 0.02, "insufficient", 1),
        (0, 299, 0.01, "pass", 0),
        (0, 298, 0.01, "insufficient", 1),
        (0, 0, 0.02, "insufficient", 149),
        (1, 149, 0.02, "insufficient", 87),
        (1, 236, 0.02, "pass", 0),
        (1, 40, 0.02, "fail", 0),
        (1, 50, 0.02, "insufficient", 186),
        (9, 300, 0.02, "fail", 0),
    ],
)
def test_so_many_boards_say_so_much(worse: int, n: int, margin: float, result: str, needs: int) -> None:
    judged = judge(worse, n, margin=margin, **AT_95)
    assert (judged.result, judged.needs) == (result, needs)
    if n:
        assert judged.bound == pytest.approx(share_with_chance(worse, n, 0.05), abs=1e-6)
        assert (judged.result == "pass") == (judged.bound <= margin)
    if needs:
        assert judge(worse, n + needs, margin=margin, **AT_95).result == "pass"
        assert judge(worse, n + needs - 1, margin=margin, **AT_95).result != "pass"


def test_a_net_bound_is_an_upper_bound_less_a_lower_one() -> None:
    upper = share_with_chance(5, 120, 0.025)
    lower = 1.0 - share_with_chance(120 - 9, 120, 0.025)  # 9 got better: 111 or fewer did not
    assert net_bound(5, 9, 120, confidence=0.95) == pytest.approx(upper - lower, abs=1e-6)
    assert net_bound(0, 0, 0, confidence=0.95) is None


@pytest.mark.parametrize(("n", "margin"), [(59, 0.05), (149, 0.02), (236, 0.02)])
def test_false_calls_that_rise_by_the_margin_pass_one_time_in_twenty(n: int, margin: float) -> None:
    """Over every number of boards that may get better: of the whole rejection region, added up."""
    passes = np.zeros((n + 1, n + 1), np.bool_)
    for worse in range(n + 1):
        results = []
        for better in range(n + 1 - worse):
            results.append(judge_net(worse, better, n, margin=margin, **AT_95)[0].result == "pass")
            if results[-1] and better > worse + 3:  # more boards that got better make it pass all the more
                results += [True] * (n - worse - better)
                break
        if worse > n // 3:
            break
        passes[worse, : len(results)] = results
    assert passes.any()
    for better_share in [0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15]:
        worse_share = better_share + margin
        chances = pmf(n, worse_share)
        total = sum(
            chances[worse]
            * pmf(n - worse, better_share / (1.0 - worse_share))[passes[worse, : n - worse + 1]].sum()
            for worse in range(n // 3 + 1)
        )
        assert total <= 0.05 + 1e-9, (better_share, total)


def test_fewer_false_calls_pass_even_where_some_boards_are_new() -> None:
    judged, net = judge_net(6, 40, 500, margin=0.01, **AT_95)
    assert judge(6, 500, margin=0.01, **AT_95).result == "fail"
    assert judged.result == "pass"
    assert net is not None
    assert net < 0.0
    # As many the other way round is no proof, but nothing that more boards could not put right.
    judged, _ = judge_net(6, 6, 500, margin=0.01, **AT_95)
    assert judged.result == "insufficient"
    assert judged.needs > 0


WORSE = 0.0202
REPEATS = 800
MOST = 61
"""Of 800: a chance of 5 % gives more in one of 1000 tries."""


@pytest.mark.parametrize(
    ("line", "way"),
    [
        (Line(149), fixed(WORSE)),
        (Line(149, 7, 0.9), fixed(WORSE)),
        (Line(236, 4, 0.5), for_target(0.06)),
        (Line(236, 4, 0.5), at_worst),
    ],
    ids=[
        "one defect a board",
        "many that fail together",
        "threshold for a target",
        "threshold so as to pass",
    ],
)
def test_a_candidate_that_is_worse_than_the_margin_passes_one_time_in_twenty(line: Line, way: object) -> None:
    _, wrong = passed(line, way, repeats=REPEATS)
    assert wrong <= MOST


def test_counting_defects_would_let_more_of_them_pass() -> None:
    """Else the simulation could not tell the difference."""
    _, wrong = passed(Line(149, 7, 0.9), by_defect, repeats=REPEATS)
    assert wrong > 2 * 0.05 * REPEATS


def test_a_good_candidate_passes_as_a_rule() -> None:
    passes, wrong = passed(Line(313), fixed(0.002), repeats=200)
    assert passes > 180
    assert wrong == 0
