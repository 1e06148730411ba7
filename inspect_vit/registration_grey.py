"""Pictures without their local brightness and contrast: what is left is structure."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

Grey = NDArray[np.float32]
NORMALISE_PX = 17
"""Side of the window whose mean and deviation are taken out of a picture, pixels of the level."""
MEDIAN_OF_NORMAL = 0.6745
"""Median of the absolute value of a normal deviate of variance 1."""
NOISE_FLOOR = 50.0
"""Times the noise, which then stays below STRUCTURE though interpolated noise is taken for half of itself."""
STRUCTURE = 0.05
"""Mean square of normalised grey from which a cell counts as structured."""


def noise_variance(grey: NDArray[np.uint8]) -> float:
    """Variance of the noise of single pixels, told from (H, W) by second differences along both axes, which
    even tones and edges along either axis leave at 0.

    Source: Immerkaer, Computer Vision and Image Understanding 64 (1996); the median in place of the mean, so
    that tracks and holes do not count.
    """
    mask = np.outer((1, -2, 1), (1, -2, 1)).astype(np.float32)
    typical = float(np.median(np.abs(cv2.filter2D(grey, cv2.CV_32F, mask))))
    return (typical / (MEDIAN_OF_NORMAL * float(np.sqrt((mask * mask).sum())))) ** 2


def normalise(grey: Grey, *, noise: float) -> Grey:
    """Take out local brightness and contrast: (H, W) float32 to zero mean and about unit variance.

    Where contrast is far below the picture's own, or what noise alone shows, it is left low: noise on bare
    laminate is no structure.

    noise: variance of the noise.
    """
    high = without_means(grey)
    variance = _means(high * high)
    own = float(variance.mean())
    # fine texture all over looks like noise, and is structure
    floor = max(0.1 * own, 4.0, min(NOISE_FLOOR * noise, 2.0 * own))
    return np.asarray(high / np.sqrt(variance + floor), np.float32)


def without_means(picture: Grey) -> Grey:
    """(H, W) less its local means."""
    return np.asarray(picture - _means(picture), np.float32)


def _means(picture: Grey) -> Grey:
    window = (NORMALISE_PX, NORMALISE_PX)
    return np.asarray(cv2.blur(picture, window, borderType=cv2.BORDER_REFLECT), np.float32)


def structured_share(picture: Grey, size: int) -> float:
    """Share of cells of a normalised picture that show structure, 0..1."""
    height, width = (max(side // size, 1) for side in picture.shape)
    strength = cv2.resize(picture * picture, (width, height), interpolation=cv2.INTER_AREA)
    return float((np.asarray(strength) > STRUCTURE).mean())
