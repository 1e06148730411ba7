"""The /v1/models routes. Errors are raised, not answered here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serving.bodies import read_json
from serving.errors import FieldError
from serving.model_reports import compare_models, model_report, model_reports
from serving.model_schemas import (
    ModelPage,
    ModelReport,
    RetireRequest,
    RollbackRequest,
    ShadowRequest,
    StageReport,
)
from serving.promotion import rollback as roll_back
from serving.registry import retire as retire_version
from serving.scrubbing import scrubbed
from serving.shadows import set_shadow, shadow_report
from serving.uploads import check_recipe_name
from serving.wire import read_query, wire_response

if TYPE_CHECKING:
    from serving.backend import Backend

MAX_BODY_BYTES = 16_384
SWAP_TIMEOUT_S = 20.0
"""A rollback is answered when this process has swapped, or after this long."""
_ROLLBACK = 'send {"recipe": null, "reason": "it misses shorts on panel 7"}'
_RETIRE = 'send {"reason": "superseded"}, or no body'
_SHADOW = 'send {"share": 0.1, "recipe": null}; share 0 ends it'


async def list_all(request: Request) -> Response:
    """GET /v1/models."""
    read_query(request, set())
    backend = _backend(request)
    found = await asyncio.to_thread(
        model_reports, backend.store.engine, backend.engine.models.versions(), _refused(backend)
    )
    return wire_response(ModelPage(models=tuple(found)))


async def get(request: Request) -> Response:
    """GET /v1/models/{version}."""
    read_query(request, set())
    return wire_response(await _model(request))


async def compare(request: Request) -> Response:
    """GET /v1/models/{version}/compare."""
    other = read_query(request, {"with"}).get("with")
    if other is None:
        raise FieldError("with: missing, wanted the version to compare with")
    backend = _backend(request)
    found = await asyncio.to_thread(
        compare_models, backend.store.engine, backend.config.home_dir, _version(request), other
    )
    return wire_response(found)


async def rollback(request: Request) -> Response:
    """POST /v1/models/{version}/rollback."""
    read_query(request, set())
    backend, version = _backend(request), _version(request)
    asked = await read_json(request, RollbackRequest, max_bytes=MAX_BODY_BYTES, example=_ROLLBACK)

    def work() -> StageReport:
        recipe = None if asked.recipe is None else check_recipe_name(asked.recipe)
        done = roll_back(
            backend.store.engine,
            backend.config.home_dir,
            version,
            recipe=recipe,
            actor=request.state.actor,
            reason=asked.reason,
        )
        if recipe is None:
            backend.engine.models.wait_for(done.version, timeout_s=SWAP_TIMEOUT_S)
        return StageReport(
            recipe=recipe,
            version=done.version,
            replaced=done.replaced,
            revision=done.revision,
            changed=done.is_changed,
        )

    return wire_response(await asyncio.to_thread(work))


async def retire(request: Request) -> Response:
    """POST /v1/models/{version}/retire."""
    read_query(request, set())
    backend, version = _backend(request), _version(request)
    asked = await read_json(request, RetireRequest, max_bytes=MAX_BODY_BYTES, example=_RETIRE)
    await asyncio.to_thread(
        retire_version, backend.store.engine, version, actor=request.state.actor, reason=asked.reason
    )
    return wire_response(await _model(request))


async def put_shadow(request: Request) -> Response:
    """POST /v1/models/{version}/shadow."""
    read_query(request, set())
    backend, version = _backend(request), _version(request)
    asked = await read_json(request, ShadowRequest, max_bytes=MAX_BODY_BYTES, example=_SHADOW)
    await asyncio.to_thread(
        set_shadow,
        backend.store.engine,
        backend.config.home_dir,
        version,
        share=asked.share,
        recipe=None if asked.recipe is None else check_recipe_name(asked.recipe),
        actor=request.state.actor,
    )
    return wire_response(await asyncio.to_thread(shadow_report, backend.store.engine, version))


async def get_shadow(request: Request) -> Response:
    """GET /v1/models/{version}/shadow."""
    read_query(request, set())
    return wire_response(
        await asyncio.to_thread(shadow_report, _backend(request).store.engine, _version(request))
    )


ROUTES = [
    Route("/v1/models", list_all, methods=["GET"]),
    Route("/v1/models/{version}", get, methods=["GET"]),
    Route("/v1/models/{version}/compare", compare, methods=["GET"]),
    Route("/v1/models/{version}/rollback", rollback, methods=["POST"]),
    Route("/v1/models/{version}/retire", retire, methods=["POST"]),
    Route("/v1/models/{version}/shadow", put_shadow, methods=["POST"]),
    Route("/v1/models/{version}/shadow", get_shadow, methods=["GET"]),
]


async def _model(request: Request) -> ModelReport:
    backend = _backend(request)
    loaded = backend.engine.models.versions()
    return await asyncio.to_thread(
        model_report, backend.store.engine, _version(request), loaded, _refused(backend)
    )


def _refused(backend: Backend) -> dict[str, str]:
    """Why versions could not be loaded, without the server's folders."""
    found = backend.engine.models.refused()
    return {version: scrubbed(words, backend.config) for version, words in found.items()}


def _version(request: Request) -> str:
    return str(request.path_params["version"])


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend
