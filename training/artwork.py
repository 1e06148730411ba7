"""Procedural artwork in the look of bare boards at 48 px per mm: tracks 6 to 16 px wide, pads, planes."""

from __future__ import annotations

import cv2
import numpy as np

from training.artwork_styles import STYLES
from training.canvas import CLEARANCE_PX, Canvas, Mask, grown
from training.layers import Layers

PX_PER_MM = 48.0
_GROUND_SHARE = 0.12
_EDGE_SHARE = 0.15
"""Share of boards whose outline crosses the picture."""


def make_layers(seed: int, size: int = 640, *, px_per_mm: float = PX_PER_MM) -> Layers:
    """Draw the board of this seed: the same seed and size give the same pixels.

    Args:
        size: side of the square picture in px, at least 64.
        px_per_mm: at other than 48 the board is drawn at 48 and resized.

    Returns:
        Layers whose nets are the pieces of connected copper (8-connected); `name` tells style and seed.
    """
    if px_per_mm != PX_PER_MM:
        drawn = make_layers(seed, max(round(size * PX_PER_MM / px_per_mm), 64))
        return _resized(drawn, size, px_per_mm)
    rng = np.random.default_rng(seed)
    style = list(STYLES)[int(rng.integers(len(STYLES)))]
    canvas = Canvas(rng, size)
    STYLES[style](canvas)
    if style == "ground" or (style != "planes" and rng.random() < _GROUND_SHARE):
        canvas.fill_ground()
    board = _outline(canvas)
    copper = canvas.copper & ~canvas.holes & board
    return Layers(
        copper=copper,
        nets=np.asarray(cv2.connectedComponents(copper.astype(np.uint8), connectivity=8)[1], np.int32),
        holes=canvas.holes & board,
        mask_open=canvas.bare,
        silk=_silk(canvas) & board,
        board=board,
        px_per_mm=PX_PER_MM,
        name=f"{style}-{seed}",
    )


def _outline(canvas: Canvas) -> Mask:
    """Where the board is; copper keeps away from its edge."""
    rng, size = canvas.rng, canvas.size
    board = np.ones((size, size), bool)
    if rng.random() < _EDGE_SHARE:
        depth, turns = int(rng.integers(size // 40 + 1, size // 6)), int(rng.integers(4))
        board[:depth] = False
        board = np.ascontiguousarray(np.rot90(board, turns))
        canvas.copper &= ~grown((~board).astype(np.uint8), 2 * CLEARANCE_PX)
    return board


def _silk(canvas: Canvas) -> Mask:
    """Outlines of parts and their designators, clear of all bare metal."""
    rng, image = canvas.rng, canvas.blank()
    width = int(rng.integers(5, 9))
    for _ in range(int(rng.integers(0, 7))):
        x, y = (round(value) for value in canvas.spot(40))
        w, h = (int(value) for value in rng.integers(60, 220, 2))
        if rng.random() < 0.2:
            cv2.circle(image, (x, y), w // 2, 1, width)
        else:
            cv2.rectangle(image, (x, y), (x + w, y + h), 1, width)
        name = f"{'RCDUJQL'[int(rng.integers(7))]}{int(rng.integers(1, 99))}"
        cv2.putText(image, name, (x, y - 12), cv2.FONT_HERSHEY_SIMPLEX, rng.uniform(1.0, 2.2), 1, width)
    return (image > 0) & ~grown((canvas.bare | canvas.holes).astype(np.uint8), 6)


def _resized(layers: Layers, size: int, px_per_mm: float) -> Layers:
    """Square layers at another size in px."""

    def masks(mask: Mask) -> Mask:
        shares = cv2.resize(mask.astype(np.float32), (size, size), interpolation=cv2.INTER_AREA)
        return np.asarray(shares) > 0.5

    copper = masks(layers.copper)
    return Layers(
        copper=copper,
        nets=np.asarray(cv2.connectedComponents(copper.astype(np.uint8), connectivity=8)[1], np.int32),
        holes=masks(layers.holes) & ~copper,
        mask_open=masks(layers.mask_open),
        silk=masks(layers.silk),
        board=masks(layers.board),
        px_per_mm=px_per_mm,
        name=layers.name,
    )
