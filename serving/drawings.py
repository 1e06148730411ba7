"""Pictures of stored inspections, and whether they can be believed: drawn when they are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from inspect_vit.cells import cells_of
from inspect_vit.drawing import Rect
from inspect_vit.image_io import read_image
from inspect_vit.overlay import encode_png
from inspect_vit.results import InspectionResult
from serving.archive import unpack_result
from serving.attention import TOP_CALL, AttentionAsk, asked_cells, chosen_map
from serving.engine import Engine, Pixels
from serving.errors import NotFoundError
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
from serving.rendering import attention_level, draw_defect_map_colour, draw_map, pack_map, render
from serving.schemas import EvidenceMap, EvidenceReport, RenderedName
from serving.spot_schemas import Spot
from serving.spots import spot_report
from serving.store import Store, StoredInspection


class Drawings:
    """Draws from the store and asks the model where a picture needs it."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self.store = store
        self.engine = engine
        self.explanations = Explanations(store, engine)

    async def draw(
        self, inspection: StoredInspection, names: Iterable[RenderedName], client_gone: ClientGone
    ) -> dict[RenderedName, bytes]:
        """Pictures of a stored inspection as PNG bytes. Ask for attention inside `engine.admitted()`.

        Raises:
            VersionGoneError: attention of an inspection whose model version is not on this server.
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
            VersionGoneError: the model version that made the inspection is not on this server.
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
            limit = self.engine.config.max_pixels
            return draw_map(ask, image, values, query, note=tested.note, max_pixels=limit)

        return await self.engine.on_drawing_thread(work), tested

    async def evidence(
        self, inspection: StoredInspection, ask: EvidenceAsk, client_gone: ClientGone
    ) -> EvidenceReport:
        """Whether maps of a defect can be believed; call it inside `engine.admitted()`.

        Raises:
            FieldError: a defect that is not there.
            VersionGoneError: the model version that made the inspection is not on this server.
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

    async def spot(self, inspection: StoredInspection, box: Rect, client_gone: ClientGone) -> Spot:
        """What the model that made an inspection sees in a box of it; call it inside `engine.admitted()`.

        Raises:
            VersionGoneError: another model version made the inspection.
        """
        result = await asyncio.to_thread(self._result, inspection)
        seen = await self.explanations.spot(inspection, result, box, client_gone)
        return spot_report(inspection.report, result, box, seen)

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
            lambda: encode_png(read_image(data, max_pixels=self.engine.config.max_pixels)[0])
        )

    def read_reference(self, inspection: StoredInspection) -> bytes:
        reference = self.store.read_reference(inspection)
        if reference is None:
            raise NotFoundError(f"inspection {inspection.report.id} was made without a reference")
        return reference

    def _image(self, inspection: StoredInspection) -> Pixels:
        return read_image(self.store.read_image(inspection), max_pixels=self.engine.config.max_pixels)[0]

    def _result(self, inspection: StoredInspection) -> InspectionResult:
        return unpack_result(inspection.report, self.store.read_maps(inspection))
