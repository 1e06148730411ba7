"""Ids of inspections: 12 hex digits of milliseconds since 1970, then 80 random bits. They sort by time."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

logger = logging.getLogger("inspect_vit.serving")


class IdClock:
    """Gives ids that only ever grow, whatever the machine's clock does. Safe to use from several threads.

    A clock that is set back, or a machine that starts with a dead battery in an earlier year, goes on from
    the newest id there is: the order of inspections stays true, and nothing new looks old enough to be
    pruned. `created` in the report is the machine's clock as it is.
    """

    def __init__(self, newest: str | None, *, now_s: Callable[[], float] = time.time) -> None:
        self._last_ms = 0 if newest is None else _milliseconds(newest)
        self._now_s = now_s
        self._lock = threading.Lock()
        if self._last_ms > now_s() * 1000.0:
            logger.warning(
                "the clock says %s, the newest inspection is of %s; new ids go on from there: set the clock",
                _moment(int(now_s() * 1000)).isoformat(),
                _moment(self._last_ms).isoformat(),
            )

    def next(self) -> tuple[str, datetime]:
        """An id above every earlier one that cannot be guessed, and the moment it was made, in UTC."""
        now_s = self._now_s()
        with self._lock:
            self._last_ms = stamp_ms = max(int(now_s * 1000), self._last_ms + 1)
        return f"{stamp_ms:012x}{secrets.token_hex(10)}", datetime.fromtimestamp(now_s, UTC)


def is_id(text: str) -> bool:
    """Whether a text has the form of an id: 32 lower-case hex digits."""
    return len(text) == 32 and not set(text) - set("0123456789abcdef")


def day_of(inspection_id: str) -> str:
    """The UTC day of an id, as 2026-11-29."""
    return _moment(_milliseconds(inspection_id)).date().isoformat()


def moment_of(inspection_id: str) -> datetime:
    """When an id was made, in UTC, as far as the clock was right."""
    return _moment(_milliseconds(inspection_id))


def second_of(inspection_id: str) -> int:
    """When an id was made, whole seconds since 1970."""
    return _milliseconds(inspection_id) // 1000


def first_id_at(moment_s: float) -> str:
    """What sorts before every id of that moment or later; seconds since 1970."""
    return f"{max(0, int(moment_s * 1000)):012x}"


def ids_of_day(day: str) -> tuple[str, str]:
    """First and end (exclusive) of the ids of a UTC day."""
    first_s = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
    return first_id_at(first_s), first_id_at(first_s + 86_400)


def _milliseconds(inspection_id: str) -> int:
    return int(inspection_id[:12], 16)


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
