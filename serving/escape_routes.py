"""The routes of an escape: what the network saw there, and a new threshold. Errors are raised, not answered
here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serving.bodies import read_json
from serving.proposals import propose
from serving.spots import read_spot_box
from serving.threshold_schemas import ThresholdRequest
from serving.uploads import check_recipe_name
from serving.wire import read_query, wire_response

if TYPE_CHECKING:
    from serving.backend import Backend

MAX_BODY_BYTES = 16_384
_EXAMPLE = 'send {"label": "short", "threshold": 0.35, "reason": "missed on SN-17"}'


async def get_spot(request: Request) -> Response:
    """GET /v1/inspections/{id}/spot."""
    box = read_query(request, {"box"}).get("box")
    backend = _backend(request)
    inspection = await asyncio.to_thread(backend.store.get, request.path_params["id"])
    asked = read_spot_box(box, inspection.report)
    with backend.engine.admitted():
        return wire_response(await backend.drawings.spot(inspection, asked, request.is_disconnected))


async def set_threshold(request: Request) -> Response:
    """POST /v1/recipes/{name}/thresholds."""
    read_query(request, set())
    name = check_recipe_name(request.path_params["name"])
    asked = await read_json(request, ThresholdRequest, max_bytes=MAX_BODY_BYTES, example=_EXAMPLE)
    report = await propose(_backend(request), name, asked, request.state.actor, request.is_disconnected)
    return wire_response(report)


ROUTES = [
    Route("/v1/inspections/{id}/spot", get_spot, methods=["GET"]),
    Route("/v1/recipes/{name}/thresholds", set_threshold, methods=["POST"]),
]


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend
