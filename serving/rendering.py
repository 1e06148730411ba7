"""The pictures of an inspection, drawn on demand from what is stored and what was computed."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

from inspect_vit.cells import CELL_PX
from inspect_vit.evidence_overlay import (
    HEAD_PANEL_PX,
    render_attention,
    render_heads,
    render_relevance,
    render_rollout,
)
from inspect_vit.legends import Note
from inspect_vit.overlay import (
    encode_png,
    render_defect_map,
    render_defect_map_colour,
    render_gate,
    render_overlay,
)
from inspect_vit.results import InspectionResult
from inspect_vit.views import View
from serving.attention import AttentionAsk
from serving.engine import Pixels
from serving.errors import FieldError
from serving.schemas import LEVELS, AttentionLevel, RenderedName


def render(name: RenderedName, image: Pixels, result: InspectionResult) -> bytes:
    """A picture that needs no model as PNG bytes, of the size of the image."""
    match name:
        case "defect_map":
            return encode_png(render_defect_map(result))
        case "overlay":
            return encode_png(render_overlay(image, result))
        case "gate":
            return encode_png(render_gate(image, result))
    raise AssertionError(name)


def draw_defect_map_colour(image: Pixels, result: InspectionResult) -> bytes:
    return encode_png(render_defect_map_colour(image, result))


def attention_level(name: RenderedName) -> AttentionLevel | None:
    """The level of an attention picture; None for the others."""
    return next((level for level in LEVELS if name == f"attention_{level}"), None)


def draw_map(
    ask: AttentionAsk,
    image: Pixels,
    values: NDArray[np.float32],
    query: NDArray[np.float32] | None,
    *,
    note: Note | None,
    max_pixels: int,
) -> bytes:
    """An asked map over the board as PNG bytes; by default of the image's size (head=all: side by side).

    Raises:
        FieldError: a crop that does not lie on the board, or a picture of more than max_pixels.
    """
    panels = len(values) + 1 if ask.head == "all" else 1
    view = _view(ask, image, max_pixels, panels)
    if ask.head == "all":
        assert ask.level != "all"
        drawn = render_heads(
            image,
            values,
            ask.level,
            query=query,
            crop=view.crop,
            panel_px=max(view.height, view.width),
            contour=ask.shown.contour,
            note=note,
        )
        return encode_png(drawn)
    is_whole = view.zoom == 1.0 and view.crop == (0, 0, image.shape[1], image.shape[0])
    if not is_whole:
        image, values = view.picture(image), view.cells(values)
        query = None if query is None else view.cells(query)
    if ask.method == "relevance":
        drawn = render_relevance(image, values, query=query, contour=ask.shown.contour, note=note)
    elif ask.method == "rollout":
        drawn = render_rollout(image, values, query=query, contour=ask.shown.contour, note=note)
    else:
        drawn = render_attention(image, values, ask.level, query=query, contour=ask.shown.contour, note=note)
    return encode_png(drawn)


def pack_map(ask: AttentionAsk, values: NDArray[np.float32], query: NDArray[np.float32] | None) -> bytes:
    """The numbers that are drawn, as .npz bytes: under the method's name, with cell_px and the query."""
    arrays: dict[str, NDArray[np.generic]] = {ask.method: values, "cell_px": np.array(CELL_PX)}
    if query is not None:
        arrays["query"] = query
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _view(ask: AttentionAsk, image: Pixels, max_pixels: int, num_panels: int) -> View:
    """What is drawn, how large; each of several panels has HEAD_PANEL_PX at scale 1."""
    height, width = image.shape[:2]
    left, top, right, bottom = crop = ask.shown.crop or (0, 0, width, height)
    if right > width or bottom > height:
        raise FieldError(
            f"crop: {left},{top},{right},{bottom} does not lie on the board of {width} x {height} px"
        )
    side = HEAD_PANEL_PX if num_panels > 1 else max(right - left, bottom - top)
    view = View.fit(crop, max(1, round(ask.shown.scale * side)))
    if num_panels * view.height * view.width > max_pixels:
        many = f"{num_panels} pictures" if num_panels > 1 else "a picture"
        raise FieldError(
            f"scale: {ask.shown.scale:g} gives {many} of {view.width} x {view.height} px, "
            f"wanted at most {max_pixels / 1e6:g} megapixels",
            hint="ask for a smaller scale, or for a part of the board with crop=left,top,right,bottom",
        )
    return view
