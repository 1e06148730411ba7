"""Does a calibration keep what it promises, and do the obvious other ways? Simulated boards, known truth.

    python benchmarks/coverage.py --repeats 2000

Every repeat draws calibration boards, chooses thresholds on them, and works out by quadrature what these
thresholds miss among all boards that could be drawn. Coverage is the share of repeats in which that is no
more than was claimed, always at 95 %. Defects of one board share a part of their score, `rho` of its
variance: a lamp that fades hits all of them. Every defect has a call; calls in vain are of every class."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from inspect_vit.board_evidence import Evidence
from inspect_vit.calibration import Target
from inspect_vit.guarantee import choose
from inspect_vit.intervals import clopper_pearson, misses_allowed, upper_bound

Floats = NDArray[np.float64]
MAX_MISS_RATE = 0.05
SCORE_SCALE = 1.5
"""Logits per standard deviation of a defect's score."""
OWN_LOGIT = -0.5
"""The checkpoint's own threshold of every class."""
FALSE_PER_BOARD, FALSE_LOGIT, FALSE_SPREAD = 4.0, -1.5, 1.2
_SHARED = np.linspace(-6.0, 6.0, 601)
_WEIGHTS = norm.pdf(_SHARED) / norm.pdf(_SHARED).sum()


@dataclass(frozen=True)
class World:
    """Boards with as many defects each, of classes drawn evenly."""

    num_boards: int
    per_board: int = 1
    rho: float = 0.0
    class_logits: tuple[float, ...] = (3.0,)
    """Mean logit of each class's score."""

    def draw(self, rng: np.random.Generator) -> Evidence:
        """One calibration set."""
        num_classes = len(self.class_logits)
        boards = np.repeat(np.arange(self.num_boards), self.per_board)
        labels = rng.integers(num_classes, size=len(boards))
        shared = rng.standard_normal(self.num_boards)[boards]
        latent = np.sqrt(self.rho) * shared + np.sqrt(1.0 - self.rho) * rng.standard_normal(len(boards))
        finding = np.zeros((len(boards), num_classes))
        finding[np.arange(len(boards)), labels] = _score(
            np.array(self.class_logits)[labels] + SCORE_SCALE * latent
        )
        num_false = rng.poisson(FALSE_PER_BOARD * self.num_boards)
        return Evidence(
            num_boards=self.num_boards,
            defect_boards=boards,
            defect_labels=labels,
            finding_scores=finding,
            false_boards=rng.integers(self.num_boards, size=num_false),
            false_labels=rng.integers(num_classes, size=num_false),
            false_scores=_score(FALSE_LOGIT + FALSE_SPREAD * rng.standard_normal(num_false)),
            lowest_score=0.0001,
        )

    def defects_missed(self, thresholds: Floats) -> float:
        """Share of all defects that these thresholds (K,) miss."""
        return float(norm.cdf(self._latent(thresholds)).mean())

    def boards_missed(self, thresholds: Floats) -> float:
        """Share of all boards on which they miss any."""
        given = (self._latent(thresholds)[:, None] - np.sqrt(self.rho) * _SHARED) / np.sqrt(1.0 - self.rho)
        one_found = 1.0 - norm.cdf(given).mean(axis=0)  # (nodes,), classes drawn evenly
        return float(1.0 - _WEIGHTS @ one_found**self.per_board)

    def _latent(self, thresholds: Floats) -> Floats:
        logits = np.log(thresholds / (1.0 - thresholds))
        return np.asarray((logits - np.array(self.class_logits)) / SCORE_SCALE)


Way = Callable[[Evidence, World], tuple[Floats, float]]
"""Thresholds (K,), and the miss rate that is claimed of them."""


def by_board(evidence: Evidence, world: World) -> tuple[Floats, float]:
    """What `inspect-vit calibrate` does."""
    names = [str(label) for label in range(len(world.class_logits))]
    own = np.full(len(names), _score(np.array(OWN_LOGIT)))
    choice = choose(evidence, names, own, [Target(max_miss_rate=MAX_MISS_RATE)])
    assert choice.claims[0].kept
    return np.asarray(choice.thresholds), MAX_MISS_RATE


def by_defect(evidence: Evidence, world: World) -> tuple[Floats, float]:
    """The same, as though every defect were a board of its own. One class."""
    scores = np.sort(evidence.finding_scores.max(axis=1))
    return np.array([scores[misses_allowed(len(scores), MAX_MISS_RATE)]]), MAX_MISS_RATE


def best_f(evidence: Evidence, world: World) -> tuple[Floats, float]:
    """The threshold of highest F, and the Clopper-Pearson bound of what it missed on these boards. One class,
    one defect a board."""
    found, false = np.sort(evidence.finding_scores[:, 0]), np.sort(evidence.false_scores)
    missed = np.arange(len(found))
    calls = len(found) - missed + len(false) - np.searchsorted(false, found)
    best = int((2.0 * (len(found) - missed) / (calls + len(found))).argmax())
    return found[best : best + 1], upper_bound(best, len(found))


def free_search(evidence: Evidence, world: World) -> tuple[Floats, float]:
    """Every class's threshold free: the allowed misses are spent where they save most false calls."""
    allowed = misses_allowed(evidence.num_boards, MAX_MISS_RATE)
    best: dict[int, tuple[int, tuple[float, ...]]] = {0: (0, ())}
    for label in range(len(world.class_logits)):
        found = np.sort(evidence.finding_scores[evidence.defect_labels == label, label])
        false = np.sort(evidence.false_scores[evidence.false_labels == label])
        costs = len(false) - np.searchsorted(false, found)
        rows = [
            (spent + more, (cost + int(costs[more]), (*limits, float(found[more]))))
            for spent, (cost, limits) in best.items()
            for more in range(min(allowed - spent, len(found) - 1) + 1)
        ]
        best = {spent: min(row for other, row in rows if other == spent) for spent, _ in rows}
    return np.array(min(best.values())[1]), MAX_MISS_RATE


SIX = (3.0, 3.4, 2.6, 3.8, 3.0, 3.2)
ROWS: tuple[tuple[str, World, Way, str], ...] = (
    ("one defect a board", World(93), by_board, "boards"),
    ("7 a board, independent", World(93, 7), by_board, "boards"),
    ("7 a board, rho 0.5", World(93, 7, 0.5), by_board, "boards"),
    ("7 a board, rho 0.9", World(93, 7, 0.9), by_board, "boards"),
    ("six classes, one defect a board", World(311, class_logits=SIX), by_board, "boards"),
    ("six classes, 3 a board, rho 0.5", World(311, 3, 0.5, SIX), by_board, "boards"),
    ("7 a board, independent", World(93, 7), by_defect, "defects"),
    ("7 a board, rho 0.5", World(93, 7, 0.5), by_defect, "defects"),
    ("7 a board, rho 0.9", World(93, 7, 0.9), by_defect, "defects"),
    ("one defect a board", World(93), best_f, "boards"),
    ("six classes, one defect a board", World(311, class_logits=SIX), free_search, "boards"),
)
TITLES = {
    by_board: "calibrate: boards as trials",
    by_defect: "defects as trials",
    best_f: "best F, then Clopper-Pearson",
    free_search: "each class's threshold searched freely",
}


def kept(world: World, way: Way, what: str, *, repeats: int, seed: int = 0) -> tuple[int, float]:
    """In how many repeats the claim held, and the mean rate that was truly missed."""
    held, rates = 0, []
    for repeat in range(repeats):
        thresholds, claimed = way(world.draw(np.random.default_rng((seed, repeat))), world)
        truth = world.boards_missed(thresholds) if what == "boards" else world.defects_missed(thresholds)
        held += truth <= claimed
        rates.append(truth)
    return held, float(np.mean(rates))


def _score(logits: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-logits)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2000, help="calibrations per row")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(f"target: at most {MAX_MISS_RATE:.0%} missed, 95 % sure; {arguments.repeats} repeats a row\n")
    print("| how | boards | n | of what | truly missed, mean | coverage | 95 % interval |")
    print("|---|---|---|---|---|---|---|")
    for title, world, way, what in ROWS:
        held, rate = kept(world, way, what, repeats=arguments.repeats, seed=arguments.seed)
        low, high = clopper_pearson(held, arguments.repeats)
        print(
            f"| {TITLES[way]} | {title} | {world.num_boards} | {what} | {rate:.2%} "
            f"| {held / arguments.repeats:.1%} | {low:.1%} to {high:.1%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
