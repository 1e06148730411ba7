"""What is over the limits goes, oldest first, with its files; a failure nobody verified never does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from prometheus_client import generate_latest

from inspect_vit.cli import main
from serving.config import ServingConfig
from serving.locking import alone, shared
from serving.metrics import Metrics
from serving.retention import Limits, Pruner, plan, prune
from serving.store import Store

FOREVER = Limits(None, None)
BATCH = 6


def files(store: Store) -> set[str]:
    return {path.name for path in store.pictures.root.rglob("*") if path.is_file()}


def ids(store: Store) -> set[str]:
    return {item.report.id for item in store.page(limit=1000)}


def every_inspection_has_its_files_and_no_others(store: Store) -> None:
    named = set()
    for item in store.page(limit=1000):
        store.read_image(item)
        store.read_reference(item)
        store.read_maps(item)
        named |= {item.image_sha256, item.reference_sha256, f"{item.report.id}.npz"} - {None}
    assert files(store) == named


def test_age_deletes_old_passes_and_nothing_else(config: ServingConfig, boards: Any) -> None:
    store = Store(config)
    kept = set()
    for days_ago in (40, 31, 29, 0):
        for verdict in ("PASS", "FAIL", "ERROR"):
            report = boards.report(verdict=verdict, days_ago=days_ago)
            boards.add(store, report, image=b"%d %s" % (days_ago, verdict.encode()))
            if verdict != "PASS" or days_ago < 30:
                kept.add(report.id)
    planned = plan(store, Limits(30.0, None))
    assert ids(store) > kept, "a plan changes nothing"
    before = store.pictures.size()
    done = prune(store, Limits(30.0, None), pause_s=0.0)
    assert done == planned
    assert done.num_inspections == 2
    assert done.num_bytes == before - store.pictures.size()
    assert ids(store) == kept
    every_inspection_has_its_files_and_no_others(store)
    store.close()


def test_size_deletes_the_oldest_passes_until_it_fits(
    config: ServingConfig, boards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serving.retention.BATCH", BATCH)
    store = Store(config)
    for day in range(3, 0, -1):
        for number in range(BATCH + 3):
            report = boards.report(verdict="FAIL" if number % 4 == 0 else "PASS", days_ago=day)
            # Every other picture is shared by all of its day, as is the reference.
            image = bytes(2000) if number % 2 else os.urandom(2000)
            boards.add(store, report, image=image, maps=bytes(500), reference=b"golden" * 100)
    size = store.pictures.size()
    limits = Limits(None, size // 2)
    planned = plan(store, limits)
    done = prune(store, limits, pause_s=0.0)
    assert done == planned
    assert store.pictures.size() <= size // 2
    assert store.pictures.size() == size - done.num_bytes
    assert store.pictures.size() > size // 2 - BATCH * 2600, "and not a batch more than needed"
    left = [item.report for item in store.page(limit=1000)]
    passes = sorted(report.id for report in left if report.verdict == "PASS")
    assert len([report for report in left if report.verdict == "FAIL"]) == 3 * len(range(0, BATCH + 3, 4))
    assert len(passes) + done.num_inspections == 3 * len([n for n in range(BATCH + 3) if n % 4])
    every_inspection_has_its_files_and_no_others(store)
    assert done.first_day == min(store.pictures.days()) <= (done.last_day or "")
    # Nothing but failures is left to take: it ends, and keeps them.
    assert prune(store, Limits(None, 1), pause_s=0.0).num_inspections == len(passes)
    assert {item.report.verdict.value for item in store.page(limit=1000)} == {"FAIL"}
    every_inspection_has_its_files_and_no_others(store)
    store.close()


def test_a_day_without_inspections_leaves_no_folder(config: ServingConfig, boards: Any) -> None:
    store = Store(config)
    boards.add(store, boards.report(verdict="PASS", days_ago=9))
    boards.add(store, boards.report(verdict="PASS"))
    assert prune(store, Limits(5.0, None)).num_inspections == 1
    assert len(store.pictures.days()) == 1
    assert prune(store, FOREVER).num_inspections == 0
    store.close()


def test_nothing_is_deleted_while_somebody_adds_or_backs_up(
    config: ServingConfig, boards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serving.retention.LOCK_TIMEOUT_S", 0.1)
    store = Store(config)
    boards.add(store, boards.report(verdict="PASS", days_ago=9))
    with shared(store.writing_lock):
        assert prune(store, Limits(1.0, None)).num_inspections == 0
        with alone(store.writing_lock, timeout_s=0.0) as held:
            assert not held
    assert prune(store, Limits(1.0, None)).num_inspections == 1
    store.close()


def test_a_server_keeps_its_limits_by_itself_and_counts(config: ServingConfig, boards: Any) -> None:
    store, metrics = Store(config), Metrics()
    boards.add(store, boards.report(verdict="PASS", days_ago=9))
    with store.engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE inspections RENAME TO hidden"))
    pruner = Pruner(store, Limits(1.0, None), metrics, round_s=0.05)
    wait_for(metrics, "inspect_vit_prune_failures_total", 1)
    with store.engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE hidden RENAME TO inspections"))
    wait_for(metrics, "inspect_vit_pruned_inspections_total", 1)
    pruner.close()
    assert not ids(store)
    assert not files(store)
    store.close()


def wait_for(metrics: Metrics, name: str, at_least: float) -> None:
    deadline = time.monotonic() + 30.0
    while metrics.registry.get_sample_value(name) < at_least:  # type: ignore[operator]
        assert time.monotonic() < deadline, generate_latest(metrics.registry).decode()
        time.sleep(0.02)


KILLED = """
import os, signal, sys
from serving import retention
from serving.config import ServingConfig
from serving.store import Store

point = sys.argv[3]
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
store = Store(ServingConfig(home=sys.argv[1], database_url=sys.argv[2], min_free_mb=0))
if point == "rows deleted":
    store.pictures.remove = die
elif point == "day noted":
    begin = store.pictures.begin_pruning
    store.pictures.begin_pruning = lambda day: die(begin(day))
retention.prune(store, retention.Limits(1.0, None))
"""


@pytest.mark.parametrize("point", ["day noted", "rows deleted"])
def test_killed_while_pruning_leaves_a_whole_store_and_no_orphans(
    config: ServingConfig, boards: Any, point: str, project: Path
) -> None:
    store = Store(config)
    # Newer days, so that the start's sweep would not look at the old one by itself.
    for days_ago in (30, 2, 1, 0):
        verdict = "PASS" if days_ago == 30 else "FAIL"
        boards.add(store, boards.report(verdict=verdict, days_ago=days_ago))
    store.close()
    arguments = [str(config.home_dir), config.database_url, point]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments],
        env={**os.environ, "PYTHONPATH": str(project)},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    store = Store(config)
    every_inspection_has_its_files_and_no_others(store)
    assert store.pictures.days_half_pruned() == []
    prune(store, Limits(20.0, None))
    assert len(ids(store)) == 3
    every_inspection_has_its_files_and_no_others(store)
    store.close()


def test_the_command_says_what_it_would_do_and_does_it(
    config: ServingConfig, boards: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(config)
    boards.add(store, boards.report(verdict="PASS", days_ago=9))
    boards.add(store, boards.report(verdict="FAIL", days_ago=9))
    store.close()
    monkeypatch.setenv("INSPECT_VIT_HOME", str(config.home_dir))
    monkeypatch.setenv("INSPECT_VIT_DATABASE_URL", config.database_url)

    def run(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as stopped:
            main(["prune", *arguments])
        captured = capsys.readouterr()
        return int(stopped.value.code or 0), captured.out + captured.err

    assert run() == (2, "error: nothing says what to keep; give --keep-days or --keep-gb\n")
    code, told = run("--keep-days", "5", "--dry-run")
    assert code == 0
    assert "would delete 1 inspections" in told
    assert "1 inspections older than 5 days stay: their review is not done" in told
    monkeypatch.setenv("INSPECT_VIT_KEEP_DAYS", "5")
    code, told = run()
    assert "deleted 1 inspections" in told
    assert "deleted 0 inspections" in run()[1]
