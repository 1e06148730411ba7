"""The watch on its store: baselines and alarms survive a restart, and what resets them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from serving.alarms import list_alarms
from serving.audit import read_audit
from serving.config import ServingConfig
from serving.drift import Sight, Watch, judge
from serving.errors import NotFoundError
from serving.metrics import Metrics
from serving.repeaters import Call
from serving.roles import Actor, Role
from serving.store import Store
from tests.serving.watched_line import VIEW, Line

ENGINEER = Actor("Ada", Role.ENGINEER)
OPEN = {"recipe": "panel 7", "kind": "drift", "subject": "mean_grey"}


class WatchedLine(Line):
    """A line whose boards a server of its own watches."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self.start_server()

    def start_server(self) -> None:
        self.metrics = Metrics()
        self.watch = Watch(self.store.engine, self.metrics)

    def post(self, *asked: Any, **changes: Any) -> Sight:
        with self.watch.turn:
            sight = self.watch.look(self.seen(*asked, **changes))
            self.watch.keep(sight)
        return sight

    def post_many(self, number: int, *asked: Any, **changes: Any) -> None:
        """Boards that raise nothing; only what is known after the last is stored, which saves time."""
        with self.watch.turn:
            sight = self.watch.look(self.seen(*asked, **changes))
            for _ in range(number - 1):
                sight = judge(sight.state, [], self.seen(*asked, **changes))
                assert sight.warnings == ()
            self.watch.keep(sight)

    def alarm(self) -> int:
        """A lamp that loses light until there is an alarm: its number."""
        for light in (0.98, 0.97, 0.96, 0.95):
            if self.post(150.0 * light).alarms:
                return list_alarms(self.store.engine, limit=1)[0].id
        raise AssertionError("no alarm when 5 % of the light is gone")

    def gauge(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)

    def learnt(self) -> float | None:
        labels = {"recipe": "panel 7", "reference": "top", "statistic": "mean_grey"}
        return self.gauge("inspect_vit_baseline_boards", **labels)


@pytest.fixture
def line(config: ServingConfig) -> Iterator[WatchedLine]:
    with contextlib.closing(Store(config)) as store:
        yield WatchedLine(store)


def test_baseline_and_open_alarms_survive_a_restart(line: WatchedLine) -> None:
    line.post_many(30)
    line.start_server()
    line.post_many(30)
    assert line.learnt() == 50
    number = line.alarm()
    entry = read_audit(line.store.engine, limit=1)[0]
    assert (entry.actor, entry.action, entry.object) == ("(service)", "alarm_raised", f"alarm {number}")
    assert line.gauge("inspect_vit_open_alarms", **OPEN) == 1
    line.start_server()
    assert line.gauge("inspect_vit_open_alarms", **OPEN) == 1
    sight = line.post(150.0 * 0.9)
    assert (sight.alarms, len(sight.warnings)) == ([], 1)
    labels = {"recipe": "panel 7", "reference": "top", "statistic": "mean_grey"}
    off = line.gauge("inspect_vit_drift_spreads", **labels)
    assert off is not None
    assert off < -2


def test_another_revision_or_model_learns_anew_and_another_reference_or_camera_beside(
    line: WatchedLine,
) -> None:
    line.post_many(60)
    number = line.alarm()
    for changes in ({"reference": "bottom"}, {"camera": "line 4"}):
        line.post_many(25, 90.0, view=replace(VIEW, **changes))  # type: ignore[arg-type]
        assert line.post(150.0 * 0.95).warnings, "these boards are watched as before"
    line.post_many(20, 120.0, view=replace(VIEW, revision=2))
    assert line.learnt() == 20
    newest = replace(VIEW, revision=2, model_version="f" * 12)
    line.post_many(20, 130.0, view=newest)
    line.watch.acknowledge(number, ENGINEER, note="", new_baseline=True)
    assert line.post(130.0, view=newest).warnings == ()
    assert line.learnt() == 21, "an alarm of before takes nothing from what is learnt now"


def test_an_alarm_that_was_closed_comes_again_unless_the_cause_is_gone(line: WatchedLine) -> None:
    line.post_many(60)
    number = line.alarm()
    closed = line.watch.acknowledge(number, ENGINEER, note="lamp cleaned", new_baseline=False)
    assert (closed.acknowledged_by, closed.note) == ("Ada", "lamp cleaned")
    assert closed.acknowledged is not None
    assert list_alarms(line.store.engine, limit=9) == []
    assert line.gauge("inspect_vit_open_alarms", **OPEN) is None
    entry = read_audit(line.store.engine, limit=1)[0]
    assert (entry.actor, entry.action, entry.details["note"]) == ("Ada", "alarm_acknowledged", "lamp cleaned")
    again = line.watch.acknowledge(number, Actor("Bob", Role.ADMIN), note="mine", new_baseline=True)
    assert again == closed, "what was closed stays as it was"
    assert line.learnt() == 50
    second = line.alarm()
    line.watch.acknowledge(second, ENGINEER, note="", new_baseline=True)
    line.post_many(60, 150.0 * 0.93)
    with pytest.raises(NotFoundError, match="no alarm 12345"):
        line.watch.acknowledge(12345, ENGINEER, note="", new_baseline=False)


def test_a_repeater_that_was_closed_takes_three_more_boards(line: WatchedLine) -> None:
    short = Call("short", 400.0, 200.0)
    raised = [bool(line.post(150.0, short).alarms) for _ in range(4)]
    assert raised == [False, False, True, False]
    (alarm,) = list_alarms(line.store.engine, limit=9)
    assert alarm.repeater is not None
    assert (alarm.kind, alarm.repeater.place_mm, len(alarm.repeater.inspections)) == (
        "repeater",
        (10.0, 5.0),
        3,
    )
    line.watch.acknowledge(alarm.id, ENGINEER, note="screen cleaned", new_baseline=False)
    assert [bool(line.post(150.0, short).alarms) for _ in range(3)] == [False, False, True]
    ids = [one.id for one in list_alarms(line.store.engine, limit=9, only_open=False)]
    assert ids == sorted(ids, reverse=True)
    assert [one.id for one in list_alarms(line.store.engine, limit=9)] == ids[:1]
    assert [one.id for one in list_alarms(line.store.engine, limit=9, before=ids[0], only_open=False)] == [
        alarm.id
    ]
    assert list_alarms(line.store.engine, limit=9, recipe="panel 8") == []


def test_a_state_that_cannot_be_read_is_learnt_anew(line: WatchedLine) -> None:
    line.post_many(20)
    with line.store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE drift_states SET state = '{\"charts\": 7}'"))
    line.post()
    assert line.learnt() == 1


def test_a_database_that_fails_after_the_inspection_was_stored_is_told_of(line: WatchedLine) -> None:
    sight = line.watch.look(line.seen())
    with line.store.engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE drift_states"))
    line.watch.keep(sight)
    assert line.gauge("inspect_vit_watch_failures_total") == 1
