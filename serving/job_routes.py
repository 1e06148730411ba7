"""The routes of jobs: retraining, promotion, how far they are. Errors are raised, not answered here."""

from __future__ import annotations

import asyncio
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serving import promoting, retrain
from serving.bodies import read_json
from serving.errors import FieldError
from serving.ids import is_id
from serving.job_files import JobFiles
from serving.job_schemas import Job, JobPage, PromoteRequest, Promotion, RetrainRequest
from serving.jobs import add_job, cancel_job, list_jobs, read_job, resume_job
from serving.roles import Actor
from serving.uploads import check_label, check_recipe_name
from serving.wire import read_choice, read_limit, read_query, wire_response

if TYPE_CHECKING:
    from serving.backend import Backend

DEFAULT_JOBS = 50
MAX_BODY_BYTES = 200_000
STATES = ["waiting", "running", "done", "failed", "cancelled"]
_RETRAIN_EXAMPLE = (
    'send {"add": ["scratch"]}, with "base", "rename", "retire", "data", "replay", "settings", "note" as '
    "needed"
)
_PROMOTE_EXAMPLE = (
    'send {"recipe": null, "reason": "ten scratches found, nothing lost"}, with "override", "renamed", '
    '"retired" as needed'
)


async def start_retraining(request: Request) -> Response:
    """POST /v1/retrain."""
    read_query(request, set())
    backend, actor = _backend(request), request.state.actor
    asked = await read_json(request, RetrainRequest, max_bytes=MAX_BODY_BYTES, example=_RETRAIN_EXAMPLE)
    return await asyncio.to_thread(_start_retraining, backend, asked, actor)


async def start_promotion(request: Request) -> Response:
    """POST /v1/models/{version}/promote."""
    read_query(request, set())
    backend, actor = _backend(request), request.state.actor
    asked = await read_json(request, PromoteRequest, max_bytes=MAX_BODY_BYTES, example=_PROMOTE_EXAMPLE)
    version = check_label("version", request.path_params["version"])
    return await asyncio.to_thread(_start_promotion, backend, version, asked, actor)


async def list_all(request: Request) -> Response:
    """GET /v1/jobs."""
    query = read_query(request, {"limit", "before", "state"})
    limit = read_limit(query, DEFAULT_JOBS)
    state = read_choice(query, "state", STATES, "") or None
    before = query.get("before")
    if before is not None and not is_id(before):
        raise FieldError(f"before: {before[:40]!r}, wanted the id of a job")
    backend = _backend(request)
    found = await asyncio.to_thread(
        list_jobs, backend.store.engine, backend.config, limit=limit + 1, before=before, state=state
    )
    shown, following = tuple(found[:limit]), None
    if len(found) > limit:
        following = f"/v1/jobs?{urlencode({**query, 'limit': limit, 'before': shown[-1].id})}"
    return wire_response(JobPage(jobs=shown, next=following))


async def get_job(request: Request) -> Response:
    """GET /v1/jobs/{id}."""
    read_query(request, set())
    return wire_response(await _read(request))


async def cancel(request: Request) -> Response:
    """DELETE /v1/jobs/{id}."""
    read_query(request, set())
    actor: Actor = request.state.actor
    await asyncio.to_thread(cancel_job, _backend(request).store.engine, request.path_params["id"], actor)
    return wire_response(await _read(request))


async def resume(request: Request) -> Response:
    """POST /v1/jobs/{id}/resume."""
    read_query(request, set())
    actor: Actor = request.state.actor
    await asyncio.to_thread(resume_job, _backend(request).store.engine, request.path_params["id"], actor)
    return wire_response(await _read(request))


async def get_log(request: Request) -> Response:
    """GET /v1/jobs/{id}/log."""
    read_query(request, set())
    files = JobFiles(_backend(request).config, (await _read(request)).id)
    text = await asyncio.to_thread(files.read_log)
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return Response(text, media_type="text/plain", headers=headers)


async def get_curves(request: Request) -> Response:
    """GET /v1/jobs/{id}/curves."""
    read_query(request, set())
    files = JobFiles(_backend(request).config, (await _read(request)).id)
    return wire_response(await asyncio.to_thread(files.curves))


ROUTES = [
    Route("/v1/retrain", start_retraining, methods=["POST"]),
    Route("/v1/models/{version}/promote", start_promotion, methods=["POST"]),
    Route("/v1/jobs", list_all, methods=["GET"]),
    Route("/v1/jobs/{id}", get_job, methods=["GET"]),
    Route("/v1/jobs/{id}", cancel, methods=["DELETE"]),
    Route("/v1/jobs/{id}/resume", resume, methods=["POST"]),
    Route("/v1/jobs/{id}/log", get_log, methods=["GET"]),
    Route("/v1/jobs/{id}/curves", get_curves, methods=["GET"]),
]


def _start_retraining(backend: Backend, asked: RetrainRequest, actor: Actor) -> Response:
    named = asked.model_copy(
        update={
            "add": tuple(_class_name(f"add.{n}", name) for n, name in enumerate(asked.add)),
            "rename": {old: _class_name(f"rename.{old}", new) for old, new in asked.rename.items()},
        }
    )
    request = retrain.resolve(backend.store.engine, backend.config, named)
    return _added(backend, request, actor)


def _start_promotion(backend: Backend, version: str, asked: PromoteRequest, actor: Actor) -> Response:
    recipe = None if asked.recipe is None else check_recipe_name(asked.recipe)
    wanted = Promotion(**{**dict(asked), "recipe": recipe}, version=version)
    return _added(backend, promoting.resolve(backend.store.engine, backend.config, wanted), actor)


def _added(backend: Backend, request: RetrainRequest | Promotion, actor: Actor) -> Response:
    backend.store.pictures.check_room()
    job, _ = backend.store.new_id()
    add_job(backend.store.engine, job, request, actor)
    response = wire_response(read_job(backend.store.engine, backend.config, job))
    response.status_code = 202
    return response


def _class_name(field: str, text: str) -> str:
    """A class as reviews keep it."""
    name = unicodedata.normalize("NFC", check_label(field, text.strip()))
    if not name:
        raise FieldError(f"{field}: {text!r}, wanted the name of a class")
    return name


async def _read(request: Request) -> Job:
    backend = _backend(request)
    return await asyncio.to_thread(read_job, backend.store.engine, backend.config, request.path_params["id"])


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend
