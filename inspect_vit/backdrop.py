"""The board under a map: dimmed, or its edges alone on a coloured map; and the lines of a map's contour."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.annotation import unit_px
from inspect_vit.colours import THRESHOLD_AT
from inspect_vit.drawing import PAPER, Picture, blend, grey_of

COLD_DARK, COLD_BRIGHT = (10, 16, 28), (150, 166, 186)
"""Black and white of the board under the overlay."""


def quiet(image: Picture) -> Picture:
    """The board in cold, dim tones with a trace of its own colour, so that warm colours stand out."""
    cold = np.stack(
        [np.linspace(dark, bright, 256) for dark, bright in zip(COLD_DARK, COLD_BRIGHT, strict=True)]
    )
    toned = np.take(np.rint(cold.T).astype(np.uint8), grey_of(image), axis=0)
    return np.asarray(cv2.addWeighted(toned, 0.8, image, 0.25, -4.0), np.uint8)


def draw_contour(
    picture: Picture, scale: NDArray[np.float32], *, at: float = THRESHOLD_AT, has_halo: bool = False
) -> None:
    """A thin line where a scale, 0..1, crosses a value, in place; by default the threshold.

    has_halo: dark on both sides, to be seen on light colours too.
    """
    over = (scale >= at).astype(np.uint8)
    contours, _ = cv2.findContours(over, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    thickness = max(1, round(unit_px(*scale.shape) / 2))
    if has_halo:
        cv2.drawContours(picture, contours, -1, PAPER, thickness + 2, cv2.LINE_AA)
    cv2.drawContours(picture, contours, -1, (255, 196, 160), thickness, cv2.LINE_AA)


def etched(colour: Picture, image: Picture) -> Picture:
    """The board's edges in thin light lines on a coloured map, so that its colours stay as in the legend."""
    unit = unit_px(*image.shape[:2])
    grey = cv2.GaussianBlur(grey_of(image), (0, 0), 0.8 * unit)
    edges = cv2.morphologyEx(grey, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8))
    opacity = (edges.astype(np.float32) * (0.45 / 128)).clip(0, 0.45)
    return blend(colour, np.full_like(image, 255), opacity)
