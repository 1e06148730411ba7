"""A real server process on a free port, one for most tests and more for those that kill or starve it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
import pytest

from serving.config import ServingConfig
from serving.keys import create_key
from serving.roles import ANYONE, Role
from serving.run import prepare, wait_until_ready
from serving.store import Store
from tests.serving.boards import Boards
from tests.serving.job_bench import Bench
from tests.serving.model_versions import Versions
from tests.serving.postgres import Postgres, find_programs, private_cluster


@dataclass
class Server:
    """A running server; `client` talks to it."""

    process: subprocess.Popen[bytes]
    client: httpx.Client
    home: Path
    log: Path

    def worker(self) -> int:
        """Process id of the worker, which has a process group of its own."""
        supervisor = self.process.pid
        (worker,) = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
        return int(worker)

    def kill(self) -> None:
        """As a power cut would: supervisor and worker, at once, without a word."""
        for process in (self.process.pid, self.worker()):
            os.kill(process, signal.SIGKILL)
        self.process.wait(timeout=20)
        self.client.close()

    def stop(self) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(timeout=60)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.process.pid, signal.SIGKILL)
        self.client.close()

    def posted_files(self) -> set[str]:
        """Names of all files under the picture folder."""
        return {path.name for path in (self.home / "pictures").rglob("*") if path.is_file()}


StartServer = Callable[..., Server]


@pytest.fixture(scope="session")
def start_server(tiny_checkpoint: Path) -> StartServer:
    """start_server(home, checkpoint, **settings): settings are INSPECT_VIT_* variables without the prefix.

    Without keys unless KEYS="on" is among them.
    """

    def start(home: Path, checkpoint: Path = tiny_checkpoint, **settings: str) -> Server:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        environ = {name: value for name, value in os.environ.items() if not name.startswith("INSPECT_VIT_")}
        settings = {"KEYS": "off", **settings}
        environ.update({f"INSPECT_VIT_{name}": value for name, value in settings.items()})
        environ["INSPECT_VIT_HOME"] = str(home)
        command = prepare(checkpoint, port=port, environ=environ)
        log = home / "server.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                command.argv, env=command.environ, stdout=output, stderr=output, start_new_session=True
            )
        server = Server(process, httpx.Client(base_url=command.url, timeout=60.0), home, log)
        try:
            wait_until_ready(process, command.url, timeout_s=1500.0)
        except Exception as error:
            server.stop()
            raise AssertionError(log.read_text(errors="replace")) from error
        return server

    return start


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL: no initdb on the PATH or below /usr/lib/postgresql")
    with private_cluster(programs) as cluster:
        yield cluster


@pytest.fixture
def boards() -> Boards:
    return Boards()


@pytest.fixture(params=["sqlite", "postgresql"])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> ServingConfig:
    """An empty home folder with either database. Locks are waited for half a second."""
    url = ""
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres").empty()
    return ServingConfig(home=tmp_path / "home", database_url=url, min_free_mb=0.0, database_wait_s=0.5)


@pytest.fixture(scope="session")
def server(start_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server most tests share. Uploads are limited to 2 MB, so that too large ones are small."""
    running = start_server(tmp_path_factory.mktemp("home"), MAX_UPLOAD_MB="2", MAX_MEGAPIXELS="1")
    yield running
    running.stop()


@dataclass
class GuardedServer:
    """A server that asks for keys, and one key of each role; a second line posts too."""

    server: Server
    keys: dict[str, str]

    def call(self, method: str, path: str, key: str | None = None, **more: object) -> httpx.Response:
        """A request with the key of that name and no cookies."""
        headers = {**({"x-api-key": self.keys[key]} if key else {}), **more.pop("headers", {})}  # type: ignore[dict-item]
        with httpx.Client(base_url=self.server.client.base_url, timeout=60.0) as client:
            return client.request(method, path, headers=headers, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def guarded(start_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedServer]:
    home = tmp_path_factory.mktemp("guarded")
    with contextlib.closing(Store(ServingConfig(home=home))) as store:
        keys = {
            name: create_key(store.engine, name, Role(name.split()[0]), by=ANYONE)
            for name in ("line", "line 2", "operator", "engineer", "admin")
        }
    running = start_server(home, KEYS="on", MAX_UPLOAD_MB="2", MAX_MEGAPIXELS="1", JOB_NICE="0")
    yield GuardedServer(running, keys)
    running.stop()


@pytest.fixture(scope="session")
def other_checkpoint(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another model version: the same shape, other weights."""
    import torch

    from inspect_vit.checkpoint import load_checkpoint, save_checkpoint

    model, metadata = load_checkpoint(tiny_checkpoint)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.25)
    path = tmp_path_factory.mktemp("other") / "other.safetensors"
    save_checkpoint(path, model, name="other", thresholds=metadata.thresholds, training={})
    return path


@pytest.fixture(scope="session")
def board_png() -> bytes:
    """A 320 x 256 picture of dark tracks on a bright ground."""
    return encode(".png", draw_board(seed=1))


@pytest.fixture(scope="session")
def reference_png() -> bytes:
    """The same tracks but for the last two."""
    return encode(".png", draw_board(seed=1, tracks=10))


def draw_board(seed: int, tracks: int = 12) -> np.ndarray:
    rng = np.random.default_rng(seed)
    board = np.full((256, 320, 3), 210, np.uint8)
    for _ in range(tracks):
        start, end = (tuple(int(v) for v in rng.integers(0, 250, 2)) for _ in range(2))
        cv2.line(board, start, end, (40, 70, 45), int(rng.integers(3, 9)))
    return board


def encode(suffix: str, picture: np.ndarray) -> bytes:
    done, data = cv2.imencode(suffix, picture)
    assert done
    return bytes(data)


@pytest.fixture(scope="session")
def versions(
    tiny_checkpoint: Path, other_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> Versions:
    """A home with a in production, and two candidates, the second of which knows a class more."""
    import torch

    from inspect_vit.checkpoint import read_metadata, save_checkpoint
    from inspect_vit.model import HierarchicalViT

    metadata, folder = read_metadata(tiny_checkpoint), tmp_path_factory.mktemp("versions")
    torch.manual_seed(5)
    classes = (*metadata.model.class_names, "scratch")
    model = HierarchicalViT(metadata.model.model_copy(update={"class_names": classes}))
    # Random weights score about 0.01 everywhere: this one calls its own class on every board, and no other.
    limits = {**dict.fromkeys(classes, 0.99), "scratch": 0.0001}
    thresholds: Any = {"with_reference": limits, "without_reference": limits}
    third = folder / "c.safetensors"
    save_checkpoint(third, model, name="c", thresholds=thresholds, training={})
    made = Versions(folder / "home", (tiny_checkpoint, other_checkpoint, third))
    with contextlib.closing(Store(ServingConfig(home=made.home))) as store:
        made.fill(store, made.home)
    return made


@pytest.fixture
def bench(config: ServingConfig, tiny_checkpoint: Path, other_checkpoint: Path) -> Iterator[Bench]:
    """Jobs on either database."""
    made = Bench(config, tiny_checkpoint, other_checkpoint)
    yield made
    made.store.close()


@pytest.fixture
def small_bench(tmp_path: Path, tiny_checkpoint: Path, other_checkpoint: Path) -> Iterator[Bench]:
    """With SQLite alone, where the database is not what is tried."""
    made = Bench(
        ServingConfig(home=tmp_path / "home", min_free_mb=0.0, database_wait_s=0.5),
        tiny_checkpoint,
        other_checkpoint,
    )
    yield made
    made.store.close()
