"""The routes of the line's figures: stats, results of test, preview. Errors are raised, not answered here."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from serving.errors import FieldError
from serving.in_force import in_force
from serving.preview import make_preview, mode_of, read_reviewed
from serving.preview_schemas import Preview
from serving.recipes import get_recipe
from serving.registry import production
from serving.stats import make_stats
from serving.stats_csv import stats_csv
from serving.stats_reads import Span
from serving.stats_schemas import Bucket, Stats
from serving.tested import EXAMPLE, MAX_CSV_BYTES, import_results, read_rows
from serving.uploads import check_label, check_recipe_name
from serving.wire import read_choice, read_query, wire_response

if TYPE_CHECKING:
    from serving.backend import Backend

DEFAULT_SPAN = timedelta(days=30)
LONGEST_SPAN: dict[Bucket, timedelta] = {"hour": timedelta(days=32), "day": timedelta(days=400)}


async def stats(request: Request) -> Response:
    """GET /v1/stats."""
    return wire_response(await _stats(request))


async def stats_table(request: Request) -> Response:
    """GET /v1/stats.csv."""
    headers = {"cache-control": "no-store", "content-disposition": 'attachment; filename="stats.csv"'}
    return Response(stats_csv(await _stats(request)), media_type="text/csv", headers=headers)


async def test_results(request: Request) -> Response:
    """POST /v1/test-results."""
    read_query(request, set())
    text = await _read_table(request)
    engine, actor = _backend(request).store.engine, request.state.actor
    return wire_response(await asyncio.to_thread(lambda: import_results(engine, read_rows(text), actor)))


async def preview(request: Request) -> Response:
    """GET /v1/recipes/{name}/preview."""
    query = read_query(request, {"label"})
    label = check_label("label", query["label"]) if "label" in query else None
    name = check_recipe_name(request.path_params["name"])
    return wire_response(await asyncio.to_thread(_preview, _backend(request), name, label))


ROUTES = [
    Route("/v1/stats", stats, methods=["GET"]),
    Route("/v1/stats.csv", stats_table, methods=["GET"]),
    Route("/v1/test-results", test_results, methods=["POST"]),
    Route("/v1/recipes/{name}/preview", preview, methods=["GET"]),
]


async def _stats(request: Request) -> Stats:
    query = read_query(request, {"since", "until", "recipe", "bucket"})
    bucket: Literal["hour", "day"] = (
        "hour" if read_choice(query, "bucket", ["hour", "day"], "day") == "hour" else "day"
    )
    until = read_moment(query, "until") or datetime.now(UTC)
    since = read_moment(query, "since") or until - DEFAULT_SPAN
    if not since < until:
        raise FieldError(f"since: {since.isoformat()}, wanted a time before until, {until.isoformat()}")
    if until - since > LONGEST_SPAN[bucket]:
        days = LONGEST_SPAN[bucket].days
        raise FieldError(f"since: {(until - since).days} days, wanted at most {days} for bucket {bucket}")
    recipe = check_label("recipe", query["recipe"]) if "recipe" in query else None
    engine = _backend(request).store.engine
    return await asyncio.to_thread(make_stats, engine, Span(since, until, recipe), bucket)


async def _read_table(request: Request) -> str:
    """The body of a CSV. Raises FieldError: another type, too long, not UTF-8."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_CSV_BYTES:
            raise FieldError(f"body: more than {MAX_CSV_BYTES} bytes; send it in parts", hint=EXAMPLE)
    if content_type != "text/csv":
        raise FieldError("content-type: wanted text/csv", hint=EXAMPLE)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FieldError(f"body: byte {error.start} is not UTF-8", hint=EXAMPLE) from error


def read_moment(query: dict[str, str], name: str) -> datetime | None:
    """A time in the query, UTC where it names no zone; None without one. Raises FieldError."""
    text = query.get(name)
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise FieldError(f"{name}: {text[:40]!r}, wanted a time as 2026-11-30T08:00:00Z or a date") from error
    if not 1970 <= moment.year < 9999:
        raise FieldError(f"{name}: {text[:40]!r}, wanted a time after 1970 and before 9999")
    return moment


def _preview(backend: Backend, name: str, label: str | None) -> Preview:
    engine, models = backend.store.engine, backend.engine.models
    stored, version = get_recipe(engine, name), production(engine, name)
    boards = read_reviewed(engine, name, version)
    metadata = models.metadata(version)
    mode = mode_of(boards, has_references=bool(stored.references) or metadata.needs_reference)
    camera = stored.recipe.camera or backend.config.camera or None
    served = models.default.calibration
    thresholds, _ = in_force(metadata, stored, mode, served=served, camera=camera)
    return make_preview(
        engine,
        boards,
        recipe=name,
        model_version=version,
        mode=mode,
        thresholds=thresholds,
        targets=stored.recipe.targets,
        label=label,
    )


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend
