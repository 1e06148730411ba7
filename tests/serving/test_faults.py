"""The store is killed, its database locked, stopped or moved, its disk filled: nothing stored is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from serving.config import ServingConfig
from serving.database import make_engine
from serving.errors import StoreUnavailableError
from serving.store import Store

KILLED = """
import os, random, signal, sys, time
from serving.config import ServingConfig
from serving.retention import Limits, prune
from serving.store import Store
from tests.serving.boards import Boards

def serve(write):
    store, boards = Store(config), Boards()
    for number in range(10**6):
        report = boards.report(verdict="PASS" if number % 3 else "FAIL", serial=f"SN-{number % 4}")
        boards.add(store, report, image=os.urandom(3000), key=report.id)
        os.write(write, f"{report.id} {report.verdict.value}\\n".encode())
        if number % 4 == 3:
            prune(store, Limits(None, 20_000), pause_s=0.0)

config = ServingConfig(home=sys.argv[1], database_url=sys.argv[2], min_free_mb=0, database_wait_s=30)
moments = random.Random(1)
for _ in range(int(sys.argv[3])):
    read, write = os.pipe()
    children = []
    for _ in range(2):
        child = os.fork()
        if child == 0:
            serve(write)
        children.append(child)
    os.close(write)
    answered = os.read(read, 1000)
    time.sleep(moments.uniform(0.0, 0.25))
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    while data := os.read(read, 1 << 16):
        answered += data
    sys.stdout.write(answered.decode())
"""


def run(script: str, *arguments: str, project: Path, under: tuple[str, ...] = ()) -> str:
    done = subprocess.run(
        [*under, sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def files(home: Path) -> set[str]:
    return {path.name for path in (home / "pictures").rglob("*") if path.is_file()}


def test_two_services_killed_at_random_moments_lose_nothing(config: ServingConfig, project: Path) -> None:
    rounds = 5
    told = run(KILLED, str(config.home_dir), config.database_url, str(rounds), project=project)
    answered = [line.split() for line in told.splitlines()]
    failures = {inspection_id for inspection_id, verdict in answered if verdict == "FAIL"}
    assert len(failures) >= rounds
    store = Store(config)
    found = store.page(limit=100_000)
    assert failures <= {item.report.id for item in found}, "answered, and never deleted"
    named = set()
    for item in found:
        assert len(store.read_image(item)) == 3000
        assert store.read_maps(item) == b"maps"
        named |= {item.image_sha256, item.reference_sha256, f"{item.report.id}.npz"}
    assert files(config.home_dir) == named, "and no file without a row"
    for serial in range(4):
        numbers = [item.report.attempt for item in found if item.report.serial == f"SN-{serial}"]
        assert len(set(numbers)) == len(numbers)
    store.close()


def test_a_locked_database_refuses_in_time_and_recovers(config: ServingConfig, boards: Any) -> None:
    store = Store(config)
    boards.add(store, boards.report(), image=b"earlier")
    before = files(config.home_dir)
    other = make_engine(config.sqlalchemy_url)
    with other.connect() as holder:
        if other.dialect.name == "sqlite":
            holder.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            holder.execute(sa.text("LOCK TABLE inspections IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(sa.exc.DBAPIError):
            boards.add(store, boards.report(), image=b"earlier")
    assert files(config.home_dir) == before
    assert boards.add(store, boards.report(), image=b"earlier")
    assert len(store.page(limit=9)) == 2
    other.dispose()
    store.close()


def test_a_sqlite_file_that_was_moved_takes_no_rows_that_nobody_would_find(
    tmp_path: Path, boards: Any
) -> None:
    store = Store(ServingConfig(home=tmp_path, min_free_mb=0.0))
    boards.add(store, boards.report(), image=b"earlier")
    before = files(tmp_path)
    database, aside = tmp_path / "inspect-vit.db", tmp_path / "aside.db"
    database.rename(aside)
    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match="no longer the file"):
            boards.add(store, boards.report(), image=b"earlier")
        with pytest.raises(StoreUnavailableError):
            store.check()
        shutil.copy(aside, database)
    aside.rename(database)
    assert boards.add(store, boards.report(), image=b"earlier")
    assert len(store.page(limit=9)) == 2
    assert len(files(tmp_path) - before) == 1
    store.close()


def test_a_home_that_is_gone_for_a_while_is_an_error_and_not_a_loss(tmp_path: Path, boards: Any) -> None:
    store = Store(ServingConfig(home=tmp_path / "home", min_free_mb=0.0))
    boards.add(store, boards.report())
    (tmp_path / "home").rename(tmp_path / "aside")
    with pytest.raises(OSError, match="home"):
        boards.add(store, boards.report())
    assert not (tmp_path / "home").exists(), "no second home is begun"
    (tmp_path / "aside").rename(tmp_path / "home")
    assert boards.add(store, boards.report())
    assert len(store.page(limit=9)) == 2
    store.close()


def test_postgresql_that_stops_and_comes_back(postgres: Any, tmp_path: Path, boards: Any) -> None:
    url = postgres.empty()
    store = Store(ServingConfig(home=tmp_path, database_url=url, min_free_mb=0.0, database_wait_s=2.0))
    report = boards.report()
    boards.add(store, report)
    before = files(tmp_path)
    postgres.stop()
    try:
        for call in (store.check, lambda: boards.add(store, boards.report()), lambda: store.get(report.id)):
            with pytest.raises(sa.exc.DBAPIError):
                call()
    finally:
        postgres.start()
    assert files(tmp_path) == before
    store.check()
    assert boards.add(store, boards.report())
    assert len(store.page(limit=9)) == 2
    store.close()


FILLED = """
import subprocess, sys
from pathlib import Path
home = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", home], check=True)
from serving.config import ServingConfig
from serving.errors import StorageFullError
from serving.store import Store
from tests.serving.boards import Boards
import os
store, boards = Store(ServingConfig(home=home, min_free_mb=0)), Boards()
stored = {}
filler = home / "filler"
with filler.open("wb", buffering=0) as file:
    while True:
        try:
            report, image = boards.report(), os.urandom(5000)
            boards.add(store, report, image=image)
            stored[report.id] = image
            file.write(bytes(60_000))
        except (StorageFullError, OSError) as error:
            if isinstance(error, StorageFullError):
                break
num_files = len(list((home / "pictures").rglob("*")))
refused = 0
for _ in range(3):
    try:
        boards.add(store, boards.report(), image=os.urandom(5000))
    except StorageFullError:
        refused += 1
assert refused == 3, refused
assert len(list((home / "pictures").rglob("*"))) == num_files
filler.unlink()
for _ in range(3):
    report, image = boards.report(), os.urandom(5000)
    boards.add(store, report, image=image)
    stored[report.id] = image
assert {item.report.id: store.read_image(item) for item in store.page(limit=1000)} == stored
print(len(stored))
"""


def test_a_disk_that_is_full_is_told_and_is_fine_again_when_there_is_room(
    tmp_path: Path, project: Path
) -> None:
    """On a real file system of 3 MB, in a mount namespace of its own, which needs no privileges."""
    apart = ("unshare", "--map-root-user", "--mount")
    if not shutil.which("unshare") or subprocess.run([*apart, "true"], check=False).returncode:
        pytest.skip("unshare: no mount namespace here; the test with a file size limit stands for it")
    assert int(run(FILLED, str(tmp_path), project=project, under=apart)) > 10


def test_one_that_adds_waits_for_one_that_removes_and_not_the_other_way_round(tmp_path: Path) -> None:
    from serving.locking import alone, shared

    lock = tmp_path / "lock"
    entered = threading.Event()

    def add() -> None:
        with shared(lock):
            entered.set()

    with alone(lock, timeout_s=1.0) as held:
        assert held
        adder = threading.Thread(target=add)
        adder.start()
        assert not entered.wait(0.1)
    assert entered.wait(5.0)
    adder.join()
