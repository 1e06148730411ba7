"""A private PostgreSQL server for tests."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

DATABASES = ("boards", "restored")


@dataclass
class Postgres:
    """A private PostgreSQL server that listens on a socket in its own folder only."""

    folder: Path
    programs: Path

    def control(self, action: str, *options: str) -> None:
        arguments = ["-D", str(self.folder / "data"), "-w", "-s", "-l", str(self.folder / "log"), *options]
        self.run("pg_ctl", action, *arguments)

    def start(self) -> None:
        self.control("start", "-o", f"-c listen_addresses= -c fsync=off -k {self.folder}")

    def stop(self) -> None:
        self.control("stop", "-m", "immediate")

    def run(self, program: str, *arguments: str) -> None:
        """PostgreSQL refuses to run as root."""
        user = _postgres_user()
        subprocess.run(
            [self.programs / program, *arguments],
            cwd=self.folder,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
        )

    def url(self, database: str) -> str:
        return f"postgresql+pg8000://inspector@/{database}?unix_sock={self.folder}/.s.PGSQL.5432"

    def empty(self, database: str = "boards") -> str:
        """URL of one of the databases in DATABASES, emptied: much faster than a new one."""
        engine = sa.create_engine(self.url(database))
        with engine.begin() as connection:
            connection.execute(sa.text("SET LOCAL lock_timeout = '10s'"))
            connection.execute(sa.text("DROP SCHEMA public CASCADE"))
            connection.execute(sa.text("CREATE SCHEMA public"))
        engine.dispose()
        return self.url(database)


def _postgres_user() -> pwd.struct_passwd | None:
    """Who runs PostgreSQL: whoever runs the tests, but for root another user."""
    if os.geteuid() != 0:
        return None
    users = {user.pw_name: user for user in pwd.getpwall()}
    return users.get("postgres") or users["nobody"]


def find_programs() -> Path | None:
    """The folder of initdb and pg_ctl."""
    on_path = shutil.which("initdb")
    found = [*Path("/usr/lib/postgresql").glob("*/bin/initdb"), *([Path(on_path)] if on_path else [])]
    return found[0].parent if found else None


@contextmanager
def private_cluster(programs: Path) -> Iterator[Postgres]:
    """A server that is gone, with all its files, when this is left."""
    # Not in pytest's folder, which only its owner may enter; and the path of a socket has to be short.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    user = _postgres_user()
    if user:
        os.chown(folder, user.pw_uid, user.pw_gid)
    cluster = Postgres(folder, programs)
    try:
        arguments = ("-U", "inspector", "-A", "trust", "-E", "UTF8", "--no-sync")
        cluster.run("initdb", "-D", str(folder / "data"), *arguments)
        cluster.start()
        for database in DATABASES:
            cluster.run("createdb", "-h", str(folder), "-U", "inspector", database)
        yield cluster
        cluster.stop()
    finally:
        shutil.rmtree(folder)
