"""Back up a home folder while it is in use, and restore it elsewhere, into either kind of database.

The archive is a plain tar: `manifest.json`, then `rows/<table>.jsonl` with one row a line, then the files
below `home/`, last `SHA256SUMS` in the form of sha256sum, without which an archive is not complete. Rows are
read in one transaction and name their pictures, which are on disk before a row is; so any moment will do.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from alembic.migration import MigrationContext
from sqlalchemy import Connection, MetaData, Table, select
from sqlalchemy.exc import SQLAlchemyError

from serving.config import ServingConfig
from serving.database import InspectionRow, make_engine
from serving.errors import StoreError
from serving.ids import day_of
from serving.locking import shared
from serving.rows import row_to_line
from serving.store import maps_name

FORMAT = 1
MANIFEST, SUMS = "manifest.json", "SHA256SUMS"
ROWS, HOME = "rows/", "home/"
NOT_BACKED_UP = {"pictures", "bentoml", "sample", "datasets", "jobs"}
"""Folders of the home: pictures go by the rows that name them, the others are made anew."""
CHUNK = 1 << 20


@dataclass(frozen=True)
class Contents:
    """What an archive holds."""

    num_rows: dict[str, int]
    num_files: int
    num_bytes: int
    missing: tuple[str, ...] = ()
    """Pictures that a row names and that were not on the disk."""


def back_up(config: ServingConfig, archive: Path) -> Contents:
    """Write an archive of rows and files, whole or not at all; servers go on meanwhile.

    Raises:
        StoreError: no store in the home folder, a database that cannot be read, or an archive in the way.
    """
    home = config.home_dir
    if not (home / "pictures").is_dir():
        raise StoreError(f"there is no store in {home}; set INSPECT_VIT_HOME")
    if archive.exists():
        raise StoreError(f"{archive} is there already; name another file, or remove it")
    partial = archive.with_name(f".{archive.name}.{os.getpid()}")
    engine = make_engine(config.sqlalchemy_url)
    try:
        # Shared with those who add; whoever removes pictures waits until the archive is written.
        with shared(home / ".writing"), open(partial, "xb", opener=_for_owner) as file:
            with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                contents = _Writer(tar, home, archive.absolute().parent).write(engine)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(archive)
    except SQLAlchemyError as error:
        raise StoreError(f"cannot read the database {engine.url.render_as_string()}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
        engine.dispose()
    return contents


def tables_of(connection: Connection) -> list[Table]:
    """The tables that the database has, whatever this code knows of them; those referred to come first."""
    metadata = MetaData()
    metadata.reflect(connection)
    return [table for table in metadata.sorted_tables if table.name != "alembic_version"]


class _Writer:
    """An archive in the making: its sums are written last."""

    def __init__(self, tar: tarfile.TarFile, home: Path, spool_folder: Path) -> None:
        self.tar, self.home, self.spool_folder = tar, home, spool_folder
        self.sums: dict[str, str] = {}
        self.num_bytes = 0
        self.missing: list[str] = []

    def write(self, engine: Any) -> Contents:
        with contextlib.ExitStack() as spools:
            rows, num_rows, names, revision = self._read_rows(engine, spools)
            manifest = {
                "format": FORMAT,
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "schema": revision,
                "rows": num_rows,
            }
            self._add(MANIFEST, io.BytesIO(json.dumps(manifest, indent=2).encode()))
            for table, spool in rows.items():
                self._add(f"{ROWS}{table}.jsonl", spool)
        num_tables = len(self.sums)
        for name in sorted(names):
            self._add_file(name, must_exist=False)
        for path in _other_files(self.home):
            self._add_file(path, must_exist=True)
        num_files = len(self.sums) - num_tables
        lines = "".join(f"{digest}  {name}\n" for name, digest in self.sums.items())
        self._add(SUMS, io.BytesIO(lines.encode()))
        return Contents(num_rows, num_files, self.num_bytes, tuple(self.missing))

    def _read_rows(
        self, engine: Any, spools: contextlib.ExitStack
    ) -> tuple[dict[str, IO[bytes]], dict[str, int], set[str], str | None]:
        """All rows of one moment, in unnamed temporary files; and the pictures that they name."""
        rows: dict[str, IO[bytes]] = {}
        num_rows: dict[str, int] = {}
        names: set[str] = set()
        with engine.connect().execution_options(isolation_level=_snapshot(engine)) as connection:
            if engine.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN")
            revision = MigrationContext.configure(connection).get_current_revision()
            for table in tables_of(connection):
                spool = tempfile.TemporaryFile(dir=self.spool_folder)  # noqa: SIM115, the stack closes it
                rows[table.name] = spools.enter_context(spool)
                num_rows[table.name] = 0
                query = select(table).order_by(*table.primary_key.columns)
                for row in connection.execution_options(yield_per=1000).execute(query).mappings():
                    spool.write(row_to_line(row))
                    num_rows[table.name] += 1
                    if table.name == InspectionRow.__tablename__:
                        names.update(_pictures_of(row))
        return rows, num_rows, names, revision

    def _add_file(self, name: str, *, must_exist: bool) -> None:
        try:
            with (self.home / name).open("rb") as file:
                self._add(HOME + name, file)
        except FileNotFoundError:
            if must_exist:
                raise
            self.missing.append(name)

    def _add(self, name: str, file: IO[bytes]) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode, info.mtime = (
            file.seek(0, os.SEEK_END),
            0o600,
            int(datetime.now(UTC).timestamp()),
        )
        file.seek(0)
        hashing = _Hashing(file)
        self.tar.addfile(info, hashing)
        self.sums[name] = hashing.digest.hexdigest()
        self.num_bytes += info.size


class _Hashing:
    """A file that hashes what is read of it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.digest.update(data)
        return data


def _snapshot(engine: Any) -> str:
    return "SERIALIZABLE" if engine.dialect.name == "sqlite" else "REPEATABLE READ"


def _pictures_of(row: Any) -> Iterator[str]:
    folder = f"pictures/{day_of(row['id'])}"
    for name in (maps_name(row["id"]), row["image_sha256"], row["reference_sha256"]):
        if name is not None:
            yield f"{folder}/{name}"


def _other_files(home: Path) -> list[str]:
    """Files in the home's other folders; what lies loose in it is databases, locks and logs."""
    folders = [path for path in sorted(home.iterdir()) if path.is_dir() and path.name not in NOT_BACKED_UP]
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    names = [path.relative_to(home) for path in files]
    # What begins with a dot is half-written, and may be gone by the time it is read.
    return [name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)]


def _for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
