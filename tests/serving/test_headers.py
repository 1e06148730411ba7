"""Headers that keep browsers from doing more with an answer than was meant, on every kind of answer."""

from __future__ import annotations

import socket
from typing import Any

import pytest

PATHS = [
    *("/", "/livez", "/readyz", "/schema.json", "/metrics", "/docs.json", "/favicon.ico", "/nowhere"),
    *("/station", "/station/app.js", "/station/samples.json", "/station/nothing.js"),
    *("/v1/inspections", "/v1/inspections/0", "/v1/inspections?page=1", "/v1/session", "/v1/audit"),
]
SAME_EVERYWHERE = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def check(headers: Any) -> None:
    for name, value in SAME_EVERYWHERE.items():
        assert headers.get_list(name) == [value]
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "*" not in policy and "http" not in policy
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_them(server: Any, guarded: Any, path: str) -> None:
    check(server.client.get(path).headers)
    check(guarded.call("GET", path).headers)


def test_pictures_and_refusals_have_them(server: Any, board_png: bytes) -> None:
    answer = server.client.post("/v1/inspect", files={"image": board_png})
    check(answer.headers)
    for link in answer.json()["links"].values():
        if link:
            picture = server.client.get(link)
            check(picture.headers)
            if picture.headers["cache-control"] != "no-store":
                assert "cookie" in picture.headers["vary"], "a kept picture is not for who logs in next"
    check(server.client.post("/v1/inspect", files={"image": b"text"}).headers)
    check(server.client.request("TRACE", "/v1/inspect").headers)
    check(server.client.options("/v1/inspect", headers={"origin": "https://evil.example"}).headers)


@pytest.mark.parametrize("field", ["image", "reference", "serial", "recipe", "options"])
def test_nothing_posted_makes_the_server_call_anyone(server: Any, board_png: bytes, field: str) -> None:
    with socket.socket() as trap:
        trap.bind(("127.0.0.1", 0))
        trap.listen()
        trap.settimeout(0.2)
        url = f"http://127.0.0.1:{trap.getsockname()[1]}/board.png"
        files: list[tuple[str, Any]] = [("image", ("b.png", board_png))] if field != "image" else []
        for part in ((None, url), (url, url.encode())):
            server.client.post("/v1/inspect", files=[*files, (field, part)])
        with pytest.raises(TimeoutError):
            trap.accept()
