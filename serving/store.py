"""The store of inspections: rows in SQLite or PostgreSQL, pictures on disk.

An inspection is added in one order: pictures on disk and synced, then its row committed, then the caller may
answer. So a row always has its pictures, and a server killed in between leaves at most pictures without a
row, which the next start sweeps away. Removing goes the other way round: rows, then pictures.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import func, select, text
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session

from serving.attempts import Sender, attempt_of, first_sender, lock_serial
from serving.calls import calls_of
from serving.config import ServingConfig
from serving.database import Base, InspectionRow, is_disk_full, make_engine, migrate, sqlite_file
from serving.errors import (
    IdempotencyConflictError,
    NotFoundError,
    OvertakenError,
    StoreError,
    StoreUnavailableError,
)
from serving.ids import IdClock, day_of, ids_of_day
from serving.locking import shared, try_alone
from serving.model_files import sweep_half_written
from serving.pictures import PictureFiles, no_room, sha256_hex
from serving.queue_rows import queue_rows
from serving.schemas import StoredReport


@dataclass(frozen=True)
class StoredInspection:
    """One inspection as read back; its pictures are fetched through the store."""

    report: StoredReport
    image_sha256: str
    reference_sha256: str | None
    request_sha256: str

    @property
    def day(self) -> str:
        return day_of(self.report.id)


class Store:
    """One home folder: database and pictures. Safe to use from several threads and several processes.

    Raises:
        StoreError: the home cannot be written, or the database cannot be opened or is newer than this code.
    """

    def __init__(self, config: ServingConfig) -> None:
        home = config.home_dir
        try:
            home.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(home / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(
                f"cannot write to the home folder {home}: {error.strerror}; set INSPECT_VIT_HOME"
            ) from error
        self.pictures = PictureFiles(home / "pictures", min_free_bytes=int(config.min_free_mb * 1e6))
        self.engine = make_engine(config.sqlalchemy_url, wait_s=config.database_wait_s)
        self._audit_share = config.audit_share
        self.writing_lock = home / ".writing"
        """Shared by whoever adds, from the first file to the commit; held alone by whoever removes."""
        # Alone: migrate and sweep under the exclusive lock. Else: wait until whoever holds it has done so.
        # The shared lock is held until close(), so that a later server knows that this one may be writing.
        alone = try_alone(self._lock)
        if not alone:
            fcntl.flock(self._lock, fcntl.LOCK_SH)
        try:
            migrate(config.sqlalchemy_url)
            self._database = sqlite_file(self.engine)
            self._identity = None if self._database is None else _identity(self._database)
            self.num_swept = sum(map(self.sweep_day, self.pictures.days_to_sweep())) if alone else 0
            if alone:
                sweep_half_written(home)
            with self.engine.connect() as connection:
                self._ids = IdClock(connection.scalar(select(func.max(InspectionRow.id))))
        except Exception:
            self.close()
            raise
        fcntl.flock(self._lock, fcntl.LOCK_SH)

    def close(self) -> None:
        self.engine.dispose()
        os.close(self._lock)

    def new_id(self) -> tuple[str, datetime]:
        """An id above all in the store, and the moment it was made."""
        return self._ids.next()

    def check(self) -> None:
        """Raises SQLAlchemyError or StoreUnavailableError when the database does not answer or is gone."""
        self._check_identity()
        with self.engine.connect() as connection:
            connection.execute(text("SELECT 1"))

    def add(
        self,
        report: StoredReport,
        *,
        image: bytes,
        reference: bytes | None,
        maps: bytes,
        thresholds: Mapping[str, float],
        request_sha256: str,
        idempotency_key: str | None,
        beside: Callable[[Session], None] = lambda _: None,
    ) -> tuple[StoredInspection, bool]:
        """Store one inspection; when this returns it survives a kill and a power cut.

        Args:
            thresholds: by class, as they were used.
            beside: adds to the transaction what stands or falls with the inspection; it may refuse.

        Returns:
            The inspection, its report with the stage "store" added, and True; or, when the same request with
            the same key got in first, that one and False.

        Raises:
            StorageFullError, StoreUnavailableError, IdempotencyConflictError: nothing was stored.
            OvertakenError: from `beside`; nothing was stored either.
        """
        with shared(self.writing_lock):
            started = time.perf_counter()
            files = {sha256_hex(image): image, maps_name(report.id): maps}
            if reference is not None:
                files[sha256_hex(reference)] = reference
            self.pictures.write_all(day_of(report.id), files)
            spent_ms = round((time.perf_counter() - started) * 1000.0, 2)
            report = report.model_copy(update={"timings_ms": {**report.timings_ms, "store": spent_ms}})
            row = InspectionRow(
                id=report.id,
                verdict=report.verdict.value,
                serial=report.serial,
                recipe=report.recipe,
                recipe_revision=report.recipe_revision,
                model_version=report.model.version,
                image_sha256=sha256_hex(image),
                reference_sha256=None if reference is None else sha256_hex(reference),
                idempotency_key=idempotency_key,
                request_sha256=request_sha256,
                report=report.model_dump_json(exclude={"attempt"}),
                actor=report.actor,
            )
            try:
                queued = queue_rows(report, thresholds, audit_share=self._audit_share)
                self._commit(row, [*queued, *calls_of(report)], beside)
            except (SQLAlchemyError, StoreUnavailableError, OvertakenError, TimeoutError) as error:
                # The posted pictures stay: another inspection of the same day may share them.
                self.pictures.remove(day_of(report.id), maps_name(report.id))
                if isinstance(error, IntegrityError) and idempotency_key is not None:
                    first = self.find_by_key(idempotency_key, request_sha256)
                    if first is not None:
                        return first, False
                if isinstance(error, SQLAlchemyError) and is_disk_full(error):
                    raise no_room(error) from error
                raise
        return _to_inspection(row), True

    def _commit(self, row: InspectionRow, more: Sequence[Base], beside: Callable[[Session], None]) -> None:
        self._check_identity()
        with Session(self.engine, expire_on_commit=False) as session:
            if row.serial is not None:
                lock_serial(session, row.serial)
                row.attempt = attempt_of(row.serial, row.image_sha256)
            session.add_all([row, *more])
            session.flush()
            session.refresh(row, ["attempt"])
            beside(session)
            session.commit()

    def first_sender(self, image_sha256: str) -> Sender | None:
        """The first inspection of these picture bytes that has a serial, or None."""
        with Session(self.engine) as session:
            return first_sender(session, image_sha256)

    def get(self, inspection_id: str) -> StoredInspection:
        with Session(self.engine) as session:
            row = session.get(InspectionRow, inspection_id)
        if row is None:
            raise NotFoundError(
                f"there is no inspection {inspection_id!r}", hint="GET /v1/inspections lists them"
            )
        return _to_inspection(row)

    def find_by_key(self, idempotency_key: str, request_sha256: str) -> StoredInspection | None:
        """The inspection that was stored with this key, or None.

        Raises:
            IdempotencyConflictError: the key was used for a request with another body.
        """
        with Session(self.engine) as session:
            row = session.scalar(
                select(InspectionRow).where(InspectionRow.idempotency_key == idempotency_key)
            )
        if row is None:
            return None
        if row.request_sha256 != request_sha256:
            raise IdempotencyConflictError(
                f"Idempotency-Key {idempotency_key!r} belongs to inspection {row.id} of another request",
                hint="use a new key for each new request",
            )
        return _to_inspection(row)

    def page(
        self,
        *,
        limit: int,
        before: str | None = None,
        verdict: str | None = None,
        serial: str | None = None,
        actor: str | None = None,
    ) -> list[StoredInspection]:
        """Up to `limit` inspections, newest first, of those older than the id `before`."""
        query = select(InspectionRow).order_by(InspectionRow.id.desc()).limit(limit)
        if before is not None:
            query = query.where(InspectionRow.id < before)
        if verdict is not None:
            query = query.where(InspectionRow.verdict == verdict)
        if serial is not None:
            query = query.where(InspectionRow.serial == serial)
        if actor is not None:
            query = query.where(InspectionRow.actor == actor)
        with Session(self.engine) as session:
            return [_to_inspection(row) for row in session.scalars(query)]

    def read_image(self, inspection: StoredInspection) -> bytes:
        return self.pictures.read(inspection.day, inspection.image_sha256)

    def read_reference(self, inspection: StoredInspection) -> bytes | None:
        if inspection.reference_sha256 is None:
            return None
        return self.pictures.read(inspection.day, inspection.reference_sha256)

    def read_maps(self, inspection: StoredInspection) -> bytes:
        return self.pictures.read(inspection.day, maps_name(inspection.report.id))

    def sweep_day(self, day: str) -> int:
        """Remove the files of a day that no row names. Call it alone: no store open, or the writing lock."""
        query = select(InspectionRow.id, InspectionRow.image_sha256, InspectionRow.reference_sha256)
        first, end = ids_of_day(day)
        with Session(self.engine) as session:
            rows = session.execute(query.where(InspectionRow.id >= first, InspectionRow.id < end)).all()
        known = {name for row in rows for name in (maps_name(row[0]), row[1], row[2]) if name}
        return self.pictures.sweep(day, known)

    def _check_identity(self) -> None:
        """A SQLite file that was moved away still takes rows that nobody would find again."""
        if self._database is not None and _identity(self._database) != self._identity:
            raise StoreUnavailableError(
                f"the database {self._database} is no longer the file this server opened",
                hint="put it back, or start the server again",
            )


def maps_name(inspection_id: str) -> str:
    return f"{inspection_id}.npz"


def _to_inspection(row: InspectionRow) -> StoredInspection:
    return StoredInspection(
        report=StoredReport.model_validate_json(row.report).model_copy(update={"attempt": row.attempt}),
        image_sha256=row.image_sha256,
        reference_sha256=row.reference_sha256,
        request_sha256=row.request_sha256,
    )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
