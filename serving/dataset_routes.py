"""The routes of data sets and examples. Errors are raised, not answered here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serving.audit import record_alone
from serving.bodies import faults, read_json
from serving.dataset_files import export_dataset, list_datasets
from serving.dataset_schemas import Dataset, DatasetFilter, DatasetPage
from serving.datasets import Selection, list_examples, select_boards
from serving.errors import FieldError
from serving.roles import Actor
from serving.uploads import check_label
from serving.wire import read_limit, read_query, wire_response

if TYPE_CHECKING:
    from serving.backend import Backend

MAX_BODY_BYTES = 100_000
DEFAULT_EXAMPLES = 50
WAIT_S = 2.0
"""Longest wait for another data set that is being written."""
EXPORTED = "dataset_exported"
_EXAMPLE = 'send {"recipe": "panel-A", "since": "2026-11-01", "labels": []}; every field may be left out'


async def export(request: Request) -> Response:
    """POST /v1/datasets."""
    read_query(request, set())
    asked = await read_json(request, DatasetFilter, max_bytes=MAX_BODY_BYTES, example=_EXAMPLE)
    backend, actor = _backend(request), request.state.actor
    return wire_response(await asyncio.to_thread(_export, backend, asked, actor))


async def list_all(request: Request) -> Response:
    """GET /v1/datasets."""
    read_query(request, set())
    found = await asyncio.to_thread(list_datasets, _backend(request).config)
    return wire_response(DatasetPage(datasets=tuple(found)))


async def preview(request: Request) -> Response:
    """GET /v1/datasets/preview."""
    query = read_query(request, {"recipe", "since", "until", "labels"})
    values: dict[str, Any] = {name: query[name] for name in ("recipe", "since", "until") if name in query}
    values["labels"] = tuple(
        check_label("labels", label) for label in query.get("labels", "").split(",") if label
    )
    if "recipe" in query:
        check_label("recipe", query["recipe"])
    try:
        wanted = DatasetFilter.model_validate(values)
    except ValidationError as error:
        raise FieldError(faults(error)[0]) from error
    selection = await asyncio.to_thread(_select, _backend(request), wanted)
    return wire_response(selection.preview())


async def examples(request: Request) -> Response:
    """GET /v1/examples."""
    query = read_query(request, {"label", "recipe", "limit"})
    limit = read_limit(query, DEFAULT_EXAMPLES)
    label, recipe = (
        check_label(name, query[name]) if query.get(name) else None for name in ("label", "recipe")
    )
    selection = await asyncio.to_thread(_select, _backend(request), DatasetFilter(recipe=recipe))
    return wire_response(list_examples(selection, label=label, limit=limit))


ROUTES = [
    Route("/v1/datasets", export, methods=["POST"]),
    Route("/v1/datasets", list_all, methods=["GET"]),
    Route("/v1/datasets/preview", preview, methods=["GET"]),
    Route("/v1/examples", examples, methods=["GET"]),
]


def _export(backend: Backend, asked: DatasetFilter, actor: Actor) -> Dataset:
    backend.store.pictures.check_room()
    made = export_dataset(backend.store, backend.config, asked, actor, wait_s=WAIT_S)
    details = {"filter": asked.model_dump(mode="json"), "pictures": made.pictures.model_dump()}
    record_alone(backend.store.engine, actor, EXPORTED, object_name=made.fingerprint, details=details)
    return made


def _select(backend: Backend, wanted: DatasetFilter) -> Selection:
    share = backend.config.acceptance_share
    return select_boards(backend.store.engine, wanted, acceptance_share=share)


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend
