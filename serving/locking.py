"""Locks between processes on one home folder. The system frees them when their holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

RETRY_S = 0.02


@contextmanager
def shared(path: Path) -> Iterator[None]:
    """Hold the lock together with others that share it; waits for whoever holds it alone."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def alone(path: Path, *, timeout_s: float) -> Iterator[bool]:
    """Hold the lock alone, and yield whether that came about in time.

    It is asked for again and again instead of queued for, so that those who share it never wait for it.
    """
    descriptor = _open(path)
    deadline = time.monotonic() + timeout_s
    try:
        held = try_alone(descriptor)
        while not held and time.monotonic() < deadline:
            time.sleep(RETRY_S)
            held = try_alone(descriptor)
        yield held
    finally:
        os.close(descriptor)


def try_alone(descriptor: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
