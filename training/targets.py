"""What the head should answer for a crop."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from training.augment import Crop

STRIDE = 4
SPREAD = 6.0
"""Standard deviation of a centre's Gaussian = box side / (SPREAD * STRIDE) cells, at least MIN_SIGMA."""
MIN_SIGMA = 0.7
BOX_REACH = 1.5
"""Cells up to this far from the centre learn the box."""


def draw_targets(crop: Crop, num_classes: int) -> dict[str, NDArray[np.float32]]:
    """Centre heat maps (Law and Deng 2018, section 3.2), distances, weights, mask shares, counted cells.

    Shapes as in `DefectDataset.__getitem__`.
    """
    cells = crop.board.shape[0] // STRIDE
    centres = np.zeros((num_classes, cells, cells), np.float32)
    distances = np.zeros((4, cells, cells), np.float32)
    weights = np.zeros((1, cells, cells), np.float32)
    y, x = np.mgrid[:cells, :cells].astype(np.float32)
    for box, label in zip(crop.boxes, crop.labels, strict=True):
        left, top, right, bottom = box.tolist()
        column, row = (left + right) / (2 * STRIDE) - 0.5, (top + bottom) / (2 * STRIDE) - 0.5
        nearest_column, nearest_row = (int(np.clip(round(v), 0, cells - 1)) for v in (column, row))
        sigma_x, sigma_y = (max(side / (SPREAD * STRIDE), MIN_SIGMA) for side in (right - left, bottom - top))
        heat = np.exp(-(((x - nearest_column) / sigma_x) ** 2 + ((y - nearest_row) / sigma_y) ** 2) / 2)
        np.maximum(centres[label], heat, out=centres[label])
        near = (np.abs(x - column) <= BOX_REACH) & (np.abs(y - row) <= BOX_REACH) & (heat > weights[0])
        px, py = (x[near] + 0.5) * STRIDE, (y[near] + 0.5) * STRIDE
        distances[:, near] = np.stack([px - left, py - top, right - px, bottom - py]).clip(min=0.5)
        weights[0][near] = heat[near]
    counted = np.ones((1, cells, cells), np.float32)
    for box in crop.ignored:
        left, top, right, bottom = np.round(box / STRIDE).astype(int).tolist()
        counted[0, top : bottom + 1, left : right + 1] = 0
    counted[:, centres.max(0) > 0.1] = 1
    masks = np.stack(
        [
            cv2.resize(
                (crop.class_mask == k + 1).astype(np.float32), (cells, cells), interpolation=cv2.INTER_AREA
            )
            for k in range(num_classes)
        ]
    )
    return {
        "centres": centres,
        "distances": distances,
        "box_weights": weights,
        "masks": masks,
        "counted": counted,
    }
