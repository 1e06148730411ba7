"""Keep as much as was asked for: delete the oldest inspections by age and by size, a few at a time.

A failure whose review is not done is never deleted. Rows go first, then the files that no other row of the
day names; a note in the day's folder lets the next round or start finish what was cut off in between.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Select, delete, func, not_, or_, select
from sqlalchemy.orm import Session

from serving.config import ServingConfig
from serving.database import InspectionRow
from serving.ids import day_of, first_id_at, ids_of_day
from serving.line_tables import BESIDE, PrunedDayRow
from serving.locking import alone
from serving.metrics import Metrics
from serving.queue_rows import forget, is_waiting
from serving.review_tables import QueueRow
from serving.store import Store, maps_name

BATCH = 50
"""Inspections deleted at once; whoever adds one waits for at most this."""
PAUSE_S = 0.05
ROUND_S = 60.0
LOCK_TIMEOUT_S = 10.0

logger = logging.getLogger("inspect_vit.serving")


@dataclass(frozen=True)
class Limits:
    """What is kept; None keeps everything."""

    keep_days: float | None
    keep_bytes: int | None


@dataclass(frozen=True)
class Pruned:
    """What was deleted, or would be."""

    num_inspections: int = 0
    num_bytes: int = 0
    first_day: str | None = None
    last_day: str | None = None

    def __add__(self, other: Pruned) -> Pruned:
        days = [day for day in (self.first_day, self.last_day, other.first_day, other.last_day) if day]
        return Pruned(
            self.num_inspections + other.num_inspections,
            self.num_bytes + other.num_bytes,
            min(days, default=None),
            max(days, default=None),
        )

    def __str__(self) -> str:
        told = f"{self.num_inspections} inspections, {self.num_bytes / 1e6:.1f} MB"
        return f"{told}, from {self.first_day} to {self.last_day}" if self.num_inspections else told


def limits_of(config: ServingConfig) -> Limits:
    keep_gb = config.keep_gb
    return Limits(config.keep_days, None if keep_gb is None else int(keep_gb * 1e9))


def may_go() -> ColumnElement[bool]:
    """Which inspections may be deleted at all: those that wait for no person's word."""
    is_free = select(QueueRow.inspection).where(QueueRow.inspection == InspectionRow.id, not_(is_waiting()))
    return is_free.correlate(InspectionRow).exists()


def prune(
    store: Store, limits: Limits, *, pause_s: float = PAUSE_S, stop: threading.Event | None = None
) -> Pruned:
    """Delete what is over the limits, oldest first; returns early when `stop` is set.

    Raises:
        SQLAlchemyError, OSError: what was deleted until then stays deleted, and the store is consistent.
    """
    stop = stop or threading.Event()
    total = Pruned()
    for day in store.pictures.days_half_pruned():
        _finish(store, day)
    cutoff, size = _cutoff(limits), _size_if_limited(store, limits)
    while not stop.is_set():
        batch = Pruned()
        if cutoff is not None:
            batch = _delete_batch(store, cutoff)
        if not batch.num_inspections:
            cutoff = None
            if limits.keep_bytes is None or size <= limits.keep_bytes:
                break
            batch = _delete_batch(store, None)
        if not batch.num_inspections:
            break
        total, size = total + batch, size - batch.num_bytes
        stop.wait(pause_s)
    return total


def plan(store: Store, limits: Limits) -> Pruned:
    """What `prune` would delete now. Nothing is changed."""
    total = Pruned()
    cutoff, size = _cutoff(limits), _size_if_limited(store, limits)
    with Session(store.engine) as session:
        ids = session.scalars(_oldest(None).with_only_columns(InspectionRow.id)).all()
        for day, ids_of_one in groupby(ids, day_of):
            waiting = list(ids_of_one)
            sizes = store.pictures.sizes(day)
            files = {row[0]: _files(row) for row in session.execute(_rows_of(day))}
            uses = Counter(name for names in files.values() for name in names)
            while waiting:
                going = [each for each in waiting[:BATCH] if cutoff is not None and each < cutoff]
                if not going:
                    if limits.keep_bytes is None or size <= limits.keep_bytes:
                        return total
                    going = waiting[:BATCH]
                waiting = waiting[len(going) :]
                uses.subtract(name for each in going for name in files[each])
                names = {name for each in going for name in files[each] if not uses[name]}
                freed = sum(sizes.get(name, 0) for name in names)
                total, size = total + Pruned(len(going), freed, day, day), size - freed
    return total


def count_kept(store: Store, limits: Limits) -> int:
    """Inspections older than the age limit that are kept because their review is not done."""
    cutoff = _cutoff(limits)
    if cutoff is None:
        return 0
    query = select(func.count()).select_from(InspectionRow).where(InspectionRow.id < cutoff, ~may_go())
    with Session(store.engine) as session:
        return session.scalar(query) or 0


class Pruner:
    """The thread that keeps a running server within its limits. Without limits there is none."""

    def __init__(self, store: Store, limits: Limits, metrics: Metrics, *, round_s: float = ROUND_S) -> None:
        self._store, self._limits, self._metrics, self._round_s = store, limits, metrics, round_s
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        if limits != Limits(None, None):
            self._thread = threading.Thread(target=self._run, name="pruner", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._round()
            except Exception:
                self._metrics.prune_failures.inc()
                logger.exception("retention: a round failed; the next is in %g s", self._round_s)
            self._stop.wait(self._round_s)

    def _round(self) -> None:
        pruned = prune(self._store, self._limits, stop=self._stop)
        self._metrics.pruned.inc(pruned.num_inspections)
        self._metrics.pruned_bytes.inc(pruned.num_bytes)
        size = self._store.pictures.size()
        self._metrics.store_bytes.set(size)
        if pruned.num_inspections:
            logger.info("retention: deleted %s; %.1f MB of pictures are left", pruned, size / 1e6)
        if self._limits.keep_bytes is not None and size > self._limits.keep_bytes:
            logger.warning(
                "retention: %.1f MB of pictures, wanted at most %.1f MB, but the rest is FAIL and ERROR "
                "whose review is not done, which is never deleted; review it or raise INSPECT_VIT_KEEP_GB",
                size / 1e6,
                self._limits.keep_bytes / 1e6,
            )


def _delete_batch(store: Store, before: str | None) -> Pruned:
    """Delete the oldest inspections that may go, of one day and below the id `before`."""
    with alone(store.writing_lock, timeout_s=LOCK_TIMEOUT_S) as held, Session(store.engine) as session:
        if not held:
            logger.warning("retention: the store is in use, by a backup maybe; what is left waits")
        rows = list(session.execute(_oldest(before).limit(BATCH))) if held else []
        if not rows:
            return Pruned()
        day = day_of(rows[0][0])
        rows = [row for row in rows if day_of(row[0]) == day]
        store.pictures.begin_pruning(day)
        gone = forget(session, [row[0] for row in rows])
        session.execute(delete(InspectionRow).where(InspectionRow.id.in_(gone)))
        for table in BESIDE:
            session.execute(delete(table).where(table.inspection.in_(gone)))
        session.merge(PrunedDayRow(day=day))
        session.commit()
        rows = [row for row in rows if row[0] in set(gone)]
        unused = {name for row in rows for name in _files(row) if not _is_used(session, day, name)}
        num_bytes = sum(store.pictures.remove(day, name) for name in sorted(unused))
        store.pictures.end_pruning(day)
    return Pruned(len(rows), num_bytes, day, day)


def _finish(store: Store, day: str) -> None:
    """Remove the files of rows that were deleted when a server died."""
    with alone(store.writing_lock, timeout_s=LOCK_TIMEOUT_S) as held:
        if held:
            num_swept = store.sweep_day(day)
            store.pictures.end_pruning(day)
            logger.info("retention: finished %s, %d files swept", day, num_swept)


def _oldest(before: str | None) -> Select[str, str, str | None]:
    """Rows that may go, oldest first, of what `_files` takes."""
    query = _columns().where(may_go()).order_by(InspectionRow.id)
    return query if before is None else query.where(InspectionRow.id < before)


def _rows_of(day: str) -> Select[str, str, str | None]:
    first, end = ids_of_day(day)
    return _columns().where(InspectionRow.id >= first, InspectionRow.id < end)


def _columns() -> Select[str, str, str | None]:
    return select(InspectionRow.id, InspectionRow.image_sha256, InspectionRow.reference_sha256)


def _files(row: Any) -> set[str]:
    return {maps_name(row[0]), row[1]} | ({row[2]} if row[2] else set())


def _is_used(session: Session, day: str, name: str) -> bool:
    """Whether a row of the day names a posted picture. Maps belong to one row, which is gone."""
    first, end = ids_of_day(day)
    named = or_(InspectionRow.image_sha256 == name, InspectionRow.reference_sha256 == name)
    query = select(InspectionRow.id).where(named, InspectionRow.id >= first, InspectionRow.id < end)
    return session.scalar(query.limit(1)) is not None


def _cutoff(limits: Limits) -> str | None:
    return None if limits.keep_days is None else first_id_at(time.time() - limits.keep_days * 86_400)


def _size_if_limited(store: Store, limits: Limits) -> int:
    return 0 if limits.keep_bytes is None else store.pictures.size()
