"""The thread that runs jobs, one at a time on a home folder, however many services there are.

Who holds the lock of the jobs' folder runs them; the system frees it when a service dies, and another, or the
same one when it is back, goes on: with the job's process where that still lives, else by starting the same
command again. A service that is stopped in good order ends the process, which saves its state first.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence

from sqlalchemy.exc import SQLAlchemyError

from inspect_vit.errors import InspectionError
from serving.config import ServingConfig
from serving.errors import ServingError
from serving.job_files import JobFiles
from serving.job_process import JobProcess, find, forget_note, read_note, start
from serving.job_schemas import JobState
from serving.job_steps import PROGRAM, Command, JobContext, JobFailedError, Outcome, environment, in_words
from serving.job_tables import JobRow
from serving.jobs import end_job, ended_beyond, is_cancel_asked, running_job, start_next
from serving.locking import try_alone
from serving.pictures import NO_ROOM
from serving.promoting import promote
from serving.retrain import retrain
from serving.scrubbing import scrubbed
from serving.store import Store

POLL_S = 1.0
RETRY_S = 5.0
"""After which a look at a database that did not answer is tried again."""
STOP_S, KILL_S = 5.0, 20.0
"""What a process gets to save its state: when the service stops, and when its job is cancelled."""
MAX_STARTS = 3
"""Of one step whose process ends and nobody can tell why."""
KEPT_FOLDERS = 20
MAX_REASON_CHARS = 4000
KINDS: dict[str, Callable[[JobContext], Generator[Command, int, Outcome]]] = {
    "retrain": retrain,
    "promote": promote,
}

logger = logging.getLogger("inspect_vit.serving")


class _StoppedError(Exception):
    """The service ends; the job goes on with the next one."""


class _CancelledError(Exception):
    """A person ended the job."""


class Runner:
    """Runs the jobs of a store until it is closed."""

    def __init__(
        self, store: Store, config: ServingConfig, *, program: Sequence[str] = PROGRAM, poll_s: float = POLL_S
    ) -> None:
        """program: what the steps' arguments are given to."""
        self._store, self._config, self._program, self._poll_s = store, config, tuple(program), poll_s
        self._folder = config.home_dir / "jobs"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the running process, which may save its state first, and leave the rest to the next service."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._folder / ".runner", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while not self._stop.is_set():
                wait_s = self._poll_s
                try:
                    if try_alone(lock):
                        self._look()
                except _StoppedError:
                    return
                except Exception:
                    logger.exception("jobs: a look at the table failed; the next is in %g s", RETRY_S)
                    wait_s = RETRY_S
                self._stop.wait(wait_s)
        finally:
            os.close(lock)

    def _look(self) -> None:
        row = running_job(self._store.engine)
        if row is None:
            row = start_next(self._store.engine)
            if row is None:
                return
            forget_note(self._folder / row.id)
        logger.info("job %s (%s) runs", row.id, row.kind)
        self._do(row)
        for old in ended_beyond(self._store.engine, KEPT_FOLDERS):
            JobFiles(self._config, old).forget()

    def _do(self, row: JobRow) -> None:
        """Run a job to its end.

        Raises:
            _StoppedError, SQLAlchemyError, TimeoutError: the job is found running again.
        """
        files = JobFiles(self._config, row.id)
        context = JobContext(self._store, self._config, row, files)
        state: JobState = "failed"
        reason, result = "", None
        try:
            files.run.mkdir(parents=True, exist_ok=True)
            outcome = self._through(KINDS[row.kind](context), context)
            state, reason, result = "done", outcome.reason, outcome.result
            files.forget_state()
        except _CancelledError:
            state = "cancelled"
        except (_StoppedError, SQLAlchemyError, TimeoutError):
            # The service ends, or the database does not answer now.
            raise
        except Exception as error:
            # Whatever it is: a job that was left running would be tried for ever, and all others wait.
            reason = _why(error)
            if not isinstance(error, ServingError | InspectionError):
                logger.exception("job %s failed", row.id)
        reason = scrubbed(reason, self._config)[:MAX_REASON_CHARS]
        end_job(self._store.engine, row.id, state, reason, result)
        logger.info("job %s is %s%s", row.id, state, f": {reason}" if reason else "")

    def _through(self, steps: Generator[Command, int, Outcome], context: JobContext) -> Outcome:
        try:
            command = next(steps)
            while True:
                command = steps.send(self._run_step(command, context))
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome

    def _run_step(self, command: Command, context: JobContext) -> int:
        """Run one command to its end, and again where its process vanished; its exit code."""
        while True:
            if is_cancel_asked(self._store.engine, context.row.id):
                self._end_process(find(context.files.folder), KILL_S)
                raise _CancelledError
            self._store.pictures.check_room()
            process = start(
                context.files.folder,
                (*self._program, *command.arguments),
                environment(context, has_store=command.has_store),
                step=command.name,
                nice=self._config.job_nice,
                log=context.files.log,
                stdout=command.stdout,
            )
            self._wait(process, context)
            code = process.exit_code
            if code in command.good_codes:
                return code
            if code is None or code == 128 + signal.SIGTERM:
                # Ended while no service watched, or by whoever ends this service too: it saved its state.
                self._pause()
                note = read_note(context.files.folder)
                if note is None or note.num_starts < MAX_STARTS:
                    continue
                last = context.files.last_words()
                raise JobFailedError(f"its process ended {MAX_STARTS} times and nobody can tell why: {last}")
            raise JobFailedError(in_words(code, context.files))

    def _wait(self, process: JobProcess, context: JobContext) -> None:
        while not process.ended():
            if self._stop.is_set():
                self._end_process(process, STOP_S)
                raise _StoppedError
            # A database that does not answer now cancels nothing.
            with contextlib.suppress(SQLAlchemyError, TimeoutError):
                if is_cancel_asked(self._store.engine, context.row.id):
                    self._end_process(process, KILL_S)
                    raise _CancelledError
            context.files.bound_log()
            self._stop.wait(self._poll_s)

    def _end_process(self, process: JobProcess | None, patience_s: float) -> None:
        """Ask it to end; kill it when it does not. One of another machine ends by itself."""
        if process is None:
            return
        process.send(signal.SIGTERM)
        deadline = time.monotonic() + patience_s
        while not process.ended() and time.monotonic() < deadline:
            time.sleep(0.05)
        if not process.ended():
            process.send(signal.SIGKILL)
            while not process.ended() and time.monotonic() < deadline + STOP_S:
                time.sleep(0.05)

    def _pause(self) -> None:
        """Whoever ended the process may be about to end this service too."""
        if self._stop.wait(2 * self._poll_s):
            raise _StoppedError


def _why(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return f"disk full: {error.strerror}"
    if isinstance(error, ServingError) and error.hint:
        return f"{error}; {error.hint}"
    if isinstance(error, OSError):
        return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
    return str(error) if isinstance(error, ServingError | InspectionError) else f"an error of ours: {error!r}"
