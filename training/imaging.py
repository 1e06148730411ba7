"""Where a board lands in a picture: shift, turn and local stretch; and how etching moves its edges."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from training.layers import Layers, Mask

_STRETCH_PERIOD_PX = 160
"""Local stretch changes over about this length."""


@dataclass(frozen=True)
class Warp:
    """For each pixel of the picture the point (x, y) of the board that it shows; both (H, W) float32."""

    xs: NDArray[np.float32]
    ys: NDArray[np.float32]

    def layers(self, layers: Layers) -> Layers:
        """The board as it lies in the picture; what is outside repeats its border."""
        return replace(
            layers,
            copper=self.mask(layers.copper),
            nets=np.where(self.mask(layers.copper), self._nets(layers.nets), 0).astype(np.int32),
            holes=self.mask(layers.holes),
            mask_open=self.mask(layers.mask_open),
            silk=self.mask(layers.silk),
            board=self.mask(layers.board),
        )

    def mask(self, mask: Mask) -> Mask:
        """A mask (H, W), moved; its edges land to a fraction of a pixel, then round."""
        return self.shares(mask.astype(np.float32)) > 0.5

    def shares(self, picture: NDArray[np.float32]) -> NDArray[np.float32]:
        """A picture (H, W), moved, linear between pixels."""
        moved = cv2.remap(picture, self.xs, self.ys, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(moved, np.float32)

    def _nets(self, nets: NDArray[np.int32]) -> NDArray[np.int32]:
        """Nearest net number; copper that rounding added at an edge takes its neighbour's."""
        # Net numbers are exact in float32 up to 2**24.
        near = cv2.dilate(nets.astype(np.float32), np.ones((3, 3), np.uint8))
        spread = np.where(nets > 0, nets, near).astype(np.float32)
        moved = cv2.remap(spread, self.xs, self.ys, cv2.INTER_NEAREST, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(moved).astype(np.int32)


def draw_warp(
    rng: np.random.Generator,
    shape: tuple[int, int],
    *,
    shift_px: float = 0.5,
    turn_degrees: float = 0.05,
    stretch_px: float = 0.0,
) -> Warp:
    """A random placement: moved by up to `shift_px` in any direction, turned and stretched by up to as much.

    Args:
        shape: (height, width) of the picture.
        stretch_px: most px that a place is off from where shift and turn put it.
    """
    height, width = shape
    away, towards = shift_px * np.sqrt(rng.random()), rng.uniform(0.0, 2.0 * np.pi)
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), rng.uniform(-turn_degrees, turn_degrees), 1.0)
    turn[:, 2] += away * np.cos(towards), away * np.sin(towards)
    columns, rows = np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)[:, None]
    xs, ys = (
        (np.float32(a) * columns + np.float32(b) * rows + np.float32(c)).astype(np.float32)
        for a, b, c in turn
    )
    if stretch_px > 0:
        knots = (height // _STRETCH_PERIOD_PX + 3, width // _STRETCH_PERIOD_PX + 3)
        reach = rng.uniform(0.0, stretch_px)
        for grid in (xs, ys):
            knot_values = rng.uniform(-reach, reach, knots).astype(np.float32)
            grid += cv2.resize(knot_values, (width, height), interpolation=cv2.INTER_LINEAR)
    return Warp(xs, ys)


@dataclass(frozen=True)
class Etch:
    """How edges of copper come out; lengths in px."""

    over_px: float = 0.0
    """All copper narrower by this on each side; negative: wider."""
    corner_px: float = 1.0
    """Corners are rounded to about this radius."""
    wave_px: float = 0.5
    """Edges wander by this (standard deviation) over some 12 px."""
    fray_px: float = 0.25
    """Edges are rough by this (standard deviation) from px to px."""


def draw_etch(rng: np.random.Generator, *, strength: float = 1.0) -> Etch:
    """A board's etching as boards differ: from sharp to visibly rough; `strength` 0 is the drawing itself."""
    rough = strength * rng.uniform(0.15, 0.85)
    return Etch(
        over_px=strength * float(rng.normal(0.0, 0.35)),
        corner_px=0.8 + strength * float(rng.uniform(0.0, 0.8)),
        wave_px=rough * float(rng.uniform(0.1, 0.7)),
        fray_px=rough * float(rng.uniform(0.1, 0.55)),
    )


def etch_copper(copper: Mask, rng: np.random.Generator, etch: Etch, warp: Warp | None = None) -> Mask:
    """The copper (H, W) as etched and seen: edges moved by noise that never draws a speck on plain ground."""
    height, width = copper.shape
    soft = cv2.GaussianBlur(copper.astype(np.float32), (0, 0), etch.corner_px)
    shares = np.asarray(soft, np.float32) if warp is None else warp.shares(np.asarray(soft, np.float32))
    noise = smooth_noise(rng, (height, width), 4.0) * np.float32(etch.wave_px)
    noise += smooth_noise(rng, (height, width), 0.7) * np.float32(etch.fray_px)
    noise -= np.float32(etch.over_px)
    # A blurred edge rises by 1 / (sigma sqrt(2 pi)) a px, so an offset in px is one in shares.
    slope = np.float32(1.0 / (etch.corner_px * np.sqrt(2.0 * np.pi)))
    return np.asarray(shares + (noise * slope).clip(-0.45, 0.45) > 0.5)


def smooth_noise(rng: np.random.Generator, shape: tuple[int, int], sigma_px: float) -> NDArray[np.float32]:
    """Normal noise of standard deviation 1 that is alike over about `sigma_px`, (H, W)."""
    height, width = shape
    step = max(int(sigma_px), 1)
    coarse = rng.standard_normal((height // step + 2, width // step + 2), dtype=np.float32)
    soft = cv2.GaussianBlur(coarse, (0, 0), sigma_px / step)
    soft = (
        cv2.resize(soft, (width, height), interpolation=cv2.INTER_LINEAR)
        if step > 1
        else soft[:height, :width]
    )
    return np.asarray(soft / max(float(soft.std()), 1e-6), np.float32)
