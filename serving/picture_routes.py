"""The routes of tiles, crops, thumbnails, legends and similar calls. Errors are raised, not answered here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serving.crops import read_crop, tile_window
from serving.errors import NotFoundError
from serving.similar import similar_calls
from serving.tiles_ask import PARAMETERS, read_layer
from serving.tiles_pyramid import grid_of
from serving.wire import PICTURE_HEADERS, read_number, read_query, wire_response

if TYPE_CHECKING:
    from serving.backend import Backend
    from serving.store import StoredInspection

MAX_NUMBER_DIGITS = 6
DEFAULT_SIMILAR, MOST_SIMILAR = 8, 50


async def get_thumbnail(request: Request) -> Response:
    """GET /v1/inspections/{id}/thumbnail."""
    read_query(request, set())
    data = await _backend(request).tiles.thumbnail(await _find(request))
    return _picture(data, "image/jpeg")


async def describe_tiles(request: Request) -> Response:
    """GET /v1/inspections/{id}/tiles/{layer}."""
    ask = read_layer(request.path_params["layer"], read_query(request, PARAMETERS))
    inspection, tiles = await _find(request), _backend(request).tiles
    return wire_response(await tiles.describe(inspection, ask, request.is_disconnected))


async def get_tile(request: Request) -> Response:
    """GET /v1/inspections/{id}/tiles/{layer}/{level}/{column}_{row}."""
    ask = read_layer(request.path_params["layer"], read_query(request, PARAMETERS))
    place = [_number(request, name) for name in ("level", "column", "row")]
    inspection, tiles = await _find(request), _backend(request).tiles
    window = tile_window(grid_of(inspection.report), *place)
    return _picture(*await tiles.cut(inspection, ask, window, request.is_disconnected))


async def get_crop(request: Request) -> Response:
    """GET /v1/inspections/{id}/crops/{layer}."""
    query = read_query(request, PARAMETERS | {"box", "size"})
    ask = read_layer(request.path_params["layer"], query)
    inspection, tiles = await _find(request), _backend(request).tiles
    window = read_crop(query, grid_of(inspection.report))
    return _picture(*await tiles.cut(inspection, ask, window, request.is_disconnected))


async def get_legend(request: Request) -> Response:
    """GET /v1/inspections/{id}/legend/{layer}."""
    ask = read_layer(request.path_params["layer"], read_query(request, PARAMETERS))
    inspection, tiles = await _find(request), _backend(request).tiles
    return wire_response(await tiles.legend(inspection, ask))


async def list_similar(request: Request) -> Response:
    """GET /v1/inspections/{id}/defects/{number}/similar."""
    query = read_query(request, {"limit"})
    limit = read_number("limit", query.get("limit", str(DEFAULT_SIMILAR)), most=MOST_SIMILAR)
    number = _number(request, "number")
    report = (await _find(request)).report
    return wire_response(
        await asyncio.to_thread(similar_calls, _backend(request).store.engine, report, number, limit=limit)
    )


_ONE = "/v1/inspections/{id}"
ROUTES = [
    Route(f"{_ONE}/thumbnail", get_thumbnail, methods=["GET"]),
    Route(f"{_ONE}/tiles/{{layer}}", describe_tiles, methods=["GET"]),
    Route(f"{_ONE}/tiles/{{layer}}/{{level}}/{{column}}_{{row}}", get_tile, methods=["GET"]),
    Route(f"{_ONE}/crops/{{layer}}", get_crop, methods=["GET"]),
    Route(f"{_ONE}/legend/{{layer}}", get_legend, methods=["GET"]),
    Route(f"{_ONE}/defects/{{number}}/similar", list_similar, methods=["GET"]),
]


async def _find(request: Request) -> StoredInspection:
    return await asyncio.to_thread(_backend(request).store.get, request.path_params["id"])


def _number(request: Request, name: str) -> int:
    """A number in the path. Raises NotFoundError for what is none: nothing can be there."""
    text = request.path_params[name]
    if not (text.isascii() and text.isdecimal()) or len(text) > MAX_NUMBER_DIGITS:
        raise NotFoundError(f"{name} {text[:20]!r}: wanted a whole number")
    return int(text)


def _picture(data: bytes, media_type: str) -> Response:
    return Response(data, media_type=media_type, headers=PICTURE_HEADERS)


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend
