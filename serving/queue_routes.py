"""GET /v1/queue. Errors are raised, not answered here."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast, get_args
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from inspect_vit.results import Verdict
from serving.errors import FieldError
from serving.ids import is_id
from serving.queue import Cursor, QueueFilter, count_queue, list_queue
from serving.queue_schemas import QueueOrder, QueuePage, QueueState
from serving.uploads import check_label
from serving.wire import read_choice, read_limit, read_query, wire_response

if TYPE_CHECKING:
    from serving.backend import Backend

DEFAULT_ITEMS = 50
LABELS = ("recipe", "label", "serial", "model")


async def list_items(request: Request) -> Response:
    """GET /v1/queue."""
    query = read_query(request, {"order", "state", "verdict", *LABELS, "since", "until", "limit", "after"})
    limit = read_limit(query, DEFAULT_ITEMS)
    order = cast(QueueOrder, read_choice(query, "order", list(get_args(QueueOrder)), "newest"))
    state = cast(QueueState, read_choice(query, "state", list(get_args(QueueState)), "open"))
    read_choice(query, "verdict", [verdict.value for verdict in Verdict], "")
    asked = QueueFilter(
        state=state,
        verdict=query.get("verdict"),
        **{name: check_label(name, query[name]) for name in LABELS if name in query},
        since=read_moment(query, "since"),
        until=read_moment(query, "until"),
    )
    after = _read_cursor(query, order)
    backend: Backend = request.app.state.backend
    engine = backend.store.engine
    found = await asyncio.to_thread(
        lambda: list_queue(engine, asked, order=order, limit=limit + 1, after=after)
    )
    counts = await asyncio.to_thread(count_queue, engine, asked)
    shown, following = found[:limit], None
    if len(found) > limit:
        place = {"limit": limit, "after": _written(shown[-1][1], order)}
        following = f"/v1/queue?{urlencode({**query, **place})}"
    return wire_response(QueuePage(items=tuple(item for item, _ in shown), next=following, counts=counts))


ROUTES = [Route("/v1/queue", list_items, methods=["GET"])]


def read_moment(query: dict[str, str], name: str) -> datetime | None:
    """A day or a moment in ISO 8601, of UTC where it names no offset. Raises FieldError."""
    if name not in query:
        return None
    try:
        moment = datetime.fromisoformat(query[name])
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise FieldError(
            f"{name}: {query[name][:40]!r}, wanted a day or a moment, as 2026-11-30 or 2026-11-30T08:00:00Z",
            hint="in a URL the + of an offset is written %2B",
        ) from error
    return moment


def _written(cursor: Cursor, order: QueueOrder) -> str:
    return cursor.id if order == "newest" else f"{cursor.value!r}-{cursor.id}"


def _read_cursor(query: dict[str, str], order: QueueOrder) -> Cursor | None:
    """Where the page before ended. Raises FieldError."""
    if "after" not in query:
        return None
    text, _, inspection_id = query["after"].rpartition("-")
    try:
        value = 0.0 if order == "newest" else float(text)
    except ValueError:
        value = math.nan
    if not is_id(inspection_id) or math.isnan(value) or (order == "newest" and text):
        raise FieldError(
            f"after: {query['after'][:80]!r} does not follow on a page of order {order}",
            hint="take `next` of the page before as it is",
        )
    return Cursor(inspection_id, value)
