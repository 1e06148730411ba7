"""Pictures of an inspection, drawn on numpy arrays: (H, W, 3) uint8 RGB in the posted image's frame.

Scales are fixed (see colours.py): the same colour means the same on every board, and a good board looks cold.
"""

from __future__ import annotations

from collections.abc import Mapping

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.annotation import draw_defects, place_legend, unit_px
from inspect_vit.backdrop import draw_contour, etched, quiet
from inspect_vit.colours import DEFECT_TABLE, SILENT_BELOW, THRESHOLD_AT, defect_scale, gate_colour, look_up
from inspect_vit.drawing import Colour, Picture, blend, upsample
from inspect_vit.evidence_overlay import render_attention
from inspect_vit.legends import attention_legend, defect_legend, gate_legend
from inspect_vit.results import Defect, InspectionResult, Verdict
from inspect_vit.sheet import CloseLook, Headline, Panel, compose_sheet, resize
from inspect_vit.views import View

SHEET_CELL_PX, SHEET_UNIT = 640, 1.3
CLOSE_LOOK_PX = 150
MAX_CLOSE_LOOKS = 12
JPEG_QUALITY = 90
VERDICT_COLOURS: dict[Verdict, Colour] = {
    Verdict.PASS: (86, 200, 160),
    Verdict.FAIL: (240, 120, 50),
    Verdict.ERROR: (240, 228, 66),
}


def render_overlay(image: Picture, result: InspectionResult, *, legend: bool = True) -> Picture:
    """The board, dimmed, with the defect map glowing from half a threshold on, boxes, labels and a legend."""
    height, width = image.shape[:2]
    cells = defect_scale(result.defect_map, result.class_names, result.thresholds)
    scale = upsample(cells, height, width)
    picture = blend(quiet(image), look_up(DEFECT_TABLE, scale), _glow(scale))
    draw_contour(picture, scale)
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
    picture = etched(look_up(DEFECT_TABLE, scale), image)
    if legend:
        place_legend(picture, defect_legend(unit_px(height, width)), [], cells)
    return picture


def render_gate(image: Picture, result: InspectionResult, *, legend: bool = True) -> Picture:
    """Gate shares: the level colours mixed by their shares, over the board's structure."""
    height, width = image.shape[:2]
    colour = upsample(gate_colour(result.gate_maps), height, width)
    picture = etched(np.rint(colour).clip(0, 255).astype(np.uint8), image)
    if legend:
        spread = np.std(list(result.gate_maps.values()), axis=0, dtype=np.float32)
        place_legend(picture, gate_legend(unit_px(height, width)), [], spread)
    return picture


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


def encode_jpeg(picture: Picture) -> bytes:
    """(H, W, 3) RGB; colours at full size, because copper is told from mask by them."""
    settings = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
    settings += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]
    done, data = cv2.imencode(".jpg", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), settings)
    assert done
    return data.tobytes()


def encode_png(picture: NDArray[np.uint8]) -> bytes:
    """(H, W) grey or (H, W, 3) RGB -> PNG bytes, at zlib level 1: size counts less than time here."""
    bgr = picture if picture.ndim == 2 else cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)
    done, data = cv2.imencode(".png", bgr, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    assert done
    return data.tobytes()


def _glow(scale: NDArray[np.float32]) -> NDArray[np.float32]:
    """Opacity of the defect map on the overlay; never so much that the defect itself is hidden."""
    return np.interp(scale, [SILENT_BELOW, THRESHOLD_AT, 1.0], [0.0, 0.55, 0.75]).astype(np.float32)


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
