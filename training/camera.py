"""From a board under even light to the file a camera writes: light, dirt, glare, blur, noise, JPEG."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from training.colour_style import ColourStyle
from training.imaging import Warp, smooth_noise
from training.render import as_jpeg

Shares = NDArray[np.float32]
JPEG_QUALITY = (80, 97)


def take_picture(
    surface: Shares, shine: Shares, rng: np.random.Generator, style: ColourStyle, *, nuisance: float
) -> NDArray[np.uint8]:
    """Photograph a surface.

    Args:
        surface: (H, W, 3) RGB under even light, shares of full scale.
        shine: (H, W), 0 matte to 1 mirror: how much of a glare it returns.
        nuisance: strength of dust, scratches, smudges and glare; 0 for none.

    Returns:
        (H, W, 3) uint8 RGB.
    """
    picture = _add_dirt(surface, rng, nuisance) if nuisance > 0 else surface
    picture = picture * _light(rng, style, (surface.shape[0], surface.shape[1]))[..., None]
    if nuisance > 0 and rng.random() < 0.35 * nuisance:
        picture = picture + _glare(shine, rng)[..., None]
    blurred = cv2.GaussianBlur(picture, (0, 0), style.blur_px * rng.uniform(0.9, 1.15))
    picture = np.asarray(blurred, np.float32) * (1.0 + rng.normal(0.0, 0.012, 3)).astype(np.float32)
    # Shot noise grows with the root of brightness; colour filters make neighbours alike.
    noise = rng.standard_normal(picture.shape, dtype=np.float32)
    noise = np.asarray(cv2.GaussianBlur(noise, (0, 0), 0.6), np.float32) * np.float32(1.8 * style.grain)
    picture = picture + noise * np.sqrt(np.clip(picture, 0.02, 1.0))
    eight_bit = np.rint(np.clip(picture, 0.0, 1.0) * 255).astype(np.uint8)
    return as_jpeg(eight_bit, int(rng.integers(JPEG_QUALITY[0], JPEG_QUALITY[1] + 1)))


def retake(picture: NDArray[np.uint8], rng: np.random.Generator, warp: Warp) -> NDArray[np.uint8]:
    """The same board photographed again: moved, in a little other light, with noise and JPEG of its own.

    Args:
        picture: (H, W) or (H, W, 3), 0..255.
    """
    moved = cv2.remap(picture, warp.xs, warp.ys, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    again = np.asarray(moved, np.float32)
    height, width = again.shape[:2]
    light = rng.normal(1.0, 0.04) + 0.02 * smooth_noise(rng, (height, width), max(height, width) / 8)
    light = light if again.ndim == 2 else light[..., None]
    noise = rng.standard_normal(again.shape, dtype=np.float32) * np.float32(rng.uniform(0.5, 2.5))
    again = cv2.GaussianBlur(again * light + noise, (0, 0), rng.uniform(0.3, 0.6))
    eight_bit = np.rint(np.clip(again, 0, 255)).astype(np.uint8)
    return as_jpeg(eight_bit, int(rng.integers(JPEG_QUALITY[0], JPEG_QUALITY[1] + 1)))


def _light(rng: np.random.Generator, style: ColourStyle, shape: tuple[int, int]) -> Shares:
    """Brightness of the light over the picture, (H, W), about 1."""
    height, width = shape
    x = np.linspace(-1.0, 1.0, width, dtype=np.float32)
    y = np.linspace(-1.0, 1.0, height, dtype=np.float32)[:, None]
    angle = style.light_from + rng.normal(0.0, 0.1)
    slope = style.gradient * rng.uniform(0.8, 1.2) / 2
    field = 1.0 - slope * (x * np.cos(angle) + y * np.sin(angle)) - style.vignette * (x**2 + y**2) / 2
    return np.asarray(field * style.exposure * rng.normal(1.0, 0.03), np.float32)


def _glare(shine: Shares, rng: np.random.Generator) -> Shares:
    """One or two soft reflections of lamps, stronger where the surface shines, (H, W)."""
    height, width = shine.shape
    glare = np.zeros((height, width), np.float32)
    for _ in range(int(rng.integers(1, 3))):
        x = np.arange(width, dtype=np.float32) - np.float32(rng.uniform(0, width))
        y = np.arange(height, dtype=np.float32)[:, None] - np.float32(rng.uniform(0, height))
        reach = rng.uniform(0.08, 0.3, 2) * max(height, width)
        spot = np.exp(-0.5 * (x / np.float32(reach[0])) ** 2 - 0.5 * (y / np.float32(reach[1])) ** 2)
        glare += np.float32(rng.uniform(0.05, 0.22)) * spot
    return np.asarray(glare * (0.4 + 0.6 * shine), np.float32)


def _add_dirt(picture: Shares, rng: np.random.Generator, strength: float) -> Shares:
    """Dust, fibres, hairline scratches and smudges: none of them is a defect of the copper."""
    height, width = picture.shape[:2]
    area = height * width / 640**2
    light, dark = np.zeros((height, width), np.uint8), np.zeros((height, width), np.uint8)
    for _ in range(int(rng.poisson(5.0 * strength * area))):
        sheet = light if rng.random() < 0.65 else dark
        x, y = (round(float(v)) for v in rng.uniform((0, 0), (width, height)))
        axes = (int(rng.integers(1, 4)), int(rng.integers(1, 3)))
        tone = int(rng.integers(40, 170))
        cv2.ellipse(sheet, (x, y), axes, rng.uniform(0, 180), 0, 360, tone, -1, cv2.LINE_AA)
    for _ in range(int(rng.poisson(1.2 * strength * area))):
        start, turn = rng.uniform((0, 0), (width, height)), rng.uniform(0, 2 * np.pi)
        bends = np.cumsum(rng.normal(0.0, rng.choice([0.03, 0.35]), 14))
        steps = rng.uniform(2, 9) * np.stack([np.cos(turn + bends), np.sin(turn + bends)], axis=1)
        line = np.rint(start + np.cumsum(steps, axis=0)).astype(np.int32)
        sheet = light if rng.random() < 0.7 else dark
        cv2.polylines(sheet, [line], False, int(rng.integers(30, 120)), 1, cv2.LINE_AA)
    cover = cv2.GaussianBlur(light, (0, 0), 0.8).astype(np.float32)[..., None] / 255
    shade = cv2.GaussianBlur(dark, (0, 0), 0.8).astype(np.float32)[..., None] / 255
    dust = np.array([0.78, 0.77, 0.74], np.float32)
    dirty = (picture + cover * (dust - picture)) * (1.0 - np.float32(0.6) * shade)
    if rng.random() < 0.4 * strength:
        smudge = smooth_noise(rng, (height, width), 24.0)
        dirty = dirty * (1.0 + np.float32(0.035) * np.clip(smudge - np.float32(0.8), 0.0, 2.0))[..., None]
    return np.asarray(dirty, np.float32)
