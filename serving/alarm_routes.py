"""The /v1/alarms routes. Errors are raised, not answered here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serving.alarm_schemas import AcknowledgeRequest, AlarmPage
from serving.alarms import list_alarms
from serving.bodies import read_json
from serving.errors import FieldError, NotFoundError
from serving.uploads import check_label
from serving.wire import read_choice, read_limit, read_query, wire_response

if TYPE_CHECKING:
    from serving.backend import Backend

DEFAULT_ALARMS = 50
MAX_NUMBER_DIGITS = 18
MAX_BODY_BYTES = 16_384
_EXAMPLE = 'send {"note": "lamp replaced", "new_baseline": false}, or no body'


async def list_all(request: Request) -> Response:
    """GET /v1/alarms."""
    query = read_query(request, {"state", "recipe", "before", "limit"})
    limit, state = read_limit(query, DEFAULT_ALARMS), read_choice(query, "state", ["open", "all"], "open")
    before = query.get("before")
    if before is not None and not _is_number(before):
        raise FieldError(f"before: {before[:40]!r}, wanted the number of an alarm")
    found = await asyncio.to_thread(
        lambda: list_alarms(
            _backend(request).store.engine,
            limit=limit + 1,
            before=None if before is None else int(before),
            recipe=check_label("recipe", query["recipe"]) if "recipe" in query else None,
            only_open=state == "open",
        )
    )
    shown = tuple(found[:limit])
    following = None
    if len(found) > limit:
        following = f"/v1/alarms?{urlencode({**query, 'limit': limit, 'before': shown[-1].id})}"
    return wire_response(AlarmPage(alarms=shown, next=following))


async def acknowledge(request: Request) -> Response:
    """POST /v1/alarms/{id}/acknowledge."""
    read_query(request, set())
    number = request.path_params["id"]
    if not _is_number(number):
        raise NotFoundError(f"there is no alarm {number[:40]!r}", hint="GET /v1/alarms lists them")
    asked = await read_json(request, AcknowledgeRequest, max_bytes=MAX_BODY_BYTES, example=_EXAMPLE)
    report = await asyncio.to_thread(
        lambda: _backend(request).watch.acknowledge(
            int(number), request.state.actor, note=asked.note, new_baseline=asked.new_baseline
        )
    )
    return wire_response(report)


ROUTES = [
    Route("/v1/alarms", list_all, methods=["GET"]),
    Route("/v1/alarms/{id}/acknowledge", acknowledge, methods=["POST"]),
]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= MAX_NUMBER_DIGITS


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend
