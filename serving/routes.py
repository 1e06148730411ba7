"""The /v1 routes: from a request to a call of the backend and back. Errors are raised, not answered here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from inspect_vit.results import Verdict
from serving.attention import PARAMETERS, read_ask
from serving.errors import FieldError, NotFoundError
from serving.evidence import PARAMETERS as EVIDENCE_PARAMETERS
from serving.evidence import read_evidence_ask
from serving.ids import is_id
from serving.metrics import metrics_page
from serving.openapi import openapi_document
from serving.roles import Actor
from serving.schemas import InspectionPage, RenderedName, answer
from serving.uploads import check_label, open_form, read_upload
from serving.wire import PICTURE_HEADERS, picture_response, read_limit
from serving.wire import read_choice as _choice
from serving.wire import read_query as _query
from serving.wire import wire_response as _json

if TYPE_CHECKING:
    from serving.backend import Backend
    from serving.store import StoredInspection

DEFAULT_PAGE = 50


async def inspect(request: Request) -> Response:
    """POST /v1/inspect."""
    backend = _backend(request)
    async with open_form(request) as form:
        # A place in the queue is taken when the body has arrived, so that slow senders hold none, and before
        # the pictures are read into memory, so that few are there.
        with backend.engine.admitted():
            upload = await read_upload(form, request.headers)
            report, replayed = await backend.inspect(upload, _actor(request), request.is_disconnected)
    headers = {"idempotency-replayed": "true"} if replayed else {}
    return _json(report, headers)


async def list_inspections(request: Request) -> Response:
    """GET /v1/inspections."""
    query = _query(request, {"limit", "before", "verdict", "serial"})
    limit = read_limit(query, DEFAULT_PAGE)
    _choice(query, "verdict", [verdict.value for verdict in Verdict], "")
    if "before" in query and not is_id(query["before"]):
        raise FieldError(f"before: {query['before'][:40]!r}, wanted the id of an inspection")
    found = await asyncio.to_thread(
        lambda: _backend(request).store.page(
            limit=limit + 1,
            before=query.get("before"),
            verdict=query.get("verdict"),
            serial=check_label("serial", query["serial"]) if "serial" in query else None,
            actor=_actor(request).sees_only,
        )
    )
    shown = found[:limit]
    following = None
    if len(found) > len(shown):
        following = f"/v1/inspections?{urlencode({**query, 'limit': limit, 'before': shown[-1].report.id})}"
    return _json(InspectionPage(inspections=tuple(answer(item.report) for item in shown), next=following))


async def get_inspection(request: Request) -> Response:
    """GET /v1/inspections/{id}."""
    _query(request, set())
    return _json(answer((await _find(request)).report))


async def get_image(request: Request) -> Response:
    """GET /v1/inspections/{id}/image."""
    inspection = await _find(request)
    data = await asyncio.to_thread(_backend(request).store.read_image, inspection)
    return await _posted(request, data)


async def get_reference(request: Request) -> Response:
    """GET /v1/inspections/{id}/reference."""
    inspection = await _find(request)
    data = await asyncio.to_thread(_backend(request).drawings.read_reference, inspection)
    return await _posted(request, data)


async def get_defect_map(request: Request) -> Response:
    """GET /v1/inspections/{id}/defect_map."""
    style = _choice(_query(request, {"style"}), "style", ["grey", "colour"], "grey")
    inspection = await _find(request)
    if style == "colour":
        return _png(await _backend(request).drawings.draw_defect_map_colour(inspection))
    return await _draw(request, inspection, "defect_map")


async def get_overlay(request: Request) -> Response:
    """GET /v1/inspections/{id}/overlay."""
    _query(request, set())
    return await _draw(request, await _find(request), "overlay")


async def get_gate(request: Request) -> Response:
    """GET /v1/inspections/{id}/gate."""
    _query(request, set())
    return await _draw(request, await _find(request), "gate")


async def get_attention(request: Request) -> Response:
    """GET /v1/inspections/{id}/attention."""
    ask = read_ask(_query(request, PARAMETERS))
    inspection, backend = await _find(request), _backend(request)
    with backend.engine.admitted():
        data, tested = await backend.drawings.draw_attention(inspection, ask, request.is_disconnected)
    media_type = "image/png" if ask.format == "png" else "application/octet-stream"
    return Response(data, media_type=media_type, headers={**PICTURE_HEADERS, **tested.headers})


async def get_evidence(request: Request) -> Response:
    """GET /v1/inspections/{id}/evidence."""
    ask = read_evidence_ask(_query(request, EVIDENCE_PARAMETERS))
    inspection, backend = await _find(request), _backend(request)
    with backend.engine.admitted():
        return _json(await backend.drawings.evidence(inspection, ask, request.is_disconnected))


async def docs(request: Request) -> Response:
    """GET /docs.json."""
    return JSONResponse(openapi_document(), headers={"cache-control": "no-cache"})


def _route(path: str, endpoint: Callable[[Request], Awaitable[Response]], method: str = "GET") -> Route:
    return Route(path, endpoint, methods=[method])


ROUTES = [
    _route("/v1/inspect", inspect, "POST"),
    _route("/v1/inspections", list_inspections),
    _route("/v1/inspections/{id}", get_inspection),
    _route("/v1/inspections/{id}/image", get_image),
    _route("/v1/inspections/{id}/reference", get_reference),
    _route("/v1/inspections/{id}/defect_map", get_defect_map),
    _route("/v1/inspections/{id}/overlay", get_overlay),
    _route("/v1/inspections/{id}/gate", get_gate),
    _route("/v1/inspections/{id}/attention", get_attention),
    _route("/v1/inspections/{id}/evidence", get_evidence),
    _route("/metrics", metrics_page),
    _route("/docs.json", docs),
]


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


def _actor(request: Request) -> Actor:
    actor: Actor = request.state.actor
    return actor


async def _find(request: Request) -> StoredInspection:
    wanted, sees_only = request.path_params["id"], _actor(request).sees_only
    inspection = await asyncio.to_thread(_backend(request).store.get, wanted)
    if sees_only is not None and inspection.report.actor != sees_only:
        raise NotFoundError(
            f"there is no inspection {wanted!r} by the key {sees_only!r}",
            hint="a key with the role line sees what it posted; operators see all",
        )
    return inspection


async def _draw(request: Request, inspection: StoredInspection, name: RenderedName) -> Response:
    return _png((await _backend(request).drawings.draw(inspection, [name], request.is_disconnected))[name])


async def _posted(request: Request, data: bytes) -> Response:
    """A posted picture: its own bytes, or with ?format=png as every browser can show it."""
    picture_format = _choice(_query(request, {"format"}), "format", ["posted", "png"], "posted")
    if picture_format == "png":
        return _png(await _backend(request).drawings.draw_posted(data))
    return picture_response(data)


def _png(data: bytes) -> Response:
    return Response(data, media_type="image/png", headers=PICTURE_HEADERS)
