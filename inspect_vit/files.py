"""Files on disk: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file whole or not at all, also when the machine stops half way."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
