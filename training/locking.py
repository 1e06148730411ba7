"""One run at a time in a folder: two would write over each other."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inspect_vit.errors import ConfigError

LOCK_NAME = ".lock"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the folder; the lock goes with the process, however that ends.

    Raises:
        ConfigError: another process holds it.
    """
    path = folder / LOCK_NAME
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError(f"another run is writing into {folder}; name another folder") from error
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
