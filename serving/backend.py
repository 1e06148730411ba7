"""What the service does with a board, without HTTP: inspect it and store what was found."""

from __future__ import annotations

import asyncio
import base64
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import replace
from weakref import WeakValueDictionary

from sqlalchemy.orm import Session

from inspect_vit.report import reference_notes
from inspect_vit.results import InspectionResult, Verdict
from serving import challenges
from serving.archive import pack_maps
from serving.attempts import Sender, check_sender
from serving.audit import record_alone
from serving.config import ServingConfig
from serving.drawings import Drawings
from serving.drift import Observation, Watch
from serving.engine import Engine
from serving.errors import ModelMismatchError, OvertakenError, VersionGoneError
from serving.events import Events
from serving.explanations import ClientGone
from serving.first_sight import add_to_maps
from serving.job_events import JobChanges
from serving.metrics import Metrics
from serving.observing import observe
from serving.pictures import sha256_hex
from serving.recipe_uploads import recipe_of
from serving.rendering import attention_level
from serving.retention import Pruner, limits_of
from serving.roles import SERVICE, Actor
from serving.runner import Runner
from serving.schemas import (
    InspectionReport,
    answer,
    make_report,
)
from serving.sessions import FailedLogins
from serving.shadows import Shadows
from serving.store import Store, StoredInspection
from serving.tiles import Tiles
from serving.uploads import Upload

DUPLICATE = "duplicate_frame"
"""Begins the reason of a board whose picture came under another serial before."""


class Backend:
    """Store, model and counters of one server process.

    Raises:
        ConfigError, CheckpointError: from making it.
    """

    def __init__(self, config: ServingConfig) -> None:
        self.config = config
        self.metrics = Metrics()
        self.failed_logins = FailedLogins()
        self.store = Store(config)
        try:
            self.engine = Engine(config, self.store.engine, self.metrics)
            record_alone(
                self.store.engine,
                SERVICE,
                "service_started",
                details={"keys": config.keys},
                model_version=self.engine.models.default.metadata.version,
            )
            self.watch = Watch(self.store.engine, self.metrics)
        except Exception:
            self.store.close()
            raise
        self.drawings = Drawings(self.store, self.engine)
        self.events = Events(self.store.engine, more=[lambda: JobChanges(self.store.engine, config).look])
        self.tiles = Tiles(self.drawings)
        self.shadows = Shadows(self.store, self.engine)
        self.pruner = Pruner(self.store, limits_of(config), self.metrics)
        self.runner = Runner(self.store, config)
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def close(self) -> None:
        self.runner.close()
        self.engine.close()
        self.pruner.close()
        self.store.close()

    async def inspect(
        self, upload: Upload, actor: Actor, client_gone: ClientGone
    ) -> tuple[InspectionReport, bool]:
        """Inspect, store, answer; call it inside `engine.admitted()`. What this returns is on disk.

        Returns:
            The report, and whether it is the stored answer to an earlier request with the same key.

        Raises:
            ImageError, FieldError, ClientGoneError, StorageFullError, IdempotencyConflictError.
        """
        async with self._turn_of("key", upload.idempotency_key):
            digest = await asyncio.to_thread(upload.digest, actor.name)
            stored = None
            if upload.idempotency_key is not None:
                stored = await asyncio.to_thread(self.store.find_by_key, upload.idempotency_key, digest)
            replayed = stored is not None
            if stored is None:
                stored, replayed = await self._inspect_and_store(upload, digest, actor, client_gone)
        drawn = await self.drawings.draw(stored, upload.options.include, client_gone)
        pictures = {name: base64.b64encode(png).decode() for name, png in drawn.items()}
        return answer(stored.report, pictures=pictures or None), replayed

    async def _inspect_and_store(
        self, upload: Upload, digest: str, actor: Actor, client_gone: ClientGone
    ) -> tuple[StoredInspection, bool]:
        self.store.pictures.check_room()
        image_sha256 = await asyncio.to_thread(sha256_hex, upload.image)
        # One request of a picture at a time, so that the second finds whose picture it is.
        async with self._turn_of("picture", None if upload.serial is None else image_sha256):
            return await self._inspect_new(upload, digest, image_sha256, actor, client_gone)

    async def _inspect_new(
        self, upload: Upload, digest: str, image_sha256: str, actor: Actor, client_gone: ClientGone
    ) -> tuple[StoredInspection, bool]:
        recipe = await asyncio.to_thread(recipe_of, self.store.engine, upload)
        challenge = None
        if recipe is not None:
            challenge = await asyncio.to_thread(challenges.find_challenge, self.store.engine, recipe.name)
        shown = None if challenge is None else challenge.board(upload.serial)
        try:
            inspected = await self.engine.inspect(
                upload.image,
                upload.reference,
                # Of a challenge board every call counts, whatever is asked to be listed.
                min_score=upload.options.min_score if shown is None else None,
                recipe=recipe,
                want_attention=any(attention_level(name) for name in upload.options.include),
                client_gone=client_gone,
            )
        except VersionGoneError as error:
            raise ModelMismatchError(str(error), hint=error.hint) from error
        framed = inspected.framed
        reference = upload.reference
        if framed.reference is not None:
            reference = await asyncio.to_thread(self.engine.goldens.read, framed.reference.sha256)
        inspection_id, created = self.store.new_id()

        def decide() -> InspectionResult:
            """What becomes of the result by what is stored now."""
            first = None if upload.serial is None else self.store.first_sender(image_sha256)
            result = inspected.result
            if first is not None and first.serial != upload.serial:
                result = _duplicate(result, first, actor)
            if recipe is None or shown is not None:
                return result
            standing = challenges.find_challenge(self.store.engine, recipe.name)
            return challenges.while_locked(result, standing) if standing.locked else result

        def store(result: InspectionResult, seen: Observation | None) -> tuple[StoredInspection, bool]:
            sight = None if seen is None else self.watch.look(seen)
            overdue = () if challenge is None else challenge.warnings(created)
            report = make_report(
                result,
                inspected.intake,
                inspection_id=inspection_id,
                created=created,
                serial=upload.serial,
                recipe=upload.recipe,
                timings_ms=inspected.timings_ms,
                actor=actor.name,
                recipe_revision=None if recipe is None else recipe.revision,
                reference_name=None if framed.reference is None else framed.reference.name,
                in_mm=framed.in_mm,
                on_reference=framed.on_reference,
                warnings=(*reference_notes(result), *overdue, *(() if sight is None else sight.warnings)),
            )

            def beside(session: Session) -> None:
                # Not inspected is never the wrong answer; all else must still hold.
                if result.verdict is not Verdict.ERROR:
                    if upload.serial is not None:
                        check_sender(session, inspection_id, image_sha256=image_sha256, serial=upload.serial)
                    if recipe is not None and shown is None:
                        challenges.check_open(session, recipe.name)
                if challenge is not None and shown is not None:
                    run = challenges.judge(challenge, shown, result)
                    challenges.keep(session, run, inspection_id, model_version=result.model_version)

            stored, is_new = self.store.add(
                report,
                image=upload.image,
                reference=reference,
                maps=add_to_maps(pack_maps(result), inspected.sight),
                thresholds=result.thresholds,
                request_sha256=digest,
                idempotency_key=upload.idempotency_key,
                beside=beside,
            )
            if is_new and sight is not None:
                self.watch.keep(sight)
            return stored, is_new

        def watch_and_store() -> tuple[StoredInspection, bool]:
            result = decide()
            if recipe is None or shown is not None:
                # A challenge board says nothing of the line.
                return store(result, None)
            seen = observe(
                upload,
                recipe,
                inspected,
                result,
                inspection_id=inspection_id,
                created=created,
                camera=self.config.camera,
            )
            with self.watch.turn:
                return store(result, seen)

        def store_as_it_stands() -> tuple[StoredInspection, bool]:
            while True:
                with suppress(OvertakenError):
                    return watch_and_store()

        # Shielded: a request that is cut off while it is being stored is stored whole.
        stored, is_new = await asyncio.shield(asyncio.to_thread(store_as_it_stands))
        if is_new:
            if shown is None and upload.options.min_score is None:
                self.shadows.offer(stored, inspected.result)
            if inspected.attention is not None:
                self.drawings.explanations.remember(stored.report.id, inspected.attention)
            if any(reason.startswith(DUPLICATE) for reason in stored.report.reasons):
                self.metrics.duplicates.inc()
            self.metrics.count_inspection(stored.report)
        return stored, not is_new

    def _turn_of(self, kind: str, name: str | None) -> AbstractAsyncContextManager[object]:
        """One request of a key or a picture at a time, so that the second finds what the first stored."""
        if name is None:
            return nullcontext()
        return self._locks.setdefault((kind, name), asyncio.Lock())


def _duplicate(result: InspectionResult, first: Sender, actor: Actor) -> InspectionResult:
    """What becomes of a board whose picture came before, from `first`.

    A camera never takes two pictures of the same bytes: this is not a picture of this board.
    """
    # A line sees its own boards only, and need not learn of another's.
    whose = (
        f"serial {first.serial!r} sent the same picture, inspection {first.inspection}"
        if actor.sees_only in (None, first.actor)
        else "another serial came with the same picture"
    )
    return replace(
        result,
        verdict=Verdict.ERROR,
        reasons=(f"{DUPLICATE}: {whose}",),
        defects=(),
        num_defects=0,
        differences=(),
    )
