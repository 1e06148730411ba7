"""The challenge routes of recipes. Errors are raised, not answered here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serving.bodies import read_json
from serving.challenge_schemas import ChallengeRequest, ClearRequest
from serving.challenges import clear, find_challenge, put_challenge, report_of
from serving.recipes import get_recipe
from serving.registry import find_model, production
from serving.uploads import check_recipe_name
from serving.wire import read_query, wire_response

if TYPE_CHECKING:
    from serving.backend import Backend

MAX_BODY_BYTES = 2_000_000
_EXAMPLE = 'send {"boards": [{"serial": "CHALLENGE-1", "labels": ["short", "open"]}], "every_hours": 8}'
_CLEAR_EXAMPLE = 'send {"reason": "lamp replaced, challenge board called again"}'


async def get(request: Request) -> Response:
    """GET /v1/recipes/{name}/challenge."""
    read_query(request, set())
    engine, name = _backend(request).store.engine, _name(request)
    await asyncio.to_thread(get_recipe, engine, name)
    return wire_response(report_of(await asyncio.to_thread(find_challenge, engine, name)))


async def put(request: Request) -> Response:
    """PUT /v1/recipes/{name}/challenge."""
    read_query(request, set())
    backend, name = _backend(request), _name(request)
    asked = await read_json(request, ChallengeRequest, max_bytes=MAX_BODY_BYTES, example=_EXAMPLE)
    stored = await asyncio.to_thread(
        put_challenge,
        backend.store.engine,
        name,
        asked,
        request.state.actor,
        class_names=await asyncio.to_thread(_class_names, backend, name),
    )
    return wire_response(report_of(stored))


async def clear_lock(request: Request) -> Response:
    """POST /v1/recipes/{name}/challenge/clear."""
    read_query(request, set())
    name = _name(request)
    asked = await read_json(request, ClearRequest, max_bytes=MAX_BODY_BYTES, example=_CLEAR_EXAMPLE)
    engine, actor = _backend(request).store.engine, request.state.actor
    return wire_response(report_of(await asyncio.to_thread(clear, engine, name, asked.reason, actor)))


ROUTES = [
    Route("/v1/recipes/{name}/challenge", get, methods=["GET"]),
    Route("/v1/recipes/{name}/challenge", put, methods=["PUT"]),
    Route("/v1/recipes/{name}/challenge/clear", clear_lock, methods=["POST"]),
]


def _class_names(backend: Backend, recipe: str) -> tuple[str, ...]:
    """What the version that inspects the recipe's boards knows."""
    database = backend.store.engine
    return find_model(database, production(database, recipe)).facts.classes


def _name(request: Request) -> str:
    return check_recipe_name(request.path_params["name"])


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend
