"""ASGI wrappers around our routes.

The outer one never raises: an exception that leaves a mounted app hangs the request until
the framework's timeout.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.config import ServingConfig
from serving.errors import BodyTooLargeError, NoRouteError, StalledError
from serving.metrics import Metrics

NUM_DRAINED_BODIES = 4
"""A refused body is read up to this many times the limit, so that its sender gets to read the answer."""
NO_ROUTE = "(none)"
WHAT_THERE_IS = "/docs.json lists what there is"
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

logger = logging.getLogger("inspect_vit.serving")


class AnswerErrors:
    """Turn every exception into the response that `to_response` makes of it, and count the request."""

    def __init__(self, app: ASGIApp, to_response: Callable[[Exception], Response]) -> None:
        self.app = app
        self.to_response = to_response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0

        async def send_noting_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_noting_status)
        except Exception as error:
            if status:
                logger.exception("%s %s broke off its answer", scope["method"], scope["path"])
            else:
                await self.to_response(error)(scope, receive, send_noting_status)
        route = scope.get("route")
        metrics: Metrics = scope["app"].state.backend.metrics
        metrics.count_request(
            route=route.path if isinstance(route, Route) else NO_ROUTE,
            method=scope["method"] if scope["method"] in METHODS else "OTHER",
            status=status,
            seconds=time.perf_counter() - started,
        )


class LimitBody:
    """Refuse bodies over the limit, by their Content-Length and by counting, and bodies that stop coming."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        config: ServingConfig = scope["app"].state.backend.config
        limit = config.max_upload_bytes
        num_bytes, is_whole = 0, False

        async def receive_counting() -> Message:
            nonlocal num_bytes, is_whole
            try:
                # After the body only a disconnect is waited for, as long as it takes.
                async with asyncio.timeout(None if is_whole else config.stall_s):
                    message = await receive()
            except TimeoutError:
                raise _stalled(num_bytes, config.stall_s) from None
            is_whole = not message.get("more_body", False)
            num_bytes += len(message.get("body", b""))
            if num_bytes > limit:
                await _drain(receive, message, limit)
                raise _too_large(limit)
            return message

        announced = _content_length(scope)
        if announced > limit:
            if announced <= NUM_DRAINED_BODIES * limit:
                await _drain(receive, {"type": "http.request", "more_body": True}, limit)
            raise _too_large(limit)
        await self.app(scope, receive_counting, send)


class RefuseLineBreaks:
    """Answer 404 to a path with a line break, ourselves: the framework would not hand it on to our routes,
    because its pattern for "any path" ends at the break, and would answer plain text."""

    def __init__(self, app: ASGIApp, to_response: Callable[[Exception], Response]) -> None:
        self.app = app
        self.to_response = to_response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and "\n" in scope["path"]:
            error = NoRouteError(f"there is nothing at {scope['path'][:200]!r}", hint=WHAT_THERE_IS)
            await self.to_response(error)(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def _content_length(scope: Scope) -> int:
    value = dict(scope["headers"]).get(b"content-length", b"0")
    return int(value) if value.isdigit() else 0


async def drain(scope: Scope, receive: Receive, *, limit: int) -> None:
    """Read the rest of a body that nobody wants, up to some bytes, so that its sender gets to read why."""
    if _content_length(scope) <= limit:
        await _drain(receive, {"type": "http.request", "more_body": True}, limit)


async def _drain(receive: Receive, message: Message, limit: int) -> None:
    num_bytes = 0
    while (
        message["type"] == "http.request"
        and message.get("more_body")
        and num_bytes < NUM_DRAINED_BODIES * limit
    ):
        message = await receive()
        num_bytes += len(message.get("body", b""))


def _stalled(num_bytes: int, stall_s: float) -> StalledError:
    return StalledError(
        f"nothing came for {stall_s:g} s after {num_bytes} bytes of the body", hint="send the request again"
    )


def _too_large(limit: int) -> BodyTooLargeError:
    return BodyTooLargeError(
        f"the request is larger than {limit / 1e6:g} MB", hint="the limit is set by INSPECT_VIT_MAX_UPLOAD_MB"
    )
