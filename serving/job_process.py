"""A job's process: a session of its own at a low priority, which a later service finds again.

It inherits a lock on a file of the job's folder and holds it until it ends, however it ends. So whoever wants
to know whether it still lives tries the lock, and none is ever started beside one that lives. Its number and
the moment it was started are noted, to send it signals; and a shell around it notes its exit code, for a
service that did not start it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from inspect_vit.files import write_atomically
from serving.locking import try_alone

LOCK, NOTE, EXIT = "lock", "process.json", "exit"
SHELL = (
    "/bin/sh",
    "-c",
    "{ echo 500 > /proc/self/oom_score_adj; } 2> /dev/null; "
    'trap : TERM; "$@"; code=$?; echo "$code" > "$0"; exit "$code"',
)
"""Then the file for the exit code, and the command. Where memory runs out, the system ends it before the
service. By the trap it waits for one that saves its state."""


class Note(BaseModel):
    """What is known of a process that was started."""

    step: str
    num_starts: int
    """Of this step, the first one included."""
    pid: int = 0
    started: str = ""
    """Clock ticks since boot, as /proc has it; with the number it names one process."""
    boot: str = ""


@dataclass
class JobProcess:
    """A process that was started here, or found alive."""

    folder: Path
    child: subprocess.Popen[bytes] | None

    def ended(self) -> bool:
        # A child is asked itself, as the lock is gone where somebody removed the folder.
        if self.child is not None and self.child.poll() is None:
            return False
        return not is_alive(self.folder)

    @property
    def exit_code(self) -> int | None:
        """Of one that ended; over 128: by a signal. None: nobody knows, as all of it was killed."""
        try:
            return int((self.folder / EXIT).read_text())
        except (OSError, ValueError):
            # Not written: the disk is full, or the folder was removed.
            code = None if self.child is None else self.child.poll()
            return code if code is not None and code >= 0 else None

    def send(self, number: signal.Signals) -> None:
        """Signal it and what it started, if it can still be told from a stranger of the same number."""
        if self.child is not None and self.child.poll() is None:
            os.killpg(self.child.pid, number)
            return
        note = read_note(self.folder)
        if note is not None and note.pid and _identity(note.pid) == (note.started, note.boot):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(note.pid, number)


def start(
    folder: Path,
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    step: str,
    nice: int,
    log: Path,
    stdout: Path | None,
) -> JobProcess:
    """Start a step, or find the one that still runs.

    Args:
        nice: its niceness above this process's.
        stdout: where its standard output goes; None: to the log, as its errors do.

    Raises:
        OSError: the disk is full, or there are no processes to be had.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not try_alone(lock):
            return JobProcess(folder, None)
        earlier = read_note(folder)
        num_starts = 1 if earlier is None or earlier.step != step else earlier.num_starts + 1
        note = Note(step=step, num_starts=num_starts)
        _write(folder, note)
        (folder / EXIT).unlink(missing_ok=True)
        with log.open("ab") as errors, log.open("ab") if stdout is None else stdout.open("wb") as output:
            child = subprocess.Popen(
                (*SHELL, str(folder / EXIT), *argv),
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
                pass_fds=(lock,),
            )
        with suppress(ProcessLookupError, PermissionError):
            os.setpriority(os.PRIO_PGRP, child.pid, os.getpriority(os.PRIO_PROCESS, 0) + nice)
        started, boot = _identity(child.pid)
        _write(folder, note.model_copy(update={"pid": child.pid, "started": started, "boot": boot}))
    finally:
        os.close(lock)
    return JobProcess(folder, child)


def find(folder: Path) -> JobProcess | None:
    """The process of a job that still lives; None: there is none."""
    return JobProcess(folder, None) if is_alive(folder) else None


def is_alive(folder: Path) -> bool:
    try:
        lock = os.open(folder / LOCK, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two who ask at the same time do not take each other for the process.
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def read_note(folder: Path) -> Note | None:
    try:
        return Note.model_validate_json((folder / NOTE).read_bytes())
    except (OSError, ValidationError):
        return None


def forget_note(folder: Path) -> None:
    """Count its starts anew."""
    if not is_alive(folder):
        (folder / NOTE).unlink(missing_ok=True)


def _write(folder: Path, note: Note) -> None:
    write_atomically(folder / NOTE, json.dumps(note.model_dump()).encode())


def _identity(pid: int) -> tuple[str, str]:
    """When a process was started, and since which boot that is counted; empty where it is gone."""
    try:
        # The name in the middle may hold spaces and brackets.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return fields[19], Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (OSError, IndexError):
        return "", ""
