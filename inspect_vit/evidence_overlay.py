"""Overlays of what the network looked at: attention, its heads, roll-out, relevance; (H, W, 3) uint8 RGB.

Maps come on cells of 4 px, (h, w). Scales are fixed (see colours.py). A note in the legend says whether the
map can be believed; where there is no room for the legend, a warning is shown alone.
"""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.annotation import place_legend, unit_px
from inspect_vit.backdrop import draw_contour, etched, quiet
from inspect_vit.colours import (
    ATTENTION_TABLE,
    RELEVANCE_TABLE,
    attention_scale,
    look_up,
    relevance_scale,
    rollout_scale,
)
from inspect_vit.drawing import INK, PAPER, Picture, Rect, blend, upsample
from inspect_vit.legends import (
    Note,
    attention_legend,
    draw_note,
    relevance_legend,
    rollout_legend,
    with_note,
)
from inspect_vit.sheet import Panel, compose_panels
from inspect_vit.views import View

HEAD_PANEL_PX, HEAD_UNIT = 400, 1.3
SMALL_QUERY_CELLS = 4
"""A query of so few cells gets a ring, to be found on a large board."""


def render_attention(
    image: Picture,
    attention_map: NDArray[np.float32],
    level: str,
    *,
    query: NDArray[np.float32] | None = None,
    contour: float | None = None,
    legend: bool = True,
    note: Note | None = None,
) -> Picture:
    """Where one level looked, in multiples of uniform attention, over the board's structure.

    Args:
        attention_map: (h, w) cells of 4 px: attention received, or the rows of a query.
        level: "4", "16" or "32", for the legend.
        query: (h, w) weights of the cells whose rows these are; they are framed.
        contour: also draw a line at this many times uniform.
        note: what the legend says besides.
    """
    at = None if contour is None else float(attention_scale(np.array(contour, np.float32)))
    scale = attention_scale(attention_map)
    unit = unit_px(*image.shape[:2])
    return _on_edges(
        image, scale, at, query, attention_legend(unit, level) if legend else None, note if legend else None
    )


def render_rollout(
    image: Picture,
    rollout: NDArray[np.float32],
    *,
    query: NDArray[np.float32] | None = None,
    contour: float | None = None,
    legend: bool = True,
    note: Note | None = None,
) -> Picture:
    """Attention roll-out of one defect, as shares of all its attention, over the board's structure.

    rollout: (h, w), each cell's share, 0..1. contour: a share. Else as `render_attention`.
    """
    at = None if contour is None else float(rollout_scale(np.array(contour, np.float32)))
    unit = unit_px(*image.shape[:2])
    return _on_edges(
        image,
        rollout_scale(rollout),
        at,
        query,
        rollout_legend(unit) if legend else None,
        note if legend else None,
    )


def render_heads(
    image: Picture,
    heads: NDArray[np.float32],
    level: str,
    *,
    query: NDArray[np.float32] | None = None,
    crop: Rect | None = None,
    panel_px: int = HEAD_PANEL_PX,
    contour: float | None = None,
    note: Note | None = None,
) -> Picture:
    """All heads of a level side by side on one scale, and their mean when there are several.

    Args:
        heads: (num_heads, h, w) cells of 4 px, in multiples of uniform attention.
        query, contour: as `render_attention` takes them.
        crop: the part of the board to show; default all of it.
        panel_px: longer side of each picture.
        note: said of the mean.
    """
    view = View.fit(crop or (0, 0, image.shape[1], image.shape[0]), panel_px)
    part = view.picture(image)
    asked = None if query is None else view.cells(query)
    maps = {f"head {number}": cells for number, cells in enumerate(heads)}
    if len(heads) > 1:
        maps[f"mean of {len(heads)} heads"] = heads.mean(0)
    panels = [
        Panel(
            title,
            render_attention(part, view.cells(cells), level, query=asked, contour=contour, legend=False),
        )
        for title, cells in maps.items()
    ]
    panels[0] = replace(panels[0], legend=attention_legend(HEAD_UNIT, level))
    if note is not None:
        noted = draw_note(note, HEAD_UNIT)
        if len(panels) == 1:
            noted = with_note(attention_legend(HEAD_UNIT, level), note, HEAD_UNIT)
        panels[-1] = replace(panels[-1], legend=noted)
    return compose_panels(panels)


def render_relevance(
    image: Picture,
    relevance: NDArray[np.float32],
    *,
    query: NDArray[np.float32] | None = None,
    contour: float | None = None,
    legend: bool = True,
    note: Note | None = None,
) -> Picture:
    """What spoke for a call and what against it, over the dimmed board; cells without relevance stay
    uncoloured.

    relevance: (h, w) logits per 4 px cell, signed. contour: in logits. Else as `render_attention`.
    """
    height, width = image.shape[:2]
    cells = relevance_scale(relevance)
    scale = upsample(cells, height, width)
    opacity = (np.abs(scale - 0.5) * 6).clip(0, 0.85).astype(np.float32)
    picture = blend(quiet(image), look_up(RELEVANCE_TABLE, scale), opacity)
    if contour is not None:
        at = float(relevance_scale(np.array(contour, np.float32)))
        draw_contour(picture, scale, at=at, has_halo=True)
    if query is not None:
        frame_query(picture, query)
    if legend:
        heat = np.asarray(np.abs(cells - 0.5), np.float32)
        _place(picture, relevance_legend(unit_px(height, width)), note, heat)
    return picture


def frame_query(picture: Picture, query: NDArray[np.float32]) -> None:
    """Frame the cells asked, those of half the highest weight or more, in place; a point gets a ring."""
    height, width = picture.shape[:2]
    asked = (query >= 0.5 * max(float(query.max()), 1e-9)).astype(np.uint8)
    unit = unit_px(height, width)
    margin, thickness = round(3 * unit), max(1, round(1.5 * unit))
    full = np.repeat(np.repeat(asked, 4, axis=0), 4, axis=1)[:height, :width]
    grown = cv2.dilate(full, np.ones((2 * margin + 1, 2 * margin + 1), np.uint8))
    contours, _ = cv2.findContours(grown, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    for ink, extra in ((PAPER, 2), (INK, 0)):
        cv2.drawContours(picture, contours, -1, ink, thickness + extra, cv2.LINE_AA)
        if 0 < asked.sum() <= SMALL_QUERY_CELLS:
            row, column = (int(4 * axis.mean() + 2) for axis in np.nonzero(asked))
            cv2.circle(picture, (column, row), round(16 * unit), ink, thickness + extra, cv2.LINE_AA)


def _on_edges(
    image: Picture,
    cells: NDArray[np.float32],
    contour: float | None,
    query: NDArray[np.float32] | None,
    legend: Picture | None,
    note: Note | None,
) -> Picture:
    """A scale on cells, 0..1, in attention's colours under the board's edges."""
    scale = upsample(cells, *image.shape[:2])
    picture = etched(look_up(ATTENTION_TABLE, scale), image)
    if contour is not None:
        draw_contour(picture, scale, at=contour, has_halo=True)
    if query is not None:
        frame_query(picture, query)
    if legend is not None:
        _place(picture, legend, note, cells)
    return picture


def _place(picture: Picture, legend: Picture, note: Note | None, heat: NDArray[np.float32]) -> None:
    """The legend with its note into the coolest corner, in place; a warning alone where no more fits."""
    unit = unit_px(*picture.shape[:2])
    if note is None:
        place_legend(picture, legend, [], heat)
    elif not place_legend(picture, with_note(legend, note, unit), [], heat) and note.is_warning:
        place_legend(picture, draw_note(replace(note, lines=()), unit), [], heat)
