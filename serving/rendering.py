"""The pictures of an inspection, drawn on demand from what is stored."""

from __future__ import annotations

from inspect_vit.cells import CELL_PX, cells_of, to_cells
from inspect_vit.overlay import (
    encode_png,
    render_attention,
    render_defect_map,
    render_defect_map_colour,
    render_gate,
    render_overlay,
)
from inspect_vit.results import InspectionResult
from serving.engine import AttentionMaps, Pixels
from serving.schemas import LEVELS, AttentionLevel, RenderedName


def render(
    name: RenderedName, image: Pixels, result: InspectionResult, attention: AttentionMaps | None = None
) -> bytes:
    """One picture as PNG bytes, of the size of the image. The attention pictures need the attention maps."""
    match name:
        case "defect_map":
            return encode_png(render_defect_map(result))
        case "overlay":
            return encode_png(render_overlay(image, result))
        case "gate":
            return encode_png(render_gate(image, result))
        case "attention_4" | "attention_16" | "attention_32":
            assert attention is not None
            level = attention_level(name)
            cells = to_cells(attention[level].mean(0), cells_of(*image.shape[:2]), int(level) // CELL_PX)
            return encode_png(render_attention(image, cells, level))


def draw_defect_map_colour(image: Pixels, result: InspectionResult) -> bytes:
    return encode_png(render_defect_map_colour(image, result))


def attention_level(name: RenderedName) -> AttentionLevel:
    return next(level for level in LEVELS if name == f"attention_{level}")
