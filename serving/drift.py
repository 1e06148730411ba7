"""Watches every recipe's boards: drift against the recipe's own baseline, and defects that repeat.

Boards are compared with those of the same recipe revision, reference, camera and model version; when one of
these changes, the baseline is learnt anew. What is known is one row per recipe, reference and camera, so that
it survives a restart and outlives the inspections it was learnt from. `look` says what a board means before
its report is stored, `keep` stores that afterwards: a board whose report could not be stored never counted.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import Field, ValidationError
from sqlalchemy import Engine
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from inspect_vit.config import Frozen
from serving.alarm_schemas import AlarmReport, DriftDetails, RepeaterDetails
from serving.alarms import Alarm, View, acknowledge, count_open, get_row, open_alarms, raise_alarm, report_of
from serving.audit import utc_now
from serving.control_chart import Chart
from serving.database import AlarmRow, DriftRow
from serving.metrics import Metrics
from serving.repeaters import NUM_BOARDS, Call, Track, follow, reach_px
from serving.roles import Actor
from serving.watched import STATISTICS

MAX_OPEN_REPEATERS = 20
"""Open repeater alarms of a recipe beyond which more places raise none: the process failed as a whole."""

logger = logging.getLogger("inspect_vit.serving")


class Board(Frozen):
    """By what a board is known again."""

    image_sha256: str
    serial: str | None


class State(Frozen):
    """What is known of one view's boards."""

    charts: dict[str, Chart] = Field(default_factory=dict)
    tracks: tuple[Track, ...] = ()
    recent: tuple[Board, ...] = ()
    """The last boards but one or two, oldest first: a board that is posted again is no other board."""


@dataclass(frozen=True)
class Observation:
    """One inspection, as far as it is watched."""

    view: View
    board: Board
    inspection_id: str
    time: str
    measured: dict[str, float]
    """By statistic, on its scale; empty: the board was not inspected."""
    calls: tuple[Call, ...] = ()
    px_per_mm: float | None = None


@dataclass(frozen=True)
class Sight:
    """What one board means."""

    observation: Observation
    state: State
    warnings: tuple[str, ...]
    alarms: list[Alarm] = field(default_factory=list)
    """To be raised."""


class Watch:
    """The watched state of one store. Hold `turn` from `look` to `keep`."""

    def __init__(self, engine: Engine, metrics: Metrics) -> None:
        self.turn = threading.Lock()
        self._engine = engine
        self._metrics = metrics
        self._show_open()

    def look(self, seen: Observation) -> Sight:
        """What a board means beside those before it; nothing is stored."""
        with Session(self._engine) as session:
            state = _read(session, seen.view)
            is_open = open_alarms(session, seen.view)
        return judge(state, is_open, seen)

    def keep(self, sight: Sight) -> None:
        """Store what a board meant, and raise its alarms.

        The inspection stands already and is not to be lost with this: a database that fails here is told of
        in the log and the metrics.
        """
        seen = sight.observation
        try:
            with Session(self._engine) as session:
                _write(session, seen.view, sight.state)
                for alarm in sight.alarms:
                    raise_alarm(session, seen.view, alarm, seen.time)
                session.commit()
            if sight.alarms:
                self._show_open()
        except SQLAlchemyError:
            self._metrics.watch_failures.inc()
            logger.exception("recipe %s: this board does not count for its baseline", seen.view.recipe)
            return
        for alarm in sight.alarms:
            logger.warning("recipe %s: %s", seen.view.recipe, alarm.message)
        for name, chart in sight.state.charts.items():
            off = (chart.level - chart.mean) / chart.spread(STATISTICS[name].least_spread)
            self._metrics.drift.labels(seen.view.recipe, seen.view.reference, name).set(off)
            learnt = self._metrics.baseline_boards.labels(seen.view.recipe, seen.view.reference, name)
            learnt.set(chart.num_learnt)

    def acknowledge(self, alarm_id: int, actor: Actor, *, note: str, new_baseline: bool) -> AlarmReport:
        """Close an alarm and begin to watch for its cause anew; one that was closed before stays as it is.

        new_baseline: learn the statistic of a drift anew.

        Raises:
            NotFoundError.
        """
        with self.turn, Session(self._engine) as session:
            row = acknowledge(session, alarm_id, actor, time=utc_now(), note=note)
            if row is not None:
                view = View(row.recipe, row.reference, row.camera, row.revision, row.model_version)
                if _find(session, view) is not None:
                    _write(session, view, _after(_read(session, view), row, new_baseline=new_baseline))
                session.commit()
            report = report_of(get_row(session, alarm_id))
        self._show_open()
        return report

    def _show_open(self) -> None:
        counted = count_open(self._engine)
        self._metrics.open_alarms.clear()
        for labels, number in counted.items():
            self._metrics.open_alarms.labels(*labels).set(number)


def judge(state: State, is_open: list[Alarm], seen: Observation) -> Sight:
    """What a board means, given what is known and the alarms that are open."""
    shas = {board.image_sha256 for board in state.recent}
    serials = {board.serial for board in state.recent} - {None}
    is_new_picture = seen.board.image_sha256 not in shas and bool(seen.measured)
    reach = reach_px(seen.px_per_mm)
    if is_new_picture:
        charts = dict(state.charts)
        for name, value in seen.measured.items():
            least = STATISTICS[name].least_spread
            charts[name] = charts.get(name, Chart()).observe(value, time=seen.time, least_spread=least)
        tracks = state.tracks
        if seen.board.serial not in serials:
            tracks = follow(tracks, seen.calls, inspection_id=seen.inspection_id, reach_px=reach)
        recent = (*state.recent, seen.board)[1 - NUM_BOARDS :]
        state = State(charts=charts, tracks=tracks, recent=recent)
    drifts = {alarm.subject for alarm in is_open if alarm.kind == "drift"}
    alarms, warnings = [], []
    for name, chart in state.charts.items():
        if chart.excursion is None or chart.excursion.since is None:
            continue
        since = datetime.fromisoformat(chart.excursion.since)
        message = f"drift: {STATISTICS[name].describe(chart)} since {since:%Y-%m-%d %H:%M} UTC"
        warnings.append(message)
        if name not in drifts:
            alarms.append(Alarm(name, message, _drift(name, chart, since, seen)))
    repeaters = [alarm for alarm in is_open if isinstance(alarm.details, RepeaterDetails)]
    for track in state.tracks if is_new_picture else ():
        known = next((one for one in repeaters if _names(one, track, reach)), None)
        if known is not None:
            warnings.append(known.message)
        elif track.is_repeater and len(repeaters) < MAX_OPEN_REPEATERS:
            raised = _repeater(track, seen.px_per_mm)
            repeaters.append(raised)
            alarms.append(raised)
            warnings.append(raised.message)
    return Sight(seen, state, tuple(dict.fromkeys(warnings)), alarms)


def _drift(name: str, chart: Chart, since: datetime, seen: Observation) -> DriftDetails:
    statistic = STATISTICS[name]
    return DriftDetails(
        now=statistic.unscale(chart.level),
        baseline=statistic.unscale(chart.mean),
        spreads=(chart.level - chart.mean) / chart.spread(statistic.least_spread),
        since=since,
        inspection=seen.inspection_id,
    )


def _repeater(track: Track, px_per_mm: float | None) -> Alarm:
    place_px = (round(track.x, 2), round(track.y, 2))
    place_mm = None
    where = f"({track.x:.0f}, {track.y:.0f}) px"
    if px_per_mm is not None:
        place_mm = (round(track.x / px_per_mm, 4), round(track.y / px_per_mm, 4))
        where = f"({place_mm[0]:.2f}, {place_mm[1]:.2f}) mm"
    message = (
        f"repeater: {track.label} at {where} on {NUM_BOARDS} boards running; a mask or screen defect repeats"
    )
    details = RepeaterDetails(
        label=track.label, place_px=place_px, place_mm=place_mm, inspections=track.inspections
    )
    return Alarm(track.label, message, details)


def _names(alarm: Alarm, track: Track, reach: float) -> bool:
    found = alarm.details
    return isinstance(found, RepeaterDetails) and track.reaches(found.label, *found.place_px, reach)


def _after(state: State, row: AlarmRow, *, new_baseline: bool) -> State:
    """The state in which the cause of an alarm that was acknowledged has to show anew."""
    if row.kind == "repeater":
        return state.model_copy(update={"tracks": ()})
    if row.subject not in state.charts:
        return state
    fresh = Chart() if new_baseline else state.charts[row.subject].restarted()
    return state.model_copy(update={"charts": {**state.charts, row.subject: fresh}})


def _find(session: Session, view: View) -> DriftRow | None:
    row = session.get(DriftRow, (view.recipe, view.reference, view.camera))
    is_current = row is not None and View(**{name: getattr(row, name) for name in vars(view)}) == view
    return row if is_current else None


def _read(session: Session, view: View) -> State:
    row = _find(session, view)
    try:
        return State() if row is None else State.model_validate_json(row.state)
    except ValidationError:
        logger.exception("recipe %s: its baseline cannot be read and is learnt anew", view.recipe)
        return State()


def _write(session: Session, view: View, state: State) -> None:
    kind = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite
    values = {**vars(view), "state": state.model_dump_json()}
    statement = kind.insert(DriftRow).values(values)
    keys = ("recipe", "reference", "camera")
    changes = {name: value for name, value in values.items() if name not in keys}
    session.execute(statement.on_conflict_do_update(index_elements=keys, set_=changes))
