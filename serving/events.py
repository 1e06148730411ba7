"""What happens, as it happens: one reader of the tables in each process tells all of its listeners.

Several servers may write to one store, and none tells the others. A row may become visible after one with a
later id or time, as transactions end in any order and clocks differ; so each look goes back some time and
leaves out what was told before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from serving.errors import BusyError
from serving.ids import first_id_at, moment_of
from serving.queue import items_of
from serving.queue_schemas import ReviewEvent
from serving.review_tables import QueueRow, ReviewRow

POLL_S = 1.0
OVERLAP = timedelta(seconds=60)
"""How much later than a later one a row may become visible and still be told."""
MAX_LISTENERS = 50
MAX_WAITING = 1000
"""Events that wait for a slow listener; with more it is cut off, and asks for the queue when it is back."""
RETRY_S = 5

logger = logging.getLogger("inspect_vit.serving")


@dataclass(frozen=True)
class Event:
    name: str
    """inspection, review or job."""
    data: str
    """JSON: `QueueItem`, `ReviewEvent` or `Job`."""


Look = Callable[[], list[Event]]
"""Finds what is new since it was made, or since it was called last."""


class Reader:
    """Finds what was added to a store since it was made, or since the last look."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        with Session(engine) as session:
            self._newest_id = session.scalar(select(func.max(QueueRow.inspection)))
            self._newest_at = session.scalar(select(func.max(ReviewRow.at)))
            self._told_ids = set(self._recent_ids(session))
            self._told_reviews = {place for place, _ in self._recent_reviews(session)}

    def look(self) -> list[Event]:
        """What is new: inspections, then reviews, each oldest first. Raises SQLAlchemyError."""
        with Session(self._engine) as session:
            ids, reviews = self._recent_ids(session), self._recent_reviews(session)
            items = items_of(session, [one for one in ids if one not in self._told_ids])
        new = [event for place, event in reviews if place not in self._told_reviews]
        # What the next look will find again, and no more.
        self._told_ids = set(ids)
        self._told_reviews = {place for place, _ in reviews}
        self._newest_id = max(ids, default=self._newest_id)
        self._newest_at = max((at for (at, _, _), _ in reviews), default=self._newest_at)
        return [
            *(Event("inspection", item.model_dump_json()) for item in items),
            *(Event("review", event.model_dump_json()) for event in new),
        ]

    def _recent_ids(self, session: Session) -> list[str]:
        query = select(QueueRow.inspection).order_by(QueueRow.inspection)
        if self._newest_id is not None:
            since = moment_of(self._newest_id) - OVERLAP
            query = query.where(QueueRow.inspection >= first_id_at(since.timestamp()))
        return list(session.scalars(query))

    def _recent_reviews(self, session: Session) -> list[tuple[tuple[str, str, int], ReviewEvent]]:
        """By (time, inspection, revision)."""
        query = select(
            ReviewRow.at, ReviewRow.inspection, ReviewRow.revision, ReviewRow.actor, QueueRow.state
        )
        query = query.join(QueueRow, QueueRow.inspection == ReviewRow.inspection)
        query = query.order_by(ReviewRow.at, ReviewRow.inspection, ReviewRow.revision)
        if self._newest_at is not None:
            since = datetime.fromisoformat(self._newest_at) - OVERLAP
            query = query.where(ReviewRow.at >= since.isoformat(timespec="milliseconds"))
        return [
            (
                (at, inspection, revision),
                ReviewEvent.model_validate(
                    {"id": inspection, "revision": revision, "state": state, "actor": actor}
                ),
            )
            for at, inspection, revision, actor, state in session.execute(query)
        ]


class Listener:
    """One client's waiting events."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Event | None] = asyncio.Queue()

    async def next(self, *, timeout_s: float) -> Event | None:
        """The next event; None: there will be none any more. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            return await self._waiting.get()

    def tell(self, event: Event) -> bool:
        """False: too many are waiting, and it is cut off."""
        if self._waiting.qsize() >= MAX_WAITING:
            self.end()
            return False
        self._waiting.put_nowait(event)
        return True

    def end(self) -> None:
        while not self._waiting.empty():
            self._waiting.get_nowait()
        self._waiting.put_nowait(None)


class Events:
    """The listeners of one process and the task that tells them; it runs while there are any.

    All but the looks at the database happens on the event loop.
    """

    def __init__(
        self, engine: Engine, *, poll_s: float = POLL_S, more: Sequence[Callable[[], Look]] = ()
    ) -> None:
        """more: each starts another look, beside that of Reader."""
        self._engine, self._poll_s, self._more = engine, poll_s, more
        self._listeners: set[Listener] = set()
        self._starting = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False

    async def open(self) -> Listener:
        """A listener that is told of everything from now on; `close` it.

        Raises:
            BusyError: there are MAX_LISTENERS.
            SQLAlchemyError: the database does not answer.
        """
        if len(self._listeners) >= MAX_LISTENERS:
            raise BusyError(
                f"{MAX_LISTENERS} clients listen to events, and there is room for no more",
                retry_after_s=RETRY_S,
                hint="close a page of the station, or ask GET /v1/queue now and then",
            )
        listener = Listener()
        self._listeners.add(listener)
        try:
            async with self._starting:
                if self._task is None:
                    looks = await asyncio.to_thread(self._start)
                    self._task = asyncio.create_task(self._tell(looks))
        except BaseException:
            self.close(listener)
            raise
        if self._is_stopped:
            listener.end()
        return listener

    def close(self, listener: Listener) -> None:
        """Forget a listener; with the last one the looking ends."""
        self._listeners.discard(listener)
        if not self._listeners and self._task is not None:
            self._task.cancel()
            self._task = None

    def stop(self) -> None:
        """End all streams, as the server waits for them before it ends."""
        self._is_stopped = True
        for listener in self._listeners:
            listener.end()

    def _start(self) -> list[Look]:
        return [Reader(self._engine).look, *(start() for start in self._more)]

    async def _tell(self, looks: list[Look]) -> None:
        while True:
            await asyncio.sleep(self._poll_s)
            try:
                found = await asyncio.to_thread(lambda: [event for look in looks for event in look()])
            except Exception:
                # The task that all listeners share must not end while they wait.
                logger.exception("events: a look at the store failed; the next is in %g s", self._poll_s)
                continue
            for event in found:
                self._listeners = {one for one in self._listeners if one.tell(event)}
