"""A server that does not end when asked is ended, and its workers with it, however it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from serving.run import prepare, stop

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
    _wait_for_the_end_of(worker, seconds=10)


def test_a_worker_whose_supervisor_is_killed_before_it_serves_ends(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environ = {**os.environ, "INSPECT_VIT_HOME": str(tmp_path), "INSPECT_VIT_KEYS": "off"}
    server = prepare(tiny_checkpoint, port=port, environ=environ)
    process = subprocess.Popen(
        server.argv,
        env=server.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not (found := children.read_text().split()):
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        _wait_for_the_end_of(Path("/proc") / found[0], seconds=150)
        # The port is free again.
        prepare(tiny_checkpoint, port=port, environ=environ)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _wait_for_the_end_of(process: Path, *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while _runs(process):
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
