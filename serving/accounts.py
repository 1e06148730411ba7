"""Routes of the station's session and of the audit trail."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serving.access import token_in
from serving.account_schemas import AuditPage, LoginRequest, SessionReport
from serving.audit import read_audit
from serving.errors import FieldError, UnauthorizedError
from serving.roles import Actor
from serving.sessions import COOKIE, close_session, find_session, open_session
from serving.uploads import check_label
from serving.wire import read_limit, read_query, wire_response

if TYPE_CHECKING:
    from serving.backend import Backend

logger = logging.getLogger("inspect_vit.serving")

MAX_LOGIN_BYTES = 4096
DEFAULT_ENTRIES = 100
MAX_ENTRY_DIGITS = 18


async def log_in(request: Request) -> Response:
    """POST /v1/session: a key for a cookie."""
    backend, address = _backend(request), request.client.host if request.client else ""
    read_query(request, set())
    if backend.config.keys == "off":
        return wire_response(SessionReport(actor=None, role=_actor(request).role, expires=None))
    key = await _read_key(request)
    backend.failed_logins.check(address)
    lifetime = timedelta(hours=backend.config.session_hours)
    opened = await asyncio.to_thread(lambda: open_session(backend.store.engine, key, lifetime=lifetime))
    if opened is None:
        backend.failed_logins.count(address)
        logger.warning("a login from %s failed", address)
        raise UnauthorizedError("this key is unknown or was revoked", hint="check it, or ask for a new one")
    token, session = opened
    response = wire_response(
        SessionReport(actor=session.actor.name, role=session.actor.role, expires=session.expires)
    )
    response.set_cookie(
        COOKIE, token, expires=session.expires, httponly=True, samesite="strict", secure=_is_https(request)
    )
    return response


async def who_am_i(request: Request) -> Response:
    """GET /v1/session."""
    read_query(request, set())
    actor, token = _actor(request), token_in(request.headers)
    engine = _backend(request).store.engine
    has_header = {"authorization", "x-api-key"} & set(request.headers.keys())
    session = None
    if token is not None and not has_header:
        session = await asyncio.to_thread(find_session, engine, token)
    return wire_response(
        SessionReport(actor=actor.name, role=actor.role, expires=session.expires if session else None)
    )


async def log_out(request: Request) -> Response:
    """DELETE /v1/session: also when there is none, or none any more."""
    read_query(request, set())
    token = token_in(request.headers)
    if token is not None:
        await asyncio.to_thread(close_session, _backend(request).store.engine, token)
    response = Response(status_code=204, headers={"clear-site-data": '"cache"'})
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=_is_https(request))
    return response


async def list_audit(request: Request) -> Response:
    """GET /v1/audit."""
    query = read_query(request, {"limit", "before", "actor", "action"})
    limit, before = read_limit(query, DEFAULT_ENTRIES), query.get("before")
    if before is not None and not (
        before.isascii() and before.isdecimal() and len(before) <= MAX_ENTRY_DIGITS
    ):
        raise FieldError(f"before: {before[:40]!r}, wanted the number of an entry")
    wanted = {name: check_label(name, query[name]) for name in ("actor", "action") if name in query}
    found = await asyncio.to_thread(
        lambda: read_audit(
            _backend(request).store.engine,
            limit=limit + 1,
            before=None if before is None else int(before),
            **wanted,
        )
    )
    shown = tuple(found[:limit])
    following = None
    if len(found) > limit:
        following = f"/v1/audit?{urlencode({**query, 'limit': limit, 'before': shown[-1].id})}"
    return wire_response(AuditPage(entries=shown, next=following))


ROUTES = [
    Route("/v1/session", log_in, methods=["POST"]),
    Route("/v1/session", who_am_i, methods=["GET"]),
    Route("/v1/session", log_out, methods=["DELETE"]),
    Route("/v1/audit", list_audit, methods=["GET"]),
]


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


def _actor(request: Request) -> Actor:
    actor: Actor = request.state.actor
    return actor


def _is_https(request: Request) -> bool:
    """Whether the browser came by https: here, or to a proxy, as the Origin of its page tells."""
    return "https" in (request.url.scheme, urlsplit(request.headers.get("origin", "")).scheme)


async def _read_key(request: Request) -> str:
    """The key in the body. Neither it nor anything else of the body is repeated in an error."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise FieldError("content-type: wanted application/json", hint='send {"key": "ivk_..."}')
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_LOGIN_BYTES:
            raise FieldError(f"body: more than {MAX_LOGIN_BYTES} bytes", hint='send {"key": "ivk_..."}')
    try:
        return LoginRequest.model_validate_json(body).key.strip()
    except ValidationError:
        # No "from": its text holds the input.
        raise FieldError("body: not as wanted", hint='send {"key": "ivk_..."} and nothing else') from None
