"""A line's bad days over HTTP: boards that come back, frames sent twice, a disk or database that fails, slow
and dead clients. Each is answered in words, and the service is fine afterwards."""

from __future__ import annotations

import asyncio
import resource
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from serving.config import ServingConfig
from serving.engine import NUM_AHEAD, Engine
from serving.errors import BusyError
from serving.metrics import Metrics
from serving.store import Store

QUEUE_SIZE = 4


@pytest.fixture(scope="module")
def line(start_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    settings = {"QUEUE_SIZE": str(QUEUE_SIZE), "DATABASE_WAIT_S": "0.3", "MIN_FREE_MB": "0", "STALL_S": "3"}
    running = start_server(tmp_path_factory.mktemp("line"), **settings)
    yield running
    running.stop()


def post(server: Any, image: bytes, **data: str) -> httpx.Response:
    answer: httpx.Response = server.client.post("/v1/inspect", files={"image": image}, data=data)
    return answer


def error_code(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    if status == 503:
        assert int(answer.headers["retry-after"]) >= 1
    return str(answer.json()["error"]["code"])


def test_a_cleaned_board_is_attempt_2_and_its_history_is_kept(line: Any, board_png: bytes) -> None:
    posted = [post(line, board_png + name, serial="SN-7").json() for name in (b"dirty", b"clean", b"dirty")]
    assert [report["attempt"] for report in posted] == [1, 2, 1], "the third is the first, sent again"
    listed = line.client.get("/v1/inspections?serial=SN-7").json()["inspections"]
    assert listed == posted[::-1]
    assert post(line, board_png).json()["attempt"] is None


def test_the_same_frame_under_another_serial_is_an_error_that_names_the_first(
    line: Any, board_png: bytes
) -> None:
    frame = board_png + b"frame"
    nameless = post(line, frame).json()
    first = post(line, frame, serial="SN-8").json()
    again = post(line, frame, serial="SN-8").json()
    assert {each["verdict"] for each in (nameless, first, again)} <= {"PASS", "FAIL"}
    other = post(line, frame, serial="SN-9").json()
    assert other["verdict"] == "ERROR"
    assert other["reasons"] == [
        f"duplicate_frame: serial 'SN-8' sent the same picture, inspection {first['id']}"
    ]
    assert other["defects"] == []
    assert line.client.get(f"/v1/inspections/{other['id']}").json() == other, "it is stored"
    assert post(line, frame, serial="SN-8").json()["verdict"] == first["verdict"], "SN-8 still owns it"


def test_two_serials_that_send_one_frame_at_once(line: Any, board_png: bytes) -> None:
    answers: list[dict[str, Any]] = []
    threads = [
        threading.Thread(
            target=lambda number=number: answers.append(
                post(line, board_png + b"at once", serial=f"SN-1{number}").json()
            )
        )
        for number in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(report["verdict"] == "ERROR" for report in answers) == [False, True, True]


def test_a_locked_database_is_503_and_over_when_it_is_free(line: Any, board_png: bytes) -> None:
    before = line.posted_files()
    holder = sqlite3.connect(line.home / "inspect-vit.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    answer = post(line, board_png, serial="locked")
    holder.execute("ROLLBACK")
    holder.close()
    assert error_code(answer, 503) == "database_unavailable"
    assert not {name for name in line.posted_files() - before if name.endswith(".npz")}
    assert line.client.get("/v1/inspections?serial=locked").json()["inspections"] == []
    assert post(line, board_png).status_code == 200


def test_a_home_that_goes_and_comes_back(line: Any, board_png: bytes) -> None:
    aside = line.home.with_name("aside")
    line.home.rename(aside)
    try:
        assert error_code(post(line, board_png), 503) == "store_unavailable"
        assert line.client.get("/readyz").status_code == 503
        assert line.client.get("/livez").status_code == 200
    finally:
        aside.rename(line.home)
    assert post(line, board_png).status_code == 200
    assert line.client.get("/readyz").status_code == 200


def test_a_full_disk_is_507_and_over_when_there_is_room(line: Any, board_png: bytes) -> None:
    """A limit on the size of any file the worker writes: the write of a picture fails as on a full disk."""
    before = line.posted_files(), line.client.get("/v1/inspections?limit=1").text
    soft, hard = resource.prlimit(line.worker(), resource.RLIMIT_FSIZE)
    resource.prlimit(line.worker(), resource.RLIMIT_FSIZE, (len(board_png) // 2, hard))
    try:
        for number in range(3):
            answer = post(line, board_png + b"full %d" % number)
            assert error_code(answer, 507) == "storage_full"
        assert (line.posted_files(), line.client.get("/v1/inspections?limit=1").text) == before
    finally:
        resource.prlimit(line.worker(), resource.RLIMIT_FSIZE, (soft, hard))
    assert post(line, board_png + b"room again").status_code == 200


def test_slow_and_dead_clients_hold_no_place_in_the_queue(line: Any, board_png: bytes) -> None:
    request = line.client.build_request("POST", "/v1/inspect", files={"image": board_png})
    body, address = request.read(), urlsplit(str(line.client.base_url))
    kind = request.headers["content-type"]
    head = f"POST /v1/inspect HTTP/1.1\r\nhost: {address.netloc}\r\ncontent-type: {kind}\r\n"
    whole = head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body
    sockets = [socket.create_connection((address.hostname, address.port)) for _ in range(6 * QUEUE_SIZE)]
    try:
        for number, each in enumerate(sockets):
            # Some send half of the head, some half of the body, some all but its last byte; then nothing.
            each.sendall(whole[: (20, len(whole) // 2, len(whole) - 1)[number % 3]])
        for _ in range(3):
            assert post(line, board_png).status_code == 200
        stalled = sockets[1]
        stalled.settimeout(30.0)
        told = b""
        while b"}}" not in told and (data := stalled.recv(65536)):
            told += data
        assert told.startswith(b"HTTP/1.1 408")
        assert b'"stalled"' in told
    finally:
        for each in sockets:
            each.close()
    assert post(line, board_png).status_code == 200


def test_a_request_whose_turn_does_not_come_is_refused_and_not_computed(
    tiny_checkpoint: Path, board_png: bytes, tmp_path: Path
) -> None:
    metrics = Metrics()
    config = ServingConfig(home=tmp_path, checkpoint=tiny_checkpoint, deadline_s=0.5)
    store = Store(config)
    engine = Engine(config, store.engine, metrics)
    release = threading.Event()
    engine._model_thread.submit(release.wait)

    async def here() -> bool:
        return False

    async def ask() -> float:
        started = time.monotonic()
        with engine.admitted():
            try:
                await engine.inspect(board_png, None, min_score=None, recipe=None, client_gone=here)
            except BusyError:
                return time.monotonic() - started
        return 0.0

    async def ask_all() -> list[float]:
        asked = [asyncio.create_task(ask()) for _ in range(NUM_AHEAD + 2)]
        await asyncio.wait(asked, timeout=30.0, return_when=asyncio.FIRST_COMPLETED)
        while metrics.registry.get_sample_value("inspect_vit_expired_total") != 2:
            await asyncio.sleep(0.01)
        release.set()
        return await asyncio.gather(*asked)

    waited = asyncio.run(ask_all())
    engine.close()
    store.close()
    assert waited[:NUM_AHEAD] == [0.0] * NUM_AHEAD, "whose turn had come are answered"
    assert all(0.5 <= seconds < 20.0 for seconds in waited[NUM_AHEAD:])
