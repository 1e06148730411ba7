"""Reviews in the store: who wins, what lasts, what is asked back, and what goes with retention."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from sqlalchemy.orm import Session

from serving.audit import read_audit
from serving.backup import back_up
from serving.config import ServingConfig
from serving.database import alembic_config, make_engine
from serving.errors import NotFoundError, ReviewConflictError
from serving.queue_rows import forget
from serving.restore import restore
from serving.retention import Limits, count_kept, plan, prune
from serving.review_tables import QueueLabelRow, QueueRow, ReviewRow
from serving.reviews import done_reviews, latest_reviews, read_review, review_at, revisions
from serving.store import Store
from tests.serving.reviewing import ANNA, BEN, dispose, verify, with_calls


def test_every_post_is_a_revision_and_undo_is_one_more(config: ServingConfig, boards: Any) -> None:
    store = Store(config)
    report = with_calls(boards.report(), "short", "open")
    boards.add(store, report)
    untouched = read_review(store.engine, report.id)
    assert (untouched.revision, untouched.state, untouched.final, untouched.history) == (0, "open", None, ())
    first = verify(store, report.id, 0, "real", "false_call")
    assert first.words == {"real": 1, "false_call": 1}
    second = dispose(store, report.id, 1, "rework", by=BEN)
    assert (second.review.state, second.review.final, second.review.note) == ("done", "bad", "as seen")
    third = verify(store, report.id, 2, "false_call", "false_call", by=BEN)
    assert (third.words, third.review.final) == ({"false_call": 1}, "good")
    undone = verify(store, report.id, 3, "real", "false_call").review
    assert (undone.calls, undone.disposition, undone.final) == (second.review.calls, "rework", "bad")
    assert [(one.revision, one.kind, one.actor) for one in undone.history] == [
        (1, "verification", "anna"),
        (2, "disposition", "ben"),
        (3, "verification", "ben"),
        (4, "verification", "anna"),
    ]
    assert read_review(store.engine, report.id) == undone
    then = [review_at(store.engine, report, revision) for revision in range(5)]
    assert then == [untouched, first.review, second.review, third.review, undone]
    with pytest.raises(NotFoundError, match="no revision 5; its newest is 4"):
        review_at(store.engine, report, 5)
    trail = read_audit(store.engine, limit=9)
    assert [(one.action, one.actor, one.details["revision"]) for one in trail] == [
        ("inspection_verified", "anna", 4),
        ("inspection_verified", "ben", 3),
        ("disposition_set", "ben", 2),
        ("inspection_verified", "anna", 1),
    ]
    assert trail[0].object == f"inspection {report.id}"
    with pytest.raises(NotFoundError):
        read_review(store.engine, "0" * 32)
    store.close()


def test_what_others_read_of_reviews(config: ServingConfig, boards: Any) -> None:
    store = Store(config)
    reports = [
        with_calls(boards.report(serial=f"SN-{n}", days_ago=4 - n), "short").model_copy(
            update={"recipe": recipe}
        )
        for n, recipe in enumerate(["panel", "panel", "panel", None])
    ]
    for report in reports:
        boards.add(store, report)
    done, begun, untouched, other = (report.id for report in reports)
    verify(store, done, 0, "false_call")
    verify(store, done, 1, "process_indicator", by=BEN)
    verify(store, begun, 0, "real")
    verify(store, other, 0, "false_call")
    found = latest_reviews(store.engine, [done, begun, untouched, "0" * 32])
    assert {one: review.state for one, review in found.items()} == {done: "done", begun: "open"}
    assert found[done].document.calls[0].word == "process_indicator"
    assert [(one.report.id, one.report.attempt) for one in done_reviews(store.engine, recipe="panel")] == [
        (done, 1)
    ]
    assert [one.report.id for one in done_reviews(store.engine)] == [done, other]
    since = reports[1].created - timedelta(hours=1)
    assert [one.report.id for one in done_reviews(store.engine, since=since)] == [other]
    assert [one.report.id for one in done_reviews(store.engine, until=since)] == [done]
    said = revisions(store.engine, [done])[done]
    assert [(one.actor, one.document.calls[0].word) for one in said] == [
        ("anna", "false_call"),
        ("ben", "process_indicator"),
    ]
    store.close()


def test_of_many_at_once_one_wins_and_the_others_are_told_who(config: ServingConfig, boards: Any) -> None:
    stores = [Store(config.model_copy(update={"database_wait_s": 30.0})) for _ in range(2)]
    report = with_calls(boards.report(), "short")
    boards.add(stores[0], report)

    def post(number: int) -> str:
        word, by = ("real", ANNA) if number % 2 else ("false_call", BEN)
        try:
            posted = verify(stores[number // 2 % 2], report.id, 0, word, by=by)
        except ReviewConflictError as error:
            return error.hint
        return f"{posted.review.actor} {posted.is_new}"

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(post, range(16)))
    review = read_review(stores[0].engine, report.id)
    assert (review.revision, len(review.history)) == (1, 1)
    assert answers.count(f"{review.actor} True") == 1
    # The winner's seven others sent the same once more, as after a lost answer.
    assert answers.count(f"{review.actor} False") == 7
    refused = [answer for answer in answers if not answer.startswith(f"{review.actor} ")]
    assert len(refused) == 8
    assert review.at is not None
    at = review.at.isoformat(timespec="milliseconds")
    assert all(f"by {review.actor} at {at}" in hint for hint in refused)
    with pytest.raises(ReviewConflictError, match="is at revision 1"):
        verify(stores[0], report.id, 7, "real")
    for store in stores:
        store.close()


POSTING = """
import sys
from serving.config import ServingConfig
from serving.store import Store
from tests.serving.reviewing import verify

store = Store(ServingConfig(home=sys.argv[1], database_url=sys.argv[2], min_free_mb=0))
for revision in range(10_000):
    answered = verify(store, sys.argv[3], revision, ("real", "false_call")[revision % 2])
    print(answered.review.revision, flush=True)
"""


def test_killed_at_any_moment_nothing_answered_is_lost(
    config: ServingConfig, boards: Any, project: Path
) -> None:
    store = Store(config)
    report = with_calls(boards.report(), "short")
    boards.add(store, report)
    posting = subprocess.Popen(
        [sys.executable, "-c", POSTING, str(config.home_dir), config.database_url, report.id],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(project)},
        text=True,
    )
    assert posting.stdout is not None
    answered = [int(posting.stdout.readline()) for _ in range(20)]
    posting.send_signal(signal.SIGKILL)
    answered += [int(line) for line in posting.stdout.read().splitlines()]
    posting.wait()
    posting.stdout.close()
    review = read_review(store.engine, report.id)
    assert answered == list(range(1, len(answered) + 1))
    assert review.revision - len(answered) in (0, 1), "one may have been stored and not yet answered"
    assert review.calls[0].word == ("real", "false_call")[(review.revision - 1) % 2]
    assert len(revisions(store.engine, [report.id])[report.id]) == review.revision
    store.close()


def test_too_many_false_calls_at_once_are_asked_back(config: ServingConfig, boards: Any) -> None:
    store = Store(config)
    reports = [with_calls(boards.report(), *["short"] * 120) for _ in range(3)]
    for report in reports:
        boards.add(store, report)
    first, second, third = (report.id for report in reports)
    said = ["false_call"] * 120
    assert not verify(store, first, 0, *said).review.hasty, "120 are no sign yet"
    assert not verify(store, third, 0, *said, by=BEN).review.hasty, "another person's do not count"
    asked_back = verify(store, second, 0, *said).review
    assert asked_back.hasty
    assert "looked at" in asked_back.question
    assert read_review(store.engine, first).hasty, "those before belong to it"
    assert not read_review(store.engine, third).hasty
    changed = verify(store, second, 1, *said[1:], "real").review
    assert changed.hasty, "a change elsewhere is no answer"
    assert dispose(store, second, 2, "rework").review.hasty
    answered = verify(store, second, 3, *said[1:], "real").review
    assert (answered.hasty, answered.question) == (False, "")
    assert [(one.report.id, one.review.hasty) for one in done_reviews(store.engine)] == [
        (first, True),
        (second, False),
        (third, False),
    ]
    store.close()


def test_retention_takes_what_was_reviewed_with_its_reviews(config: ServingConfig, boards: Any) -> None:
    store = Store(config)
    reports = {
        name: boards.report(verdict=verdict, days_ago=9)
        for name, verdict in [("done", "FAIL"), ("begun", "FAIL"), ("new", "FAIL"), ("escape", "PASS")]
    }
    for name, report in reports.items():
        boards.add(store, report, image=name.encode())
    verify(store, reports["done"].id, 0, "false_call")
    verify(store, reports["begun"].id, 0, "real")
    verify(store, reports["escape"].id, 0, "real")
    limits = Limits(5.0, None)
    assert count_kept(store, limits) == 3
    planned = plan(store, limits)
    assert prune(store, limits, pause_s=0.0) == planned
    left = {report.id for name, report in reports.items() if name != "done"}
    assert {item.report.id for item in store.page(limit=9)} == left
    with store.engine.connect() as connection:
        for table in (QueueRow, QueueLabelRow, ReviewRow):
            kept = set(connection.scalars(sa.select(table.inspection)))
            assert kept <= left
            assert reports["escape"].id in kept
    dispose(store, reports["begun"].id, 1, "scrap")
    assert prune(store, limits, pause_s=0.0).num_inspections == 1
    with pytest.raises(NotFoundError):
        verify(store, reports["begun"].id, 2, "real")
    store.close()


def test_a_review_that_begins_while_boards_are_pruned_keeps_its_board(
    config: ServingConfig, boards: Any
) -> None:
    """Retention chose both boards when nobody had begun."""
    store = Store(config)
    reports = [boards.report(verdict="PASS") for _ in range(2)]
    for report in reports:
        boards.add(store, report)
    chosen = [report.id for report in reports]
    verify(store, chosen[0], 0, "real")
    with Session(store.engine) as session:
        assert forget(session, chosen) == [chosen[1]]
        session.commit()
    assert read_review(store.engine, chosen[0]).final == "bad"
    store.close()


def test_a_backup_holds_reviews(config: ServingConfig, boards: Any, tmp_path: Path) -> None:
    store = Store(config)
    report = with_calls(boards.report(), "short")
    boards.add(store, report)
    verify(store, report.id, 0, "real")
    review = dispose(store, report.id, 1, "repaired").review
    back_up(config, tmp_path / "backup.tar")
    store.close()
    target = ServingConfig(home=tmp_path / "restored", min_free_mb=0.0)
    restore(target, tmp_path / "backup.tar")
    restored = Store(target)
    assert read_review(restored.engine, report.id) == review
    assert verify(restored, report.id, 2, "false_call").review.revision == 3
    restored.close()


def test_the_migration_fills_the_queue_and_can_be_undone(config: ServingConfig, boards: Any) -> None:
    store = Store(config)
    reports = [
        with_calls(boards.report(verdict="FAIL"), "short", "open", "short", score=0.61),
        with_calls(boards.report(verdict="PASS"), score=0.2),
        with_calls(boards.report(verdict="ERROR"), score=0.0),
    ]
    for report in reports:
        boards.add(store, report)
    store.close()
    engine = make_engine(config.sqlalchemy_url)
    with engine.begin() as connection:
        before = connection.execute(sa.text("SELECT * FROM inspections ORDER BY id")).all()
        command.downgrade(alembic_config(connection), "0005")
        assert not {"queue", "queue_labels", "reviews"} & set(sa.inspect(connection).get_table_names())
        assert connection.execute(sa.text("SELECT * FROM inspections ORDER BY id")).all() == before
        command.upgrade(alembic_config(connection), "0006")
    engine.dispose()
    store = Store(config)
    with store.engine.connect() as connection:
        columns = (QueueRow.verdict, QueueRow.due, QueueRow.audit, QueueRow.state, QueueRow.labels)
        found = connection.execute(sa.select(*columns, QueueRow.uncertainty).order_by(QueueRow.inspection))
        assert [tuple(row) for row in found] == [
            # Of scores 0.6, 0.59, 0.58 the last is nearest to 0.5: 1 - 0.08 / 0.5.
            ("FAIL", True, False, "open", '["short", "open"]', 0.84),
            ("PASS", False, False, "open", "[]", 0.4),
            ("ERROR", True, False, "open", "[]", 0.0),
        ]
        labels = connection.execute(sa.select(QueueLabelRow.label).order_by(QueueLabelRow.label))
        assert list(labels.scalars()) == ["open", "short"]
    assert verify(store, reports[0].id, 0, *["false_call"] * 3).review.state == "done"
    store.close()
