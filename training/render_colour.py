"""Boards in colour: laminate, copper, solder mask, bare metal, holes and silk under slanting light.

Shape letters: H, W of the picture. Colours are float32 shares of full scale, (H, W, 3) RGB.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from training.camera import take_picture
from training.colour_style import NO_MASK, ColourStyle
from training.imaging import smooth_noise
from training.layers import Layers, Mask

Shares = NDArray[np.float32]
_WEAVE_MM = 0.45
"""Pitch of the glass cloth in the laminate."""


def render_colour(
    layers: Layers, rng: np.random.Generator, style: ColourStyle, *, nuisance: float = 1.0
) -> NDArray[np.uint8]:
    """Take a picture of the board: (H, W, 3) uint8 RGB.

    Every picture has texture, light, noise and dirt of its own; what `style` says they share.

    Args:
        layers: as they lie in the picture (training/imaging.py moves and etches them).
        nuisance: strength of dust, scratches, smudges and glare; 0 for none.
    """
    surface, shine = paint_board(layers, rng, style)
    return take_picture(surface, shine, rng, style, nuisance=nuisance)


def paint_board(layers: Layers, rng: np.random.Generator, style: ColourStyle) -> tuple[Shares, Shares]:
    """The board under even light: colours (H, W, 3), and how much each place shines, (H, W), 0 to 1."""
    scale = layers.px_per_mm / 48.0
    shape = layers.size
    copper = _soft(layers.copper, 0.6)
    weave = _weave(rng, shape, layers.px_per_mm)
    bare = np.ones(shape, np.float32) if style.mask == NO_MASK else _soft(layers.mask_open, 0.6)
    mottle = 1.0 + style.mottle * smooth_noise(rng, shape, 14.0 * max(scale, 0.25))
    laminate = np.asarray(_colour(style.laminate) * (1.0 + 0.05 * weave * mottle)[..., None], np.float32)
    metal, glint = _metal(layers, rng, style)
    surface = _over(laminate, metal, copper)
    if style.mask != NO_MASK:
        # The mask flows over edges, so tones change more gently than the copper does.
        under = _soft(layers.copper, max(1.0 * scale, 0.7))
        covered = _over(
            _colour(style.over_laminate) * (1.0 + 0.015 * weave)[..., None],
            np.broadcast_to(_colour(style.over_copper), (*shape, 3)),
            under,
        )
        covered = covered * (mottle + 0.012 * smooth_noise(rng, shape, 0.8))[..., None]
        covered += _relief(layers.copper, style, 1.6 * max(scale, 0.5))[..., None] * (
            0.10 + 0.25 * np.asarray(_colour(style.over_copper))
        )
        surface = _over(covered, surface, bare)
    shine = bare * (0.25 + 0.75 * copper) * np.float32(0.9) + (1.0 - bare) * np.float32(0.5)
    surface += (glint * bare * copper)[..., None]
    if style.mask != NO_MASK:
        ink = (0.90 + 0.04 * smooth_noise(rng, shape, 1.2)).clip(0.0, 1.0)
        surface = _over(
            surface, np.broadcast_to(_colour(style.silk), (*shape, 3)), _soft(layers.silk, 0.8) * ink
        )
    surface = _drill(surface, layers, rng, style, glint)
    outside = _soft(~layers.board, 0.8)
    if outside.any():
        surface = _cut_off(surface, outside, layers, style)
    return surface.astype(np.float32), np.asarray(shine * (1.0 - outside), np.float32)


def _colour(rgb: tuple[float, float, float]) -> Shares:
    return np.array(rgb, np.float32)


def _soft(mask: Mask, sigma_px: float) -> Shares:
    """Shares of each pixel covered, (H, W)."""
    return np.asarray(cv2.GaussianBlur(mask.astype(np.float32), (0, 0), sigma_px), np.float32)


def _over(below: Shares, above: Shares, cover: Shares) -> Shares:
    """`above` laid over `below` with this cover, (H, W)."""
    return np.asarray(below + cover[..., None] * (above - below), np.float32)


def _weave(rng: np.random.Generator, shape: tuple[int, int], px_per_mm: float) -> Shares:
    """Glass cloth, (H, W), about -1 to 1."""
    height, width = shape
    pitch = 2 * np.pi / max(_WEAVE_MM * px_per_mm * rng.uniform(0.8, 1.3), 4.0)
    across = np.sin(np.arange(width, dtype=np.float32) * pitch + rng.uniform(0, 6))
    down = np.sin(np.arange(height, dtype=np.float32) * pitch + rng.uniform(0, 6))[:, None]
    cloth = (across * down + 0.4 * smooth_noise(rng, shape, 3.0)).astype(np.float32)
    return np.asarray(cloth, np.float32)


def _relief(raised: Mask, style: ColourStyle, sigma_px: float) -> Shares:
    """Light and shade on the flanks of what is raised, (H, W), about -1 to 1."""
    height = cv2.GaussianBlur(raised.astype(np.float32), (0, 0), sigma_px)
    down, across = np.gradient(np.asarray(height, np.float32))
    lit = across * np.float32(np.cos(style.light_from)) + down * np.float32(np.sin(style.light_from))
    # The steepest slope of a blurred edge is 1 / (sigma sqrt(2 pi)).
    return np.asarray(lit * np.float32(sigma_px * 2.5 * style.slant), np.float32)


def _metal(layers: Layers, rng: np.random.Generator, style: ColourStyle) -> tuple[Shares, Shares]:
    """Colour of bare metal (H, W, 3) and its glints (H, W)."""
    shape, scale = layers.size, layers.px_per_mm / 48.0
    fine, slow = smooth_noise(rng, shape, 0.8), smooth_noise(rng, shape, 10.0 * max(scale, 0.25))
    tone = 1.0 + np.float32(0.03) * fine + np.float32(1.5 * style.mottle) * slow
    metal = _colour(style.metal) * tone[..., None]
    if style.finish == "copper":
        # Oxide comes in clouds: darker and redder.
        clouds = np.float32(0.06) * smooth_noise(rng, shape, 20.0 * max(scale, 0.25)).clip(0, 3)
        metal = metal - clouds[..., None] * _colour((0.5, 1.0, 1.0))
    glint = np.zeros(shape, np.float32)
    if style.finish == "hasl":
        pads = layers.copper if style.mask == NO_MASK else layers.copper & layers.mask_open
        # Solder stands in domes: flanks turn away from the camera, the side towards the light flashes.
        reach = 20.0 * scale
        solid = cv2.morphologyEx(
            (pads | layers.holes).astype(np.uint8), cv2.MORPH_CLOSE, np.ones((5, 5), np.uint8)
        )
        depth = cv2.distanceTransform(solid.astype(np.uint8), cv2.DIST_L2, 5)
        rise = 1.0 - (1.0 - np.minimum(depth, reach) / reach) ** 2
        dome = cv2.GaussianBlur((rise * reach * 0.8).astype(np.float32), (0, 0), max(2.0 * scale, 0.8))
        down, across = np.gradient(np.asarray(dome, np.float32) + 0.5 * scale * slow)
        lit = across * np.cos(style.light_from) + down * np.sin(style.light_from)
        tilted = across**2 + down**2
        flash = np.exp(
            -((across - 0.45 * np.cos(style.light_from)) ** 2 + (down - 0.45 * np.sin(style.light_from)) ** 2)
            / 0.05
        )
        glint = (0.12 * lit - 0.30 * tilted.clip(0.0, 1.2) + 0.45 * flash).astype(np.float32)
    return np.asarray(metal, np.float32), glint * np.float32(style.slant)


def _drill(
    surface: Shares, layers: Layers, rng: np.random.Generator, style: ColourStyle, glint: Shares
) -> Shares:
    """Holes: dark, lit from behind, or full of solder."""
    if not layers.holes.any():
        return surface
    shape, scale = layers.size, layers.px_per_mm / 48.0
    cover = _soft(layers.holes, 0.7)
    depth = np.asarray(cv2.distanceTransform(layers.holes.astype(np.uint8), cv2.DIST_L2, 3), np.float32)
    # The wall is plated: bright on the side that faces the light.
    wall = np.exp(-depth / np.float32(2.5 * max(scale, 0.4)))
    facing = (0.5 + 1.2 * _relief(~layers.holes, style, 3.0 * max(scale, 0.4))).clip(0.0, 1.0)
    if style.holes == "filled":
        ring = np.exp(-((depth - 3.0 * scale) ** 2) / np.float32(2 * (2.0 * max(scale, 0.4)) ** 2))
        inside = _colour(style.metal) * (1.0 - rng.uniform(0.1, 0.45) * ring)[..., None] + glint[..., None]
    elif style.holes == "backlit":
        inside = np.broadcast_to(np.maximum(_colour(style.background), 0.5), (*shape, 3)).copy()
        inside = inside * (1.0 - 0.5 * wall)[..., None]
    else:
        inside = np.full((*shape, 3), 0.04, np.float32)
        inside = inside + (wall * facing)[..., None] * _colour(style.metal) * 0.8
    inside = inside * (1.0 + 0.02 * smooth_noise(rng, shape, 1.0))[..., None]
    return _over(surface, np.asarray(inside, np.float32), cover)


def _cut_off(surface: Shares, outside: Shares, layers: Layers, style: ColourStyle) -> Shares:
    """What lies outside the outline; the cut edge shows laminate, and the board casts a shadow."""
    reach = 3.0 * layers.px_per_mm / 48.0
    inside = cv2.distanceTransform(layers.board.astype(np.uint8), cv2.DIST_L2, 3)
    rim = np.exp(-np.asarray(inside, np.float32) / np.float32(reach)) * layers.board
    surface = _over(surface, np.broadcast_to(_colour(style.laminate), surface.shape), rim * np.float32(0.7))
    away = cv2.distanceTransform((~layers.board).astype(np.uint8), cv2.DIST_L2, 3)
    shadow = 1.0 - 0.5 * np.exp(-np.asarray(away, np.float32) / np.float32(6 * reach))
    return _over(surface, _colour(style.background) * shadow[..., None], outside)
