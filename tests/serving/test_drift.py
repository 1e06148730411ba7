"""What a board means beside those before it: drift, defects that repeat, and what counts for neither."""

from __future__ import annotations

from datetime import timedelta

import pytest

from serving.alarm_schemas import DriftDetails, RepeaterDetails
from serving.drift import MAX_OPEN_REPEATERS, Board, Sight
from serving.repeaters import Call
from tests.serving.watched_line import START, Line

SHORT = Call("short", 400.0, 200.0)


def fade(line: Line) -> Sight:
    """The lamp loses half a percent a board, until there is an alarm."""
    for number in range(1, 9):
        sight = line.post(150.0 * (1 - 0.005 * number))
        if sight.alarms:
            return sight
    raise AssertionError("no alarm when 4 % of the light is gone")


def test_a_fading_lamp_raises_one_alarm_that_says_what_moved_how_far_since_when() -> None:
    line = Line()
    for _ in range(60):
        assert line.post().warnings == ()
    (alarm,) = fade(line).alarms
    assert (alarm.kind, alarm.subject) == ("drift", "mean_grey")
    found = alarm.details
    assert isinstance(found, DriftDetails)
    assert found.baseline == pytest.approx(150.0, rel=0.003)
    assert 150 * (1 - 0.005 * 8) < found.now < 150
    assert found.spreads < -1
    assert abs(found.since - (START + timedelta(minutes=60))) <= timedelta(minutes=5)
    assert found.inspection == f"{line.number - 1:032d}"
    later = line.post(150.0 * 0.9)
    assert later.alarms == [], "one alarm while it is open"
    (warning,) = later.warnings
    assert warning.startswith("drift: mean grey is ")
    assert f"% below the recipe's baseline since {found.since:%Y-%m-%d %H:%M} UTC" in warning


def test_boards_are_warned_of_until_the_lamp_is_back() -> None:
    line = Line()
    for _ in range(60):
        line.post()
    fade(line)
    assert [bool(line.post().warnings) for _ in range(20)][-1] is False
    assert len(line.open) == 1, "the alarm waits for somebody"


def test_the_same_picture_again_and_a_board_that_was_not_inspected_count_for_nothing() -> None:
    line = Line()
    same = Board(image_sha256="a" * 64, serial=None)
    for _ in range(5):
        line.post(board=same)
        line.post(measured={})
    assert line.state.charts["mean_grey"].num_learnt == 1


def test_the_same_defect_on_three_boards_running_names_class_place_and_inspections() -> None:
    line = Line()
    line.post(150.0, SHORT)
    line.post(150.0, SHORT._replace(x=405.0), Call("open", 90.0, 90.0))
    sight = line.post(150.0, SHORT._replace(x=410.0))
    (alarm,) = sight.alarms
    found = alarm.details
    assert isinstance(found, RepeaterDetails)
    assert (alarm.kind, alarm.subject, found.label) == ("repeater", "short", "short")
    assert (found.place_px, found.place_mm) == ((400.0, 200.0), (10.0, 5.0))
    assert found.inspections == tuple(f"{number:032d}" for number in range(3))
    assert sight.warnings == (alarm.message,)
    assert "short at (10.00, 5.00) mm on 3 boards running" in alarm.message
    assert "a mask or screen defect repeats" in alarm.message
    again = line.post(150.0, SHORT)
    assert (again.alarms, again.warnings) == ([], (alarm.message,)), "one alarm while it is open"
    assert line.post(150.0).warnings == (), "a board without it is not warned of"


def test_a_board_that_could_not_be_inspected_neither_ends_nor_makes_a_repeater() -> None:
    line = Line()
    for changes in ({}, {"measured": {}}, {}, {"measured": {}}):
        assert line.post(150.0, SHORT, **changes).alarms == []
    assert len(line.post(150.0, SHORT).alarms) == 1


def test_one_board_that_is_looked_at_again_does_not_repeat_itself() -> None:
    line = Line()
    for number in range(6):
        board = Board(image_sha256=f"{number:064d}", serial=f"SN-{number % 2}")
        assert line.post(150.0, SHORT, board=board).alarms == []


def test_a_process_that_fails_as_a_whole_raises_a_bounded_number_of_alarms() -> None:
    line = Line()
    for _ in range(5):
        line.post(150.0, *(Call("short", 100.0 * n, 0.0) for n in range(60)))
    assert len(line.open) == MAX_OPEN_REPEATERS
