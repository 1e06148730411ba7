"""A full queue, clients that hang up, a killed server and a full disk."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

KILL_AFTER_ANSWERS = 5


def metric(server: Any, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", server.client.get("/metrics").text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def hang_up_after_sending(server: Any, image: bytes) -> None:
    """Send a whole request and close the connection without reading the answer."""
    request = server.client.build_request(
        "POST", "/v1/inspect", files={"image": image}, data={"serial": "gone"}
    )
    address = urlsplit(str(server.client.base_url))
    head = f"POST /v1/inspect HTTP/1.1\r\nhost: {address.netloc}\r\n"
    for name in ("content-type", "content-length"):
        head += f"{name}: {request.headers[name]}\r\n"
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(head.encode() + b"\r\n" + request.read())


def test_nobody_waits_in_vain_and_nothing_answered_is_lost(
    start_server: Any, tmp_path: Path, board_png: bytes, other_checkpoint: Path
) -> None:
    server = start_server(tmp_path, QUEUE_SIZE="4")
    answered: dict[str, dict[str, Any]] = {}
    try:
        _full_queue_answers_503(server, board_png)
        _clients_that_hang_up_are_skipped(server, board_png)
        _post_until_killed(server, board_png, answered)
    finally:
        server.stop()

    # Pictures whose row was never committed, as a kill between the two leaves them.
    (day,) = (tmp_path / "pictures").iterdir()
    for name in ("f" * 64, "0" * 32 + ".npz", ".writing-0123456789abcdef"):
        (day / name).write_bytes(b"orphan")

    server = start_server(tmp_path, other_checkpoint, MIN_FREE_MB="1e9")
    try:
        _everything_answered_is_there(server, board_png, answered)
        _attention_is_of_the_version_that_inspected(server, next(iter(answered.values())))
        _a_full_disk_is_507(server, board_png)
        _a_worker_does_not_outlive_its_supervisor(server)
    finally:
        server.stop()


def _full_queue_answers_503(server: Any, board_png: bytes) -> None:
    def post(_: int) -> httpx.Response:
        return server.client.post("/v1/inspect", files={"image": board_png}, data={"serial": "busy"})

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(post, range(12)))
    refused = [answer for answer in answers if answer.status_code == 503]
    assert refused
    assert {answer.status_code for answer in answers} == {200, 503}
    for answer in refused:
        assert answer.json()["error"]["code"] == "busy"
        assert int(answer.headers["retry-after"]) >= 1
    stored = server.client.get("/v1/inspections", params={"serial": "busy", "limit": 50}).json()[
        "inspections"
    ]
    assert len(stored) == 12 - len(refused)
    assert metric(server, "inspect_vit_refused_total") == len(refused)
    assert server.client.get("/station").status_code == 200


def _clients_that_hang_up_are_skipped(server: Any, board_png: bytes) -> None:
    with ThreadPoolExecutor(3) as pool:
        # Three requests keep the model and the decoders busy while a fourth waits for its turn and hangs up.
        for _ in range(10):
            waiting = [
                pool.submit(server.client.post, "/v1/inspect", files={"image": board_png}) for _ in range(3)
            ]
            time.sleep(0.02)
            hang_up_after_sending(server, board_png)
            assert {answer.result().status_code for answer in waiting} == {200}
            if metric(server, "inspect_vit_abandoned_total"):
                break
    assert metric(server, "inspect_vit_abandoned_total") >= 1
    assert metric(server, "inspect_vit_queue_length") == 0


def _post_until_killed(server: Any, board_png: bytes, answered: dict[str, dict[str, Any]]) -> None:
    enough = threading.Event()

    def keep_posting(number: int) -> None:
        with httpx.Client(base_url=server.client.base_url, timeout=30.0) as client:
            while True:
                data = {"serial": f"killed-{number}", "options": '{"min_score": 0.0}'}
                try:
                    # Each board differs in a byte after the PNG's end, so that each picture is a new file.
                    image = board_png + f"{number}-{len(answered)}".encode()
                    answer = client.post("/v1/inspect", files={"image": image}, data=data)
                except httpx.TransportError:
                    return
                if answer.status_code == 200:
                    answered[answer.json()["id"]] = answer.json()
                if len(answered) >= KILL_AFTER_ANSWERS:
                    enough.set()

    posters = [threading.Thread(target=keep_posting, args=(number,)) for number in range(3)]
    for poster in posters:
        poster.start()
    assert enough.wait(60)
    server.kill()
    for poster in posters:
        poster.join(60)
        assert not poster.is_alive()


def _everything_answered_is_there(server: Any, board_png: bytes, answered: dict[str, dict[str, Any]]) -> None:
    assert len(answered) >= KILL_AFTER_ANSWERS
    for inspection_id, report in answered.items():
        assert server.client.get(f"/v1/inspections/{inspection_id}").json() == report
        assert server.client.get(report["links"]["image"]).content.startswith(board_png)
        assert server.client.get(report["links"]["overlay"]).status_code == 200
    listed = []
    link: str | None = "/v1/inspections?limit=200"
    while link:
        page = server.client.get(link).json()
        listed += page["inspections"]
        link = page["next"]
    maps = {f"{report['id']}.npz" for report in listed}
    pictures = {server.client.get(report["links"]["image"]).content for report in listed}
    files = server.posted_files()
    assert {name for name in files if name.endswith(".npz")} == maps, "maps without a row are swept"
    assert len(files) == len(maps) + len(pictures), "pictures without a row are swept"


def _attention_is_of_the_version_that_inspected(server: Any, report: dict[str, Any]) -> None:
    """It is loaded for it, while another one inspects; 410 when its files are gone."""
    assert report["defects"], "maps are tested on a call"
    folder = server.home / "models" / report["model"]["version"]
    folder.rename(server.home / "elsewhere")
    for link in ("attention", "evidence"):
        answer = server.client.get(report["links"][link])
        assert answer.status_code == 410, link
        error = answer.json()["error"]
        assert error["code"] == "model_version_gone"
        assert report["model"]["version"] in error["message"]
    (server.home / "elsewhere").rename(folder)
    assert server.client.get(report["links"]["attention"]).status_code == 200


def _a_full_disk_is_507(server: Any, board_png: bytes) -> None:
    before = server.posted_files()
    answer = server.client.post("/v1/inspect", files={"image": board_png})
    assert answer.status_code == 507
    assert answer.json()["error"]["code"] == "storage_full"
    assert "MB free" in answer.json()["error"]["message"]
    assert server.posted_files() == before
    assert server.client.get("/readyz").status_code == 200


def _a_worker_does_not_outlive_its_supervisor(server: Any) -> None:
    os.kill(server.process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{server.client.base_url}/livez")
        except httpx.TransportError:
            return
        time.sleep(0.2)
    pytest.fail("the worker still answers")


def test_ctrl_c_ends_the_server_promptly(start_server: Any, tmp_path: Path) -> None:
    server = start_server(tmp_path)
    with (
        httpx.stream("GET", f"{server.client.base_url}/v1/inspections") as open_connection,
        httpx.stream("GET", f"{server.client.base_url}/v1/events", timeout=60.0) as open_stream,
    ):
        assert open_connection.status_code == 200
        assert next(open_stream.iter_lines()).startswith(":")
        os.kill(server.process.pid, signal.SIGINT)
        assert server.process.wait(timeout=60) == 0, "an open connection does not keep it"
        assert "graceful shutdown exceeded" not in server.log.read_text(), "nor does a stream without end"
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.client.base_url}/livez")
    server.stop()
