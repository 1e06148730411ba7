"""Colour scales that mean the same on every picture: fixed ends, never stretched to what one picture holds.

All tables are RGB. The palettes are safe for colour-blind readers: Matplotlib's plasma and viridis (lightness
rises steadily along them) and the set of Okabe and Ito 2008.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

THRESHOLD_AT = 0.5
"""Where a class's threshold lies on the defect scale, 0..1."""
SILENT_BELOW = 0.25
"""Half a threshold: below it the overlay stays uncoloured, so a good board looks cold."""
ATTENTION_RANGE = (0.25, 64.0)
"""Attention, in multiples of uniform, at the two ends of its logarithmic scale."""
ROLLOUT_RANGE = (1e-5, 1e-1)
"""Share of a defect's rolled-out attention on one 4 px cell at the two ends of its logarithmic scale."""
RELEVANCE_END = 1.0
"""Relevance of a 4 px cell, in logits of the centre score, at the two ends of its scale."""
GATE_POWER = 2.0
"""Shares are raised to this before colours are mixed: real ones lie close, plain mixes look alike."""

LEVEL_COLOURS: dict[str, tuple[int, int, int]] = {
    "4": (230, 159, 0),
    "16": (0, 158, 115),
    "32": (0, 114, 178),
}
"""Okabe-Ito orange, bluish green and blue."""


def _table(colormap: int) -> NDArray[np.uint8]:
    ramp = np.arange(256, dtype=np.uint8)[None]
    return np.asarray(cv2.applyColorMap(ramp, colormap)[0, :, ::-1], np.uint8)


def _two_sided(
    low: tuple[int, int, int], middle: tuple[int, int, int], high: tuple[int, int, int]
) -> NDArray[np.uint8]:
    """Straight in CIELAB from the middle to each end, so that equal steps look equal."""
    points = np.array([[low, middle, high]], np.float32) / 255
    lab = cv2.cvtColor(points, cv2.COLOR_RGB2LAB)[0]
    at = np.linspace(-1, 1, 256)
    ramp = np.stack([np.interp(at, [-1, 0, 1], channel) for channel in lab.T], axis=-1).astype(np.float32)
    return np.asarray(np.rint(cv2.cvtColor(ramp[None], cv2.COLOR_LAB2RGB)[0] * 255).clip(0, 255), np.uint8)


DEFECT_TABLE = _table(cv2.COLORMAP_PLASMA)
ATTENTION_TABLE = _table(cv2.COLORMAP_VIRIDIS)
RELEVANCE_TABLE = _two_sided((86, 180, 233), (30, 34, 42), (255, 176, 50))
"""Sky blue speaks against a call, orange for it: the pair that every kind of colour-blindness keeps apart."""


def defect_scale(
    defect_map: NDArray[np.float32], class_names: Sequence[str], thresholds: Mapping[str, float]
) -> NDArray[np.float32]:
    """How near each cell is to being a call, whatever its class: (num_classes, h, w) -> (h, w), 0..1.

    0 at probability 0, 0.5 at the class's threshold, 1 at probability 1, straight in between; the largest
    over the classes. So one colour means one decision, on every board and for every class.
    """
    scale = np.zeros(defect_map.shape[1:], np.float32)
    for probability, name in zip(defect_map, class_names, strict=True):
        threshold = min(max(thresholds[name], 1e-6), 1 - 1e-6)
        points = ([0.0, threshold, 1.0], [0.0, THRESHOLD_AT, 1.0])
        np.maximum(scale, np.interp(probability, *points).astype(np.float32), out=scale)
    return scale


def attention_scale(attention: NDArray[np.float32]) -> NDArray[np.float32]:
    """Attention in multiples of uniform -> 0..1, logarithmic between the ends of ATTENTION_RANGE."""
    low, high = np.log2(ATTENTION_RANGE)
    clipped = np.clip(attention, *ATTENTION_RANGE)
    return np.asarray((np.log2(clipped) - low) / (high - low), np.float32)


def rollout_scale(share: NDArray[np.float32]) -> NDArray[np.float32]:
    """Share of a cell, 0..1 -> 0..1, logarithmic between the ends of ROLLOUT_RANGE."""
    low, high = np.log10(ROLLOUT_RANGE)
    return np.asarray((np.log10(np.clip(share, *ROLLOUT_RANGE)) - low) / (high - low), np.float32)


def relevance_scale(relevance: NDArray[np.float32]) -> NDArray[np.float32]:
    """Signed relevance in logits -> 0..1, straight, 0.5 at none, the ends at RELEVANCE_END either way."""
    return np.asarray(0.5 + 0.5 * np.clip(relevance / RELEVANCE_END, -1, 1), np.float32)


def gate_colour(shares: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    """Shares of the levels, (h, w) each -> (h, w, 3) RGB 0..255: the level colours mixed by squared share.

    Where one level decides alone its pure colour shows; where all have the same say, the mean of the three.
    """
    weights = np.stack([shares[level] for level in LEVEL_COLOURS], axis=-1).clip(min=0) ** GATE_POWER
    weights /= np.maximum(weights.sum(axis=-1, keepdims=True), 1e-6)
    return np.asarray(weights @ np.asarray(list(LEVEL_COLOURS.values()), np.float32), np.float32)


def look_up(table: NDArray[np.uint8], scale: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Scale (h, w), 0..1 -> (h, w, 3) RGB."""
    return np.take(table, np.rint(scale * 255).clip(0, 255).astype(np.uint8), axis=0)
