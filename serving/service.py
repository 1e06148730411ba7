"""InspectionService: the BentoML service, and the one place that maps errors to HTTP.

The framework supervises the worker, answers /livez and /readyz and packs the bento; the routes are our own
Starlette app, mounted at "/". Torch is imported when the worker makes the service, never in the supervisor.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

# Before the framework is imported: it reads them then. Nothing this service does leaves the machine.
os.environ["BENTOML_DO_NOT_TRACK"] = "true"
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import bentoml
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route

from inspect_vit.errors import (
    CheckpointError,
    ConfigError,
    ImageError,
    ImageTooLargeError,
    OutOfMemoryError,
    UnsupportedImageError,
)
from serving import (
    accounts,
    alarm_routes,
    challenge_routes,
    dataset_routes,
    errors,
    escape_routes,
    event_routes,
    job_routes,
    line_routes,
    model_routes,
    picture_routes,
    queue_routes,
    recipe_routes,
    review_routes,
    routes,
    station,
)
from serving.access import CheckAccess
from serving.config import from_environment
from serving.headers import SecurityHeaders
from serving.middleware import WHAT_THERE_IS, AnswerErrors, LimitBody, RefuseLineBreaks
from serving.pictures import NO_ROOM, no_room
from serving.schemas import ErrorDetail, ErrorReport
from serving.scrubbing import scrubbed

if TYPE_CHECKING:
    from serving.backend import Backend

REQUEST_TIMEOUT_S = 600
"""The framework cuts a request off after this; the queue answers 503 long before."""

FRAMEWORK_PAGES = ("/livez", "/readyz")
"""Answered by the framework when they are asked for with GET; with other methods they come here."""
SUPERVISOR_CHECK_S = 0.5
ENDS_WITHIN_S = 15.0
"""After which a worker without a supervisor is ended the hard way: its grace period and some."""
SUPERVISOR = "PCB_INSPECTION_SUPERVISOR"
"""Process that started the worker. It imports this file first, and its workers inherit the variable."""
if bentoml.server_context.worker_index is None:
    os.environ[SUPERVISOR] = str(os.getpid())
STORE_RETRY_S = 5
"""What a client is told to wait while the database or the disk is not there."""

ANSWERS: dict[type[Exception], tuple[int, str]] = {
    ImageTooLargeError: (413, ImageTooLargeError.code),
    UnsupportedImageError: (415, UnsupportedImageError.code),
    ImageError: (400, ImageError.code),
    errors.MultipartError: (400, "bad_multipart"),
    errors.UnauthorizedError: (401, "unauthorized"),
    errors.ForbiddenError: (403, "forbidden"),
    errors.NotFoundError: (404, "not_found"),
    errors.StalledError: (408, "stalled"),
    errors.IdempotencyConflictError: (409, "idempotency_conflict"),
    errors.RevisionConflictError: (409, "revision_conflict"),
    errors.ReviewConflictError: (409, "conflict"),
    errors.ThresholdRefusedError: (409, "threshold_refused"),
    errors.ModelMismatchError: (409, "model_not_loaded"),
    errors.ModelRefusedError: (409, "model_refused"),
    CheckpointError: (409, "model_refused"),
    errors.GateRefusedError: (409, "gate_refused"),
    errors.JobStateError: (409, "job_state"),
    errors.VersionGoneError: (410, "model_version_gone"),
    errors.BodyTooLargeError: (413, "body_too_large"),
    errors.NotMultipartError: (415, "not_multipart"),
    errors.FieldError: (422, "bad_field"),
    ConfigError: (422, "bad_setting"),
    errors.TooManyLoginsError: (429, "too_many_logins"),
    errors.ClientGoneError: (499, "client_gone"),
    ClientDisconnect: (499, "client_gone"),
    errors.BusyError: (503, "busy"),
    OutOfMemoryError: (503, "out_of_memory"),
    errors.StoreUnavailableError: (503, "store_unavailable"),
    SQLAlchemyError: (503, "database_unavailable"),
    OSError: (503, "store_unavailable"),
    errors.StorageFullError: (507, "storage_full"),
}
"""Status and code of each error; the first class that fits counts."""

logger = logging.getLogger("inspect_vit.serving")


def error_response(error: Exception) -> Response:
    """The JSON answer to an error. What we did not foresee is logged with its traceback and answered 500."""
    headers: dict[str, str] = {}
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        error = no_room(error)
    message, hint = str(error), getattr(error, "hint", "")
    if isinstance(error, HTTPException):
        status, code, message = error.status_code, "http_error", error.detail
        headers.update(error.headers or {})
    else:
        status, code = next(
            (answer for kind, answer in ANSWERS.items() if isinstance(error, kind)), (500, "internal_error")
        )
    if isinstance(error, errors.BusyError | errors.TooManyLoginsError):
        headers["retry-after"] = str(error.retry_after_s)
    elif status == 503:
        headers["retry-after"] = str(STORE_RETRY_S)
    if isinstance(error, errors.UnauthorizedError):
        headers["www-authenticate"] = 'Bearer realm="inspect-vit"'
    if code == "internal_error" or isinstance(error, SQLAlchemyError | OSError):
        logger.error("a request failed", exc_info=error)
        message = "the request could not be answered; the server's log says why"
    message, hint = (_without_paths(text, error) for text in (message, hint))
    body = ErrorReport(error=ErrorDetail(code=code, message=message, hint=hint))
    return Response(
        body.model_dump_json(), status_code=status, headers=headers, media_type="application/json"
    )


def _without_paths(text: str, error: Exception) -> str:
    """An error's text without the server's folders; the path that a client asked for is its own."""
    if isinstance(error, errors.NoRouteError | HTTPException):
        return text
    # Before the service is up there is no backend yet.
    is_up = hasattr(app.state, "backend")
    return scrubbed(text, app.state.backend.config if is_up else from_environment(os.environ))


async def no_such_route(request: Request) -> Response:
    """Every path that nobody else answers: 404, or 405 with the methods that are answered."""
    allowed = {
        method
        for route in app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is Match.PARTIAL
        for method in route.methods or ()
    }
    if request.url.path in FRAMEWORK_PAGES:
        allowed = {"GET"}
    if allowed:
        wanted = ", ".join(sorted(allowed))
        raise HTTPException(405, f"{request.url.path} takes {wanted}", headers={"allow": wanted})
    raise errors.NoRouteError(f"there is nothing at {request.url.path}", hint=WHAT_THERE_IS)


async def answer_http_exception(_: Request, error: Exception) -> Response:
    return error_response(error)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """The framework enters this after it made the service and leaves it before it drops the service."""
    with event_routes.told_of_the_end(app.state.backend.events.stop):
        yield
    await app.state.backend.shadows.close()
    app.state.backend.close()


app = Starlette(
    lifespan=lifespan,
    routes=[
        *routes.ROUTES,
        *recipe_routes.ROUTES,
        *alarm_routes.ROUTES,
        *review_routes.ROUTES,
        *queue_routes.ROUTES,
        *event_routes.ROUTES,
        *picture_routes.ROUTES,
        *escape_routes.ROUTES,
        *challenge_routes.ROUTES,
        *line_routes.ROUTES,
        *model_routes.ROUTES,
        *dataset_routes.ROUTES,
        *job_routes.ROUTES,
        *accounts.ROUTES,
        *station.ROUTES,
        Route("/{path:path}", no_such_route, methods=["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
    ],
    middleware=[
        Middleware(AnswerErrors, to_response=error_response),
        Middleware(CheckAccess),
        Middleware(LimitBody),
    ],
    exception_handlers={HTTPException: answer_http_exception},
)


def _log_to_stderr() -> None:
    ours = logging.getLogger("inspect_vit")
    if not ours.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s [%(levelname)s] [inspect_vit] %(message)s"))
        ours.addHandler(handler)
        ours.setLevel(logging.INFO)
        ours.propagate = False


def _end_with_supervisor(supervisor: int) -> None:
    """A supervisor that is killed cannot stop its worker, which would hold the port for ever.

    It may be gone before this is called: its number is the one it told, not that of the parent by then.
    """
    while os.getppid() == supervisor:
        time.sleep(SUPERVISOR_CHECK_S)
    logger.error("the supervisor is gone; the worker ends")
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ENDS_WITHIN_S)
    os.kill(os.getpid(), signal.SIGKILL)


@bentoml.asgi_app(app, path="/")
@bentoml.service(
    name="inspect_vit",
    workers=1,
    traffic={"timeout": REQUEST_TIMEOUT_S},
    http={"host": "127.0.0.1", "port": 3000},
    metrics={"enabled": False},
)
class InspectionService:
    """PCB inspection: POST /v1/inspect, stored inspections and their pictures, the QA station.

    Settings are the INSPECT_VIT_* environment variables of `serving.config.ServingConfig`.
    """

    def __init__(self) -> None:
        _log_to_stderr()
        if bentoml.server_context.worker_index is not None:
            supervisor = int(os.environ.get(SUPERVISOR, os.getppid()))
            threading.Thread(target=_end_with_supervisor, args=(supervisor,), daemon=True).start()
        from serving.backend import Backend

        self.backend: Backend = Backend(from_environment(os.environ))
        app.state.backend = self.backend
        inspector = self.backend.engine.models.default
        logger.info(
            "model %s %s on %s, home %s, %d orphan files swept",
            inspector.metadata.name,
            inspector.metadata.version,
            inspector.device,
            self.backend.config.home_dir,
            self.backend.store.num_swept,
        )

    def __is_ready__(self) -> bool:
        """True while the database answers; the model was loaded and warmed up before the port was served."""
        try:
            self.backend.store.check()
        except (SQLAlchemyError, errors.StoreUnavailableError):
            logger.exception("the database does not answer")
            return False
        return True


# Around the framework's own routes too, such as /readyz. Its types hide
# that the class is a service now.
cast(Any, InspectionService).add_asgi_middleware(SecurityHeaders)
cast(Any, InspectionService).add_asgi_middleware(RefuseLineBreaks, to_response=error_response)
