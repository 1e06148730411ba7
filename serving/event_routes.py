"""GET /v1/events: server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from serving.access import identify, key_in, token_in
from serving.errors import UnauthorizedError
from serving.events import Events, Listener
from serving.wire import read_query

if TYPE_CHECKING:
    from serving.backend import Backend

COMMENT_S = 15.0
"""After so long without an event a comment says that the line is open; a revoked key is noticed by then."""
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
"""The second asks proxies of nginx's kind to pass each event on at once."""


async def listen(request: Request) -> Response:
    """GET /v1/events."""
    read_query(request, set())
    backend: Backend = request.app.state.backend

    def may_listen() -> bool:
        if backend.config.keys == "off":
            return True
        try:
            identify(backend.store.engine, key_in(request.headers), token_in(request.headers))
        except UnauthorizedError:
            return False
        return True

    return EventStream(backend.events, await backend.events.open(), may_listen)


ROUTES = [Route("/v1/events", listen, methods=["GET"])]


class EventStream(StreamingResponse):
    """Tells one listener's events until its client goes or may no longer listen, or the server stops."""

    def __init__(self, events: Events, listener: Listener, may_listen: Callable[[], bool]) -> None:
        super().__init__(told_while(may_listen, listener), media_type="text/event-stream", headers=HEADERS)
        self._events, self._listener = events, listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._events.close(self._listener)


async def told_while(may_listen: Callable[[], bool], listener: Listener) -> AsyncIterator[str]:
    """The lines of a stream. Whether its key or session still works is asked every COMMENT_S."""
    yield ": everything from now on\n\n"
    asked = time.monotonic()
    while True:
        event, is_open = None, True
        try:
            event = await listener.next(timeout_s=COMMENT_S)
            is_open = event is not None
        except TimeoutError:
            pass
        if is_open and time.monotonic() - asked >= COMMENT_S:
            # A database that does not answer tells nothing new either.
            with suppress(SQLAlchemyError):
                is_open = await asyncio.to_thread(may_listen)
            asked = time.monotonic()
        if not is_open:
            return
        yield ": the line is open\n\n" if event is None else f"event: {event.name}\ndata: {event.data}\n\n"


@contextmanager
def told_of_the_end(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on the event loop when the server is asked to end, before it does what it does then.

    The server waits for open answers before it tells the application anything.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    earlier = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, frame: Any) -> None:
        loop.call_soon_threadsafe(stop)
        then = earlier[signal.Signals(number)]
        if callable(then):
            then(number, frame)

    for number in earlier:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
