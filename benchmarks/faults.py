"""What a service survives, as a table: what was done to it, how often, and what was lost.

    python benchmarks/faults.py [--rounds 10] [--database-url URL] [--port 3999]

A real server on the loopback is posted to by four clients. A board that was answered 200 and is not there, or
not the same, after the fault is lost. With --database-url the rows are in PostgreSQL (an empty database).
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
from rich.console import Console
from rich.table import Table

from serving.backup import back_up
from serving.config import ServingConfig
from serving.restore import restore
from serving.run import prepare, wait_until_ready
from serving.store import Store

NUM_CLIENTS = 4
TRANSPORT = 0
"""Counted as status: no answer at all."""


class Line:
    """A server, the clients that post to it, and what was answered."""

    def __init__(self, home: Path, database_url: str, port: int) -> None:
        self.home, self.port = home, port
        self.settings = {
            "INSPECT_VIT_HOME": str(home),
            "INSPECT_VIT_DATABASE_URL": database_url,
            "INSPECT_VIT_MIN_FREE_MB": "0",
            "INSPECT_VIT_DATABASE_WAIT_S": "1",
        }
        self.config = ServingConfig(home=home, database_url=database_url, min_free_mb=0.0)
        self.answered: dict[str, dict[str, Any]] = {}
        self.statuses: Counter[int] = Counter()
        pixels = np.random.default_rng(0).integers(60, 200, (256, 320, 3), dtype=np.uint8)
        self.board = bytes(cv2.imencode(".png", cv2.GaussianBlur(pixels, (0, 0), 3))[1])
        self.start()

    def start(self) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("INSPECT_VIT_")}
        command = prepare(port=self.port, environ={**inherited, **self.settings})
        self.url = command.url
        with (self.home.parent / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                command.argv, env=command.environ, stdout=log, stderr=log, start_new_session=True
            )
        wait_until_ready(self.process, self.url, timeout_s=600.0)

    def worker(self) -> int:
        supervisor = self.process.pid
        return int(Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()[0])

    def kill(self) -> None:
        worker = self.worker()
        for process in (self.process.pid, worker):
            os.kill(process, signal.SIGKILL)
        self.process.wait()
        while Path(f"/proc/{worker}").exists():
            time.sleep(0.05)

    def post(self, client: httpx.Client, serial: str) -> int:
        image = self.board + os.urandom(8)
        try:
            answer = client.post(f"{self.url}/v1/inspect", files={"image": image}, data={"serial": serial})
        except httpx.TransportError:
            self.statuses[TRANSPORT] += 1
            return TRANSPORT
        if answer.status_code == 200:
            self.answered[answer.json()["id"]] = answer.json()
        self.statuses[answer.status_code] += 1
        return answer.status_code

    @contextmanager
    def load(self) -> Iterator[None]:
        """Clients post without a pause until this is left."""
        stop = threading.Event()

        def work(number: int) -> None:
            with httpx.Client(timeout=60.0) as client:
                while not stop.is_set():
                    if self.post(client, f"line-{number}") == TRANSPORT:
                        stop.wait(0.05)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(NUM_CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def wait_for(self, status: int, more: int) -> None:
        """Until the clients got so many more answers of a status; a fault that nobody met shows nothing."""
        wanted, deadline = self.statuses[status] + more, time.monotonic() + 120.0
        while self.statuses[status] < wanted and time.monotonic() < deadline:
            time.sleep(0.01)

    def count_lost(self) -> int:
        """Boards that were answered 200 and do not answer the same now."""
        with httpx.Client(timeout=60.0) as client:
            return sum(
                client.get(f"{self.url}/v1/inspections/{each}").json() != report
                or client.get(f"{self.url}{report['links']['image']}").status_code != 200
                for each, report in self.answered.items()
            )

    def recovers(self) -> bool:
        with httpx.Client(timeout=60.0) as client:
            return self.post(client, "afterwards") == 200


def kill_under_load(line: Line, moments: random.Random) -> None:
    with line.load():
        line.wait_for(200, 2 * NUM_CLIENTS)
        time.sleep(moments.uniform(0.0, 0.5))
        line.kill()
    line.start()


def lock_database(line: Line, moments: random.Random) -> None:
    holder = sqlite3.connect(line.home / "inspect-vit.db", isolation_level=None)
    with line.load():
        line.wait_for(200, 1)
        holder.execute("BEGIN IMMEDIATE")
        line.wait_for(503, moments.randint(1, NUM_CLIENTS))
        holder.execute("ROLLBACK")
    holder.close()


def move_home(line: Line, moments: random.Random) -> None:
    aside = line.home.with_name("aside")
    with line.load():
        line.wait_for(200, 1)
        line.home.rename(aside)
        line.wait_for(503, moments.randint(1, NUM_CLIENTS))
        aside.rename(line.home)


def fill_disk(line: Line, moments: random.Random) -> None:
    soft, hard = resource.prlimit(line.worker(), resource.RLIMIT_FSIZE)
    with line.load():
        line.wait_for(200, 1)
        resource.prlimit(line.worker(), resource.RLIMIT_FSIZE, (len(line.board) // 2, hard))
        line.wait_for(507, moments.randint(1, NUM_CLIENTS))
        resource.prlimit(line.worker(), resource.RLIMIT_FSIZE, (soft, hard))


def open_slow_clients(line: Line, moments: random.Random) -> None:
    head = b"POST /v1/inspect HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=x\r\n"
    sockets = [socket.create_connection(("127.0.0.1", line.port)) for _ in range(64)]
    with line.load():
        for each in sockets:
            each.sendall(head + b"content-length: 100000\r\n\r\n--x\r\n" + bytes(moments.randrange(1000)))
        line.wait_for(200, 2 * NUM_CLIENTS)
    for each in sockets:
        each.close()


def back_up_and_restore(line: Line, moments: random.Random) -> None:
    """The restored copy is compared here; what it lacks is reported by raising."""
    with tempfile.TemporaryDirectory() as folder:
        before = dict(line.answered)
        with line.load():
            line.wait_for(200, 1)
            time.sleep(moments.uniform(0.0, 0.2))
            back_up(line.config, Path(folder) / "backup.tar")
        target = ServingConfig(home=Path(folder) / "restored", min_free_mb=0.0)
        restore(target, Path(folder) / "backup.tar")
        store = Store(target)
        for each, report in before.items():
            found = store.get(each)
            assert found.report.model_dump(mode="json").items() <= report.items(), each
            assert store.read_image(found)
        store.close()


FAULTS = {
    "kill -9 of supervisor and worker under load, started again": kill_under_load,
    "database locked until clients are refused": lock_database,
    "home folder gone until clients are refused": move_home,
    "no file can grow, as on a full disk, until clients are refused": fill_disk,
    "64 half-open clients": open_slow_clients,
    "backup under load, restored elsewhere": back_up_and_restore,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10, help="how often each fault is done")
    parser.add_argument("--database-url", default="", help="default: SQLite in a temporary folder")
    parser.add_argument("--port", type=int, default=3999)
    arguments = parser.parse_args()
    moments = random.Random(1)
    columns = ("what was done", "times", "200", "503", "507", "other", "no answer", "lost", "after")
    table = Table(*columns)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        line = Line(home, arguments.database_url, arguments.port)
        try:
            for name, fault in FAULTS.items():
                if fault is lock_database and arguments.database_url:
                    continue
                line.statuses.clear()
                recovered = 0
                for _ in range(arguments.rounds):
                    fault(line, moments)
                    recovered += line.recovers()
                seen = dict(line.statuses)
                told = [seen.pop(status, 0) for status in (200, 503, 507)]
                silent = seen.pop(TRANSPORT, 0)
                row = [arguments.rounds, *told, sum(seen.values()), silent, line.count_lost()]
                table.add_row(name, *map(str, row), f"fine {recovered} of {arguments.rounds}")
        finally:
            line.kill()
        checked = Store(line.config)
        swept, rows = checked.num_swept, checked.page(limit=10**6)
        named = {name for row in rows for name in (f"{row.report.id}.npz", row.image_sha256)}
        files = {path.name for path in (home / "pictures").rglob("*") if path.is_file()}
        checked.close()
    Console(width=150).print(table)
    print(f"{len(rows)} inspections; {swept} orphan files swept at the last start, {len(files - named)} left")


if __name__ == "__main__":
    main()
