"""The /v1/recipes routes: from a request to the store and back. Errors are raised, not answered here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
from sqlalchemy import Engine
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from inspect_vit.errors import ConfigError, ImageError
from inspect_vit.golden import build_golden
from inspect_vit.image_io import read_image
from inspect_vit.overlay import encode_png
from inspect_vit.recipe import Recipe
from serving.errors import FieldError, NotFoundError
from serving.promotion import check_put_pin
from serving.recipe_uploads import RecipeUpload, read_recipe
from serving.recipes import (
    ReferenceFile,
    StoredRecipe,
    delete_recipe,
    get_recipe,
    list_recipes,
    list_revisions,
    put_recipe,
)
from serving.reference_pictures import LARGEST_SHOWN_PX, shown_picture
from serving.registry import check_pin, find_model, production
from serving.roles import Actor
from serving.schemas import BoardFitReport, RecipePage, RecipeReference, RecipeReport
from serving.uploads import check_recipe_name
from serving.wire import picture_response, read_number, read_query, wire_response

if TYPE_CHECKING:
    from serving.backend import Backend

MAX_REVISION = 2**31 - 1


async def put(request: Request) -> Response:
    """PUT /v1/recipes/{name}."""
    read_query(request, set())
    backend, name = _backend(request), _name(request)
    expected = _expected_revision(request)
    # Pictures are decoded while the body is read, so it takes a place like an inspection.
    with backend.engine.admitted():
        upload = await read_recipe(request)
        try:
            if upload.recipe is not None:
                await asyncio.to_thread(_check_model, backend.store.engine, name, upload.recipe)
        except ConfigError as error:
            raise FieldError(f"recipe: {error}") from error
        stored = await asyncio.to_thread(_store, backend, name, upload, request.state.actor, expected)
    return wire_response(_report(stored), {"etag": f'"{stored.revision}"'})


async def get(request: Request) -> Response:
    """GET /v1/recipes/{name}."""
    stored = await _find(request)
    return wire_response(_report(stored), {"etag": f'"{stored.revision}"'})


async def delete(request: Request) -> Response:
    """DELETE /v1/recipes/{name}."""
    read_query(request, set())
    await asyncio.to_thread(
        delete_recipe, _backend(request).store.engine, _name(request), request.state.actor
    )
    return Response(status_code=204)


async def list_all(request: Request) -> Response:
    """GET /v1/recipes."""
    read_query(request, set())
    found = await asyncio.to_thread(list_recipes, _backend(request).store.engine)
    return wire_response(RecipePage(recipes=tuple(map(_report, found))))


async def revisions(request: Request) -> Response:
    """GET /v1/recipes/{name}/revisions."""
    read_query(request, set())
    found = await asyncio.to_thread(list_revisions, _backend(request).store.engine, _name(request))
    return wire_response(RecipePage(recipes=tuple(map(_report, found))))


async def reference(request: Request) -> Response:
    """GET /v1/recipes/{name}/references/{number}."""
    longest = read_query(request, {"revision", "longest"}).get("longest")
    most = None if longest is None else read_number("longest", longest, most=LARGEST_SHOWN_PX)
    stored, number = await _stored(request), request.path_params["number"]
    try:
        chosen = stored.references[read_number("number", number, most=len(stored.references)) - 1]
    except FieldError as error:
        raise NotFoundError(
            f"recipe {stored.name!r} has no reference {number[:20]!r}; it has {len(stored.references)}"
        ) from error
    engine = _backend(request).engine
    data = await asyncio.to_thread(engine.goldens.read, chosen.sha256)
    if most is not None:
        max_pixels = _backend(request).config.max_pixels
        data = await engine.on_drawing_thread(lambda: shown_picture(data, most, max_pixels=max_pixels))
    return picture_response(data)


ROUTES = [
    Route("/v1/recipes", list_all, methods=["GET"]),
    Route("/v1/recipes/{name}", put, methods=["PUT"]),
    Route("/v1/recipes/{name}", get, methods=["GET"]),
    Route("/v1/recipes/{name}", delete, methods=["DELETE"]),
    Route("/v1/recipes/{name}/revisions", revisions, methods=["GET"]),
    Route("/v1/recipes/{name}/references/{number}", reference, methods=["GET"]),
]


def _store(
    backend: Backend, name: str, upload: RecipeUpload, actor: Actor, expected: int | None
) -> StoredRecipe:
    """Keep the pictures, then the revision that names them."""
    engine, goldens = backend.store.engine, backend.engine.goldens
    backend.store.pictures.check_room()
    settings = _settings(backend, name, upload.recipe)
    boards: tuple[tuple[float, float], ...] = ()
    sent = upload.references
    if upload.good:
        built = build_golden([_decoded(backend, data, n) for n, data in enumerate(upload.good, start=1)])
        boards = tuple((fit.residual_px, fit.difference) for fit in built.boards)
        sent = (("median", encode_png(built.picture)),)
    references = tuple(
        ReferenceFile(one, sha256, width, height, boards)
        for one, data in sent
        for sha256, width, height in [goldens.add(data, name=one)]
    )
    if upload.keeps_references:
        # Of the revision that is read here: one that comes in between must not lose its references.
        try:
            kept = get_recipe(engine, name)
            references, there = kept.references, kept.revision
        except NotFoundError:
            there = 0
        expected = there if expected is None else expected
    try:
        settings.check_zones([(one.width, one.height) for one in references])
    except ConfigError as error:
        raise FieldError(f"recipe: {error}") from error
    return put_recipe(
        engine,
        name,
        settings,
        references,
        actor,
        expected=expected,
        model_version=settings.model_version or production(engine),
    )


def _check_model(database: Engine, name: str, settings: Recipe) -> None:
    """That the settings go round no gate, and name classes of the version that will inspect by them."""
    check_put_pin(database, name, settings)
    version = settings.model_version
    if version is not None:
        check_pin(database, name, version)
    settings.check_classes(find_model(database, version or production(database)).facts.classes)


def _settings(backend: Backend, name: str, sent: Recipe | None) -> Recipe:
    """What was sent. Pictures that come alone neither wipe settings nor inherit zones of another picture."""
    if sent is not None:
        return sent
    try:
        there = get_recipe(backend.store.engine, name)
    except NotFoundError:
        return Recipe()
    if there.recipe != Recipe():
        raise FieldError(
            f"recipe: missing, and revision {there.revision} of {name!r} has settings",
            hint="send those of GET /v1/recipes/NAME along, where the zones fit the new pictures, "
            "or -F 'recipe={}' for none",
        )
    return there.recipe


def _decoded(backend: Backend, data: bytes, number: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    try:
        picture, intake = read_image(data, max_pixels=backend.config.max_pixels)
    except ImageError as error:
        raise type(error)(f"good board {number}: {error}") from error
    if intake.errors:
        raise ImageError(f"good board {number}: {'; '.join(intake.errors)}")
    return picture


def _report(stored: StoredRecipe) -> RecipeReport:
    base = f"/v1/recipes/{quote(stored.name, safe='')}/references"
    return RecipeReport(
        name=stored.name,
        revision=stored.revision,
        created=stored.created,
        actor=stored.actor,
        recipe=stored.recipe,
        references=tuple(
            RecipeReference(
                name=one.name,
                sha256=one.sha256,
                width=one.width,
                height=one.height,
                boards=tuple(BoardFitReport(residual_px=r, difference=d) for r, d in one.boards),
                picture=f"{base}/{number}?revision={stored.revision}",
            )
            for number, one in enumerate(stored.references, start=1)
        ),
    )


async def _find(request: Request) -> StoredRecipe:
    read_query(request, {"revision"})
    return await _stored(request)


async def _stored(request: Request) -> StoredRecipe:
    """The revision that the path and the query name."""
    revision = request.query_params.get("revision")
    number = None if revision is None else read_number("revision", revision, most=MAX_REVISION)
    return await asyncio.to_thread(get_recipe, _backend(request).store.engine, _name(request), number)


def _name(request: Request) -> str:
    return check_recipe_name(request.path_params["name"])


def _expected_revision(request: Request) -> int | None:
    """The revision in If-Match ("3"), 0 for If-None-Match: *; None without either."""
    if request.headers.get("if-none-match") == "*":
        return 0
    match = request.headers.get("if-match")
    if match is None or match == "*":
        return None
    number = match.strip().removeprefix("W/").strip('"')
    if not number.isdecimal() or len(number) > 10:
        raise FieldError(f'If-Match: {match[:40]!r}, wanted a revision in quotes, as "3"')
    return int(number)


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend
