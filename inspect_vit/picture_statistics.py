"""Numbers of a picture that tell how the camera and the light are doing, whatever board is on it."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

PART_PX = 2**22
"""Pixels that are looked at together: of a line scan, copies take little memory so."""


@dataclass(frozen=True)
class PictureStatistics:
    """All of the grey picture, 0..255."""

    mean_grey: float
    contrast: float
    """Standard deviation of the grey levels."""
    sharpness: float
    """Root mean square of the Laplacian over the contrast, which light alone does not move; 0 where all is
    one grey."""


def picture_statistics(picture: NDArray[np.uint8]) -> PictureStatistics:
    """Of a picture (H, W, 3) RGB."""
    height, width = picture.shape[:2]
    counts, energy = np.zeros(256), 0.0
    step = max(1, PART_PX // width)
    for top in range(0, height, step):
        grey = cv2.cvtColor(picture[top : top + step], cv2.COLOR_RGB2GRAY)
        counts += np.asarray(cv2.calcHist([grey], [0], None, [256], [0, 256]), np.float64).reshape(-1)
        energy += cv2.norm(cv2.Laplacian(grey, cv2.CV_16S), cv2.NORM_L2SQR)
    share = counts / (height * width)
    levels = np.arange(256)
    mean = float(share @ levels)
    contrast = float(np.sqrt(share @ (levels - mean) ** 2))
    edges = float(np.sqrt(energy / (height * width)))
    return PictureStatistics(mean, contrast, edges / contrast if contrast else 0.0)
