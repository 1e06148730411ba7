"""Who is let in: keys and roles over HTTP, on a server that asks for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from serving.access import LEAST_ROLE, OPEN
from serving.account_schemas import AuditPage
from serving.config import ServingConfig
from serving.keys import create_key, revoke_key
from serving.roles import ANYONE, Role
from serving.schemas import ErrorReport
from serving.store import Store

ROLES = ["line", "operator", "engineer", "admin"]


def error_of(answer: httpx.Response) -> Any:
    return ErrorReport.model_validate_json(answer.text).error


def post(guarded: Any, key: str, image: bytes, **more: Any) -> httpx.Response:
    answer = guarded.call("POST", "/v1/inspect", key, files={"image": ("b.png", image)}, **more)
    assert isinstance(answer, httpx.Response)
    return answer


def ask(guarded: Any, method: str, path: str, key: str) -> httpx.Response:
    """A request of whose answer no more is read than its head where it has no end."""
    if path != "/v1/events":
        answer = guarded.call(method, path, key)
        assert isinstance(answer, httpx.Response)
        return answer
    headers = {"x-api-key": guarded.keys[key]}
    with (
        httpx.Client(base_url=guarded.server.client.base_url, timeout=60.0) as client,
        client.stream(method, path, headers=headers) as answer,
    ):
        if answer.status_code != 200:
            answer.read()
        return answer


LIST_ROUTES = """
import json, sys
from starlette.routing import Route
from serving.service import InspectionService, app

def listed(routes):
    return [
        [type(route).__name__, route.path, sorted(getattr(route, "methods", None) or ())] for route in routes
    ]

print(json.dumps([listed(app.routes), listed(InspectionService.to_asgi().routes)]))
"""


@pytest.fixture(scope="module")
def all_routes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """(kind, path, methods) of our routes and of the framework's around them; from a process of its own."""
    environ = {**os.environ, "BENTOML_HOME": str(tmp_path_factory.mktemp("bentoml"))}
    done = subprocess.run(
        [sys.executable, "-c", LIST_ROUTES],
        capture_output=True,
        text=True,
        check=True,
        env=environ,
        cwd=Path(__file__).parents[2],
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_every_route_is_in_the_table_and_no_other(all_routes: Any) -> None:
    there = set()
    for kind, path, methods in all_routes[0]:
        assert kind == "Route", f"{kind} {path}: the check would not see behind it"
        there |= {(method, path) for method in methods if method != "HEAD"}
    assert there == set(LEAST_ROLE)


def test_the_framework_answers_nothing_else_of_its_own(all_routes: Any) -> None:
    paths = [path for _, path, _ in all_routes[1]]
    mounted = paths.index("")
    assert set(paths[:mounted]) <= {"/livez", "/healthz", "/readyz", "/schema.json"}, (
        "health and a list of APIs"
    )
    assert all_routes[0][-1][:2] == ["Route", "/{path:path}"], "what comes behind ours is never reached"


def test_what_is_open_is_named_here() -> None:
    """By hand: opening a route takes two edits."""
    opened = {place for place, role in LEAST_ROLE.items() if role is OPEN and "{path:path}" not in place[1]}
    assert opened == {
        ("GET", "/"),
        ("GET", "/docs.json"),
        ("GET", "/favicon.ico"),
        ("GET", "/station"),
        ("GET", "/station/{name}"),
        ("POST", "/v1/session"),
        ("DELETE", "/v1/session"),
    }
    assert LEAST_ROLE["GET", "/v1/audit"] is Role.ADMIN


@pytest.mark.parametrize(("place", "least"), [item for item in LEAST_ROLE.items() if item[1]], ids=str)
def test_a_route_admits_its_role_and_those_above(guarded: Any, place: tuple[str, str], least: Role) -> None:
    method, path = place
    tile = {"layer": "image", "level": "0", "column": "0", "row": "0"}
    path = path.format(id="0" * 32, name="none", number="1", version="0" * 12, **tile)
    answer = guarded.call(method, path)
    assert answer.status_code == 401
    assert error_of(answer).code == "unauthorized"
    assert "X-Api-Key" in error_of(answer).hint
    assert answer.headers["www-authenticate"].startswith("Bearer")
    for role in ROLES:
        answer = ask(guarded, method, path, role)
        if ROLES.index(role) < ROLES.index(least):
            assert answer.status_code == 403
            error = error_of(answer)
            assert error.code == "forbidden"
            assert f"the role {least} or above" in error.message
            assert f"{role!r} has the role {role}" in error.message
        else:
            assert answer.status_code in (200, 404, 409, 415, 422), answer.text


@pytest.mark.parametrize(
    "path", ["/livez", "/readyz", "/station", "/station/index.js", "/docs.json", "/favicon.ico"]
)
def test_health_and_the_empty_page_need_no_key(guarded: Any, path: str) -> None:
    assert guarded.call("GET", path).status_code == 200


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"x-api-key": "ivk_00000000_" + "0" * 40}, "unknown or was revoked"),
        ({"x-api-key": ""}, "unknown or was revoked"),
        ({"authorization": "Bearer"}, "unknown or was revoked"),
        ({"authorization": "Basic dXNlcjpwYXNz"}, "wanted Bearer"),
        ({"x-api-key": "k" * 201}, "201 characters"),
        ({"cookie": "inspect_vit_session=made-up"}, "the session has ended"),
    ],
    ids=["unknown", "empty", "no bearer", "basic", "long", "cookie"],
)
def test_what_is_no_key_is_refused_and_never_repeated(
    guarded: Any, headers: dict[str, str], words: str
) -> None:
    answer = guarded.call("GET", "/v1/inspections", headers=headers)
    assert answer.status_code == 401
    assert words in error_of(answer).message
    for value in headers.values():
        assert len(value) < 9 or value.split()[-1] not in answer.text


def test_a_key_in_the_address_is_not_taken(guarded: Any) -> None:
    key = guarded.keys["admin"]
    for name in ("key", "api_key", "access_token"):
        assert guarded.call("GET", f"/v1/inspections?{name}={key[:12]}").status_code == 401


def test_both_headers_admit(guarded: Any) -> None:
    key = guarded.keys["line"]
    for headers in (
        {"authorization": f"Bearer {key}"},
        {"authorization": f"bearer {key}"},
        {"x-api-key": key},
    ):
        assert guarded.call("GET", "/v1/inspections", headers=headers).status_code == 200


def test_a_line_sees_its_own_inspections_and_an_operator_all(guarded: Any, board_png: bytes) -> None:
    serial = {"serial": "whose"}
    mine, theirs = (post(guarded, key, board_png, data=serial).json() for key in ("line", "line 2"))
    assert (mine["actor"], theirs["actor"]) == ("line", "line 2")
    listed = guarded.call("GET", "/v1/inspections", "line", params=serial).json()["inspections"]
    assert [report["id"] for report in listed] == [mine["id"]]
    both = guarded.call("GET", "/v1/inspections", "operator", params=serial).json()["inspections"]
    assert [report["id"] for report in both] == [theirs["id"], mine["id"]]
    for name in ("", "/image", "/defect_map", "/overlay", "/gate", "/attention"):
        path = f"/v1/inspections/{theirs['id']}{name}"
        assert guarded.call("GET", path, "line").status_code == 404
        assert guarded.call("GET", path, "line 2").status_code == 200
        assert guarded.call("GET", path, "operator").status_code == 200


def test_an_idempotency_key_belongs_to_who_used_it(guarded: Any, board_png: bytes) -> None:
    headers = {"idempotency-key": "shift-1/1"}
    first = post(guarded, "line", board_png, headers=headers)
    assert post(guarded, "line", board_png, headers=headers).json() == first.json()
    other = post(guarded, "line 2", board_png, headers=headers)
    assert other.status_code == 409


def test_a_large_upload_without_a_key_gets_to_read_why(guarded: Any) -> None:
    files = {"image": ("b.png", bytes(1_900_000))}
    for _ in range(3):
        answer = guarded.call("POST", "/v1/inspect", files=files)
        assert answer.status_code == 401


def test_a_revoked_key_is_refused_at_once(guarded: Any) -> None:
    with closing(Store(ServingConfig(home=guarded.server.home))) as store:
        key = create_key(store.engine, "leaver", Role.ADMIN, by=ANYONE)
        headers = {"x-api-key": key}
        assert guarded.call("GET", "/v1/audit", headers=headers).status_code == 200
        revoke_key(store.engine, "leaver", by=ANYONE)
        assert guarded.call("GET", "/v1/audit", headers=headers).status_code == 401


def test_the_audit_trail_is_paged_and_filtered(guarded: Any) -> None:
    link: str | None = "/v1/audit?action=key_created&limit=2"
    entries = []
    while link:
        page = AuditPage.model_validate(guarded.call("GET", link, "admin").json())
        assert len(page.entries) <= 2
        entries += page.entries
        link = page.next
    assert [entry.id for entry in entries] == sorted((entry.id for entry in entries), reverse=True)
    assert {"line", "line 2", "operator", "engineer", "admin"} <= {entry.object for entry in entries}
    (started,) = guarded.call("GET", "/v1/audit?action=service_started", "admin").json()["entries"]
    report = guarded.call("GET", "/v1/inspections?limit=1", "admin").json()["inspections"]
    assert all(found["model"]["version"] == started["model_version"] for found in report)


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=201", "before=x", "before=" + "9" * 19, "actor=%00", "page=2"]
)
def test_audit_parameters_that_do_not_fit(guarded: Any, query: str) -> None:
    answer = guarded.call("GET", f"/v1/audit?{query}", "admin")
    assert answer.status_code == 422
    assert query.split("=")[0] in error_of(answer).message


def test_no_key_or_hash_is_in_the_log(guarded: Any) -> None:
    log = guarded.server.log.read_text(errors="replace")
    assert "/v1/inspections" in log
    for key in guarded.keys.values():
        assert key not in log
        assert key.split("_")[2] not in log


def test_a_frame_that_comes_twice_names_the_first_to_whoever_may_see_it(
    guarded: Any, board_png: bytes
) -> None:
    frame = board_png + b"twice"
    first = post(guarded, "line", frame, data={"serial": "SN-TWICE"}).json()["id"]
    named = f"duplicate_frame: serial 'SN-TWICE' sent the same picture, inspection {first}"
    hidden = "duplicate_frame: another serial came with the same picture"
    for key, reason in (("line", named), ("operator", named), ("line 2", hidden)):
        report = post(guarded, key, frame, data={"serial": f"SN-OF-{key}"}).json()
        assert (report["verdict"], report["reasons"]) == ("ERROR", [reason]), key
