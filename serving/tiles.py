"""Tiles, crops, thumbnails and legends of stored inspections, for looking at boards of any size.

What they are cut from is made once, however many ask for it at the same time, and kept as long as there is
room: pyramids of pictures on the disk, maps on their own cells in memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.alignment import lay_under
from inspect_vit.cells import cells_of
from inspect_vit.colours import attention_scale, defect_scale, look_up
from inspect_vit.drawing import Picture
from inspect_vit.image_io import read_image
from inspect_vit.map_tiles import (
    ATTENTION_RGBA,
    DEFECT_RGBA,
    MapLevels,
    map_levels,
    paint_difference,
    paint_gate,
    stacked_shares,
)
from inspect_vit.overlay import encode_png
from inspect_vit.results import InspectionResult
from inspect_vit.sheet import resize
from serving.archive import unpack_result
from serving.attention import asked_cells, chosen_map
from serving.crops import Window
from serving.drawings import Drawings
from serving.errors import NotFoundError
from serving.explanations import ClientGone
from serving.kept import Kept
from serving.picture_schemas import LegendReport, TilesReport
from serving.store import StoredInspection
from serving.tiles_ask import ATTENTION, LayerAsk, check_known_label
from serving.tiles_legends import (
    attention_legend,
    defect_legend,
    difference_legend,
    gate_legend,
    picture_legend,
)
from serving.tiles_pyramid import TILE_PX, Grid, Pyramid, check_room, grid_of

PYRAMIDS_KEPT_BYTES = 3_000_000_000
"""On the disk, half of it for references: a line scan of 16384 x 16384 px and its reference, or eighteen
boards of 20 megapixels and theirs."""
MAPS_KEPT_BYTES = 256_000_000
"""In memory: all classes of two such line scans, or dozens of maps of usual boards."""
THUMBNAILS_KEPT_BYTES = 32_000_000
THUMBNAIL_PX = 240
JPEG_QUALITY = 90

logger = logging.getLogger("inspect_vit.serving")

Encoded = tuple[bytes, str]
"""A picture and its media type."""
Paint = Callable[[NDArray[np.float32]], NDArray[np.uint8]]
"""Values of a map (h, w[, C]) -> (h, w, 4) RGBA."""


@dataclass(frozen=True)
class Overlay:
    """A map at all levels and what its values look like."""

    levels: MapLevels
    paint: Paint
    legend: LegendReport


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
        self._settling: set[asyncio.Task[None]] = set()

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
            parts = []
            if ask.layer != "reference":
                parts.append(await self._board(inspection))
            if ask.layer != "image":
                parts.append(await self._reference(inspection))
            return await asyncio.to_thread(_cut_picture, parts, window)
        overlay = await self._overlay(inspection, ask, client_gone)
        return await asyncio.to_thread(_cut_map, overlay, window)

    async def thumbnail(self, inspection: StoredInspection) -> bytes:
        """The board as JPEG, its longest side THUMBNAIL_PX or less."""
        board = self._boards.find((inspection.image_sha256,))

        def work() -> bytes:
            picture = self._decode(inspection) if board is None else board.steps[-1]
            return encode_jpeg(_shrunk(picture, grid_of(inspection.report)))

        async def make() -> bytes:
            return await self._engine.on_drawing_thread(work)

        return await self._thumbnails.get((inspection.image_sha256,), make)

    async def legend(
        self, inspection: StoredInspection, ask: LayerAsk, client_gone: ClientGone
    ) -> LegendReport:
        """What the colours of a layer mean. Raises FieldError for a class that is not there."""
        if ask.layer == "difference":
            return difference_legend()
        if ask.layer == "gate":
            return gate_legend()
        if ask.layer == "defect_map":
            return (await self._overlay(inspection, ask, client_gone)).legend
        if ask.attention is not None:
            return attention_legend(ask.attention.level)
        return picture_legend(ask.layer)

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
                return await self._engine.on_drawing_thread(lambda: _stored_overlay(ask, result))
            query = asked_cells(ask.attention, result)
            with self._engine.admitted():
                maps = await self._drawings.explanations.maps(
                    inspection, result, ask.attention, query, client_gone
                )
            values = chosen_map(ask.attention, maps, cells_of(result.height, result.width))
            return await self._engine.on_drawing_thread(lambda: _attention_overlay(ask, values, result))

        return await self._overlays.get((inspection.report.id, *ask.name), make)

    def _check_room(self, inspection: StoredInspection) -> None:
        grid, config = grid_of(inspection.report), self._engine.config
        check_room(grid.width, grid.height, config.home_dir, min_free_bytes=int(config.min_free_mb * 1e6))

    def _settle(self, pyramid: Pyramid) -> None:
        """Move a pyramid to the disk while it is looked at already."""

        async def move() -> None:
            try:
                await asyncio.to_thread(pyramid.settle, self._engine.config.home_dir)
            except OSError:
                logger.warning("a board that is looked at stays in memory", exc_info=True)

        task = asyncio.create_task(move())
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    def _decode(self, inspection: StoredInspection) -> Picture:
        data = self._store.read_image(inspection)
        return read_image(data, max_pixels=self._engine.config.max_pixels)[0]

    def _result(self, inspection: StoredInspection) -> InspectionResult:
        return unpack_result(inspection.report, self._store.read_maps(inspection))


def encode_jpeg(picture: Picture) -> bytes:
    """(H, W, 3) RGB; colours at full size, because copper is told from mask by them."""
    settings = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
    settings += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]
    done, data = cv2.imencode(".jpg", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), settings)
    assert done
    return data.tobytes()


def encode_rgba(picture: NDArray[np.uint8]) -> bytes:
    """(H, W, 4) RGBA, not premultiplied -> PNG bytes."""
    done, data = cv2.imencode(
        ".png", cv2.cvtColor(picture, cv2.COLOR_RGBA2BGRA), [cv2.IMWRITE_PNG_COMPRESSION, 1]
    )
    assert done
    return data.tobytes()


def _cut_picture(pyramids: list[Pyramid], window: Window) -> Encoded:
    """One picture, or the difference of two."""
    parts = [window.fit(pyramid.part(window.step, window.rect)) for pyramid in pyramids]
    drawn = parts[0] if len(parts) == 1 else paint_difference(*parts)
    if window.is_lossless:
        return encode_png(drawn), "image/png"
    return encode_jpeg(drawn), "image/jpeg"


def _cut_map(overlay: Overlay, window: Window) -> Encoded:
    values = window.fit(overlay.levels.part(window.step, window.rect))
    return encode_rgba(overlay.paint(values)), "image/png"


def _stored_overlay(ask: LayerAsk, result: InspectionResult) -> Overlay:
    """The defect map or the gate shares, which came with the inspection."""
    num_levels = Grid(result.width, result.height).max_level + 1
    if ask.layer == "gate":
        shares = map_levels(stacked_shares(result.gate_maps), num_levels, keep="mean")
        return Overlay(shares, paint_gate, gate_legend())
    check_known_label(ask.label, result)
    defect_map, names = result.defect_map, result.class_names
    if ask.label is not None:
        index = names.index(ask.label)
        defect_map, names = defect_map[index : index + 1], (ask.label,)
    scale = defect_scale(defect_map, names, result.thresholds)
    return Overlay(
        map_levels(scale, num_levels, keep="highest"),
        lambda values: look_up(DEFECT_RGBA, values),
        defect_legend(result.thresholds, ask.label),
    )


def _attention_overlay(ask: LayerAsk, values: NDArray[np.float32], result: InspectionResult) -> Overlay:
    num_levels = Grid(result.width, result.height).max_level + 1
    return Overlay(
        map_levels(values, num_levels, keep="mean", scale=attention_scale),
        lambda scale: look_up(ATTENTION_RGBA, scale),
        attention_legend(ask.layer.removeprefix(ATTENTION)),
    )


def _shrunk(picture: Picture, board: Grid) -> Picture:
    """A board's picture, at any level, as its thumbnail."""
    zoom = min(1.0, THUMBNAIL_PX / max(board.width, board.height))
    return resize(picture, max(1, round(zoom * board.height)), max(1, round(zoom * board.width)))


def _size_of(laid: Pyramid | str) -> int:
    return len(laid) if isinstance(laid, str) else laid.nbytes
