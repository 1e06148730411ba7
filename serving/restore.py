"""Restore an archive that `serving.backup` wrote: into an empty home folder, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from alembic import command
from alembic.util import CommandError
from sqlalchemy import Connection, Integer, Table, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from serving.backup import CHUNK, FORMAT, HOME, MANIFEST, ROWS, SUMS, Contents, tables_of
from serving.config import ServingConfig
from serving.database import alembic_config, make_engine
from serving.errors import StoreError
from serving.rows import line_to_row

ROWS_AT_ONCE = 500


def restore(config: ServingConfig, archive: Path) -> Contents:
    """Make the home folder and fill the database from an archive; every sum is checked first.

    The home appears with one rename, and a PostgreSQL database is filled in one transaction.

    Raises:
        StoreError: a home or database that is not empty, or an archive that is damaged, cut short or of a
            newer version; nothing was changed.
    """
    home = config.home_dir
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise StoreError(f"{home} is not empty; name a folder that is not there yet with --home")
    home.parent.mkdir(parents=True, exist_ok=True)
    staging = home.with_name(f".{home.name}.restoring-{os.getpid()}")
    staging.mkdir(mode=0o700)
    try:
        with _open(archive) as tar:
            sums = _read_sums(tar, archive)
            manifest = _read_manifest(tar, archive)
            num_bytes = _extract(tar, sums, staging, archive)
        (staging / "home" / "pictures").mkdir(parents=True, exist_ok=True)
        contents = Contents(manifest["rows"], sum(name.startswith(HOME) for name in sums), num_bytes)
        _fill(config, manifest, staging, home)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return contents


def _fill(config: ServingConfig, manifest: dict[str, Any], staging: Path, home: Path) -> None:
    own_file = not config.database_url
    url = f"sqlite:///{staging / 'home' / 'inspect-vit.db'}" if own_file else config.sqlalchemy_url
    engine = make_engine(url)
    try:
        with engine.begin() as connection:
            if inspect(connection).get_table_names():
                raise StoreError(f"the database {engine.url.render_as_string()} is not empty; name a new one")
            command.upgrade(alembic_config(connection), manifest["schema"])
            tables = tables_of(connection)
            if {table.name for table in tables} != set(manifest["rows"]):
                raise StoreError(
                    f"the archive has rows of {sorted(manifest['rows'])}, "
                    f"its schema {manifest['schema']} has {sorted(table.name for table in tables)}"
                )
            for table in tables:
                insert_rows(connection, table, staging / ROWS / f"{table.name}.jsonl")
            command.upgrade(alembic_config(connection), "head")
            if not own_file:
                _move(staging, home)
        if own_file:
            with engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            engine.dispose()
            _move(staging, home)
    except CommandError as error:
        raise StoreError(
            f"the archive has schema {manifest['schema']}, which this version does not know; "
            "restore it with the version that wrote it"
        ) from error
    except (SQLAlchemyError, ValueError) as error:
        if not (staging / "home").exists():
            # The rows were not committed after all: the files go again.
            home.replace(staging / "home")
        raise StoreError(f"cannot fill the database {engine.url.render_as_string()}: {error}") from error
    finally:
        engine.dispose()


def insert_rows(connection: Connection, table: Table, path: Path) -> None:
    """Insert the rows of a file of lines; numbers that the database gives go on behind theirs."""
    with path.open("rb") as file:
        while rows := [line_to_row(line) for line in islice(file, ROWS_AT_ONCE)]:
            connection.execute(table.insert(), rows)
    if connection.dialect.name == "postgresql":
        for column in table.primary_key.columns:
            if isinstance(column.type, Integer):
                connection.execute(
                    text(
                        f'SELECT setval(pg_get_serial_sequence(:name, :key), max("{column.name}")) '
                        f'FROM "{table.name}" HAVING max("{column.name}") IS NOT NULL'
                    ),
                    {"name": f'"{table.name}"', "key": column.name},
                )


def _move(staging: Path, home: Path) -> None:
    made = staging / "home"
    for path in (*made.rglob("*"), made):
        if path.is_dir():
            _sync(path)
    made.replace(home)
    _sync(home.parent)


@contextmanager
def _open(archive: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(archive, "r:") as tar:
            yield tar
    except FileNotFoundError as error:
        raise StoreError(f"there is no archive {archive}") from error
    except tarfile.TarError as error:
        raise StoreError(f"{archive} cannot be read as an archive of inspect-vit backup: {error}") from error


def _read_sums(tar: tarfile.TarFile, archive: Path) -> dict[str, str]:
    """Name to SHA-256 of every member, checked to be the members that are there."""
    members = tar.getmembers()
    if not members or members[-1].name != SUMS:
        raise StoreError(f"{archive} does not end with {SUMS}: it was cut short; use another backup")
    try:
        lines = _member(tar, SUMS).decode().splitlines()
    except UnicodeDecodeError as error:
        raise StoreError(f"{SUMS} in {archive} is damaged: {error}") from error
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    if [member.name for member in members[:-1]] != list(sums) or not all(each.isreg() for each in members):
        raise StoreError(f"the members of {archive} are not those that its {SUMS} lists")
    for name in sums:
        parts = PurePosixPath(name).parts
        if name.startswith("/") or ".." in parts or parts[0] not in (MANIFEST, ROWS[:-1], HOME[:-1]):
            raise StoreError(f"{archive} holds {name!r}, which is no part of a backup")
    return sums


def _read_manifest(tar: tarfile.TarFile, archive: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads(_member(tar, MANIFEST))
    except ValueError as error:
        raise StoreError(f"{MANIFEST} in {archive} is damaged: {error}") from error
    if manifest.get("format") != FORMAT:
        raise StoreError(
            f"{archive} has format {manifest.get('format')!r}, wanted {FORMAT}; "
            "restore it with the version of inspect-vit that wrote it"
        )
    return manifest


def _extract(tar: tarfile.TarFile, sums: dict[str, str], folder: Path, archive: Path) -> int:
    num_bytes = 0
    for name, wanted in sums.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        source, digest = tar.extractfile(name), hashlib.sha256()
        assert source is not None
        with source, target.open("xb") as file:
            while data := source.read(CHUNK):
                digest.update(data)
                num_bytes += file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if digest.hexdigest() != wanted:
            raise StoreError(f"{name} in {archive} is damaged: its SHA-256 is not the one noted")
    return num_bytes


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    try:
        file = tar.extractfile(name)
    except KeyError:
        file = None
    if file is None:
        raise StoreError(f"{tar.name!s} has no {name}: it was not written by inspect-vit backup")
    return file.read()


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
