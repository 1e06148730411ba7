"""What the service does, without HTTP: inspect and store, look up, draw."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from inspect_vit.cells import cells_of
from inspect_vit.image_io import read_image
from inspect_vit.overlay import encode_png
from inspect_vit.results import InspectionResult, Verdict
from serving.archive import pack_maps, unpack_result
from serving.attention import TOP_CALL, AttentionAsk, asked_cells, chosen_map
from serving.audit import record_alone
from serving.config import ServingConfig
from serving.engine import Engine, Pixels
from serving.errors import FieldError, ModelMismatchError, NotFoundError
from serving.evidence import (
    NOTHING_CALLED,
    POINT_IS_NO_CALL,
    EvidenceAsk,
    Tested,
    evidence_report,
    map_ask,
    stored_map,
)
from serving.explanations import ClientGone, Explanations
from serving.kept import Key
from serving.metrics import Metrics
from serving.pictures import sha256_hex
from serving.recipes import StoredRecipe, get_recipe
from serving.rendering import attention_level, draw_defect_map_colour, draw_map, pack_map, render
from serving.retention import Pruner, limits_of
from serving.roles import SERVICE, Actor
from serving.schemas import (
    EvidenceMap,
    EvidenceReport,
    InspectionReport,
    RenderedName,
    answer,
    make_report,
)
from serving.sessions import FailedLogins
from serving.store import Store, StoredInspection
from serving.uploads import Upload


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
        except Exception:
            self.store.close()
            raise
        self.explanations = Explanations(self.store, self.engine)
        self.pruner = Pruner(self.store, limits_of(config), self.metrics)
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
        recipe = await asyncio.to_thread(self._recipe_of, upload)
        inspected = await self.engine.inspect(
            upload.image,
            upload.reference,
            min_score=upload.options.min_score,
            recipe=recipe,
            want_attention=any(attention_level(name) for name in upload.options.include),
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
        )

        def store() -> tuple[StoredInspection, bool]:
            return self.store.add(
                report,
                image=upload.image,
                reference=reference,
                maps=pack_maps(result),
                request_sha256=digest,
                idempotency_key=upload.idempotency_key,
            )

        # Shielded: a request that is cut off while it is being stored is stored whole.
        stored, is_new = await asyncio.shield(asyncio.to_thread(store))
        if is_new:
            if inspected.attention is not None:
                self.explanations.remember(stored.report.id, inspected.attention)
            self.metrics.count_inspection(stored.report)
        return stored, not is_new

    def _recipe_of(self, upload: Upload) -> StoredRecipe | None:
        """The recipe that a board is to be inspected by.

        Raises:
            FieldError: there is none of that name, or it has references and one was posted.
            ModelMismatchError: it is pinned to a version that is not loaded.
        """
        if upload.recipe is None:
            return None
        try:
            stored = get_recipe(self.store.engine, upload.recipe)
        except NotFoundError as error:
            raise FieldError(
                f"recipe: {error}", hint="PUT /v1/recipes/NAME makes one; GET /v1/recipes lists those in use"
            ) from error
        if stored.references and upload.reference is not None:
            raise FieldError(
                f"reference: recipe {stored.name!r} has {len(stored.references)} of its own",
                hint="post the board alone, or take the references out of the recipe",
            )
        pinned, loaded = stored.recipe.model_version, self.engine.metadata.version
        if pinned is not None and pinned != loaded:
            raise ModelMismatchError(
                f"recipe {stored.name!r} is pinned to model version {pinned}, and {loaded} is loaded",
                hint="serve that version, or store the recipe anew with the one that is loaded",
            )
        return stored

    async def draw(
        self, inspection: StoredInspection, names: Iterable[RenderedName], client_gone: ClientGone
    ) -> dict[RenderedName, bytes]:
        """Pictures of a stored inspection as PNG bytes. Ask for attention inside `engine.admitted()`.

        Raises:
            VersionGoneError: attention of an inspection that another model version made.
        """
        wanted = list(dict.fromkeys(names))
        levels = {name: level for name in wanted if (level := attention_level(name))}
        drawn: dict[RenderedName, bytes] = {}
        for name, level in levels.items():
            drawn[name], _ = await self.draw_attention(inspection, AttentionAsk(level=level), client_gone)

        def work() -> dict[RenderedName, bytes]:
            image, result = self._image(inspection), self._result(inspection)
            return {name: render(name, image, result) for name in wanted if name not in levels}

        if len(drawn) < len(wanted):
            drawn |= await self.engine.on_drawing_thread(work)
        return {name: drawn[name] for name in wanted}

    async def draw_attention(
        self, inspection: StoredInspection, ask: AttentionAsk, client_gone: ClientGone
    ) -> tuple[bytes, Tested]:
        """A map of all of the board, a defect or a point, and whether it can be believed.

        Call it inside `engine.admitted()`.

        Raises:
            FieldError: a point, defect, head or crop that is not there.
            VersionGoneError: another model version made the inspection.
        """
        result = await asyncio.to_thread(self._result, inspection)
        query = asked_cells(ask, result)
        maps = await self.explanations.maps(inspection, result, ask, query, client_gone)
        values = chosen_map(ask, maps, cells_of(result.height, result.width))
        tested = await self._test(inspection, result, ask, values, client_gone)
        if ask.format == "npz":
            return await asyncio.to_thread(pack_map, ask, values, query), tested

        def work() -> bytes:
            image = self._image(inspection)
            limit = self.config.max_pixels
            return draw_map(ask, image, values, query, note=tested.note, max_pixels=limit)

        return await self.engine.on_drawing_thread(work), tested

    async def evidence(
        self, inspection: StoredInspection, ask: EvidenceAsk, client_gone: ClientGone
    ) -> EvidenceReport:
        """Whether maps of a defect can be believed; call it inside `engine.admitted()`.

        Raises:
            FieldError: a defect that is not there.
            VersionGoneError: another model version made the inspection.
        """
        result = await asyncio.to_thread(self._result, inspection)
        asked_cells(AttentionAsk(defect=ask.defect), result)
        number = ask.defect or TOP_CALL
        maps: dict[Key, NDArray[np.float32]] = {}
        names: dict[EvidenceMap, Key] = {}
        for name in ask.maps if result.defects else ():
            asked = map_ask(name, ask.defect)
            if asked is None:
                names[name] = (name,)
                maps[names[name]] = stored_map(name, result, number)
                continue
            query = asked_cells(asked, result)
            computed = await self.explanations.maps(inspection, result, asked, query, client_gone)
            names[name] = (*asked.name, *asked.rows)
            maps[names[name]] = chosen_map(asked, computed, cells_of(result.height, result.width))
        trials = {}
        if maps:
            trials = await self.explanations.trials(inspection, result, number, maps, client_gone)
        found = {name: trials[key] for name, key in names.items()}
        return evidence_report(inspection.report.id, result, ask, found)

    async def _test(
        self,
        inspection: StoredInspection,
        result: InspectionResult,
        ask: AttentionAsk,
        values: NDArray[np.float32],
        client_gone: ClientGone,
    ) -> Tested:
        """Try the map that is opened on the defect that it is of; of all heads, try their mean."""
        if ask.tested is None:
            return Tested(None, POINT_IS_NO_CALL)
        if not result.defects:
            return Tested(None, NOTHING_CALLED)
        name = (*ask.name, *ask.rows)
        evidence = np.asarray(values.mean(0) if ask.head == "all" else values, np.float32)
        trials = await self.explanations.trials(inspection, result, ask.tested, {name: evidence}, client_gone)
        return Tested(trials[name], trials[name].words)

    async def draw_defect_map_colour(self, inspection: StoredInspection) -> bytes:
        def work() -> bytes:
            return draw_defect_map_colour(self._image(inspection), self._result(inspection))

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

    def _image(self, inspection: StoredInspection) -> Pixels:
        return read_image(self.store.read_image(inspection), max_pixels=self.config.max_pixels)[0]

    def _result(self, inspection: StoredInspection) -> InspectionResult:
        return unpack_result(inspection.report, self.store.read_maps(inspection))

    def _turn_of(self, kind: str, name: str | None) -> AbstractAsyncContextManager[object]:
        """One request of a key or a picture at a time, so that the second finds what the first stored."""
        if name is None:
            return nullcontext()
        return self._locks.setdefault((kind, name), asyncio.Lock())
