"""A store with a model, verified boards and jobs on it, for tests of jobs."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from serving.config import ServingConfig
from serving.job_files import JobFiles
from serving.job_process import read_note
from serving.job_schemas import Job, Promotion, RetrainRequest
from serving.jobs import add_job, read_job
from serving.model_start import start_with
from serving.registry import find_model
from serving.retrain import resolve
from serving.roles import Actor, Role
from serving.runner import Runner
from serving.store import Store
from tests.serving.verified import Verified

STAND_IN = (sys.executable, str(Path(__file__).with_name("stand_in_job.py")))
EVA = Actor("eva", Role.ENGINEER)
PATIENCE_S = 240.0


class Bench:
    """A store with a model in production and verified boards, and jobs on it."""

    def __init__(self, config: ServingConfig, base: Path, candidate: Path) -> None:
        # Nobody waits for a database here, and it may be slow where much is done at a time.
        # What is nice to others takes long then, too.
        config = config.model_copy(update={"database_wait_s": 30.0, "job_nice": 0})
        self.config = config
        self.store = Store(config)
        self.base = start_with(self.store.engine, config.home_dir, base)
        shutil.copyfile(candidate, config.home_dir / "candidate.safetensors")
        line = Verified(self.store)
        for n in range(6):
            line.scratch(serial=f"SN-{n}")
        self.order(steps=3, step_s=0.01)

    def order(self, **orders: Any) -> None:
        (self.config.home_dir / "orders.json").write_text(json.dumps(orders))

    def retrain(self, **asked: Any) -> str:
        """A job that learns a scratch from the verified boards."""
        request = RetrainRequest.model_validate_json(json.dumps({"add": ["scratch"], **asked}))
        return self.add(resolve(self.store.engine, self.config, request))

    def rename(self) -> str:
        """A job of one step, that needs no data set."""
        known = find_model(self.store.engine, self.base).facts.classes[0]
        return self.retrain(add=[], rename={known: "another"})

    def add(self, request: RetrainRequest | Promotion) -> str:
        job, _ = self.store.new_id()
        add_job(self.store.engine, job, request, EVA)
        return job

    def read(self, job: str) -> Job:
        return read_job(self.store.engine, self.config, job)

    def files(self, job: str) -> JobFiles:
        return JobFiles(self.config, job)

    def until(self, job: str, wanted: Callable[[Job], bool]) -> Job:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            found = self.read(job)
            if wanted(found):
                return found
            time.sleep(0.02)
        raise AssertionError(f"{self.read(job)}\n{self.files(job).read_log()}")

    def ended(self, job: str) -> Job:
        return self.until(job, lambda found: found.state in ("done", "failed", "cancelled"))

    def at_step(self, job: str, step: int) -> Job:
        return self.until(job, lambda found: found.progress is not None and found.progress.done >= step)

    @contextmanager
    def running(self) -> Iterator[Runner]:
        thread = Runner(self.store, self.config, program=STAND_IN, poll_s=0.03)
        try:
            yield thread
        finally:
            thread.close()


def starts_in(log: str) -> list[int]:
    """Steps at which processes of a job began."""
    return [int(line.split(" at step ")[1].split()[0]) for line in log.splitlines() if " at step " in line]


def pid_of(bench: Bench, job: str) -> int:
    note = read_note(bench.files(job).folder)
    assert note is not None
    assert note.pid
    return note.pid


def failing_job(home: Path) -> str:
    """A job that a running server will find and that cannot succeed: its version is not there."""
    with closing(Store(ServingConfig(home=home))) as store:
        job, _ = store.new_id()
        add_job(store.engine, job, Promotion(version="0" * 12), EVA)
    return job
