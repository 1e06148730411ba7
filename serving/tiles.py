"""Tiles, crops, thumbnails and legends of stored inspections, for looking at boards of any size.

What they are cut from is made once, however many ask for it at the same time, and kept as long as there is
room: pyramids of pictures on the disk, maps on their own cells in memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine

from inspect_vit.alignment import lay_under
from inspect_vit.cells import cells_of
from inspect_vit.drawing import Picture
from inspect_vit.errors import InspectionError
from inspect_vit.image_io import read_image
from inspect_vit.map_tiles import (
    paint_difference,
)
from inspect_vit.overlay import encode_jpeg, encode_png
from inspect_vit.results import InspectionResult
from inspect_vit.sheet import resize
from serving.archive import unpack_result, unpack_thresholds
from serving.attention import asked_cells, chosen_map
from serving.crops import Window
from serving.drawings import Drawings
from serving.errors import NotFoundError, ServingError
from serving.explanations import ClientGone
from serving.first_sight import LARGE_PIXELS, FirstSight, SightLayer, read_from_maps
from serving.kept import Kept
from serving.picture_schemas import LegendReport, TilesReport
from serving.store import StoredInspection
from serving.tiles_ask import LayerAsk, check_known_label
from serving.tiles_legends import (
    attention_legend,
    defect_legend,
    difference_legend,
    gate_legend,
    picture_legend,
)
from serving.tiles_overlays import Encoded, Overlay, attention_overlay, cut_map, stored_overlay
from serving.tiles_pyramid import TILE_PX, Grid, Pyramid, check_room, grid_of

PYRAMIDS_KEPT_BYTES = 3_000_000_000
"""On the disk, half of it for references: a line scan of 16384 x 16384 px and its reference, or eighteen
boards of 20 megapixels and theirs."""
MAPS_KEPT_BYTES = 256_000_000
"""In memory: all classes of two such line scans, or dozens of maps of usual boards."""
THUMBNAILS_KEPT_BYTES = 32_000_000
SIGHTS_KEPT_BYTES = 128_000_000
"""Decoded; three boards of 6400 x 6400 px and their references."""
BEHIND_AFTER_S = 2.0
"""The pyramid of a board whose first sight was kept is made when that is drawn: it takes a processor."""
THUMBNAIL_PX = 240

logger = logging.getLogger("inspect_vit.serving")


class Tiles:
    """Cuts from what is stored and asks the model where a layer needs it."""

    def __init__(self, drawings: Drawings) -> None:
        self._drawings = drawings
        self._store, self._engine = drawings.store, drawings.engine
        self._boards: Kept[Pyramid] = Kept(PYRAMIDS_KEPT_BYTES // 2, lambda pyramid: pyramid.nbytes)
        self._laid: Kept[Pyramid | str] = Kept(PYRAMIDS_KEPT_BYTES // 2, _size_of)
        """References laid under boards; or why one cannot be, so that it is tried once."""
        self._overlays: Kept[Overlay] = Kept(MAPS_KEPT_BYTES, lambda overlay: overlay.levels.nbytes)
        self._thumbnails: Kept[bytes] = Kept(THUMBNAILS_KEPT_BYTES, len)
        self._sights: Kept[FirstSight | None] = Kept(
            SIGHTS_KEPT_BYTES, lambda sight: 0 if sight is None else sight.nbytes
        )
        self._behind: set[asyncio.Task[None]] = set()
        """What goes on while the board is looked at already."""

    async def describe(
        self, inspection: StoredInspection, ask: LayerAsk, client_gone: ClientGone
    ) -> TilesReport:
        """Size and levels; for all layers but the image, once the layer is ready to be cut.

        Raises:
            NotFoundError: there is no reference, or it cannot be laid under the board.
            FieldError: a class, defect, point or head that is not there.
            VersionGoneError: attention of an inspection that another model version made.
        """
        if ask.layer in ("reference", "difference"):
            sight = await self._sight(inspection)
            if sight is None or not sight.has_reference:
                await self._reference(inspection)
        elif ask.layer != "image":
            await self._overlay(inspection, ask, client_gone)
        grid = grid_of(inspection.report)
        return TilesReport(width=grid.width, height=grid.height, tile_px=TILE_PX, max_level=grid.max_level)

    async def cut(
        self, inspection: StoredInspection, ask: LayerAsk, window: Window, client_gone: ClientGone
    ) -> Encoded:
        """A part of a layer. Pictures come as JPEG, or PNG where every pixel is asked for one by one; maps as
        PNG with opacity. Raises as `describe`.
        """
        if ask.layer in ("image", "reference", "difference"):
            layers: list[SightLayer] = [
                layer for layer in ("image", "reference") if ask.layer in (layer, "difference")
            ]
            parts = [await self._part(inspection, layer, window) for layer in layers]
            return await asyncio.to_thread(_draw_picture, parts, window)
        overlay = await self._overlay(inspection, ask, client_gone)
        return await asyncio.to_thread(cut_map, overlay, window)

    async def thumbnail(self, inspection: StoredInspection) -> bytes:
        """The board as JPEG, its longest side THUMBNAIL_PX or less."""
        board, sight = self._boards.find((inspection.image_sha256,)), await self._sight(inspection)

        def work() -> bytes:
            if board is not None:
                picture = board.steps[-1]
            else:
                picture = self._decode(inspection) if sight is None else sight.smallest()
            return encode_jpeg(_shrunk(picture, grid_of(inspection.report)))

        async def make() -> bytes:
            return await self._engine.on_drawing_thread(work)

        return await self._thumbnails.get((inspection.image_sha256,), make)

    async def legend(self, inspection: StoredInspection, ask: LayerAsk) -> LegendReport:
        """What the colours of a layer mean. Raises FieldError for a class that is not there."""
        if ask.layer == "difference":
            return difference_legend()
        if ask.layer == "gate":
            return gate_legend()
        if ask.layer == "defect_map":
            thresholds = await asyncio.to_thread(lambda: unpack_thresholds(self._store.read_maps(inspection)))
            check_known_label(ask.label, thresholds)
            return defect_legend(thresholds, ask.label)
        if ask.attention is not None:
            return attention_legend(ask.attention.level)
        return picture_legend(ask.layer)

    async def _part(self, inspection: StoredInspection, layer: SightLayer, window: Window) -> Picture:
        """A part of the board or of its reference: from the pyramid, or while that is made as first seen."""
        made = self._made(inspection, layer)
        if made is None:
            sight = await self._sight(inspection)
            kept = None if sight is None else await asyncio.to_thread(sight.cut, layer, window)
            if kept is not None:
                self._make_behind(inspection, layer)
                return kept
            made = await (self._board if layer == "image" else self._reference)(inspection)
        return await asyncio.to_thread(made.part, window.step, window.rect)

    def _made(self, inspection: StoredInspection, layer: SightLayer) -> Pyramid | None:
        if layer == "image":
            return self._boards.find((inspection.image_sha256,))
        found = self._laid.find((inspection.image_sha256, inspection.reference_sha256))
        return found if isinstance(found, Pyramid) else None

    async def _sight(self, inspection: StoredInspection) -> FirstSight | None:
        if inspection.report.image.width * inspection.report.image.height < LARGE_PIXELS:
            return None

        async def make() -> FirstSight | None:
            return await asyncio.to_thread(lambda: read_from_maps(self._store.read_maps(inspection)))

        return await self._sights.get((inspection.report.id,), make)

    async def _board(self, inspection: StoredInspection) -> Pyramid:
        async def make() -> Pyramid:
            self._check_room(inspection)
            pyramid = await self._engine.on_drawing_thread(lambda: Pyramid(self._decode(inspection)))
            self._settle(pyramid)
            return pyramid

        return await self._boards.get((inspection.image_sha256,), make)

    async def _reference(self, inspection: StoredInspection) -> Pyramid:
        posted = await asyncio.to_thread(self._drawings.read_reference, inspection)

        async def make() -> Pyramid | str:
            board = await self._board(inspection)
            self._check_room(inspection)

            def work() -> Pyramid | str:
                golden, _ = read_image(posted, max_pixels=self._engine.config.max_pixels)
                laid = lay_under(board.steps[0], golden)
                if laid.picture is None:
                    return "; ".join(laid.faults)
                return Pyramid(laid.picture)

            made = await self._engine.on_drawing_thread(work)
            if isinstance(made, Pyramid):
                self._settle(made)
            return made

        found = await self._laid.get((inspection.image_sha256, inspection.reference_sha256), make)
        if isinstance(found, str):
            raise NotFoundError(
                f"the reference of inspection {inspection.report.id} cannot be laid under the board: {found}",
                hint=f"GET /v1/inspections/{inspection.report.id}/reference has it as posted",
            )
        return found

    async def _overlay(self, inspection: StoredInspection, ask: LayerAsk, client_gone: ClientGone) -> Overlay:
        async def make() -> Overlay:
            result = await asyncio.to_thread(self._result, inspection)
            if ask.attention is None:
                return await self._engine.on_drawing_thread(lambda: stored_overlay(ask, result))
            query = asked_cells(ask.attention, result)
            with self._engine.admitted():
                maps = await self._drawings.explanations.maps(
                    inspection, result, ask.attention, query, client_gone
                )
            values = chosen_map(ask.attention, maps, cells_of(result.height, result.width))
            return await self._engine.on_drawing_thread(lambda: attention_overlay(values, result))

        return await self._overlays.get((inspection.report.id, *ask.name), make)

    def _check_room(self, inspection: StoredInspection) -> None:
        grid, config = grid_of(inspection.report), self._engine.config
        check_room(grid.width, grid.height, config.home_dir, min_free_bytes=int(config.min_free_mb * 1e6))

    def _make_behind(self, inspection: StoredInspection, layer: SightLayer) -> None:
        """Make the pyramid while the first sight is looked at."""

        async def make() -> None:
            await asyncio.sleep(BEHIND_AFTER_S)
            try:
                await (self._board if layer == "image" else self._reference)(inspection)
            except (ServingError, InspectionError):
                # Who asks for what it lacks is told why.
                logger.info("a large board cannot be looked at further", exc_info=True)

        self._go_on(make())

    def _settle(self, pyramid: Pyramid) -> None:
        """Move a pyramid to the disk while it is looked at already."""

        async def move() -> None:
            try:
                await asyncio.to_thread(pyramid.settle, self._engine.config.home_dir)
            except OSError:
                logger.warning("a board that is looked at stays in memory", exc_info=True)

        self._go_on(move())

    def _go_on(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    def _decode(self, inspection: StoredInspection) -> Picture:
        data = self._store.read_image(inspection)
        return read_image(data, max_pixels=self._engine.config.max_pixels)[0]

    def _result(self, inspection: StoredInspection) -> InspectionResult:
        return unpack_result(inspection.report, self._store.read_maps(inspection))


def _draw_picture(parts: list[Picture], window: Window) -> Encoded:
    """One picture, or the difference of two."""
    fitted = [window.fit(part) for part in parts]
    drawn = fitted[0] if len(fitted) == 1 else paint_difference(*fitted)
    if window.is_lossless:
        return encode_png(drawn), "image/png"
    return encode_jpeg(drawn), "image/jpeg"


def _shrunk(picture: Picture, board: Grid) -> Picture:
    """A board's picture, at any level, as its thumbnail."""
    zoom = min(1.0, THUMBNAIL_PX / max(board.width, board.height))
    return resize(picture, max(1, round(zoom * board.height)), max(1, round(zoom * board.width)))


def _size_of(laid: Pyramid | str) -> int:
    return len(laid) if isinstance(laid, str) else laid.nbytes
