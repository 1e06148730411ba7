"""Jobs survive what happens to processes, one at a time, and verified boards become a candidate."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from serving import runner
from serving.audit import read_audit
from serving.config import to_environment
from serving.errors import JobStateError
from serving.job_events import JobChanges
from serving.job_process import is_alive
from serving.jobs import cancel_job, resume_job
from serving.registry import find_model, list_models, production
from tests.serving.job_bench import EVA, STAND_IN, Bench, pid_of, starts_in


def test_verified_boards_become_a_candidate_and_the_second_job_waits(bench: Bench) -> None:
    changes = JobChanges(bench.store.engine, bench.config)
    bench.order(steps=12, step_s=0.05)
    first, second = bench.retrain(note="scratches"), bench.retrain()
    assert [bench.read(job).state for job in (first, second)] == ["waiting", "waiting"]
    with bench.running():
        bench.at_step(first, 2)
        assert bench.read(second).state == "waiting"
        done = bench.ended(first)
        assert bench.ended(second).state == "done"
    assert (done.state, done.reason, done.can_resume) == ("done", "", False)
    assert done.result is not None
    assert done.result.table == {"base": "tiny", "version": "", "classes": [], "minutes": 0.1}
    stored = find_model(bench.store.engine, done.result.version)
    assert (stored.parent, stored.actor, stored.report) == (bench.base, "eva", done.result.table)
    assert production(bench.store.engine) == bench.base, "a candidate, and no more"
    assert len(list_models(bench.store.engine)) == 2, "the second learnt the same"
    arguments = json.loads((bench.files(first).folder / "arguments.json").read_text().splitlines()[0])
    assert arguments[-2:] == ["--", "scratch"]
    assert f"threads={max(1, (os.cpu_count() or 1) // 2)}" in arguments
    left = {path.name for path in bench.files(first).run.iterdir()}
    assert left == {"progress.json", "metrics.jsonl", "table.json"}, "neither state nor model stay twice"
    told = [json.loads(event.data) for event in changes.look()]
    assert [(one["id"], one["state"], one["result"]["table"]) for one in told] == [
        (first, "done", None),
        (second, "done", None),
    ]
    assert changes.look() == []
    trail = [(one.action, one.actor) for one in reversed(read_audit(bench.store.engine, limit=50))]
    assert trail.count(("job_added", "eva")) == trail.count(("job_ended", "(service)")) == 2
    assert ("model_added", "eva") in trail


def test_a_service_that_is_killed_leaves_its_job_to_the_next(bench: Bench) -> None:
    """The process of the job lives on, and the next service takes it over."""
    bench.order(steps=40, step_s=0.05)
    job = bench.rename()
    script = (
        "import sys, time; from serving.config import from_environment; from serving.store import Store; "
        "from serving.runner import Runner; import os; config = from_environment(os.environ); "
        f"Runner(Store(config), config, program={STAND_IN!r}, poll_s=0.03); time.sleep(600)"
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("INSPECT_VIT_")}
    service = subprocess.Popen([sys.executable, "-c", script], env=environ | to_environment(bench.config))
    try:
        bench.at_step(job, 2)
    finally:
        service.kill()
        service.wait()
    process = pid_of(bench, job)
    assert is_alive(bench.files(job).folder)
    with bench.running():
        assert bench.ended(job).state == "done"
    assert pid_of(bench, job) == process
    assert starts_in(bench.files(job).read_log())[0] == 0
    assert len(list_models(bench.store.engine)) == 2


def test_a_job_whose_process_died_with_its_service_goes_on_where_it_was(small_bench: Bench) -> None:
    bench = small_bench
    bench.order(steps=30, step_s=0.03)
    job = bench.rename()
    with bench.running():
        bench.at_step(job, 3)
    assert not is_alive(bench.files(job).folder), "a service that stops ends it"
    assert bench.read(job).state == "running"
    with bench.running():
        assert bench.ended(job).state == "done"
    first, second = starts_in(bench.files(job).read_log())
    assert (first, second >= 3) == (0, True)


def test_a_killed_process_fails_its_job_with_words_and_can_be_resumed(small_bench: Bench) -> None:
    bench = small_bench
    bench.order(steps=8, step_s=0.01, dies_at=4)
    job = bench.rename()
    with bench.running():
        failed = bench.ended(job)
        assert (failed.state, failed.can_resume) == ("failed", True)
        assert failed.reason.startswith("killed: out of memory?")
        bench.order(steps=8, step_s=0.01)
        resume_job(bench.store.engine, job, EVA)
        assert bench.ended(job).state == "done"
    assert starts_in(bench.files(job).read_log()) == [0, 4]
    with pytest.raises(JobStateError, match="is done"):
        resume_job(bench.store.engine, job, EVA)


def test_a_process_that_vanishes_again_and_again_is_given_up(small_bench: Bench) -> None:
    bench = small_bench
    bench.order(steps=2, step_s=0.01, fails_at=1, words="stopped by somebody", code=143)
    job = bench.rename()
    with bench.running():
        failed = bench.ended(job)
    assert failed.reason == "its process ended 3 times and nobody can tell why: stopped by somebody"
    assert starts_in(bench.files(job).read_log()) == [0, 1, 1]


def test_cancelled_jobs_end_also_those_that_do_not_listen(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "KILL_S", 0.5)
    bench.order(steps=400, step_s=0.05)
    running, waiting = bench.rename(), bench.rename()
    with bench.running():
        bench.at_step(running, 2)
        cancel_job(bench.store.engine, waiting, EVA)
        assert bench.read(waiting).state == "cancelled"
        process = pid_of(bench, running)
        cancel_job(bench.store.engine, running, EVA)
        assert bench.read(running).reason == "cancelled, and being stopped"
        ended = bench.ended(running)
        assert (ended.state, ended.reason, ended.can_resume) == ("cancelled", "", True)
        assert not Path(f"/proc/{process}").exists() or "Z" in Path(f"/proc/{process}/stat").read_text()
        bench.order(steps=400, step_s=0.01, hangs_at=3)
        deaf = bench.rename()
        bench.at_step(deaf, 3)
        cancel_job(bench.store.engine, deaf, EVA)
        assert bench.ended(deaf).state == "cancelled"
        assert not is_alive(bench.files(deaf).folder)
        cancel_job(bench.store.engine, deaf, EVA)
    done = [one for one in read_audit(bench.store.engine, limit=50) if one.action == "job_cancelled"]
    assert [one.object for one in done] == [deaf, running, waiting]


def test_a_job_is_nice_to_the_line(small_bench: Bench) -> None:
    small_bench.config = small_bench.config.model_copy(update={"job_nice": 1})
    small_bench.order(steps=400, step_s=0.02)
    job = small_bench.rename()
    with small_bench.running():
        small_bench.at_step(job, 1)
        process = pid_of(small_bench, job)
        assert os.getpriority(os.PRIO_PROCESS, process) == os.getpriority(os.PRIO_PROCESS, 0) + 1
        assert os.getsid(process) == process, "signals to the service do not reach it"
        score = Path(f"/proc/{process}/oom_score_adj").read_text()
        assert int(score) >= 500, "where memory runs out the system ends the job, not the service"


def test_two_services_run_one_job_at_a_time(small_bench: Bench) -> None:
    bench = small_bench
    bench.order(steps=6, step_s=0.02)
    jobs = [bench.rename() for _ in range(3)]
    with bench.running(), bench.running():
        for job in jobs:
            assert bench.ended(job).state == "done"
    assert [starts_in(bench.files(job).read_log()) for job in jobs] == [[0], [0], [0]]
    spans = sorted((one.started, one.ended) for one in map(bench.read, jobs))
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))  # type: ignore[operator]


def test_a_base_that_is_damaged_fails_the_job_and_the_next_one_runs(small_bench: Bench) -> None:
    bench = small_bench
    first = bench.rename()
    model = bench.config.home_dir / "models" / bench.base / "model.safetensors"
    whole = model.read_bytes()
    model.write_bytes(whole[:-1])
    with bench.running():
        failed = bench.ended(first)
        assert (failed.state, bench.base in failed.reason) == ("failed", True)
        model.write_bytes(whole)
        assert bench.ended(bench.rename()).state == "done"
