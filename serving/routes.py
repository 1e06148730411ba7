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
from serving.errors import FieldError
from serving.evidence import PARAMETERS as EVIDENCE_PARAMETERS
from serving.evidence import read_evidence_ask
from serving.metrics import metrics_page
from serving.openapi import openapi_document
from serving.schemas import InspectionPage, RenderedName, Wire, answer
from serving.store import is_id
from serving.uploads import check_label, open_form, read_upload

if TYPE_CHECKING:
    from serving.backend import Backend
    from serving.store import StoredInspection

DEFAULT_PAGE, LARGEST_PAGE = 50, 200
MAGIC = {
    b"\xff\xd8": "image/jpeg",
    b"\x89PNG": "image/png",
    b"BM": "image/bmp",
    b"II": "image/tiff",
    b"MM": "image/tiff",
    b"RIFF": "image/webp",
}
# Pictures are posted by anyone: a browser must neither guess another type nor run anything found inside.
PICTURE_HEADERS = {
    "cache-control": "private, max-age=3600",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; sandbox",
}


async def inspect(request: Request) -> Response:
    """POST /v1/inspect."""
    backend = _backend(request)
    async with open_form(request) as form:
        # A place in the queue is taken when the body has arrived, so that slow senders hold none, and before
        # the pictures are read into memory, so that few are there.
        with backend.engine.admitted():
            upload = await read_upload(form, request.headers)
            report, replayed = await backend.inspect(upload, request.is_disconnected)
    headers = {"idempotency-replayed": "true"} if replayed else {}
    return _json(report, headers)


async def list_inspections(request: Request) -> Response:
    """GET /v1/inspections."""
    query = _query(request, {"limit", "before", "verdict", "serial"})
    limit = query.get("limit", str(DEFAULT_PAGE))
    if not limit.isdecimal() or not 1 <= int(limit) <= LARGEST_PAGE:
        raise FieldError(f"limit: {limit[:20]!r}, wanted a whole number from 1 to {LARGEST_PAGE}")
    _choice(query, "verdict", [verdict.value for verdict in Verdict], "")
    if "before" in query and not is_id(query["before"]):
        raise FieldError(f"before: {query['before'][:40]!r}, wanted the id of an inspection")
    found = await asyncio.to_thread(
        lambda: _backend(request).store.page(
            limit=int(limit) + 1,
            before=query.get("before"),
            verdict=query.get("verdict"),
            serial=check_label("serial", query["serial"]) if "serial" in query else None,
        )
    )
    shown = found[: int(limit)]
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
    data = await asyncio.to_thread(_backend(request).read_reference, inspection)
    return await _posted(request, data)


async def get_defect_map(request: Request) -> Response:
    """GET /v1/inspections/{id}/defect_map."""
    style = _choice(_query(request, {"style"}), "style", ["grey", "colour"], "grey")
    inspection = await _find(request)
    if style == "colour":
        return _png(await _backend(request).draw_defect_map_colour(inspection))
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
        data, tested = await backend.draw_attention(inspection, ask, request.is_disconnected)
    media_type = "image/png" if ask.format == "png" else "application/octet-stream"
    return Response(data, media_type=media_type, headers={**PICTURE_HEADERS, **tested.headers})


async def get_evidence(request: Request) -> Response:
    """GET /v1/inspections/{id}/evidence."""
    ask = read_evidence_ask(_query(request, EVIDENCE_PARAMETERS))
    inspection, backend = await _find(request), _backend(request)
    with backend.engine.admitted():
        return _json(await backend.evidence(inspection, ask, request.is_disconnected))


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


async def _find(request: Request) -> StoredInspection:
    return await asyncio.to_thread(_backend(request).store.get, request.path_params["id"])


async def _draw(request: Request, inspection: StoredInspection, name: RenderedName) -> Response:
    return _png((await _backend(request).draw(inspection, [name], request.is_disconnected))[name])


async def _posted(request: Request, data: bytes) -> Response:
    """A posted picture: its own bytes, or with ?format=png as every browser can show it."""
    picture_format = _choice(_query(request, {"format"}), "format", ["posted", "png"], "posted")
    if picture_format == "png":
        return _png(await _backend(request).draw_posted(data))
    media_type = next(
        (found for magic, found in MAGIC.items() if data.startswith(magic)), "application/octet-stream"
    )
    return Response(data, media_type=media_type, headers=PICTURE_HEADERS)


def _png(data: bytes) -> Response:
    return Response(data, media_type="image/png", headers=PICTURE_HEADERS)


def _json(body: Wire, headers: dict[str, str] | None = None) -> Response:
    return Response(
        body.model_dump_json(),
        media_type="application/json",
        headers={"cache-control": "no-store", **(headers or {})},
    )


def _query(request: Request, allowed: set[str]) -> dict[str, str]:
    query = dict(request.query_params)
    for name in query:
        if name not in allowed:
            hint = f"it takes {', '.join(sorted(allowed))}" if allowed else "it takes none"
            raise FieldError(f"{name[:80]!r} is not a query parameter of {request.url.path}", hint=hint)
    return query


def _choice(query: dict[str, str], name: str, choices: list[str], default: str) -> str:
    value = query.get(name, default)
    if name in query and value not in choices:
        raise FieldError(f"{name}: {value[:40]!r}, wanted one of {', '.join(choices)}")
    return value
