"""What the steps of a job share. Each step is a process of its own; between them the service does little.

A job is a generator of commands: it is sent the exit code of each, and returns what came of it. One that goes
on after a service or a process was killed starts from its first command again, which find what is there.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from serving.config import ServingConfig, to_environment
from serving.dataset_files import read_summary
from serving.dataset_schemas import Dataset, DatasetFilter
from serving.errors import ServingError
from serving.job_files import DATASET, JobFiles
from serving.job_schemas import JobResult
from serving.job_tables import JobRow
from serving.jobs import note_dataset
from serving.store import Store

ROOT = Path(__file__).parents[1]
PROGRAM = (sys.executable, "-m", "inspect_vit.cli")
DONE = frozenset((0,))


@dataclass(frozen=True)
class JobContext:
    """What a job works with."""

    store: Store
    config: ServingConfig
    row: JobRow
    files: JobFiles

    @property
    def threads(self) -> int:
        return self.config.job_threads or max(1, (os.cpu_count() or 1) // 2)


@dataclass(frozen=True)
class Command:
    """One step."""

    name: str
    arguments: tuple[str, ...]
    """Of the command line."""
    good_codes: frozenset[int] = DONE
    has_store: bool = False
    """It reads the database and the pictures; other steps see neither."""
    stdout: Path | None = None
    """Where its standard output goes; None: to the log."""


@dataclass(frozen=True)
class Outcome:
    """How a job ended well."""

    result: JobResult
    reason: str = ""


Steps = Generator[Command, int, Outcome]
"""Yields commands, is sent exit codes among `good_codes`, returns the outcome. Raises JobFailedError, and
what the registry raises."""


class JobFailedError(ServingError):
    """A job that cannot go on, and why."""


def environment(context: JobContext, *, has_store: bool) -> dict[str, str]:
    """The variables of a step's process: this one's, without our settings where it has no use for them."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("INSPECT_VIT_")}
    if has_store:
        environ |= to_environment(context.config) | {"INSPECT_VIT_HOME": str(context.config.home_dir)}
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENCV_FOR_THREADS_NUM")
    path = os.pathsep.join((str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])))
    return environ | dict.fromkeys(names, str(context.threads)) | {"PYTHONPATH": path}


def in_words(code: int, files: JobFiles) -> str:
    """Why a process ended, by its exit code and the last line of its log."""
    last = files.last_words()
    if re.search(r"No space left on device|[Dd]isk quota exceeded", last):
        return f"disk full: {last}"
    if code == 128 + signal.SIGKILL:
        return "killed: out of memory? The machine, or a limit, ended it (SIGKILL); free some, then resume it"
    if code > 128:
        return f"ended by signal {code - 128}: {last}"
    if re.search(r"MemoryError|out of memory|[Cc]annot allocate memory", last):
        return f"out of memory: {last}"
    return last or f"ended with exit code {code} and no word"


def exported(
    context: JobContext, wanted: DatasetFilter, *, good_codes: frozenset[int] = DONE
) -> Generator[Command, int, Dataset]:
    """The data set of a filter; of a job that goes on, the one that it began with.

    Args:
        good_codes: exit codes after which the caller still has something to do.

    Raises:
        JobFailedError: it was not written.
    """
    summary = context.files.folder / DATASET
    dataset = read_summary(summary)
    if dataset is None or not (context.config.home_dir / dataset.folder).is_dir():
        options = {"--recipe": wanted.recipe, "--since": wanted.since, "--until": wanted.until}
        chosen = [
            f"{option}={value.isoformat() if isinstance(value, datetime) else value}"
            for option, value in options.items()
            if value is not None
        ]
        chosen += [f"--label={label}" for label in wanted.labels]
        arguments = ("data", "export", "--json", f"--actor={context.row.actor}", *chosen)
        code = yield Command("export", arguments, good_codes, has_store=True, stdout=summary)
        if code not in DONE:
            raise JobFailedError(in_words(code, context.files))
        dataset = read_summary(summary)
    if dataset is None:
        raise JobFailedError("the data set was not written; the log says why")
    note_dataset(context.store.engine, context.row.id, dataset.fingerprint)
    return dataset
