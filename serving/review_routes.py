"""The routes of reviews. Errors are raised, not answered here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serving.bodies import Body, read_json
from serving.review_posting import Posted, post_disposition, post_verification
from serving.review_schemas import DispositionRequest, Verification
from serving.reviews import read_review, review_at
from serving.roles import Actor
from serving.store import Store
from serving.wire import read_number, read_query, wire_response

if TYPE_CHECKING:
    from serving.backend import Backend

MAX_BODY_BYTES = 1_000_000
MAX_REVISION = 2**31 - 1
_VERIFICATION = (
    'send {"expects": 0, "calls": [{"defect": 1, "word": "false_call", "label": "short"}], "missed": [], '
    '"checked": true}'
)
_DISPOSITION = 'send {"expects": 1, "disposition": "rework", "note": ""}'


async def get(request: Request) -> Response:
    """GET /v1/inspections/{id}/review."""
    asked = read_query(request, {"revision"}).get("revision")
    store, inspection_id = _backend(request).store, request.path_params["id"]
    if asked is None:
        return wire_response(await asyncio.to_thread(read_review, store.engine, inspection_id))
    # 0 is how it stood before anybody spoke.
    revision = 0 if asked == "0" else read_number("revision", asked, most=MAX_REVISION)
    inspection = await asyncio.to_thread(store.get, inspection_id)
    return wire_response(await asyncio.to_thread(review_at, store.engine, inspection.report, revision))


async def verify(request: Request) -> Response:
    """POST /v1/inspections/{id}/verifications."""
    posted = await _post(request, Verification, post_verification, example=_VERIFICATION)
    for word, number in posted.words.items():
        _backend(request).metrics.review_words.labels(word).inc(number)
    return wire_response(posted.review)


async def dispose(request: Request) -> Response:
    """POST /v1/inspections/{id}/disposition."""
    posted = await _post(request, DispositionRequest, post_disposition, example=_DISPOSITION)
    if posted.is_new:
        _backend(request).metrics.dispositions.labels(posted.review.disposition or "none").inc()
    return wire_response(posted.review)


ROUTES = [
    Route("/v1/inspections/{id}/review", get, methods=["GET"]),
    Route("/v1/inspections/{id}/verifications", verify, methods=["POST"]),
    Route("/v1/inspections/{id}/disposition", dispose, methods=["POST"]),
]


async def _post(
    request: Request,
    model: type[Body],
    post: Callable[[Store, str, Body, Actor], Posted],
    *,
    example: str,
) -> Posted:
    read_query(request, set())
    store, inspection_id = _backend(request).store, request.path_params["id"]
    # Before the body is read: nothing in it can be right where there is no inspection.
    await asyncio.to_thread(store.get, inspection_id)
    asked = await read_json(request, model, max_bytes=MAX_BODY_BYTES, example=example)
    return await asyncio.to_thread(post, store, inspection_id, asked, request.state.actor)


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend
