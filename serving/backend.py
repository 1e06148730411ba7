"""What the service does, without HTTP: inspect and store, look up, draw."""

from __future__ import annotations

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from inspect_vit.image_io import read_image
from inspect_vit.overlay import encode_png
from inspect_vit.results import Verdict
from serving.archive import pack_maps, unpack_result
from serving.attention import AttentionAsk, answer_attention, asked_cells
from serving.audit import record_alone
from serving.config import ServingConfig
from serving.drift import Observation, Watch
from serving.engine import AttentionMaps, Engine
from serving.errors import NotFoundError, VersionGoneError
from serving.metrics import Metrics
from serving.observing import observe
from serving.pictures import sha256_hex
from serving.recipe_lookup import recipe_of
from serving.rendering import draw_defect_map_colour, render
from serving.retention import Pruner, limits_of
from serving.roles import SERVICE, Actor
from serving.schemas import InspectionReport, RenderedName, answer, make_report
from serving.sessions import FailedLogins
from serving.store import Store, StoredInspection
from serving.uploads import Upload

NUM_ATTENTION_KEPT = 16
"""Attention kept in memory, so that looking at one level or head after the other computes it once."""

ClientGone = Callable[[], Awaitable[bool]]


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
            self.engine = Engine(config, self.metrics)
            record_alone(
                self.store.engine,
                SERVICE,
                "service_started",
                details={"keys": config.keys},
                model_version=self.engine.metadata.version,
            )
            self.watch = Watch(self.store.engine, self.metrics)
        except Exception:
            self.store.close()
            raise
        self.pruner = Pruner(self.store, limits_of(config), self.metrics)
        self._attention: OrderedDict[tuple[object, ...], AttentionMaps] = OrderedDict()
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def close(self) -> None:
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
        drawn = await self.draw(stored, upload.options.include, client_gone)
        pictures = {name: base64.b64encode(png).decode() for name, png in drawn.items()}
        return answer(stored.report, pictures=pictures or None), replayed

    async def _inspect_and_store(
        self, upload: Upload, digest: str, actor: Actor, client_gone: ClientGone
    ) -> tuple[StoredInspection, bool]:
        self.store.pictures.check_room()
        if upload.serial is None:
            return await self._inspect_new(upload, digest, actor, client_gone, duplicate=None)
        # One request of a picture at a time, so that the second finds whose picture it is.
        image_sha256 = await asyncio.to_thread(sha256_hex, upload.image)
        async with self._turn_of("picture", image_sha256):
            first = await asyncio.to_thread(self.store.first_sender, image_sha256)
            duplicate = None
            if first is not None and first[1] != upload.serial:
                duplicate = (
                    f"duplicate_frame: serial {first[1]!r} sent the same picture, inspection {first[0]}"
                )
            return await self._inspect_new(upload, digest, actor, client_gone, duplicate=duplicate)

    async def _inspect_new(
        self, upload: Upload, digest: str, actor: Actor, client_gone: ClientGone, *, duplicate: str | None
    ) -> tuple[StoredInspection, bool]:
        recipe = await asyncio.to_thread(
            recipe_of, upload, self.store.engine, loaded=self.engine.metadata.version
        )
        inspected = await self.engine.inspect(
            upload.image,
            upload.reference,
            min_score=upload.options.min_score,
            recipe=recipe,
            client_gone=client_gone,
        )
        framed = inspected.framed
        reference = upload.reference
        if framed.reference is not None:
            reference = await asyncio.to_thread(self.engine.goldens.read, framed.reference.sha256)
        result = inspected.result
        if duplicate is not None:
            # A camera never takes two pictures of the same bytes: this is not a picture of this board.
            self.metrics.duplicates.inc()
            result = replace(result, verdict=Verdict.ERROR, reasons=(duplicate,), defects=(), num_defects=0)
        inspection_id, created = self.store.new_id()

        def store(seen: Observation | None) -> tuple[StoredInspection, bool]:
            sight = None if seen is None else self.watch.look(seen)
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
                warnings=() if sight is None else sight.warnings,
            )
            stored, is_new = self.store.add(
                report,
                image=upload.image,
                reference=reference,
                maps=pack_maps(result),
                request_sha256=digest,
                idempotency_key=upload.idempotency_key,
            )
            if is_new and sight is not None:
                self.watch.keep(sight)
            return stored, is_new

        def watch_and_store() -> tuple[StoredInspection, bool]:
            if recipe is None:
                return store(None)
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
                return store(seen)

        # Shielded: a request that is cut off while it is being stored is stored whole.
        stored, is_new = await asyncio.shield(asyncio.to_thread(watch_and_store))
        if is_new:
            self.metrics.count_inspection(stored.report)
        return stored, not is_new

    async def draw(
        self, inspection: StoredInspection, names: Iterable[RenderedName], client_gone: ClientGone
    ) -> dict[RenderedName, bytes]:
        """Pictures of a stored inspection as PNG bytes. Ask for attention inside `engine.admitted()`.

        Raises:
            VersionGoneError: attention of an inspection that another model version made.
        """
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return {}
        attention = None
        if any(name.startswith("attention") for name in wanted):
            attention = await self._attention_maps(inspection, None, (), client_gone)

        def work() -> dict[RenderedName, bytes]:
            image, _ = read_image(self.store.read_image(inspection), max_pixels=self.config.max_pixels)
            result = unpack_result(inspection.report, self.store.read_maps(inspection))
            return {name: render(name, image, result, attention) for name in wanted}

        return await self.engine.on_drawing_thread(work)

    async def draw_attention(
        self, inspection: StoredInspection, ask: AttentionAsk, client_gone: ClientGone
    ) -> bytes:
        """Attention of all of the board, a defect or a point; call it inside `engine.admitted()`.

        Raises:
            FieldError: a point, defect or head that is not there.
            VersionGoneError: another model version made the inspection.
        """

        def read() -> NDArray[np.float32] | None:
            result = unpack_result(inspection.report, self.store.read_maps(inspection))
            return asked_cells(ask, inspection.report, result)

        query = await asyncio.to_thread(read)
        maps = await self._attention_maps(inspection, query, ask.rows, client_gone)

        def work() -> bytes:
            image, _ = read_image(self.store.read_image(inspection), max_pixels=self.config.max_pixels)
            return answer_attention(ask, image, maps, query)

        return await self.engine.on_drawing_thread(work)

    async def draw_defect_map_colour(self, inspection: StoredInspection) -> bytes:
        def work() -> bytes:
            image, _ = read_image(self.store.read_image(inspection), max_pixels=self.config.max_pixels)
            result = unpack_result(inspection.report, self.store.read_maps(inspection))
            return draw_defect_map_colour(image, result)

        return await self.engine.on_drawing_thread(work)

    async def draw_posted(self, data: bytes) -> bytes:
        """A posted picture as the model saw it: upright, 8 bit, as PNG bytes."""
        return await self.engine.on_drawing_thread(
            lambda: encode_png(read_image(data, max_pixels=self.config.max_pixels)[0])
        )

    def read_reference(self, inspection: StoredInspection) -> bytes:
        reference = self.store.read_reference(inspection)
        if reference is None:
            raise NotFoundError(f"inspection {inspection.report.id} was made without a reference")
        return reference

    async def _attention_maps(
        self,
        inspection: StoredInspection,
        query: NDArray[np.float32] | None,
        rows: tuple[object, ...],
        client_gone: ClientGone,
    ) -> AttentionMaps:
        """Attention of the asked rows, kept under `rows`, which names the query."""
        report, loaded = inspection.report, self.engine.metadata
        key = (report.id, *rows)
        maps = self._attention.get(key)
        if maps is None:
            if report.model.version != loaded.version:
                raise VersionGoneError(
                    f"inspection {report.id} was made by {report.model.name} {report.model.version}, "
                    f"and {loaded.name} {loaded.version} is loaded: its attention cannot be computed now",
                    hint="inspect the board again to see the attention of the loaded model",
                )
            image, reference = await asyncio.to_thread(
                lambda: (self.store.read_image(inspection), self.store.read_reference(inspection))
            )
            maps = await self.engine.attention(image, reference, query=query, client_gone=client_gone)
        self._attention[key] = maps
        self._attention.move_to_end(key)
        if len(self._attention) > NUM_ATTENTION_KEPT:
            self._attention.popitem(last=False)
        return maps

    def _turn_of(self, kind: str, name: str | None) -> AbstractAsyncContextManager[object]:
        """One request of a key or a picture at a time, so that the second finds what the first stored."""
        if name is None:
            return nullcontext()
        return self._locks.setdefault((kind, name), asyncio.Lock())
