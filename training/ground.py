"""The ground of a photograph of a board, and what lies on it: bare metal, silk, holes, background."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ImageError
from training.layers import Mask

_COLOURED = 12.0
"""Chroma (CIELAB) from which a ground counts as coloured."""
_PALE = 60.0
"""Lightness (CIELAB) above which a colourless ground is a white mask."""
_LEAST_GROUND = 0.25


@dataclass(frozen=True)
class Ground:
    """What most of the picture is. Masks are (H, W)."""

    mask: Mask
    """True on the ground; False on bare metal, silk, holes and background."""
    metal: Mask
    """Bare metal: broad bright patches off the ground's colour."""
    masked: bool
    """A solder mask; False: copper and laminate are bare."""
    pale: bool
    """A white mask, under which copper and laminate are much alike."""


def find_ground(picture: NDArray[np.uint8]) -> Ground:
    """Tell the ground of the picture, (H, W, 3) RGB, from what lies on it, by colour.

    Raises:
        ImageError: no colour covers a quarter of the picture.
    """
    lab = cv2.cvtColor(picture.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
    soft = np.asarray(cv2.GaussianBlur(lab, (0, 0), 1.2), np.float32)
    lightness, a, b = soft[..., 0], soft[..., 1], soft[..., 2]
    chroma = np.hypot(a, b)
    coloured = chroma > _COLOURED
    pale = False
    if coloured.mean() > 0.4:
        hue = np.arctan2(b, a)
        main = _main_angle(hue[coloured])
        off = np.abs((hue - main + np.pi) % (2 * np.pi) - np.pi)
        # Copper and laminate under one mask are equally saturated; silk and tin are not.
        saturation = chroma / np.maximum(lightness, 1.0)
        typical = float(np.median(saturation[coloured & (off < 0.5)]))
        # Yellow and orange grounds are laminate and copper themselves, of two hues.
        masked = not (0.2 < main < 1.9 and typical < 1.2)
        on = (off < 0.6) & (saturation > 0.4 * typical) if masked else np.ones_like(coloured)
    else:
        typical = float(np.median(lightness))
        on = (np.abs(lightness - typical) < max(24.0, 0.4 * typical)) & (chroma < _COLOURED)
        masked, pale = True, typical > _PALE
    on = cv2.morphologyEx(on.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)) > 0
    if on.mean() < _LEAST_GROUND:
        raise ImageError(
            f"no ground colour: the commonest covers {on.mean():.0%} of the picture, wanted "
            f"{_LEAST_GROUND:.0%}; cut the picture to the board"
        )
    return Ground(on, _metal(lightness, on), masked, pale)


def _main_angle(angles: NDArray[np.float32]) -> float:
    """The commonest of some angles, radians."""
    counts, edges = np.histogram(angles, bins=72, range=(-np.pi, np.pi))
    around = np.convolve(np.concatenate([counts[-2:], counts, counts[:2]]), np.ones(5), "valid")
    best = int(around.argmax())
    return float((edges[best] + edges[best + 1]) / 2)


def _metal(lightness: NDArray[np.float32], ground: Mask) -> Mask:
    """Patches off the ground that are too broad for silk, with the holes in them."""
    width = max(7, round(max(ground.shape) / 130)) | 1
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (width, width))
    broad = cv2.morphologyEx((~ground).astype(np.uint8), cv2.MORPH_OPEN, disc)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(broad.astype(np.uint8), connectivity=8)
    # What is larger than any pad is background.
    small = stats[:, cv2.CC_STAT_AREA] < 0.05 * ground.size
    small[0] = False
    light = np.asarray(cv2.dilate(lightness, np.ones((9, 9), np.uint8)))
    return np.asarray(small[labels] & (light > float(np.median(lightness[ground])) + 5))
