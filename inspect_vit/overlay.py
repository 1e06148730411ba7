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
    SILENT_BELOW,
    THRESHOLD_AT,
    attention_scale,
    defect_scale,
    gate_colour,
    look_up,
)
from inspect_vit.drawing import Colour, Picture, blend, grey_of, upsample
from inspect_vit.legends import attention_legend, defect_legend, gate_legend
from inspect_vit.results import Defect, InspectionResult, Verdict
from inspect_vit.sheet import CloseLook, Headline, Panel, compose_sheet, resize

SHEET_CELL_PX, SHEET_UNIT = 640, 1.3
CLOSE_LOOK_PX = 150
MAX_CLOSE_LOOKS = 12
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
    """Which level decided: the level colours mixed by their shares, over the board's structure."""
    height, width = image.shape[:2]
    colour = upsample(gate_colour(result.gate_maps), height, width)
    picture = _etched(np.rint(colour).clip(0, 255).astype(np.uint8), image)
    if legend:
        spread = np.std(list(result.gate_maps.values()), axis=0, dtype=np.float32)
        place_legend(picture, gate_legend(unit_px(height, width)), [], spread)
    return picture


def render_attention(
    image: Picture, attention_map: NDArray[np.float32], level: str, *, legend: bool = True
) -> Picture:
    """Where one level looked: attention received, in multiples of uniform, over the board's structure.

    attention_map: (h, w) cells of 4 px. level: "4", "16" or "32", for the legend.
    """
    height, width = image.shape[:2]
    cells = attention_scale(attention_map)
    colour = look_up(ATTENTION_TABLE, upsample(cells, height, width))
    picture = _etched(colour, image)
    if legend:
        place_legend(picture, attention_legend(unit_px(height, width), level), [], cells)
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
    factor = SHEET_CELL_PX / max(image.shape[:2])
    height, width = (max(1, round(side * factor)) for side in image.shape[:2])
    small = resize(image, height, width)
    scaled = _rescale_result(result, factor, height, width)
    panels = [Panel("board", small)]
    if reference is not None:
        panels.append(Panel("golden reference", resize(reference, height, width)))
    panels += [
        Panel("defects", render_overlay(small, scaled, legend=False), overlay_legend(SHEET_UNIT)),
        Panel("defect map", render_defect_map_colour(small, scaled, legend=False), defect_legend(SHEET_UNIT)),
        Panel("which level decided", render_gate(small, scaled, legend=False), gate_legend(SHEET_UNIT)),
    ]
    for level, cells in (attention or {}).items():
        shown = _rescale_cells(cells, factor, height, width)
        drawn = render_attention(small, shown, level, legend=False)
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


def _draw_contour(picture: Picture, scale: NDArray[np.float32]) -> None:
    """A thin line where the defect map crosses the threshold, in place."""
    over = (scale >= THRESHOLD_AT).astype(np.uint8)
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
        count = len(result.defects)
        found = {0: "no defect", 1: "1 defect"}.get(count, f"{count} defects")
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


def _rescale_result(result: InspectionResult, factor: float, height: int, width: int) -> InspectionResult:
    """The result for the picture scaled by factor to height x width; shrunk defect maps keep their peaks."""
    reach = np.ones((max(1, round(1 / factor)),) * 2, np.uint8)
    peaks = [cv2.dilate(cells, reach) for cells in result.defect_map]
    return replace(
        result,
        width=width,
        height=height,
        defect_map=np.stack([_rescale_cells(np.asarray(p), factor, height, width) for p in peaks]),
        gate_maps={k: _rescale_cells(cells, factor, height, width) for k, cells in result.gate_maps.items()},
        defects=tuple(_rescale_defect(defect, factor) for defect in result.defects),
    )


def _rescale_defect(defect: Defect, factor: float) -> Defect:
    left, top, right, bottom = defect.box_xyxy
    return replace(defect, box_xyxy=(left * factor, top * factor, right * factor, bottom * factor))


def _rescale_cells(cells: NDArray[np.float32], factor: float, height: int, width: int) -> NDArray[np.float32]:
    """4 px cells of a picture -> 4 px cells of the picture scaled by factor to height x width."""
    # Pixel p of the scaled picture is p / factor of the original; cell i has its centre at 4 (i + 0.5).
    shift = 0.5 / factor - 0.5
    matrix = np.array([[1 / factor, 0, shift], [0, 1 / factor, shift]])
    size = (-(-width // 4), -(-height // 4))
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return np.asarray(
        cv2.warpAffine(cells, matrix, size, flags=flags, borderMode=cv2.BORDER_REPLICATE), np.float32
    )
