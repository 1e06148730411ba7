"""How often does the promotion gate pass a candidate that it must not? Simulated boards, known truth.

    python benchmarks/promotion.py --repeats 4000

A row states what is true of all boards that could be drawn, and in which share of acceptance sets the gate
passes, at a margin of 2 % and 95 %: at most 5 % where the candidate is worse than that. Defects of one board
share a part of their score, `rho` of its variance. With `thresholds chosen`, the candidate's threshold is
taken from the same acceptance boards, for a target or, at worst, as the highest that passes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inspect_vit.board_evidence import Evidence
from inspect_vit.calibration import Target
from inspect_vit.guarantee import choose
from inspect_vit.intervals import clopper_pearson, misses_allowed, upper_bound
from inspect_vit.noninferiority import judge, judge_net

Floats = NDArray[np.float64]
MARGIN, CONFIDENCE = 0.02, 0.95
POPULATION = 1_000_000
MEAN_LOGIT, SPREAD, AGREEMENT = 4.0, 1.5, 0.7
"""Of a defect's score in logits, and the correlation of base and candidate on one defect."""
BASE_LOGIT = 1.0
"""The base's threshold: it misses one defect in 44."""


@dataclass(frozen=True)
class Line:
    """Boards with as many defects each, of one class."""

    num_boards: int
    per_board: int = 1
    rho: float = 0.0

    def draw(self, rng: np.random.Generator, num_boards: int) -> tuple[NDArray[np.bool_], Floats]:
        """(boards, defects) whether the base finds each, and the candidate's score of it in logits."""
        shape = (num_boards, self.per_board)
        board = rng.standard_normal((num_boards, 1))
        both = np.sqrt(AGREEMENT) * rng.standard_normal(shape)
        sides = []
        for _ in range(2):
            own = both + np.sqrt(1.0 - AGREEMENT) * rng.standard_normal(shape)
            latent = np.sqrt(self.rho) * board + np.sqrt(1.0 - self.rho) * own
            sides.append(MEAN_LOGIT + SPREAD * latent)
        return sides[0] >= BASE_LOGIT, sides[1]

    @cached_property
    def lost_below(self) -> Floats:
        """Of the whole population, rising: the threshold above which each board has a newly missed defect."""
        return np.sort(_lowest_found(*self.draw(np.random.default_rng(99), POPULATION)))

    @cached_property
    def defect_lost_below(self) -> Floats:
        """The same of each defect."""
        found, scores = self.draw(np.random.default_rng(99), POPULATION // self.per_board)
        return np.sort(np.where(found, scores, np.inf).ravel())

    def rate(self, threshold: float) -> float:
        """Share of all boards with a newly missed defect."""
        return float(np.searchsorted(self.lost_below, threshold)) / POPULATION

    def threshold(self, rate: float, *, of_defects: bool = False) -> float:
        """At which so many boards (or defects) are newly missed."""
        lost = self.defect_lost_below if of_defects else self.lost_below
        return float(lost[int(rate * len(lost))])


def _lowest_found(found: NDArray[np.bool_], scores: Floats) -> Floats:
    return np.asarray(np.where(found, scores, np.inf).min(axis=1))


Way = Callable[[Line, NDArray[np.bool_], Floats], tuple[bool, bool]]
"""Acceptance boards -> whether the gate passes, and whether it must not."""


def fixed(rate: float) -> Way:
    """The candidate has its own threshold, at which it newly misses on `rate` of all boards."""

    def way(line: Line, found: NDArray[np.bool_], scores: Floats) -> tuple[bool, bool]:
        worse = int(np.count_nonzero(_lowest_found(found, scores) < line.threshold(rate)))
        return _passes(worse, line.num_boards), rate > MARGIN

    return way


def by_defect(line: Line, found: NDArray[np.bool_], scores: Floats) -> tuple[bool, bool]:
    """Every defect counts as though it were a board of its own; 2.02 % of all defects are newly missed."""
    lost = found & (scores < line.threshold(0.0202, of_defects=True))
    return upper_bound(int(lost.sum()), lost.size, confidence=CONFIDENCE) <= MARGIN, True


def for_target(max_miss_rate: float) -> Way:
    """The candidate's threshold is chosen on these boards, for a miss rate."""

    def way(line: Line, found: NDArray[np.bool_], scores: Floats) -> tuple[bool, bool]:
        shares = 1.0 / (1.0 + np.exp(-scores.ravel()))
        evidence = Evidence(
            num_boards=line.num_boards,
            defect_boards=np.repeat(np.arange(line.num_boards), line.per_board),
            defect_labels=np.zeros(scores.size, np.int64),
            finding_scores=shares[:, None],
            false_boards=np.zeros(0, np.int64),
            false_labels=np.zeros(0, np.int64),
            false_scores=np.zeros(0),
            lowest_score=1e-6,
        )
        choice = choose(evidence, ["defect"], np.array([0.5]), [Target(max_miss_rate=max_miss_rate)])
        threshold = float(np.log(choice.thresholds[0]) - np.log1p(-choice.thresholds[0]))
        worse = int(np.count_nonzero(_lowest_found(found, scores) < threshold))
        return _passes(worse, line.num_boards), line.rate(threshold) > MARGIN

    return way


def at_worst(line: Line, found: NDArray[np.bool_], scores: Floats) -> tuple[bool, bool]:
    """The threshold is the highest at which these boards still pass."""
    allowed = misses_allowed(line.num_boards, MARGIN, confidence=CONFIDENCE)
    threshold = float(np.sort(_lowest_found(found, scores))[allowed])
    worse = int(np.count_nonzero(_lowest_found(found, scores) < threshold))
    return _passes(worse, line.num_boards), line.rate(threshold) > MARGIN


def _passes(worse: int, n: int) -> bool:
    return judge(worse, n, margin=MARGIN, confidence=CONFIDENCE).result == "pass"


def passed(line: Line, way: Way, *, repeats: int, seed: int = 0) -> tuple[int, int]:
    """In how many acceptance sets the gate passes, and in how many of these it must not."""
    passes = wrong = 0
    for repeat in range(repeats):
        found, scores = line.draw(np.random.default_rng((seed, repeat)), line.num_boards)
        is_passed, must_not = way(line, found, scores)
        passes += is_passed
        wrong += is_passed and must_not
    return passes, wrong


def stopped(p_newly: float, p_cleared: float, n: int, *, repeats: int, seed: int = 0) -> int:
    """In how many sets of n boards the false calls pass, where these shares of all boards are newly stopped
    and no longer stopped."""
    rng = np.random.default_rng((seed, n))
    rest = 1.0 - p_newly - p_cleared
    counts = rng.multinomial(n, (p_newly, p_cleared, rest), size=repeats)[:, :2]
    drawn, times = np.unique(counts, axis=0, return_counts=True)
    results = [
        judge_net(int(newly), int(cleared), n, margin=MARGIN, confidence=CONFIDENCE)[0].result
        for newly, cleared in drawn
    ]
    return sum(int(many) for many, result in zip(times, results, strict=True) if result == "pass")


ROWS: tuple[tuple[str, Line, Way], ...] = (
    ("2.02 % of boards newly missed; one defect a board", Line(149), fixed(0.0202)),
    ("2.02 %; 7 a board, rho 0.5", Line(149, 7, 0.5), fixed(0.0202)),
    ("2.02 %; 7 a board, rho 0.9", Line(313, 7, 0.9), fixed(0.0202)),
    ("4 %; 7 a board, rho 0.5", Line(149, 7, 0.5), fixed(0.04)),
    ("0.2 %: good enough; one defect a board", Line(313), fixed(0.002)),
    ("thresholds chosen for 3 %; one defect a board", Line(313), for_target(0.03)),
    ("thresholds chosen for 8 %; 7 a board, rho 0.5", Line(313, 7, 0.5), for_target(0.08)),
    ("thresholds chosen for 5 %; 7 a board, rho 0.9", Line(313, 7, 0.9), for_target(0.05)),
    ("thresholds chosen so as to pass; one defect a board", Line(313), at_worst),
    ("thresholds chosen so as to pass; 7 a board, rho 0.9", Line(313, 7, 0.9), at_worst),
    ("not the gate: defects as trials; 7 a board, rho 0.5", Line(149, 7, 0.5), by_defect),
    ("not the gate: defects as trials; 7 a board, rho 0.9", Line(149, 7, 0.9), by_defect),
)
FALSE_CALLS = ((0.0202, 0.0, 149), (0.0502, 0.03, 500), (0.02, 0.10, 500), (0.002, 0.002, 313))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=4000, help="acceptance sets per row")
    arguments = parser.parse_args()
    repeats = arguments.repeats
    print(
        "| true of all boards | boards in the set | passes | wrongly | 95 % interval |\n|---|---|---|---|---|"
    )

    def row(title: str, n: int, passes: int, wrong: int) -> None:
        low, high = clopper_pearson(wrong, repeats)
        print(
            f"| {title} | {n} | {passes / repeats:.1%} | {wrong / repeats:.1%} | {low:.1%} to {high:.1%} |",
            flush=True,
        )

    for title, line, way in ROWS:
        row(title, line.num_boards, *passed(line, way, repeats=repeats))
    for newly, cleared, n in FALSE_CALLS:
        passes = stopped(newly, cleared, n, repeats=repeats)
        title = f"false calls: {newly:.2%} of boards newly stopped, {cleared:.2%} no longer"
        row(title, n, passes, passes if newly - cleared > MARGIN else 0)


if __name__ == "__main__":
    main()
