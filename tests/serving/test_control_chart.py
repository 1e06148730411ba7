"""The control chart: what it adds up, how seldom it cries wolf, and how soon it sees a change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from serving.control_chart import BASELINE_BOARDS, FIRST_BOARDS, FURTHEST, LIMIT, SLACK, Chart

Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def run(values: list[float] | np.ndarray, chart: Chart | None = None) -> list[Chart]:
    """The chart after each board."""
    charts = [chart or Chart()]
    for number, value in enumerate(values):
        charts.append(charts[-1].observe(float(value), time=f"{number:04d}", least_spread=1e-9))
    return charts[1:]


def first_alarm(charts: list[Chart]) -> int | None:
    """Index of the board that raises it."""
    return next((number for number, chart in enumerate(charts) if chart.excursion is not None), None)


def test_it_is_a_cumulative_sum_of_normal_deviates_over_a_baseline_that_learns() -> None:
    rng = np.random.default_rng(4)
    values = np.r_[rng.normal(7, 2, 90), rng.normal(9, 2, 12)]
    above = below = 0.0
    for number, chart in enumerate(run(values)):
        learnt = values[: min(number, BASELINE_BOARDS)]
        if number >= FIRST_BOARDS:
            t = (values[number] - learnt.mean()) / (learnt.std(ddof=1) * np.sqrt(1 + 1 / len(learnt)))
            z = float(np.clip(stats.norm.ppf(stats.t.cdf(t, len(learnt) - 1)), -FURTHEST, FURTHEST))
            above, below = max(above + z - SLACK, 0.0), max(below - z - SLACK, 0.0)
        assert chart.above.total == pytest.approx(min(above, LIMIT), abs=0.1)
        assert chart.below.total == pytest.approx(min(below, LIMIT), abs=0.1)
        if above >= LIMIT:
            break
    assert chart.mean == pytest.approx(values[:BASELINE_BOARDS].mean())
    assert chart.spread(0) == pytest.approx(values[:BASELINE_BOARDS].std(ddof=1))


DRAWS: dict[str, Draw] = {
    "normal": lambda rng, last: rng.standard_normal(len(last)),
    "heavy tails": lambda rng, last: rng.standard_t(5, len(last)),
    "skewed": lambda rng, last: rng.gamma(4, 1, len(last)),
    "correlated": lambda rng, last: 0.3 * last + np.sqrt(1 - 0.09) * rng.standard_normal(len(last)),
}


@pytest.mark.parametrize("kind", DRAWS)
def test_a_steady_line_has_less_than_one_false_alarm_in_10_000_boards(kind: str) -> None:
    """Counted by a simulation of its own of the rule above: 1000 lines, 2000 boards each."""
    rng, num_boards = np.random.default_rng(0), 2000
    last = rng.standard_normal(1000)
    mean, squares, above, below = np.zeros((4, 1000))
    num_alarms = 0
    for number in range(num_boards):
        last = DRAWS[kind](rng, last)
        if number >= FIRST_BOARDS:
            n = min(number, BASELINE_BOARDS)
            t = (last - mean) / np.sqrt(squares / (n - 1) * (1 + 1 / n))
            sure = np.sqrt((n - 1) * np.log1p(t**2 / (n - 1))) * (8 * n - 7) / (8 * n - 5)
            z = np.sign(t) * np.minimum(sure, FURTHEST)
            above, below = np.maximum(above + z - SLACK, 0), np.maximum(below - z - SLACK, 0)
            alarms = (above >= LIMIT) | (below >= LIMIT)
            num_alarms += int(alarms.sum())
            above[alarms] = below[alarms] = 0
        if number < BASELINE_BOARDS:
            before = mean
            mean = mean + (last - mean) / (number + 1)
            squares = squares + (last - before) * (last - mean)
    assert num_alarms < 1000 * num_boards / 10_000


def test_a_fading_lamp_is_seen_in_a_few_boards_and_dated() -> None:
    """Half a percent a board, and half a percent of noise."""
    rng = np.random.default_rng(1)
    light = np.r_[np.ones(100), 1 - 0.005 * np.arange(1, 41)] * (1 + rng.normal(0, 0.005, 140))
    charts = run(np.log(light))
    alarm = first_alarm(charts)
    assert alarm is not None
    assert 100 + 2 <= alarm <= 100 + 8
    assert charts[alarm].excursion is charts[alarm].below
    assert 98 <= int(charts[alarm].below.since or "") <= 104
    assert charts[-1].level < np.log(0.86), "the level follows the lamp"


def test_a_lamp_that_fades_from_the_first_board_on_is_seen_while_the_baseline_learns() -> None:
    rng = np.random.default_rng(2)
    light = (1 - 0.005 * np.arange(BASELINE_BOARDS)) * (1 + rng.normal(0, 0.005, BASELINE_BOARDS))
    alarm = first_alarm(run(np.log(light)))
    assert alarm is not None
    assert alarm <= 35, "before 18 % of the light is gone"


def test_one_odd_board_raises_nothing_and_leaves_no_mark() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(0, 1, 200)
    values[30] = values[120] = 1e6
    charts = run(values)
    assert first_alarm(charts) is None
    assert charts[-1].spread(0) == pytest.approx(1.0, abs=0.35)


def test_an_alarm_ends_when_the_cause_is_gone_and_not_before() -> None:
    rng = np.random.default_rng(5)
    steady = run(rng.normal(0, 1, 60))[-1]
    moved = run(rng.normal(4, 1, 30), steady)
    assert moved[-1].excursion is moved[-1].above
    assert (moved[-1].mean, moved[-1].num_learnt) == (steady.mean, steady.num_learnt)
    back = run(rng.normal(0, 1, 40), moved[-1])
    assert back[0].excursion is not None
    assert back[-1].excursion is None


def test_a_baseline_without_any_spread_is_taken_as_that_of_the_least_change_that_matters() -> None:
    chart = Chart()
    for _ in range(60):
        chart = chart.observe(5.0, time="", least_spread=0.5)
    assert chart.off(5.5, least_spread=0.5) == pytest.approx(1.0, abs=0.03)
    for _ in range(60):
        chart = chart.observe(5.4, time="", least_spread=0.5)
    assert chart.excursion is None
