"""Pictures of an inspection, drawn on numpy arrays: (H, W, 3) uint8 RGB in the posted image's frame.

Scales are fixed (see colours.py): the same colour means the same on every board, and a good board looks cold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.annotation import draw_defects, place_legend, unit_px
from inspect_vit.colours import (
    ATTENTION_TABLE,
    DEFECT_TABLE,
    RELEVANCE_TABLE,
    SILENT_BELOW,
    THRESHOLD_AT,
    attention_scale,
    defect_scale,
    gate_colour,
    look_up,
    relevance_scale,
)
from inspect_vit.drawing import INK, PAPER, Colour, Picture, Rect, blend, grey_of, upsample
from inspect_vit.legends import attention_legend, defect_legend, gate_legend, relevance_legend
from inspect_vit.results import Defect, InspectionResult, Verdict
from inspect_vit.sheet import CloseLook, Headline, Panel, compose_panels, compose_sheet, resize
from inspect_vit.views import View

SHEET_CELL_PX, SHEET_UNIT = 640, 1.3
CLOSE_LOOK_PX = 150
MAX_CLOSE_LOOKS = 12
HEAD_PANEL_PX = 400
SMALL_QUERY_CELLS = 4
"""A query of so few cells gets a ring, to be found on a large board."""
VERDICT_COLOURS: dict[Verdict, Colour] = {
    Verdict.PASS: (86, 200, 160),
    Verdict.FAIL: (240, 120, 50),
    Verdict.ERROR: (240, 228, 66),
}

COLD_DARK, COLD_BRIGHT = (10, 16, 28), (150, 166, 186)
"""Black and white of the board under the overlay."""


def render_overlay(image: Picture, result: InspectionResult, *, legend: bool = True) -> Picture:
    """The board, dimmed, with the defect map glowing from half a threshold on, boxes, labels and a legend."""
    height, width = image.shape[:2]
    cells = defect_scale(result.defect_map, result.class_names, result.thresholds)
    scale = upsample(cells, height, width)
    picture = blend(_quiet(image), look_up(DEFECT_TABLE, scale), _glow(scale))
    _draw_contour(picture, scale)
    taken = draw_defects(picture, result.defects, result.thresholds)
    if legend:
        place_legend(picture, overlay_legend(unit_px(height, width)), taken, cells)
    return picture


def overlay_legend(unit: float) -> Picture:
    """The defect scale as the overlay shows it: uncoloured below half a threshold."""
    scale = np.linspace(0, 1, 256, dtype=np.float32)[None]
    ground = np.full((1, 256, 3), 110, np.uint8)
    table = blend(ground, DEFECT_TABLE[None], _glow(scale))[0]
    return defect_legend(unit, table=table)


def render_defect_map(result: InspectionResult) -> NDArray[np.uint8]:
    """(H, W) grey: probability 0..1 as 0..255, the largest over the classes."""
    cells = result.defect_map.max(axis=0)
    return np.rint(upsample(cells, result.height, result.width) * 255).clip(0, 255).astype(np.uint8)


def render_defect_map_colour(image: Picture, result: InspectionResult, *, legend: bool = True) -> Picture:
    """The defect map alone in colour, with a ghost of the board to find one's way."""
    height, width = image.shape[:2]
    cells = defect_scale(result.defect_map, result.class_names, result.thresholds)
    scale = upsample(cells, height, width)
    picture = _etched(look_up(DEFECT_TABLE, scale), image)
    if legend:
        place_legend(picture, defect_legend(unit_px(height, width)), [], cells)
    return picture


def render_gate(image: Picture, result: InspectionResult, *, legend: bool = True) -> Picture:
    """Gate shares: the level colours mixed by their shares, over the board's structure."""
    height, width = image.shape[:2]
    colour = upsample(gate_colour(result.gate_maps), height, width)
    picture = _etched(np.rint(colour).clip(0, 255).astype(np.uint8), image)
    if legend:
        spread = np.std(list(result.gate_maps.values()), axis=0, dtype=np.float32)
        place_legend(picture, gate_legend(unit_px(height, width)), [], spread)
    return picture


def render_attention(
    image: Picture,
    attention_map: NDArray[np.float32],
    level: str,
    *,
    query: NDArray[np.float32] | None = None,
    contour: float | None = None,
    legend: bool = True,
) -> Picture:
    """Where one level looked, in multiples of uniform attention, over the board's structure.

    Args:
        attention_map: (h, w) cells of 4 px: attention received, or the rows of a query.
        level: "4", "16" or "32", for the legend.
        query: (h, w) weights of the cells whose rows these are; they are framed.
        contour: also draw a line at this many times uniform.
    """
    height, width = image.shape[:2]
    cells = attention_scale(attention_map)
    scale = upsample(cells, height, width)
    picture = _etched(look_up(ATTENTION_TABLE, scale), image)
    if contour is not None:
        _draw_contour(picture, scale, at=float(attention_scale(np.array(contour, np.float32))))
    if query is not None:
        frame_query(picture, query)
    if legend:
        place_legend(picture, attention_legend(unit_px(height, width), level), [], cells)
    return picture


def render_heads(
    image: Picture,
    heads: NDArray[np.float32],
    level: str,
    *,
    query: NDArray[np.float32] | None = None,
    crop: Rect | None = None,
) -> Picture:
    """All heads of a level side by side on one scale, and their mean when there are several.

    Args:
        heads: (num_heads, h, w) cells of 4 px, in multiples of uniform attention.
        query: as `render_attention` takes it.
        crop: the part of the board to show; default all of it.
    """
    view = View.fit(crop or (0, 0, image.shape[1], image.shape[0]), HEAD_PANEL_PX)
    part = view.picture(image)
    asked = None if query is None else view.cells(query)
    maps = {f"head {number}": cells for number, cells in enumerate(heads)}
    if len(heads) > 1:
        maps[f"mean of {len(heads)} heads"] = heads.mean(0)
    panels = [
        Panel(title, render_attention(part, view.cells(cells), level, query=asked, legend=False))
        for title, cells in maps.items()
    ]
    panels[0] = replace(panels[0], legend=attention_legend(SHEET_UNIT, level))
    return compose_panels(panels)


def render_relevance(
    image: Picture,
    relevance: NDArray[np.float32],
    *,
    query: NDArray[np.float32] | None = None,
    contour: float | None = None,
    legend: bool = True,
) -> Picture:
    """What spoke for a call and what against it, over the dimmed board; cells without relevance stay
    uncoloured.

    relevance: (h, w) logits per 4 px cell, signed. query, contour (in logits): as `render_attention` takes
    them."""
    height, width = image.shape[:2]
    cells = relevance_scale(relevance)
    scale = upsample(cells, height, width)
    opacity = (np.abs(scale - 0.5) * 6).clip(0, 0.85).astype(np.float32)
    picture = blend(_quiet(image), look_up(RELEVANCE_TABLE, scale), opacity)
    if contour is not None:
        _draw_contour(picture, scale, at=float(relevance_scale(np.array(contour, np.float32))))
    if query is not None:
        frame_query(picture, query)
    if legend:
        place_legend(picture, relevance_legend(unit_px(height, width)), [], np.abs(cells - 0.5))
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


def render_sheet(
    image: Picture,
    reference: Picture | None,
    result: InspectionResult,
    attention: Mapping[str, NDArray[np.float32]] | None = None,
) -> Picture:
    """All pictures of an inspection side by side, titled, with a close look at its first defects.

    Boards are shrunk or enlarged to SHEET_CELL_PX first, so that lines and letters are legible at that size.
    attention: (h, w) cells of 4 px per level, as `Inspector.attention` answers.
    """
    view = View.fit((0, 0, image.shape[1], image.shape[0]), SHEET_CELL_PX)
    small, scaled = view.picture(image), view.result(result)
    panels = [Panel("board", small)]
    if reference is not None:
        panels.append(Panel("golden reference", view.picture(reference)))
    panels += [
        Panel("defects", render_overlay(small, scaled, legend=False), overlay_legend(SHEET_UNIT)),
        Panel("defect map", render_defect_map_colour(small, scaled, legend=False), defect_legend(SHEET_UNIT)),
        Panel("gate share of each level", render_gate(small, scaled, legend=False), gate_legend(SHEET_UNIT)),
    ]
    for level, cells in (attention or {}).items():
        drawn = render_attention(small, view.cells(cells), level, legend=False)
        panels.append(Panel(f"attention of the {level} px level", drawn, attention_legend(SHEET_UNIT, level)))
    looks = [
        CloseLook(f"{number} {defect.label} {defect.score:.2f}", _close_look(image, reference, defect))
        for number, defect in enumerate(result.defects[:MAX_CLOSE_LOOKS], start=1)
    ]
    return compose_sheet(_headline(result), panels, looks)


def encode_png(picture: NDArray[np.uint8]) -> bytes:
    """(H, W) grey or (H, W, 3) RGB -> PNG bytes, at zlib level 1: size counts less than time here."""
    bgr = picture if picture.ndim == 2 else cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)
    done, data = cv2.imencode(".png", bgr, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    assert done
    return data.tobytes()


def _quiet(image: Picture) -> Picture:
    """The board in cold, dim tones with a trace of its own colour, so that warm colours stand out."""
    cold = np.stack(
        [np.linspace(dark, bright, 256) for dark, bright in zip(COLD_DARK, COLD_BRIGHT, strict=True)]
    )
    toned = np.take(np.rint(cold.T).astype(np.uint8), grey_of(image), axis=0)
    return np.asarray(cv2.addWeighted(toned, 0.8, image, 0.25, -4.0), np.uint8)


def _glow(scale: NDArray[np.float32]) -> NDArray[np.float32]:
    """Opacity of the defect map on the overlay; never so much that the defect itself is hidden."""
    return np.interp(scale, [SILENT_BELOW, THRESHOLD_AT, 1.0], [0.0, 0.55, 0.75]).astype(np.float32)


def _draw_contour(picture: Picture, scale: NDArray[np.float32], *, at: float = THRESHOLD_AT) -> None:
    """A thin line where a scale, 0..1, crosses a value, in place; by default the threshold."""
    over = (scale >= at).astype(np.uint8)
    contours, _ = cv2.findContours(over, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    thickness = max(1, round(unit_px(*scale.shape) / 2))
    cv2.drawContours(picture, contours, -1, (255, 196, 160), thickness, cv2.LINE_AA)


def _etched(colour: Picture, image: Picture) -> Picture:
    """The board's edges in thin light lines on a coloured map, so that its colours stay as in the legend."""
    unit = unit_px(*image.shape[:2])
    grey = cv2.GaussianBlur(grey_of(image), (0, 0), 0.8 * unit)
    edges = cv2.morphologyEx(grey, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8))
    opacity = (edges.astype(np.float32) * (0.45 / 128)).clip(0, 0.45)
    return blend(colour, np.full_like(image, 255), opacity)


def _headline(result: InspectionResult) -> Headline:
    if result.verdict is Verdict.ERROR:
        sentence = "not inspected: " + "; ".join(result.reasons)
    else:
        count, listed = max(result.num_defects, len(result.defects)), len(result.defects)
        found = {0: "no defect", 1: "1 defect"}.get(count, f"{count} defects")
        found += f" ({listed} listed)" if listed < count else ""
        sentence = f"{found}, highest score {result.score:.2f}"
    reference = "with golden reference" if result.with_reference else "without golden reference"
    size = f"{result.width} x {result.height} px"
    model = f"{result.model_name} {result.model_version}"
    return Headline(
        result.verdict.value, VERDICT_COLOURS[result.verdict], sentence, f"{size}, {reference}, {model}"
    )


def _close_look(image: Picture, reference: Picture | None, defect: Defect) -> tuple[Picture, ...]:
    """The same square around a defect from the board and the reference, enlarged to CLOSE_LOOK_PX."""
    left, top, right, bottom = defect.box_xyxy
    height, width = image.shape[:2]
    side = min(max(64, round(1.6 * max(right - left, bottom - top))), height, width)
    x = min(max(round((left + right - side) / 2), 0), width - side)
    y = min(max(round((top + bottom - side) / 2), 0), height - side)
    pictures = [image] if reference is None else [image, reference]
    return tuple(resize(p[y : y + side, x : x + side], CLOSE_LOOK_PX, CLOSE_LOOK_PX) for p in pictures)
