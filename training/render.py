"""Boards as a line scanner shows them: two tones, copper dark, edges frayed; JPEG noise at will."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from training.imaging import Warp, draw_etch, draw_warp, etch_copper
from training.layers import Layers, Mask


@dataclass(frozen=True)
class ScanStyle:
    """How a scanner and the line before it work; lengths in px of the picture."""

    shift_px: float = 3.0
    """Most px that the board is off from its reference."""
    turn_degrees: float = 0.1
    stretch_px: float = 1.0
    etch: float = 1.0
    """Strength of etch variation and rough edges; 0 for none."""
    dust: float = 1.0
    """Strength of specks and hairlines that are no defect; 0 for none."""
    jpeg: tuple[int, int] | None = (75, 95)
    """Least and most JPEG quality that the picture went through; None: two tones exactly."""


def render_scan(
    layers: Layers,
    rng: np.random.Generator,
    style: ScanStyle | None = None,
    *,
    warp: Warp | None = None,
) -> NDArray[np.uint8]:
    """Scan a board: (H, W), copper 0 and laminate 255 but for JPEG noise.

    Args:
        warp: where the board lies; default up to half a pixel off.
    """
    style = style or ScanStyle()
    copper = scan_copper(layers.copper, rng, style, warp)
    return finish_scan(copper, rng, style)


def scan_copper(copper: Mask, rng: np.random.Generator, style: ScanStyle, warp: Warp | None = None) -> Mask:
    """The copper (H, W) as the scanner tells it from laminate, in the picture's frame."""
    height, width = copper.shape
    if warp is None:
        warp = draw_warp(rng, (height, width))
    return etch_copper(copper, rng, draw_etch(rng, strength=style.etch), warp)


def finish_scan(copper: Mask, rng: np.random.Generator, style: ScanStyle) -> NDArray[np.uint8]:
    """Two tones, dust, JPEG."""
    picture = np.where(copper, 0, 255).astype(np.uint8)
    if style.dust > 0:
        _add_dust(picture, rng, style.dust)
    if style.jpeg is not None:
        picture = as_jpeg(picture, int(rng.integers(style.jpeg[0], style.jpeg[1] + 1)))
    return picture


def as_jpeg(picture: NDArray[np.uint8], quality: int) -> NDArray[np.uint8]:
    """The picture, grey or (H, W, 3), after one JPEG compression."""
    _, data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_UNCHANGED), np.uint8)


def _add_dust(picture: NDArray[np.uint8], rng: np.random.Generator, strength: float) -> None:
    """Flip single pixels and, now and then, a dotted hairline one pixel wide; in place."""
    height, width = picture.shape
    area = height * width / 640**2
    for _ in range(int(rng.poisson(3.0 * strength * area))):
        y, x = int(rng.integers(height)), int(rng.integers(width))
        h, w = (int(side) for side in rng.integers(1, 3, 2))
        picture[y : y + h, x : x + w] = 255 - picture[y : y + h, x : x + w]
    for _ in range(int(rng.poisson(0.3 * strength * area))):
        start, angle = rng.uniform((0, 0), (width, height)), rng.uniform(0, 2 * np.pi)
        steps = np.arange(rng.integers(20, 120))
        xs = (start[0] + steps * np.cos(angle)).astype(int)
        ys = (start[1] + steps * np.sin(angle)).astype(int)
        kept = (rng.random(len(steps)) < 0.35) & (xs >= 0) & (ys >= 0) & (xs < width) & (ys < height)
        picture[ys[kept], xs[kept]] = 255 - picture[ys[kept], xs[kept]]
