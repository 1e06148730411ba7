"""Thresholds that keep a promise: by hand, against exhaustive search, and on simulated boards."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.coverage import SIX, World, best_f, by_board, by_defect, free_search, kept
from inspect_vit.board_evidence import Evidence, gather, misses_by_board
from inspect_vit.calibration import Target
from inspect_vit.guarantee import choose
from inspect_vit.matching import Detections, Truths

LEFT, RIGHT, FAR = (0, 0, 10, 10), (20, 0, 30, 10), (80, 80, 90, 90)
OWN = np.array([0.5, 0.5])


def detections(*calls: tuple[tuple[int, int, int, int], float, int]) -> Detections:
    boxes = np.array([box for box, _, _ in calls], np.float32).reshape(-1, 4)
    scores = np.array([score for _, score, _ in calls], np.float32)
    return Detections(boxes, scores, np.array([label for _, _, label in calls], np.int64))


def truths(*defects: tuple[tuple[int, int, int, int], int]) -> Truths:
    boxes = np.array([box for box, _ in defects], np.float32).reshape(-1, 4)
    return Truths(boxes, np.array([label for _, label in defects], np.int64))


def scored(scores: list[float], *, false: list[float] = (), label: int = 0) -> Evidence:
    """One defect of a class on each board, found at these scores (0: never), and false calls of the class on
    board 0."""
    finding = np.zeros((len(scores), 2))
    finding[:, label] = scores
    return Evidence(
        num_boards=len(scores),
        defect_boards=np.arange(len(scores)),
        defect_labels=np.full(len(scores), label),
        finding_scores=finding,
        false_boards=np.zeros(len(false), np.int64),
        false_labels=np.full(len(false), label),
        false_scores=np.array(false, np.float64),
        lowest_score=0.01,
    )


def test_pictures_are_pooled_into_boards() -> None:
    calls = [
        detections((LEFT, 0.9, 0), (FAR, 0.4, 1)),
        detections((LEFT, 0.7, 1), (RIGHT, 0.6, 0)),
        detections((FAR, 0.8, 0)),
    ]
    labelled = [truths((LEFT, 0)), truths((LEFT, 0), (RIGHT, 1)), truths()]
    evidence = gather(calls, labelled, ["a", "a", "b"], 2, lowest_score=0.01)
    assert evidence.num_boards == 2
    assert evidence.defect_boards.tolist() == [0, 0, 0]
    np.testing.assert_allclose(evidence.finding_scores, [[0.9, 0], [0, 0.7], [0.6, 0]], atol=1e-6)
    assert (evidence.false_boards.tolist(), evidence.false_labels.tolist()) == ([0, 1], [1, 0])
    assert evidence.false_scores == pytest.approx([0.4, 0.8])
    # Two of three defects lack a call of their own class; they lie on one board, which is one miss of one.
    assert misses_by_board(evidence, OWN, None, "own class") == (1, 1)
    assert misses_by_board(evidence, OWN, None, "any class") == (0, 1)
    assert misses_by_board(evidence, OWN, 1, "own class") == (1, 1)


def test_the_threshold_is_the_highest_that_the_target_bears() -> None:
    # 93 boards may miss one at 5 %, 95 % sure: found down to the second lowest score, 0.3.
    evidence = scored([0.2, 0.3, *np.linspace(0.4, 0.99, 91)], false=[0.1, 0.25, 0.29, 0.35, 0.6])
    choice = choose(evidence, ["a", "b"], OWN, [Target(label="a", max_miss_rate=0.05)])
    (claim,) = choice.claims
    assert (claim.kept, claim.num_boards, claim.boards_missed, claim.more_boards) == (True, 93, 1, 0)
    assert claim.bound == pytest.approx(0.05, abs=2e-4)
    # Between the last defect that is found and the next call below it, which is a false one.
    assert 0.29 < choice.thresholds[0] < 0.3
    assert choice.thresholds[1] == 0.5
    assert (choice.false_calls.num_calls, choice.false_calls.per_board_own) == (2, pytest.approx(1 / 93))
    assert choice.classes[0].bound == claim.bound
    assert choice.classes[1].bound is None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("found_by", ["own class", "any class"])
def test_no_threshold_that_keeps_the_target_has_fewer_false_calls(seed: int, found_by: str) -> None:
    evidence = World(80 + 40 * seed, 2, 0.3).draw(np.random.default_rng(seed))
    target = Target(label="a", max_miss_rate=0.06)
    choice = choose(evidence, ["a"], OWN[:1], [target], found_by=found_by)
    n = evidence.num_boards
    fewest = min(
        np.count_nonzero(evidence.false_scores >= limit)
        for limit in evidence.finding_scores[:, 0]
        if binom.cdf(misses_by_board(evidence, np.array([limit]), 0, found_by)[0], n, 0.06) <= 0.05
    )
    assert choice.false_calls.num_calls == fewest


def test_too_few_boards_say_how_many_are_lacking() -> None:
    choice = choose(scored([0.9] * 100), ["a", "b"], OWN, [Target(label="a", max_miss_rate=0.01)])
    (claim,) = choice.claims
    assert (claim.kept, claim.bound, claim.more_boards) == (False, None, 199)
    assert "insufficient" in claim.words
    assert "199 more boards with a confirmed defect of class a" in claim.words
    assert choice.thresholds.tolist() == OWN.tolist()
    none = choose(scored([0.9] * 9), ["a", "b"], OWN, [Target(label="b", max_miss_rate=0.05)]).claims[0]
    assert (none.kept, none.num_boards, none.more_boards) == (False, 0, 59)


def test_a_defect_that_no_call_finds_is_a_miss_at_every_threshold() -> None:
    target = Target(label="a", max_miss_rate=0.05)
    (claim,) = choose(scored([0.0, *[0.9] * 59]), ["a", "b"], OWN, [target]).claims
    assert (claim.kept, claim.boards_missed_anyway, claim.more_boards) == (False, 1, 93 - 60)
    (claim,) = choose(scored([0.0, *[0.9] * 92]), ["a", "b"], OWN, [target]).claims
    assert (claim.kept, claim.boards_missed) == (True, 1)
    (claim,) = choose(scored([0.0] * 30 + [0.9] * 70), ["a", "b"], OWN, [target]).claims
    assert (claim.kept, claim.more_boards) == (False, None)
    assert "more boards would not help" in claim.words


def test_every_claim_holds_at_thresholds_that_serve_them_all() -> None:
    evidence = World(400, 2, 0.4, (3.0, 2.0)).draw(np.random.default_rng(3))
    asked = [
        Target(label="a", max_miss_rate=0.03),
        Target(label="b", max_miss_rate=0.30),
        Target(max_miss_rate=0.10),
    ]
    together = choose(evidence, ["a", "b"], OWN, asked)
    assert all(claim.kept for claim in together.claims)
    assert together.joint_confidence == pytest.approx(0.85)
    alone = [choose(evidence, ["a", "b"], OWN, [target]).thresholds for target in asked]
    assert together.thresholds[0] == pytest.approx(min(alone[0][0], alone[2][0]))
    assert together.thresholds[1] == pytest.approx(min(alone[1][1], alone[2][1]))
    for claim, target in zip(together.claims, asked, strict=True):
        label = None if target.label is None else "ab".index(target.label)
        missed, n = misses_by_board(evidence, together.thresholds, label, "own class")
        assert (claim.boards_missed, claim.num_boards) == (missed, n)
        assert binom.cdf(missed, n, target.max_miss_rate) <= 0.05


def test_a_class_without_defects_among_the_boards_is_never_raised() -> None:
    high, low = scored([0.9] * 80, false=[0.8]), scored([0.2] * 80)
    raised = choose(high, ["a", "b"], OWN, [Target(max_miss_rate=0.05)]).thresholds
    assert raised[0] > 0.8
    assert raised[1] == 0.5
    lowered = choose(low, ["a", "b"], OWN, [Target(max_miss_rate=0.05)]).thresholds
    assert lowered[0] < 0.2
    assert lowered[1] == pytest.approx(lowered[0])


REPEATS = 300


def least(repeats: int) -> int:
    """A way that covers 95 % holds less often than this once in a thousand tests."""
    return int(binom.ppf(0.001, repeats, 0.95))


@pytest.mark.parametrize(
    "world",
    [World(93), World(93, 7), World(93, 7, 0.9), World(311, 3, 0.5, SIX)],
    ids=["one defect", "seven", "seven that hang together", "six classes"],
)
def test_the_claim_holds_as_often_as_it_says(world: World) -> None:
    held, missed = kept(world, by_board, "boards", repeats=REPEATS)
    assert held >= least(REPEATS)
    # Nor is it cautious without need: the share that is missed comes near what was allowed.
    assert missed > 0.35 * 0.05


def test_the_simulation_can_tell_a_way_that_does_not_hold() -> None:
    assert kept(World(93, 7), by_defect, "defects", repeats=REPEATS)[0] >= least(REPEATS)
    for world, way, what, repeats in (
        (World(93, 7, 0.9), by_defect, "defects", REPEATS),
        (World(93), best_f, "boards", 4 * REPEATS),
        (World(311, class_logits=SIX), free_search, "boards", 50),
    ):
        assert kept(world, way, what, repeats=repeats)[0] < least(repeats), way.__name__
