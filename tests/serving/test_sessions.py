"""The station's session over HTTP, and what pages of other sites can make a browser do: nothing."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from serving.account_schemas import SessionReport
from serving.schemas import ErrorReport


def browser(guarded: Any, **headers: str) -> httpx.Client:
    """A client that keeps cookies and names its page's origin, as browsers do."""
    url = str(guarded.server.client.base_url).rstrip("/")
    return httpx.Client(base_url=url, timeout=60.0, headers={"origin": url, **headers})


def log_in(client: httpx.Client, key: str, **more: Any) -> httpx.Response:
    return client.post("/v1/session", json={"key": key}, **more)


def test_a_key_opens_a_session_that_logging_out_ends(guarded: Any) -> None:
    with browser(guarded) as client:
        answer = log_in(client, f" {guarded.keys['operator']}\n")
        assert answer.status_code == 200, answer.text
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie and "path=/" in cookie
        assert "secure" not in cookie, "on plain http the browser would drop it"
        session = SessionReport.model_validate(client.get("/v1/session").json())
        assert (session.actor, session.role) == ("operator", "operator")
        assert session.expires is not None
        assert client.get("/v1/inspections").status_code == 200
        assert client.get("/v1/audit").status_code == 403
        kept = dict(client.cookies)
        gone = client.delete("/v1/session")
        assert gone.status_code == 204
        assert dict(client.cookies) == {}
        client.cookies.update(kept)
        assert client.get("/v1/session").status_code == 401, "the token is dead, not just forgotten"
        assert client.delete("/v1/session").status_code == 204
    token = next(iter(kept.values()))
    assert token not in guarded.server.log.read_text(errors="replace")
    trail = guarded.call("GET", "/v1/audit?actor=operator", "admin").text
    assert "session_opened" in trail and "session_closed" in trail
    assert token not in trail


def test_a_header_names_the_actor_without_a_session(guarded: Any) -> None:
    session = guarded.call("GET", "/v1/session", "line").json()
    assert session == {"actor": "line", "role": "line", "expires": None}


def test_behind_https_the_cookie_is_secure(guarded: Any) -> None:
    host = guarded.server.client.base_url.netloc.decode()
    with browser(guarded, origin=f"https://{host}") as client:
        assert "secure" in log_in(client, guarded.keys["line"]).headers["set-cookie"].lower()


@pytest.mark.parametrize(
    "change",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": ""},
        {"origin": None},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site"},
    ],
    ids=str,
)
def test_a_page_from_elsewhere_changes_nothing(
    guarded: Any, change: dict[str, str | None], board_png: bytes
) -> None:
    with browser(guarded) as client:
        assert log_in(client, guarded.keys["operator"]).status_code == 200
        for name, value in change.items():
            client.headers.pop(name, None)
            if value is not None:
                client.headers[name] = value
        before = guarded.server.posted_files()
        for answer in (
            client.post("/v1/inspect", files={"image": ("b.png", board_png)}),
            client.delete("/v1/session"),
        ):
            assert answer.status_code == 403
            assert "Origin" in ErrorReport.model_validate_json(answer.text).error.message
        assert guarded.server.posted_files() == before
        assert client.get("/v1/session").status_code == 200, "still logged in"


def test_a_page_from_elsewhere_cannot_log_anyone_in(guarded: Any) -> None:
    with browser(guarded, origin="https://evil.example") as client:
        assert log_in(client, guarded.keys["line"]).status_code == 403
    with browser(guarded) as client:
        plain = client.post(
            "/v1/session",
            content=f'{{"key": "{guarded.keys["line"]}"}}',
            headers={"content-type": "text/plain"},
        )
        assert plain.status_code == 422, "what a form can send without being asked is not taken"


def test_a_key_in_a_header_needs_no_origin(guarded: Any, board_png: bytes) -> None:
    """No page can make a browser send one."""
    answer = guarded.call("POST", "/v1/inspect", "line", files={"image": ("b.png", board_png)})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"key": 1}', b'{"key": "a", "role": "admin"}', b'{"key": "' + b"k" * 5000 + b'"}'],
)
def test_login_bodies_that_do_not_fit(guarded: Any, body: bytes) -> None:
    with browser(guarded) as client:
        answer = client.post("/v1/session", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert "kkkk" not in answer.text


def test_who_guesses_is_made_to_wait_and_nobody_else(guarded: Any) -> None:
    """A proxy on this machine says who asked, so that its other clients do not wait too."""
    with browser(guarded, **{"x-forwarded-for": "203.0.113.77"}) as guesser:
        for _ in range(10):
            assert log_in(guesser, "ivk_00000000_" + "0" * 40).status_code == 401
        answer = log_in(guesser, guarded.keys["line"])
        assert answer.status_code == 429
        assert 0 < int(answer.headers["retry-after"]) <= 300
        assert ErrorReport.model_validate_json(answer.text).error.code == "too_many_logins"
    with browser(guarded, **{"x-forwarded-for": "203.0.113.78"}) as other:
        assert log_in(other, guarded.keys["line"]).status_code == 200
    assert "203.0.113.77" in guarded.server.log.read_text(errors="replace")


def test_without_keys_a_name_that_points_here_is_not_answered(server: Any, board_png: bytes) -> None:
    client, port = server.client, server.client.base_url.port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "", "[::1", "0.0.0.0"):
        answer = client.get("/v1/inspections", headers={"host": host})
        assert answer.status_code == 403, host
        assert "Host" in ErrorReport.model_validate_json(answer.text).error.message
    for host in (f"127.0.0.1:{port}", "localhost", f"LOCALHOST:{port}", f"[::1]:{port}"):
        assert client.get("/v1/inspections", headers={"host": host}).status_code == 200, host


def test_without_keys_another_site_or_machine_is_not_answered(server: Any, board_png: bytes) -> None:
    client = server.client
    files = {"image": ("b.png", board_png)}
    for origin in ("https://evil.example", "null", "http://localhost:1"):
        assert client.post("/v1/inspect", files=files, headers={"origin": origin}).status_code == 403
    ours = str(client.base_url).rstrip("/")
    assert client.post("/v1/inspect", files=files, headers={"origin": ours}).status_code == 200
    answer = client.get("/v1/inspections", headers={"x-forwarded-for": "203.0.113.77"})
    assert answer.status_code == 403
    assert "this machine alone" in answer.text


def test_without_keys_everyone_here_is_an_admin(server: Any) -> None:
    expected = {"actor": None, "role": "admin", "expires": None}
    assert server.client.get("/v1/session").json() == expected
    assert server.client.post("/v1/session", json={"key": "any"}).json() == expected
    assert server.client.get("/v1/audit").status_code == 200
