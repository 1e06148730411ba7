"""The preview of thresholds against three boards counted by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from inspect_vit.calibration import parse_target
from serving.config import ServingConfig
from serving.line_tables import ChallengeRunRow
from serving.preview import make_preview, mode_of, read_reviewed
from serving.preview_schemas import Preview
from serving.store import Store
from tests.serving.reviewed import Line

VERSION = "0123456789ab"
"""Of the model that made the inspections."""


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    store = Store(ServingConfig(home=tmp_path, min_free_mb=0.0))
    yield Line(store)
    store.close()


def add(
    line: Line, serial: str, *calls: tuple[str, float], verdict: str = "FAIL", recipe: str = "panel"
) -> str:
    return line.inspect("2026-03-02T08:00+00:00", verdict, *calls, serial=serial, recipe=recipe)


def preview(line: Line, *targets: str, label: str | None = None) -> Preview:
    boards = read_reviewed(line.store.engine, "panel", VERSION)
    return make_preview(
        line.store.engine,
        boards,
        recipe="panel",
        model_version=VERSION,
        mode=mode_of(boards, has_references=True),
        thresholds={"open": 0.3, "short": 0.4},
        targets=[parse_target(target) for target in targets],
        label=label,
    )


def three_boards(line: Line) -> None:
    """Shorts: one called at 0.9, one at 0.5 beside a false call at 0.6, one never proposed."""
    line.review(add(line, "A", ("short", 0.9)), ("real", "short"), final="bad")
    two = add(line, "B", ("short", 0.6), ("short", 0.5))
    line.review(two, ("false_call", "short"), ("real", "spur"), final="bad")
    drawn = add(line, "C", verdict="PASS")
    line.review(drawn, final="bad", missed=["short"])


def test_each_threshold_loses_what_a_count_by_hand_says(line: Line) -> None:
    three_boards(line)
    found = preview(line, label="short")
    assert (found.boards, found.audited, found.reference_mode) == (3, 1, "with_reference")
    (short,) = found.classes
    assert (short.threshold, short.real, short.false_calls) == (0.4, (0.9, 0.5), (0.6,))
    assert (short.missed, short.boards) == (1, 3)
    assert [(at.threshold, at.misses, at.false_calls) for at in short.points] == [
        (0.4, 1, 1),
        (0.5, 1, 1),
        (0.6, 2, 1),
        (0.9, 2, 0),
    ]
    # One of three boards missed: (1 - p)^3 + 3 p (1 - p)^2 = 0.05. Two of three: 1 - p^3 = 0.05.
    one, two = short.points[0].miss_bound, short.points[-1].miss_bound
    assert one is not None and (1 - one) ** 3 + 3 * one * (1 - one) ** 2 == pytest.approx(0.05)
    assert two == pytest.approx(0.95 ** (1 / 3))


def test_a_target_says_how_many_boards_it_lacks(line: Line) -> None:
    for number in range(3):
        board = add(line, f"SN-{number}", ("short", 0.9))
        line.review(board, ("real", "short"), final="bad")
    found = preview(line, "short: 5% @ 95%", "5% @ 95%", "open: 1% @ 95%")
    open_, short = found.classes
    assert [state.more_boards for state in short.targets] == [59 - 3]
    assert "needs 56 more boards with a confirmed defect of class short" in short.targets[0].words
    assert [state.more_boards for state in found.targets] == [59 - 3]
    assert [state.more_boards for state in open_.targets] == [299]
    line.review(add(line, "missed", verdict="PASS"), final="bad", missed=["short"])
    # With one missed, 93 boards keep the bound of 5 %: 0.95^93 + 93 * 0.05 * 0.95^92 < 0.05, and not with 92.
    assert [state.more_boards for state in preview(line, "short: 5% @ 95%").classes[1].targets] == [93 - 4]
    for number in range(3):
        line.review(add(line, f"M-{number}", verdict="PASS"), final="bad", missed=["short"])
    hopeless = preview(line, "short: 5% @ 95%").classes[1].targets[0]
    assert hopeless.more_boards is None, "4 of 7 are missed"


def test_what_says_nothing_of_these_scores_is_left_out(line: Line) -> None:
    three_boards(line)
    before = preview(line)
    unfinished, hasty, shown, other = (add(line, serial, ("short", 0.7)) for serial in "DEFG")
    line.review(unfinished, ("real", "short"), final=None)
    line.review(hasty, ("false_call", "short"), final="good", is_hasty=True)
    line.review(shown, ("real", "short"), final="bad")
    with Session(line.store.engine) as session:
        session.add(ChallengeRunRow(inspection=shown, recipe="panel", serial="F", is_found=True))
        session.commit()
    assert other
    line.review(add(line, "H", ("short", 0.7), recipe="other"), ("real", "short"), final="bad")
    assert preview(line) == before
    assert read_reviewed(line.store.engine, "panel", "another version") == []
    alone = line.inspect(
        "2026-03-01T08:00+00:00", "FAIL", ("short", 0.7), recipe="panel", has_reference=False
    )
    line.review(alone, ("real", "short"), final="bad")
    assert preview(line) == before, "scores without a reference are others"


def test_two_pictures_of_a_board_are_one_board(line: Line) -> None:
    for score in (0.9, 0.35):
        line.review(add(line, "A", ("short", score)), ("real", "short"), final="bad")
    (short,) = preview(line, label="short").classes
    assert (short.boards, len(short.real)) == (1, 2)
    assert short.points[0].misses == 1, "0.35 lies below the threshold in force"


def test_a_class_that_the_model_does_not_know_is_listed(line: Line) -> None:
    line.review(add(line, "A", verdict="PASS"), final="bad", missed=["scratch"])
    scratch = preview(line).classes[-1]
    assert (scratch.label, scratch.threshold, scratch.missed, scratch.points) == ("scratch", None, 1, ())
    assert preview(line, label="nothing of that name").classes == ()
