"""What reviewed boards allow of a threshold set by hand, what they refuse, and what is claimed after it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from inspect_vit.calibration import CalibrationReport, Claim, FoundBy, parse_target
from inspect_vit.results import Defect, Verdict
from serving.errors import ThresholdRefusedError
from serving.preview import NEVER, ClassScores, ReviewedBoard
from serving.review_schemas import CallWord, Document, Missed
from serving.threshold_calibration import recalibrated
from serving.threshold_gate import Examined, decide
from serving.threshold_schemas import ThresholdGate, ThresholdRequest
from serving.threshold_trials import MAX_TRIALS, Trials, may_call, note_calls, with_trials
from tests.serving.boards import Boards

IN_FORCE = {"open": 0.3, "short": 0.4}
SHARES = {"4": 1.0, "16": 0.0, "32": 0.0}


def ask(threshold: float, **more: Any) -> ThresholdRequest:
    return ThresholdRequest(label="short", threshold=threshold, reason="missed on SN-17", **more)


def reviewed(number: int, *, is_good: bool, passed: bool = False, **more: Any) -> ReviewedBoard:
    made: dict[str, Any] = {
        "inspection": f"{number:032x}", "key": f"serial SN-{number}", "board": f"SN-{number}", "revision": 1,
        "score": 0.9, "is_good": is_good, "is_audited": passed, "has_reference": True, "words": {},
        "missed": (),
    }  # fmt: skip
    return ReviewedBoard(**{**made, **more})


def with_shorts(*scores: float, num_passed: int = 0, trials: Trials | None = None) -> Examined:
    """One board for each short, by its score, and good boards that passed and were drawn."""
    shorts = ClassScores()
    for n, score in enumerate(scores):
        shorts.add_defect(f"serial SN-{n}", score)
        if score == NEVER:
            shorts.missed += 1
        else:
            shorts.real.append(score)
    boards = [reviewed(n, is_good=False, passed=score == NEVER) for n, score in enumerate(scores)]
    boards += [reviewed(len(scores) + n, is_good=True, passed=True) for n in range(num_passed)]
    return Examined(boards, {"short": shorts}, trials or Trials())


def gate(examined: Examined, asked: ThresholdRequest, *targets: str) -> ThresholdGate:
    return decide(examined, asked, IN_FORCE["short"], [parse_target(target) for target in targets])[1]


def test_a_higher_threshold_may_miss_what_the_target_allows() -> None:
    # 0.95^59 < 0.05, and not 0.95^58: of 59 boards none may be missed, of 58 there are too few.
    assert gate(with_shorts(*[0.9] * 59), ask(0.8), "short: 5% @ 95%").boards_newly_missed == 0
    with pytest.raises(ThresholdRefusedError, match="0 of 58 boards missed, needs 1 more boards with a conf"):
        gate(with_shorts(*[0.9] * 58), ask(0.8), "short: 5% @ 95%")
    # With one missed, 93 boards keep it: 0.95^93 + 93 * 0.05 * 0.95^92 < 0.05, and not with 92.
    one_low = with_shorts(0.5, *[0.9] * 91)
    with pytest.raises(ThresholdRefusedError, match=r"^threshold: 0.8 for short instead") as told:
        gate(one_low, ask(0.8), "short: 5% @ 95%")
    assert "1 of 92 boards with a confirmed defect of class short would be newly missed" in str(told.value)
    assert "at most 5 % of boards with a defect of class short have one missed" in str(told.value)
    assert "needs 1 more boards" in str(told.value)
    assert told.value.hint == "newly missed: serial SN-0"
    assert gate(one_low, ask(0.5), "short: 5% @ 95%").boards_newly_missed == 0, "0.5 reaches 0.5"
    assert gate(with_shorts(0.5, *[0.9] * 92), ask(0.8), "short: 5% @ 95%").boards_newly_missed == 1


def test_what_is_missed_anyway_counts_for_the_target_and_is_not_newly_missed() -> None:
    lost = with_shorts(NEVER, 0.3, *[0.9] * 147)
    # Without a target: 0.98^149 < 0.05, as a new model's gate has it.
    found = gate(lost, ask(0.8))
    assert (found.num_defect_boards, found.boards_newly_missed) == (149, 0)
    with pytest.raises(ThresholdRefusedError, match="2 of 149 boards missed, needs"):
        gate(lost, ask(0.8), "2% @ 95%")
    with pytest.raises(ThresholdRefusedError, match="more boards would not help"):
        gate(with_shorts(*[NEVER] * 9, *[0.9] * 11), ask(0.8), "short: 5% @ 95%")
    # The class's own target comes before that of all classes.
    assert gate(lost, ask(0.8), "2% @ 95%", "short: 10% @ 95%").boards_newly_missed == 0


def test_a_lower_threshold_says_how_many_good_boards_it_calls() -> None:
    trials = Trials(newly_called={"serial SN-3", "serial SN-5"})
    seen = with_shorts(NEVER, 0.9, num_passed=20, trials=trials)
    with pytest.raises(
        ThresholdRefusedError, match="2 of 20 good boards that passed would be called"
    ) as told:
        gate(seen, ask(0.2))
    assert told.value.hint.startswith("newly called: serial SN-3, serial SN-5; send accept_false_calls")
    taken = gate(seen, ask(0.2, accept_false_calls=True))
    assert (taken.num_good_boards, taken.boards_newly_called) == (20, 2)
    # Two or fewer of 20 at this rate: one in twenty.
    p = taken.bound
    assert p is not None
    tail = (1 - p) ** 20 + 20 * p * (1 - p) ** 19 + 190 * p**2 * (1 - p) ** 18
    assert tail == pytest.approx(0.05)
    clean = gate(with_shorts(0.9, num_passed=20), ask(0.2))
    assert (clean.boards_newly_called, clean.bound) == (0, pytest.approx(1 - 0.05 ** (1 / 20)))


def test_where_no_good_board_was_reviewed_nothing_is_known_of_false_calls() -> None:
    with pytest.raises(ThresholdRefusedError, match="nothing is known"):
        gate(with_shorts(0.9), ask(0.2))
    assert gate(with_shorts(0.9), ask(0.2, accept_false_calls=True)).bound is None


def test_boards_that_are_found_whole_again_are_counted() -> None:
    found = gate(with_shorts(0.25, 0.35, NEVER, 0.9, num_passed=1), ask(0.3))
    assert (found.boards_newly_found, found.boards_newly_missed) == (1, 0)


def test_only_pictures_whose_highest_score_reaches_the_threshold_are_tried() -> None:
    scores = [0.9, 0.29, 0.3, 0.1]
    boards = [reviewed(n, is_good=True, score=score) for n, score in enumerate(scores)]
    assert [may_call(board, 0.3) for board in boards] == [True, False, True, False]
    many = [reviewed(n, is_good=True, score=(0.1, 0.9)[n % 2]) for n in range(2 * MAX_TRIALS + 9)]
    assert with_trials(many, 0.3) == many[: 2 * MAX_TRIALS + 1], "up to the trial that is one too many"


def test_a_call_finds_a_missed_defect_or_is_made_in_vain() -> None:
    boards = Boards()
    report = boards.report()  # one call of class short at (1.5, 2, 9.25, 14)
    calls = (
        Defect("short", 0.39, (20.0, 2.0, 28.0, 12.0), 16, SHARES),  # on the drawn defect
        Defect("short", 0.38, (1.5, 12.0, 9.25, 20.0), 16, SHARES),  # touches the call that is real
        Defect("short", 0.37, (14.0, 16.0, 18.0, 20.0), 16, SHARES),  # nothing there
        Defect("open", 0.36, (14.0, 16.0, 18.0, 20.0), 16, SHARES),  # another class
        Defect("short", 0.45, (10.0, 16.0, 13.0, 20.0), 16, SHARES),  # called before, too
    )
    result = dataclasses.replace(boards.result, verdict=Verdict.PASS, defects=calls)
    missed = (
        Missed(label="short", box_xyxy=(20.0, 2.0, 29.0, 12.0)),
        Missed(label="open", polygon=((20.0, 2.0), (29.0, 2.0), (29.0, 12.0), (20.0, 12.0))),
    )
    for word, is_good, in_vain in (("real", False, [0.37]), ("false_call", True, [0.38, 0.37])):
        said = Document(calls=(CallWord(defect=1, word=word, label="short"),), missed=missed)
        trials, board = Trials(), reviewed(7, is_good=is_good, passed=True)
        note_calls(trials, board, result, said, report, "short", in_force=0.4)
        assert trials.found == {(board.inspection, 0): 0.39}, "the other drawn defect is of another class"
        assert trials.false_calls == [("serial SN-7", score) for score in in_vain]
        assert trials.newly_called == ({"serial SN-7"} if is_good else set())
    failed = dataclasses.replace(result, verdict=Verdict.ERROR, defects=())
    trials = Trials()
    note_calls(trials, reviewed(7, is_good=True), failed, Document(), report, "short", in_force=0.4)
    assert trials == Trials(not_inspected={f"{7:032x}"})


def promised(*labels: str | None, valid: bool = True) -> CalibrationReport:
    """What `inspect-vit calibrate` claimed: at most 1 % of each class, kept."""
    claims = tuple(
        Claim(
            label=label, max_miss_rate=0.01, confidence=0.95, kept=True, num_defects=400, num_boards=400,
            boards_missed=0, boards_missed_anyway=0, bound=0.0075, more_boards=0, words="kept",
        )
        for label in labels
    )  # fmt: skip
    return CalibrationReport(
        valid=valid, void_because=(), claims=claims, n=900, recipe="panel", camera=None, date="2026-01-01"
    )


@pytest.mark.parametrize(
    ("to", "found_by", "still_kept"),
    [
        # No defect is missed by a threshold that falls, nor by that of another class.
        (0.2, "own class", [None, "open", "short"]),
        (0.2, "any class", [None, "open", "short"]),
        (0.6, "own class", ["open"]),
        # Where any call finds a defect, a call of class short that is gone may have been the one.
        (0.6, "any class", []),
    ],
)
def test_a_claim_outlives_a_change_that_cannot_break_it(
    to: float, found_by: FoundBy, still_kept: list[str | None]
) -> None:
    targets = [parse_target(text) for text in ("1% @ 95%", "open: 1% @ 95%", "short: 1% @ 95%")]
    seen = with_shorts(*[0.9] * 400)

    def made(before: CalibrationReport | None) -> Any:
        return recalibrated(
            seen, thresholds={**IN_FORCE, "short": to}, own_thresholds=IN_FORCE, changed="short",
            is_raised=to > IN_FORCE["short"], targets=targets, before=before, found_by=found_by,
            model=("nano", "0123456789ab"), mode="with_reference", recipe="panel", camera=None,
        )  # fmt: skip

    found = made(promised(None, "open", "short"))
    assert [claim.label for claim in found.claims if claim.kept] == still_kept
    assert all(claim.num_boards == 400 and claim.words == "kept" for claim in found.claims if claim.kept)
    assert found.joint_confidence == pytest.approx(1 - 0.05 * len(still_kept))
    for before in (None, promised(None, "open", "short", valid=False)):
        claims = made(before).claims
        # Four hundred boards without a miss would do for the rate; they are no sample of all boards.
        assert not any(claim.kept or claim.bound is not None for claim in claims)
        assert "inspect-vit calibrate makes this claim" in claims[2].words
    assert all(one.bound is None for one in found.classes)


def test_a_calibration_counts_what_the_thresholds_do() -> None:
    seen = with_shorts(NEVER, 0.25, 0.9, num_passed=2)
    seen.classes["short"].add_false_call("serial SN-9", 0.35)
    seen.classes["short"].add_false_call("serial SN-9", 0.5)
    scratches = ClassScores(missed=1)
    scratches.add_defect("serial SN-4", NEVER)
    found = recalibrated(
        dataclasses.replace(seen, classes={**seen.classes, "scratch": scratches}),
        thresholds={"open": 0.3, "short": 0.2}, own_thresholds=IN_FORCE, changed="short", is_raised=False,
        targets=[], before=None, found_by="own class", model=("nano", "0123456789ab"), mode="with_reference",
        recipe="panel", camera="line 3",
    )  # fmt: skip
    assert (found.thresholds, found.camera, found.num_boards) == ({"open": 0.3, "short": 0.2}, "line 3", 5)
    figures = {one.label: one for one in found.classes}
    short, together = figures["short"], figures[None]
    assert (short.num_defects, short.defects_missed, short.num_boards, short.boards_missed) == (3, 1, 3, 1)
    assert (short.threshold, short.own_threshold) == (0.2, 0.4)
    # The class that the model does not know is missed, too.
    assert (together.num_defects, together.defects_missed, together.num_boards) == (4, 2, 4)
    false = found.false_calls
    assert (false.num_calls, false.boards_with, false.per_board, false.per_board_own) == (2, 1, 0.4, 0.2)
