"""Who may do what: the table of routes and roles, and the check in front of every route.

A request shows its key in a header, or the station's session cookie. Without keys (an explicit setting) any
program on this machine may do everything, so that there it is the browser that must be kept from being
used by other sites: by its Host and its Origin.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sqlalchemy import Engine
from sqlalchemy.orm import Session
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from serving.errors import ForbiddenError, ServingError, UnauthorizedError
from serving.keys import actor_of, find_key, has_keys
from serving.middleware import drain
from serving.roles import ANYONE, Actor, Role
from serving.sessions import COOKIE, find_session

if TYPE_CHECKING:
    from serving.backend import Backend

OPEN = None
LEAST_ROLE: dict[tuple[str, str], Role | None] = {
    ("POST", "/v1/inspect"): Role.LINE,
    # Of these a line sees its own inspections only: `Actor.sees_only`.
    ("GET", "/v1/inspections"): Role.LINE,
    ("GET", "/v1/inspections/{id}"): Role.LINE,
    ("GET", "/v1/inspections/{id}/image"): Role.LINE,
    ("GET", "/v1/inspections/{id}/reference"): Role.LINE,
    ("GET", "/v1/inspections/{id}/defect_map"): Role.LINE,
    ("GET", "/v1/inspections/{id}/overlay"): Role.LINE,
    ("GET", "/v1/inspections/{id}/gate"): Role.LINE,
    ("GET", "/v1/inspections/{id}/attention"): Role.LINE,
    ("GET", "/v1/inspections/{id}/evidence"): Role.LINE,
    ("GET", "/v1/inspections/{id}/thumbnail"): Role.OPERATOR,
    ("GET", "/v1/inspections/{id}/tiles/{layer}"): Role.OPERATOR,
    ("GET", "/v1/inspections/{id}/tiles/{layer}/{level}/{column}_{row}"): Role.OPERATOR,
    ("GET", "/v1/inspections/{id}/crops/{layer}"): Role.OPERATOR,
    ("GET", "/v1/inspections/{id}/legend/{layer}"): Role.OPERATOR,
    ("GET", "/v1/inspections/{id}/defects/{number}/similar"): Role.OPERATOR,
    ("GET", "/v1/inspections/{id}/spot"): Role.OPERATOR,
    ("GET", "/v1/recipes"): Role.LINE,
    ("GET", "/v1/recipes/{name}"): Role.LINE,
    ("GET", "/v1/recipes/{name}/revisions"): Role.LINE,
    ("GET", "/v1/recipes/{name}/references/{number}"): Role.LINE,
    ("PUT", "/v1/recipes/{name}"): Role.ENGINEER,
    ("DELETE", "/v1/recipes/{name}"): Role.ENGINEER,
    ("GET", "/v1/alarms"): Role.OPERATOR,
    ("POST", "/v1/alarms/{id}/acknowledge"): Role.ENGINEER,
    ("GET", "/v1/inspections/{id}/review"): Role.OPERATOR,
    ("POST", "/v1/inspections/{id}/verifications"): Role.OPERATOR,
    ("POST", "/v1/inspections/{id}/disposition"): Role.OPERATOR,
    ("GET", "/v1/queue"): Role.OPERATOR,
    ("GET", "/v1/events"): Role.OPERATOR,
    ("GET", "/v1/stats"): Role.OPERATOR,
    ("GET", "/v1/stats.csv"): Role.OPERATOR,
    ("POST", "/v1/test-results"): Role.OPERATOR,
    ("GET", "/v1/recipes/{name}/preview"): Role.OPERATOR,
    ("POST", "/v1/recipes/{name}/thresholds"): Role.ENGINEER,
    ("GET", "/v1/recipes/{name}/challenge"): Role.OPERATOR,
    ("PUT", "/v1/recipes/{name}/challenge"): Role.ENGINEER,
    ("POST", "/v1/recipes/{name}/challenge/clear"): Role.ENGINEER,
    ("POST", "/v1/datasets"): Role.ENGINEER,
    ("GET", "/v1/datasets"): Role.OPERATOR,
    ("GET", "/v1/datasets/preview"): Role.OPERATOR,
    ("GET", "/v1/examples"): Role.OPERATOR,
    ("POST", "/v1/retrain"): Role.ENGINEER,
    ("POST", "/v1/models/{version}/promote"): Role.ENGINEER,
    ("GET", "/v1/jobs"): Role.OPERATOR,
    ("GET", "/v1/jobs/{id}"): Role.OPERATOR,
    ("DELETE", "/v1/jobs/{id}"): Role.ENGINEER,
    ("POST", "/v1/jobs/{id}/resume"): Role.ENGINEER,
    ("GET", "/v1/jobs/{id}/log"): Role.ENGINEER,
    ("GET", "/v1/jobs/{id}/curves"): Role.OPERATOR,
    ("GET", "/v1/models"): Role.OPERATOR,
    ("GET", "/v1/models/{version}"): Role.OPERATOR,
    ("GET", "/v1/models/{version}/compare"): Role.OPERATOR,
    ("POST", "/v1/models/{version}/rollback"): Role.ENGINEER,
    ("POST", "/v1/models/{version}/retire"): Role.ENGINEER,
    ("POST", "/v1/models/{version}/shadow"): Role.ENGINEER,
    ("GET", "/v1/models/{version}/shadow"): Role.OPERATOR,
    ("POST", "/v1/session"): OPEN,
    ("GET", "/v1/session"): Role.LINE,
    ("DELETE", "/v1/session"): OPEN,
    ("GET", "/v1/audit"): Role.ADMIN,
    # Not open on loopback: behind a proxy on this machine every request comes from loopback.
    ("GET", "/metrics"): Role.LINE,
    ("GET", "/docs.json"): OPEN,
    ("GET", "/"): OPEN,
    ("GET", "/favicon.ico"): OPEN,
    ("GET", "/station"): OPEN,
    ("GET", "/station/{name}"): OPEN,
    # Pictures of boards, unlike the page's own files.
    ("GET", "/station/samples.json"): Role.LINE,
    ("GET", "/station/samples/{name}"): Role.LINE,
    # Nothing is there: 404 or 405.
    **{(method, "/{path:path}"): OPEN for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")},
}
"""Least role of each (method, path of the route). A route that is not named here takes an admin."""

MAX_KEY_CHARS = 200
HOW_TO_SHOW_A_KEY = "send the header Authorization: Bearer KEY, or X-Api-Key: KEY, or log in at /station"
HOW_TO_MAKE_A_KEY = "there is no key yet; on the server: inspect-vit keys create --role admin --name NAME"


class CheckAccess:
    """Admit a request or raise; what is admitted finds its Actor in `request.state.actor`."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            backend: Backend = scope["app"].state.backend
            try:
                scope.setdefault("state", {})["actor"] = await _admit(scope, backend)
            except ServingError:
                # A client that asked first ("Expect: 100-continue") has sent no body and will not.
                if "expect" not in Headers(scope=scope):
                    await drain(scope, receive, limit=backend.config.max_upload_bytes)
                raise
        await self.app(scope, receive, send)


async def _admit(scope: Scope, backend: Backend) -> Actor | None:
    """The actor, or None on an open route.

    Raises:
        UnauthorizedError, ForbiddenError: with what to do.
    """
    headers = Headers(scope=scope)
    wanted = _least_role(scope)
    if backend.config.keys == "off":
        _check_loopback(scope, headers)
        _check_origin(scope, headers)
        return ANYONE
    engine = backend.store.engine
    key = key_in(headers) if wanted is not OPEN else None
    if key is None:
        _check_origin(scope, headers, must_be_named=token_in(headers) is not None)
    if wanted is OPEN:
        return None
    actor = await asyncio.to_thread(identify, engine, key, token_in(headers))
    if not actor.role.covers(wanted):
        raise ForbiddenError(
            f"{scope['method']} {scope['path']} takes the role {wanted} or above; "
            f"the key {actor.name!r} has the role {actor.role}",
            hint=f"use a key with the role {wanted}; an admin makes one with inspect-vit keys create",
        )
    return actor


def key_in(headers: Headers) -> str | None:
    """The key in the headers. Raises UnauthorizedError for what cannot be one; it is never repeated."""
    authorization, key = headers.get("authorization"), headers.get("x-api-key")
    if authorization is not None:
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise UnauthorizedError("Authorization: another scheme, wanted Bearer", hint=HOW_TO_SHOW_A_KEY)
    if key is not None and len(key) > MAX_KEY_CHARS:
        raise UnauthorizedError(f"a key of {len(key)} characters cannot be one", hint=HOW_TO_SHOW_A_KEY)
    return None if key is None else key.strip()


def token_in(headers: Headers) -> str | None:
    """The session token in the cookies."""
    return cookie_parser(headers.get("cookie", "")).get(COOKIE)


def _least_role(scope: Scope) -> Role | None:
    for route in scope["app"].routes:
        if isinstance(route, Route) and route.matches(scope)[0] is Match.FULL:
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            return LEAST_ROLE.get((method, route.path), Role.ADMIN)
    # No route takes this method: nothing will run.
    return OPEN


def identify(engine: Engine, key: str | None, token: str | None) -> Actor:
    """Whose key, or else whose session. Raises UnauthorizedError."""
    if key is not None:
        with Session(engine) as session:
            row = find_key(session, key)
            if row is not None:
                return actor_of(row)
        what = "the key is unknown or was revoked"
    elif token is not None:
        found = find_session(engine, token)
        if found is not None:
            return found.actor
        what = "the session has ended"
    else:
        what = "this takes a key, and none was sent"
    raise UnauthorizedError(what, hint=HOW_TO_SHOW_A_KEY if has_keys(engine) else HOW_TO_MAKE_A_KEY)


def _check_loopback(scope: Scope, headers: Headers) -> None:
    """Without keys: serve this machine alone, and by its own name.

    A page of another site can let its name point to 127.0.0.1 (DNS rebinding); the browser then takes this
    server for that site, but still sends that site's name as Host.
    """
    client, host = scope.get("client"), headers.get("host", "")
    if not client or not _is_loopback(client[0]):
        raise ForbiddenError(
            "this server runs without keys and answers this machine alone",
            hint="run it with keys: without --without-keys or INSPECT_VIT_KEYS=off",
        )
    if not _is_loopback(_host_name(host)):
        raise ForbiddenError(
            f"Host: {host[:80]!r}; without keys this server answers to 127.0.0.1, [::1] and localhost only",
            hint="use such an address, or run the server with keys",
        )


def _check_origin(scope: Scope, headers: Headers, *, must_be_named: bool = False) -> None:
    """Refuse what changes something at the wish of a page from elsewhere.

    Cookies do not tell ports of one host apart and SameSite does not either, so the Origin, which browsers
    always send with such requests and pages cannot forge, must name this very host and port.
    """
    if scope["method"] in ("GET", "HEAD"):
        return
    origin, host = headers.get("origin"), headers.get("host", "")
    fetched_by = headers.get("sec-fetch-site", "none")
    is_ours = not must_be_named if origin is None else urlsplit(origin).netloc.lower() == host.lower()
    if not is_ours or fetched_by not in ("same-origin", "none"):
        raise ForbiddenError(
            f"Origin: {(origin or '(none)')[:80]!r}, wanted a page of {host[:80]!r}",
            hint="open the station at the address that it is served from; a proxy must pass Host on",
        )


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
