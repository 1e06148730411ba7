"""The QA station's pages as built from station/src, sample boards, and headers that let nothing else in."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from serving.errors import NotFoundError

if TYPE_CHECKING:
    from serving.backend import Backend

PAGES = Path(__file__).parent / "station" / "dist"
SAMPLES = Path(__file__).parents[1] / "data_samples"
MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-cache",
}


async def home(_: Request) -> Response:
    """GET /: the station, instead of the framework's page, which loads a script from elsewhere."""
    return RedirectResponse("/station")


async def page(request: Request) -> Response:
    """GET /station and the files of the page."""
    name = request.path_params.get("name", "index.html")
    path = PAGES / name
    if "/" in name or path.suffix not in MEDIA_TYPES or not await asyncio.to_thread(path.is_file):
        raise NotFoundError(f"the station has no file {name!r}")
    return FileResponse(path, media_type=MEDIA_TYPES[path.suffix], headers=HEADERS)


async def icon(_: Request) -> Response:
    """GET /favicon.ico."""
    return FileResponse(PAGES / "icon.svg", media_type="image/svg+xml", headers=HEADERS)


async def list_samples(request: Request) -> Response:
    """GET /station/samples.json: the sample boards this server has, each with its golden reference."""
    folder = _samples(request)
    pairs = await asyncio.to_thread(lambda: _find_pairs(folder))
    base = "/station/samples/"
    listed = [
        {"name": name, "image": base + image, "reference": base + golden} for name, image, golden in pairs
    ]
    return JSONResponse(listed, headers=HEADERS)


async def sample(request: Request) -> Response:
    """GET /station/samples/{name}."""
    folder, name = _samples(request), request.path_params["name"]
    pairs = await asyncio.to_thread(lambda: _find_pairs(folder))
    if not any(name in (image, golden) for _, image, golden in pairs):
        raise NotFoundError(f"there is no sample picture {name[:80]!r}")
    return FileResponse(folder / name, headers=HEADERS)


def _samples(request: Request) -> Path:
    backend: Backend = request.app.state.backend
    return backend.config.samples or SAMPLES


def _find_pairs(folder: Path) -> list[tuple[str, str, str]]:
    """(name, image, reference) of each NAME_test.* that has its NAME_temp.* beside it."""
    pairs = []
    for image in sorted(folder.glob("*_test.*")):
        golden = image.with_name(image.name.replace("_test.", "_temp."))
        if golden.is_file():
            pairs.append((image.name.partition("_test.")[0], image.name, golden.name))
    return pairs


ROUTES = [
    Route("/", home),
    Route("/favicon.ico", icon),
    Route("/station", page),
    Route("/station/samples.json", list_samples),
    Route("/station/samples/{name}", sample),
    Route("/station/{name}", page),
]
