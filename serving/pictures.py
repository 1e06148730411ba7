"""Pictures on disk: written so that what is there is whole and survives a power cut.

Layout: `<root>/<day>/<sha256>` for posted pictures as posted (one file a day however often posted) and
`<root>/<day>/<inspection id>.npz` for the maps. A day's folder is all there is of that day, so keeping n days
is removing folders.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from serving.errors import NotFoundError, StorageFullError

DAY_PATTERN = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
TEMPORARY_PREFIX = ".writing-"
PRUNING = ".pruning"
NUM_SWEPT_DAYS = 2
"""A server that died while adding did so on the newest day, or just before midnight."""

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class PictureFiles:
    """The picture folder of one store."""

    def __init__(self, root: Path, *, min_free_bytes: int) -> None:
        self.root = root
        self.min_free_bytes = min_free_bytes
        root.mkdir(parents=True, exist_ok=True)

    def check_room(self) -> None:
        """Raises StorageFullError while the disk has less than the configured room."""
        free = shutil.disk_usage(self.root).free
        if free < self.min_free_bytes:
            raise StorageFullError(
                f"{free / 1e6:.0f} MB free on the disk of {self.root}, "
                f"wanted {self.min_free_bytes / 1e6:.0f} MB",
                hint="make room on that disk, or lower INSPECT_VIT_MIN_FREE_MB",
            )

    def write_all(self, day: str, files: dict[str, bytes]) -> None:
        """Write files of one day; when this returns they are on disk, names included.

        Raises:
            StorageFullError: nothing half-written stays.
        """
        folder = self.root / day
        try:
            if not folder.is_dir():
                folder.mkdir(exist_ok=True)
                _sync_folder(self.root)
            for name, data in files.items():
                if not (folder / name).exists():
                    _write_file(folder / name, data)
            _sync_folder(folder)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise no_room(error) from error
            raise

    def read(self, day: str, name: str) -> bytes:
        try:
            return (self.root / day / name).read_bytes()
        except FileNotFoundError as error:
            raise NotFoundError(f"the pictures of {day} were removed from this server") from error

    def remove(self, day: str, name: str) -> int:
        """Remove a file of a day that may be gone already; returns its size in bytes."""
        path = self.root / day / name
        try:
            num_bytes = path.stat().st_size
            path.unlink()
        except FileNotFoundError:
            return 0
        return num_bytes

    def size(self) -> int:
        """Bytes of all pictures. Reads every folder: about a second per 100 000 files."""
        return sum(sum(self.sizes(day).values()) for day in self.days())

    def sizes(self, day: str) -> dict[str, int]:
        """Bytes of each file of a day."""
        try:
            with os.scandir(self.root / day) as entries:
                return {entry.name: entry.stat().st_size for entry in entries}
        except FileNotFoundError:
            return {}

    def days(self) -> list[str]:
        return sorted(folder.name for folder in self.root.glob(DAY_PATTERN))

    def days_to_sweep(self) -> list[str]:
        """Where a server that died may have left files without rows."""
        return sorted({*self.days()[-NUM_SWEPT_DAYS:], *self.days_half_pruned()})

    def days_half_pruned(self) -> list[str]:
        """Days of which rows were removed and maybe not their files yet."""
        return [day for day in self.days() if (self.root / day / PRUNING).exists()]

    def begin_pruning(self, day: str) -> None:
        """Note on the disk that files of this day are about to lose their rows."""
        self.write_all(day, {PRUNING: b""})

    def end_pruning(self, day: str) -> None:
        """All files without a row are gone; with the last of all files the folder goes too."""
        self.remove(day, PRUNING)
        with suppress(OSError):
            (self.root / day).rmdir()

    def sweep(self, day: str, known: Iterable[str]) -> int:
        """Remove the files of a day that nothing refers to. Only for a store that nobody else has open."""
        keep = set(known)
        orphans = [path for path in (self.root / day).iterdir() if path.name not in keep]
        for path in orphans:
            path.unlink()
        return len(orphans)


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def no_room(error: Exception) -> StorageFullError:
    return StorageFullError(
        f"the disk is full: {error}",
        hint="make room on the disk of INSPECT_VIT_HOME, then send the board again",
    )


def _write_file(path: Path, data: bytes) -> None:
    temporary = path.with_name(TEMPORARY_PREFIX + secrets.token_hex(8))
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
