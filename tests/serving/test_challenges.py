"""Challenge boards: one that is not called whole locks its recipe, in the transaction that stores it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.orm import Session

from inspect_vit.recipe import Recipe
from inspect_vit.results import Defect, InspectionResult, Verdict
from serving.audit import read_audit
from serving.challenge_schemas import ChallengeBoard, ChallengeRequest
from serving.challenges import (
    Challenge,
    check_open,
    clear,
    find_challenge,
    judge,
    keep,
    put_challenge,
    report_of,
    while_locked,
)
from serving.config import ServingConfig
from serving.errors import FieldError, NotFoundError, OvertakenError
from serving.line_tables import ChallengeRunRow
from serving.recipes import put_recipe
from serving.roles import ANYONE, Actor, Role
from serving.store import Store
from tests.serving.reviewed import Line

ENGINEER = Actor("eve", Role.ENGINEER)
CLASSES = ("open", "short")


@pytest.fixture
def store(config: ServingConfig) -> Iterator[Store]:
    opened = Store(config)
    put_recipe(opened.engine, "panel", Recipe(), (), ANYONE)
    yield opened
    opened.close()


def ask(*labels: str, every_hours: float | None = None) -> ChallengeRequest:
    return ChallengeRequest(boards=(ChallengeBoard(serial="X", labels=labels),), every_hours=every_hours)


def found(boards: Any, *calls: tuple[str, float], verdict: Verdict = Verdict.FAIL) -> InspectionResult:
    """Thresholds are 0.3 for open and 0.4 for short."""
    defects = tuple(Defect(label, score, (0.0, 0.0, 4.0, 4.0), 16, {"4": 1.0}) for label, score in calls)
    return dataclasses.replace(boards.result, defects=defects, verdict=verdict)


@pytest.mark.parametrize(
    ("labels", "calls", "missing"),
    [
        (("short",), [("short", 0.4)], ()),
        (("short",), [("short", 0.39)], ("short",)),
        (("short", "short"), [("short", 0.9), ("open", 0.9)], ("short",)),
        (("short", "open"), [("open", 0.9), ("short", 0.9), ("open", 0.8)], ()),
        (("short", "open"), [], ("short", "open")),
    ],
)
def test_every_expected_class_must_be_called_as_often(
    boards: Any, labels: tuple[str, ...], calls: list[Any], missing: tuple[str, ...]
) -> None:
    challenge = Challenge("panel", ask(*labels).boards)
    board = challenge.board("X")
    assert board is not None
    assert judge(challenge, board, found(boards, *calls)).missing == missing
    assert (challenge.board("Y"), challenge.board(None)) == (None, None)


def show(store: Store, result: InspectionResult, picture: bytes) -> str:
    """As the backend does when a challenge board has been inspected."""
    challenge = find_challenge(store.engine, "panel")
    board = challenge.board("X")
    assert board is not None
    inspection = Line(store).inspect(
        datetime.now(UTC).isoformat(), "FAIL", serial="X", recipe="panel", picture=picture
    )
    with Session(store.engine) as session:
        keep(session, judge(challenge, board, result), inspection, model_version="v")
        session.commit()
    return inspection


def test_a_lock_stays_until_an_engineer_clears_it(store: Store, boards: Any) -> None:
    put_challenge(store.engine, "panel", ask("short"), ENGINEER, class_names=CLASSES)
    first = show(store, found(boards), b"1")
    locked = find_challenge(store.engine, "panel")
    assert locked.why == "challenge board 'X': short not called"
    show(store, found(boards, verdict=Verdict.ERROR), b"2")
    show(store, found(boards, ("short", 0.9)), b"3")
    still = find_challenge(store.engine, "panel")
    assert (still.locked, still.why) == (locked.locked, locked.why), "the first cause stands"
    assert still.shown is not None, "and the schedule is kept"
    put_challenge(store.engine, "panel", ask("open"), ENGINEER, class_names=CLASSES)
    assert find_challenge(store.engine, "panel").locked == locked.locked
    cleared = report_of(clear(store.engine, "panel", "lamp replaced", ENGINEER))
    assert (cleared.state.locked, cleared.state.since, cleared.state.why) == (False, None, "")
    assert report_of(clear(store.engine, "panel", "again", ENGINEER)) == cleared
    trail = [(entry.action, entry.actor) for entry in read_audit(store.engine, limit=5)]
    assert trail[0] == ("recipe_unlocked", "eve")
    assert [action for action, _ in trail].count("recipe_unlocked") == 1
    (lock,) = read_audit(store.engine, limit=5, action="recipe_locked")
    assert lock.details["inspection"] == first
    with Session(store.engine) as session:
        runs = {row.inspection: row.is_found for row in session.query(ChallengeRunRow)}
    assert sorted(runs.values()) == [False, False, True]


def test_no_board_is_stored_as_inspected_behind_a_lock(config: ServingConfig, boards: Any) -> None:
    store = Store(config.model_copy(update={"database_wait_s": 30.0}))
    put_recipe(store.engine, "panel", Recipe(), (), ANYONE)
    put_challenge(store.engine, "panel", ask("short"), ENGINEER, class_names=CLASSES)
    with ThreadPoolExecutor(1) as pool:
        locking: list[Future[str]] = []

        def beside(session: Session) -> None:
            check_open(session, "panel")
            locking.append(pool.submit(show, store, found(boards), b"1"))
            with pytest.raises(TimeoutError):
                locking[0].result(timeout=0.3)

        assert boards.add(store, boards.report(verdict="PASS"), image=b"before", beside=beside)
        locking[0].result(timeout=30)
    late = boards.report(verdict="PASS")
    with pytest.raises(OvertakenError):
        boards.add(store, late, image=b"behind", beside=lambda session: check_open(session, "panel"))
    with pytest.raises(NotFoundError):
        store.get(late.id)
    standing = find_challenge(store.engine, "panel")
    blurred = dataclasses.replace(found(boards, verdict=Verdict.ERROR), reasons=("out of focus: 12",))
    locked = "recipe locked: challenge board 'X': short not called"
    assert while_locked(found(boards, ("short", 0.9)), standing).reasons == (locked,)
    assert while_locked(blurred, standing).reasons == (locked, "out of focus: 12"), "both have to be mended"
    store.close()


def test_a_board_that_is_not_inspected_locks_too(store: Store, boards: Any) -> None:
    put_challenge(store.engine, "panel", ask("short"), ENGINEER, class_names=CLASSES)
    blurred = dataclasses.replace(found(boards, verdict=Verdict.ERROR), reasons=("out of focus: 12",))
    show(store, blurred, b"1")
    why = find_challenge(store.engine, "panel").why
    assert why == "challenge board 'X' was not inspected: out of focus: 12"


def test_a_challenge_is_due_so_many_hours_after_the_last_new_picture(store: Store, boards: Any) -> None:
    put_challenge(store.engine, "panel", ask("short", every_hours=8.0), ENGINEER, class_names=CLASSES)
    due = find_challenge(store.engine, "panel").due
    assert due is not None
    assert abs(due - datetime.now(UTC) - timedelta(hours=8)) < timedelta(minutes=1)
    show(store, found(boards, ("short", 0.9)), b"1")
    shown = find_challenge(store.engine, "panel")
    assert shown.due is not None and shown.due > due
    show(store, found(boards, ("short", 0.9)), b"1")
    assert find_challenge(store.engine, "panel").shown == shown.shown, "an old picture shows nothing new"
    assert shown.warnings(shown.due) == ()
    (warning,) = shown.warnings(shown.due + timedelta(seconds=1))
    assert warning.startswith("challenge overdue: a challenge board of recipe 'panel' was due at ")
    put_challenge(store.engine, "panel", ask("short"), ENGINEER, class_names=CLASSES)
    assert find_challenge(store.engine, "panel").due is None


def test_what_cannot_be_meant_is_refused(store: Store) -> None:
    refused = [
        ([("X", ["short", "scratch"])], "boards.0.labels: class scratch is not known"),
        ([("X", ["short"]), ("X", ["open"])], "boards.1.serial: 'X' is named twice"),
        ([(" X", ["short"])], "boards.0.serial: ' X' begins or ends with a space"),
        ([("X\x07", ["short"])], "boards.0.serial: holds characters"),
    ]
    for boards, words in refused:
        asked = ChallengeRequest(
            boards=tuple(ChallengeBoard(serial=serial, labels=tuple(labels)) for serial, labels in boards)
        )
        with pytest.raises(FieldError, match=words):
            put_challenge(store.engine, "panel", asked, ENGINEER, class_names=CLASSES)
    with pytest.raises(NotFoundError):
        put_challenge(store.engine, "no such panel", ask("short"), ENGINEER, class_names=CLASSES)
    assert find_challenge(store.engine, "panel").boards == ()
