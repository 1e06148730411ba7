"""How jobs end: refused, failed and why, promoted or not; and what of them is kept.

Over 300 lines: each test is short, and all share one way of making boards and asking.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import inspect as sa_inspect
from sqlalchemy import update

from serving import job_files, runner
from serving.audit import read_audit
from serving.backup import back_up
from serving.config import ServingConfig
from serving.database import alembic_config
from serving.errors import BusyError, FieldError, ModelRefusedError, NotFoundError
from serving.job_schemas import Promotion, RetrainRequest
from serving.jobs import cancel_job, list_jobs, read_job
from serving.model_tables import ModelRow
from serving.promoting import resolve as resolve_promotion
from serving.registry import add_version, find_model, production
from serving.restore import restore
from serving.runner import Runner
from serving.store import Store
from tests.serving.job_bench import EVA, PATIENCE_S, STAND_IN, Bench, pid_of


@pytest.mark.parametrize(
    ("orders", "reason"),
    [
        (
            {"words": "error: bad box in labels.json:17; draw it again"},
            "bad box in labels.json:17; draw it again",
        ),
        (
            {"words": "error: no format fits\n  coco: a file\n  good: none"},
            "no format fits coco: a file good: none",
        ),
        (
            {"words": "error: of old\nTraceback (most recent call last):\nKeyError: 1", "code": 1},
            "KeyError: 1",
        ),
        ({"words": "OSError: [Errno 28] No space left on device", "code": 70}, "disk full: OSError"),
        ({"words": "torch.OutOfMemoryError: CUDA out of memory", "code": 70}, "out of memory: torch"),
        (
            {"words": "error: cannot read {home}/jobs/x/run/a.png", "code": 2},
            "cannot read $INSPECT_VIT_HOME/jobs/x",
        ),
        ({"words": "error: cannot read /srv/secret/place/a.png", "code": 2}, "cannot read .../a.png"),
    ],
    ids=["bad data", "several lines", "a fault of ours", "disk full", "memory", "home", "other folder"],
)
def test_a_job_that_fails_says_why_and_no_more(
    small_bench: Bench, orders: dict[str, Any], reason: str
) -> None:
    bench = small_bench
    words = orders.pop("words").replace("{home}", str(bench.config.home_dir))
    bench.order(steps=2, step_s=0.01, fails_at=1, words=words, **orders)
    job = bench.rename()
    with bench.running():
        failed = bench.ended(job)
    assert failed.state == "failed"
    assert failed.reason.startswith(reason)
    log = bench.files(job).read_log()
    assert "process " in log
    for text in (failed.reason, log):
        assert str(bench.config.home_dir) not in text
        assert "secret" not in text


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"add": ["burr"]}, r"add.0: 0 examples of 'burr' .* scratch \(\d"),
        ({"add": ["short"]}, "'short' is known already"),
        ({"add": ["scratch", "scratch"]}, "add.1"),
        ({"add": []}, "nothing is added, renamed or retired"),
        ({"add": [], "rename": {"burr": "spur"}}, "rename: 'burr' is no class"),
        ({"add": [], "retire": ["burr"]}, "retire: 'burr' is no class"),
        ({"add": [], "rename": {"short": "copper"}}, "'copper' .* would be two classes"),
        ({"add": [], "rename": {"short": "C-opper"}}, "'copper' and 'C-opper' would be two classes"),
        ({"add": [], "rename": {"short": "short"}}, "rename: 'short' has that name already"),
        ({"add": [], "rename": {"short": "copper", "copper": "short"}}, "mean the base's class 'copper'"),
        ({"add": [], "rename": {"short": "copper"}, "retire": ["copper"]}, "mean the base's class 'copper'"),
        ({"add": ["Copper"], "retire": ["copper"]}, "add.0: 'Copper', but labels .* class 'copper'"),
        ({"add": ["scratch", "Scratch"]}, "add.1: 'Scratch' and 'scratch' would be two classes"),
        ({"add": [], "rename": {"short": "x"}, "retire": ["short"]}, "is to be renamed too"),
        ({"add": [], "rename": {"short": "x=y"}}, "rename: 'x=y', wanted a name without ="),
    ],
)
def test_what_cannot_be_learnt_is_refused_at_once(small_bench: Bench, asked: Any, words: str) -> None:
    known = find_model(small_bench.store.engine, small_bench.base).facts.classes[0]
    asked = json.loads(json.dumps(asked).replace('"short"', json.dumps(known)))
    with pytest.raises(FieldError, match=words.replace("short", known)):
        small_bench.retrain(**asked)
    with pytest.raises(NotFoundError, match="no model version"):
        small_bench.retrain(base="0" * 12)


def test_no_more_than_a_few_jobs_wait(small_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serving.jobs.MAX_WAITING", 2)
    jobs = [small_bench.rename() for _ in range(2)]
    with pytest.raises(BusyError, match="2 jobs are waiting"):
        small_bench.rename()
    listed = list_jobs(small_bench.store.engine, small_bench.config, limit=1)
    assert [one.id for one in listed] == [jobs[1]]
    older = list_jobs(small_bench.store.engine, small_bench.config, limit=9, before=jobs[1], state="waiting")
    assert [one.id for one in older] == [jobs[0]]


def test_the_log_and_the_curves_are_bounded(small_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_files, "MOST_LOG_BYTES", 1000)
    files = small_bench.files("0" * 32)
    files.run.mkdir(parents=True)
    assert (files.read_log(), files.progress(), files.curves().points) == ("", None, ())
    files.log.write_text("".join(f"line {n}\n" for n in range(60_000)))
    log = files.read_log()
    assert len(log) <= 200_100
    assert log.startswith("(earlier lines were cut)\nline ")
    assert log.endswith("line 59999\n")
    with files.log.open("a") as writer:
        files.bound_log()
        writer.write("after\n")
    assert files.log.stat().st_size < 201_000
    assert files.read_log().endswith("line 59999\nafter\n")
    lines = [json.dumps({"step": n, "loss": 1.5, "is": True, "why": "x"}) for n in range(1201)]
    (files.run / "metrics.jsonl").write_text("\n".join([*lines, '{"step": NaN}', "[1]", '{"step": 12']))
    points = files.curves().points
    assert len(points) <= 500
    assert points[-1] == {"step": 1200.0, "loss": 1.5}
    (files.run / "progress.json").write_text('{"stage": "learning", "done": 1, "total": 2, "eta_s": NaN}')
    assert files.progress() is None


def test_old_folders_go_and_rows_stay(small_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "KEPT_FOLDERS", 1)
    bench = small_bench
    jobs = [bench.rename() for _ in range(3)]
    with bench.running():
        for job in jobs:
            bench.ended(job)
        deadline = time.monotonic() + PATIENCE_S
        while bench.files(jobs[1]).folder.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
    assert [bench.files(job).folder.exists() for job in jobs] == [False, False, True]
    assert [bench.read(job).state for job in jobs] == ["done"] * 3


def gate(bench: Bench, candidate: str, result: str) -> None:
    """What the stand-in's comparison will say."""
    side = {"name": "tiny", "version": bench.base}
    document = {
        "result": result,
        "words": [f"{result}: in short"],
        "created": "2026-11-30T08:00:00+00:00",
        "base": side,
        "candidate": side | {"version": candidate},
        "data": {"sets": ["acceptance"], "fingerprint": "0" * 12, "pictures": 2, "boards": 2, "defects": 2},
        "mode": "with_reference",
        "unit": "group",
        "found_by": "own class",
        "recipe": None,
        "margin": 0.02,
        "false_call_margin": 0.02,
        "confidence": 0.95,
        "thresholds": {},
        "base_thresholds": {},
        "calibration": None,
        "classes": [],
        "false_calls": {
            "result": result, "num_boards": 2, "base_boards": 0, "candidate_boards": 0, "newly": 0,
            "cleared": 0, "bound": 0.7, "net_bound": 0.7, "needs": 147, "calls": [],
        },
        "new_classes": [],
        "retired_classes": [],
    }  # fmt: skip
    (bench.config.home_dir / "gate.json").write_text(json.dumps(document))


def test_the_gate_decides_what_is_promoted_and_an_override_is_kept(bench: Bench) -> None:
    bench.config = bench.config.model_copy(update={"acceptance_share": 0.5})
    with bench.running():
        learnt = bench.ended(bench.rename()).result
        assert learnt is not None
        gate(bench, learnt.version, "insufficient")
        asked = resolve_promotion(bench.store.engine, bench.config, Promotion(version=learnt.version))
        found = bench.ended(bench.add(asked))
        assert (found.state, found.can_resume) == ("done", False), found.reason
        assert found.result is not None
        assert (found.result.is_promoted, found.result.gate_result) == (False, "insufficient")
        assert "insufficient: in short" in found.reason
        assert production(bench.store.engine) == bench.base
        asked = Promotion(version=learnt.version, override=True, reason="known and accepted")
        forced = bench.ended(bench.add(resolve_promotion(bench.store.engine, bench.config, asked)))
    assert forced.result is not None
    assert (forced.result.is_promoted, forced.result.gate_result) == (True, "insufficient")
    assert production(bench.store.engine) == learnt.version
    (entry,) = read_audit(bench.store.engine, limit=5, action="model_promoted")
    assert (entry.actor, entry.details["override"], entry.details["reason"]) == (
        "eva",
        True,
        "known and accepted",
    )
    with pytest.raises(ModelRefusedError, match="already"):
        resolve_promotion(bench.store.engine, bench.config, Promotion(version=learnt.version))
    with pytest.raises(FieldError, match="reason: an override needs one"):
        resolve_promotion(
            bench.store.engine, bench.config, Promotion(version=bench.base, override=True, reason=" ")
        )


@pytest.mark.parametrize("parent", ["f" * 12, "trained elsewhere", "itself"])
def test_a_candidate_of_unknown_descent_goes_through_the_gate(small_bench: Bench, parent: str) -> None:
    bench = small_bench
    bench.config = bench.config.model_copy(update={"acceptance_share": 0.5})
    engine, home = bench.store.engine, bench.config.home_dir
    version = add_version(engine, home, home / "candidate.safetensors", parent=parent, actor=EVA).version
    if parent == "itself":
        with engine.begin() as connection:
            connection.execute(update(ModelRow).where(ModelRow.version == version).values(parent=version))
    gate(bench, version, "pass")
    with bench.running():
        found = bench.ended(bench.add(Promotion(version=version)))
    assert found.state == "done", found.reason
    assert production(engine) == version


def test_without_acceptance_boards_there_is_no_promotion(small_bench: Bench) -> None:
    bench = small_bench
    bench.config = bench.config.model_copy(update={"acceptance_share": 0.0})
    with bench.running():
        learnt = bench.ended(bench.rename()).result
        assert learnt is not None
        found = bench.ended(bench.add(Promotion(version=learnt.version)))
        assert (found.state, "there is no acceptance board" in found.reason) == ("failed", True)
        forced = Promotion(version=learnt.version, override=True, reason="first model of the line")
        found = bench.ended(bench.add(forced))
    assert found.result is not None
    assert (found.result.is_promoted, found.result.gate_result) == (True, None)


def test_a_backup_carries_jobs_and_a_restored_one_starts_from_the_beginning(
    bench: Bench, tmp_path: Path
) -> None:
    bench.order(steps=100, step_s=0.02)
    job = bench.retrain()
    with bench.running():
        bench.at_step(job, 2)
        told = back_up(bench.config, tmp_path / "backup.tar")
    assert told.num_rows["jobs"] == 1
    target = ServingConfig(home=tmp_path / "restored", min_free_mb=0.0)
    restore(target, tmp_path / "backup.tar")
    assert not (target.home_dir / "jobs").exists()
    assert not (target.home_dir / "datasets").exists()
    shutil.copyfile(
        bench.config.home_dir / "candidate.safetensors", target.home_dir / "candidate.safetensors"
    )
    (target.home_dir / "orders.json").write_text('{"steps": 2, "step_s": 0.01}')
    store = Store(target)
    thread = Runner(store, target, program=STAND_IN, poll_s=0.03)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while (
            found := read_job(store.engine, target, job)
        ).state == "running" and time.monotonic() < deadline:
            time.sleep(0.05)
        assert found.state == "done", found
    finally:
        thread.close()
        store.close()


def test_the_migration_goes_down_and_up_and_boards_stay(bench: Bench) -> None:
    bench.rename()
    before = bench.store.page(limit=10)
    with bench.store.engine.begin() as connection:
        command.downgrade(alembic_config(connection), "0008")
        assert "jobs" not in sa_inspect(connection).get_table_names()
        command.upgrade(alembic_config(connection), "head")
    assert bench.store.page(limit=10) == before
    assert list_jobs(bench.store.engine, bench.config, limit=10) == []
    assert bench.read(bench.rename()).state == "waiting"


def test_a_job_whose_folder_is_removed_can_be_cancelled_and_others_follow(
    small_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = small_bench
    monkeypatch.setattr(runner, "KILL_S", 0.5)
    bench.order(steps=9, step_s=0.01, hangs_at=2)
    lost = bench.rename()
    with bench.running():
        bench.at_step(lost, 2)
        process = pid_of(bench, lost)
        bench.files(lost).folder.rename(bench.config.home_dir / "elsewhere")
        bench.order(steps=1, step_s=0.01)
        following = bench.rename()
        cancel_job(bench.store.engine, lost, EVA)
        assert bench.ended(lost).state == "cancelled"
        assert bench.ended(following).state == "done"
    assert not Path(f"/proc/{process}").exists() or "Z" in Path(f"/proc/{process}/stat").read_text()


def test_what_nobody_thought_of_fails_one_job_and_no_other(small_bench: Bench) -> None:
    """A request without a base, which none can have: no error that a job is expected to end with."""
    bench = small_bench
    bench.order(steps=1, step_s=0.01)
    odd = bench.add(RetrainRequest(retire=("spur",)))
    with bench.running():
        found = bench.ended(odd)
        assert (found.state, found.reason.partition(":")[0]) == ("failed", "an error of ours")
        assert bench.ended(bench.rename()).state == "done"
