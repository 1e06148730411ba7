"""A server that does not end when asked is ended, and its workers with it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from serving.run import stop

STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


def test_a_stubborn_server_and_its_workers_are_killed() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    with process.stdout:
        worker = Path("/proc") / process.stdout.readline().decode().strip()
    assert worker.exists()
    stop(process, timeout_s=0.5)
    assert process.returncode == -9
    deadline = time.monotonic() + 10
    while _runs(worker):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _runs(process: Path) -> bool:
    try:
        return "zombie" not in (process / "status").read_text()
    except OSError:
        return False


def test_a_server_that_listens_ends_by_itself() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    stop(process)
    assert process.returncode == -15
