"""What the network looked at in a stored inspection, and can that be believed: computed once, then kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from inspect_vit.attribution import board_attention, rollout
from inspect_vit.cells import CELL_PX
from inspect_vit.close_up import close_up
from inspect_vit.drawing import Rect
from inspect_vit.inspector import Inspector
from inspect_vit.relevance import relevance
from inspect_vit.reliability import Reliability, set_up, try_map
from inspect_vit.results import InspectionResult
from inspect_vit.spot import Spot, look_at
from inspect_vit.trace import trace
from serving.attention import AttentionAsk, Maps
from serving.engine import Engine, Pixels
from serving.errors import NotFoundError, VersionGoneError
from serving.kept import Kept, Key
from serving.off_heap import OffHeap
from serving.store import Store, StoredInspection

MAPS_KEPT_BYTES = 8_000_000
"""So that looking at one level, head or zoom after the other computes once: some 70 boards of 640x640."""
TRIALS_KEPT = 10_000
"""A trial is a few numbers."""

ClientGone = Callable[[], Awaitable[bool]]


class Explanations:
    """Questions about stored inspections to the model that made them. Ask inside `engine.admitted()`."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store = store
        self._engine = engine
        self._maps: Kept[OffHeap] = Kept(MAPS_KEPT_BYTES, lambda kept: kept.size)
        self._tried: Kept[Reliability] = Kept(TRIALS_KEPT, lambda _: 1)

    async def maps(
        self,
        inspection: StoredInspection,
        result: InspectionResult,
        ask: AttentionAsk,
        query: NDArray[np.float32] | None,
        client_gone: ClientGone,
    ) -> Maps:
        """All levels of the asked method, for the cells of `attention.asked_cells`.

        Raises:
            VersionGoneError: the model version that made the inspection is not on this server.
            ClientGoneError: the client had hung up when its turn came.
        """

        async def make() -> OffHeap:
            image, reference = await self._posted(inspection)
            async with self._engine.pictures(image, reference, client_gone) as (pixels, golden):
                inspector = await self._inspector(inspection)
                return await self._engine.on_model_thread(
                    lambda: OffHeap(_compute(inspector, pixels, golden, result, ask, query))
                )

        return (await self._maps.get((inspection.report.id, ask.method, *ask.rows), make)).arrays()

    def remember(self, inspection_id: str, attention: Maps) -> None:
        """Keep the attention of all of the board that came with the inspection itself."""
        self._maps.add((inspection_id, "attention"), OffHeap(attention))

    async def trials(
        self,
        inspection: StoredInspection,
        result: InspectionResult,
        number: int,
        maps: Mapping[Key, NDArray[np.float32]],
        client_gone: ClientGone,
    ) -> dict[Key, Reliability]:
        """Whether maps of a defect can be believed. Boards of the line go between one map and the next.

        Args:
            number: of the defect in the inspection, from 1.
            maps: (h, w) each, under a name that is the inspection's and the defect's alone.

        Raises:
            VersionGoneError, ClientGoneError: as `maps`.
        """
        scope = (inspection.report.id, number)
        defect = result.defects[number - 1]
        others = [other.box_xyxy for other in result.defects if other is not defect]
        async with self._tried.turn(scope):
            kept = {name: self._tried.find((*scope, *name)) for name in maps}
            found = {name: trial for name, trial in kept.items() if trial is not None}
            missing = [name for name in maps if name not in found]
            if not missing:
                return found
            ask_model = self._engine.on_model_thread
            image, reference = await self._posted(inspection)
            async with self._engine.pictures(image, reference, client_gone) as (pixels, golden):
                inspector = await self._inspector(inspection)
                trial = await ask_model(
                    lambda: set_up(inspector, pixels, reference=golden, defect=defect, others=others)
                )
                for name in missing:
                    # What speaks against a call is no reason to expect its score to fall.
                    found[name] = await ask_model(partial(try_map, trial, maps[name].clip(min=0)))
                    self._tried.add((*scope, *name), found[name])
        return found

    async def spot(
        self, inspection: StoredInspection, result: InspectionResult, box: Rect, client_gone: ClientGone
    ) -> Spot:
        """The evidence in a box, px of the posted image, whether or not anything was called there.

        Raises:
            VersionGoneError, ClientGoneError: as `maps`.
        """
        ask_model, inspector = self._engine.on_model_thread, await self._inspector(inspection)
        image, reference = await self._posted(inspection)
        async with self._engine.pictures(image, reference, client_gone) as (pixels, golden):
            return await ask_model(
                lambda: look_at(inspector, pixels, reference=golden, box=box, thresholds=result.thresholds)
            )

    async def _posted(self, inspection: StoredInspection) -> tuple[bytes, bytes | None]:
        """The posted pictures. The version that saw them is loaded first, so that it holds up no board."""
        await self._inspector(inspection)
        return await asyncio.to_thread(
            lambda: (self._store.read_image(inspection), self._store.read_reference(inspection))
        )

    async def _inspector(self, inspection: StoredInspection) -> Inspector:
        """The model version that made the inspection."""
        made_by = inspection.report.model
        try:
            return await self._engine.models.get(made_by.version)
        except (VersionGoneError, NotFoundError) as error:
            raise VersionGoneError(
                f"inspection {inspection.report.id} was made by {made_by.name} {made_by.version}, which is "
                "not on this server: its attention cannot be computed now",
                hint="inspect-vit models add FILE brings the version back; or inspect the board again",
            ) from error


def _compute(
    inspector: Inspector,
    image: Pixels,
    reference: Pixels | None,
    result: InspectionResult,
    ask: AttentionAsk,
    query: NDArray[np.float32] | None,
) -> Maps:
    if ask.method == "attention":
        return dict(board_attention(inspector, image, reference=reference, query=query))
    assert ask.defect is not None and query is not None
    defect = result.defects[ask.defect - 1]
    if ask.method == "rollout":
        seen = close_up(inspector, image, reference=reference, box=defect.box_xyxy)
        traced = trace(inspector, seen.image, reference=seen.reference)
        rolled = rollout(inspector, traced, seen.defect(defect), seen.query(query))
        return {"all": seen.place(rolled, CELL_PX)}
    found = relevance(inspector, image, reference=reference, defect=defect)
    return {**found.levels, "all": found.total}
