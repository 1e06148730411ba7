"""Maps as they are laid over a board: their values at all levels, and how these are painted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.colours import attention_scale, defect_scale, look_up
from inspect_vit.map_tiles import (
    ATTENTION_RGBA,
    DEFECT_RGBA,
    MapLevels,
    map_levels,
    paint_gate,
    stacked_shares,
)
from inspect_vit.results import InspectionResult
from serving.crops import Window
from serving.tiles_ask import LayerAsk, check_known_label
from serving.tiles_pyramid import Grid

Encoded = tuple[bytes, str]
"""A picture and its media type."""
Paint = Callable[[NDArray[np.float32]], NDArray[np.uint8]]
"""Values of a map (h, w[, C]) -> (h, w, 4) RGBA."""


@dataclass(frozen=True)
class Overlay:
    """A map at all levels and what its values look like."""

    levels: MapLevels
    paint: Paint


def cut_map(overlay: Overlay, window: Window) -> Encoded:
    values = window.fit(overlay.levels.part(window.step, window.rect))
    return encode_rgba(overlay.paint(values)), "image/png"


def stored_overlay(ask: LayerAsk, result: InspectionResult) -> Overlay:
    """The defect map or the gate shares, which came with the inspection."""
    num_levels = Grid(result.width, result.height).max_level + 1
    if ask.layer == "gate":
        shares = map_levels(stacked_shares(result.gate_maps), num_levels, keep="mean")
        return Overlay(shares, paint_gate)
    check_known_label(ask.label, result.class_names)
    defect_map, names = result.defect_map, result.class_names
    if ask.label is not None:
        index = names.index(ask.label)
        defect_map, names = defect_map[index : index + 1], (ask.label,)
    scale = defect_scale(defect_map, names, result.thresholds)
    return Overlay(
        map_levels(scale, num_levels, keep="highest"),
        lambda values: look_up(DEFECT_RGBA, values),
    )


def attention_overlay(values: NDArray[np.float32], result: InspectionResult) -> Overlay:
    num_levels = Grid(result.width, result.height).max_level + 1
    return Overlay(
        map_levels(values, num_levels, keep="mean", scale=attention_scale),
        lambda scale: look_up(ATTENTION_RGBA, scale),
    )


def encode_rgba(picture: NDArray[np.uint8]) -> bytes:
    """(H, W, 4) RGBA, not premultiplied -> PNG bytes."""
    done, data = cv2.imencode(
        ".png", cv2.cvtColor(picture, cv2.COLOR_RGBA2BGRA), [cv2.IMWRITE_PNG_COMPRESSION, 1]
    )
    assert done
    return data.tobytes()
