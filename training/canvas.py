"""The sheet that procedural boards are drawn on: what is there so far, and where new copper may go."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

CLEARANCE_PX = 9
_MASK_RELIEF_PX = 3
"""Solder mask keeps this far from a pad."""
Mask = NDArray[np.bool_]
Picture = NDArray[np.uint8]
Points = NDArray[np.float64]


class Canvas:
    """A square board of `size` px, drawn feature by feature.

    A feature is kept only if it stays `CLEARANCE_PX` away from all copper that is there, so each is a net of
    its own.
    """

    def __init__(self, rng: np.random.Generator, size: int) -> None:
        self.rng = rng
        self.size = size
        self.copper: Mask = np.zeros((size, size), bool)
        self.holes: Mask = np.zeros((size, size), bool)
        self.bare: Mask = np.zeros((size, size), bool)
        """Openings of the solder mask."""
        self.blocked: Mask = np.zeros((size, size), bool)

    def add(self, feature: Picture, hole: Picture | None = None, pad: Picture | None = None) -> bool:
        """Keep the feature (non-zero where copper) if it fits; say whether it did.

        Args:
            hole: non-zero where it is drilled.
            pad: non-zero where it is soldered later, so free of solder mask.
        """
        if not feature.any() or (self.blocked & (feature > 0)).any():
            return False
        self.copper |= feature > 0
        self.blocked |= grown(feature, CLEARANCE_PX)
        if hole is not None:
            self.holes |= hole > 0
        if pad is not None:
            self.bare |= grown(pad, _MASK_RELIEF_PX)
        return True

    def blank(self) -> Picture:
        return np.zeros((self.size, self.size), np.uint8)

    def spot(self, margin: int = 0) -> Points:
        return self.rng.integers(-margin, self.size + margin, 2).astype(np.float64)

    def fill_ground(self) -> None:
        """Flood what is free with copper, keeping a wide gap to the nets, and open a few windows in it."""
        rng = self.rng
        ground = ~grown(self.copper.astype(np.uint8), int(rng.integers(9, 16)))
        windows = self.blank()
        for _ in range(int(rng.integers(1, 4))):
            x, y = self.spot()
            w, h = rng.integers(self.size // 5, self.size // 2, 2)
            cv2.rectangle(windows, (int(x), int(y)), (int(x + w), int(y + h)), 1, -1)
        ground &= windows == 0
        # An opening removes slivers narrower than a track.
        kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (15, 15))
        self.copper |= cv2.morphologyEx(ground.astype(np.uint8), cv2.MORPH_OPEN, kernel) > 0


def grown(mask: Picture, radius_px: float) -> Mask:
    """The mask and everything within this distance of it."""
    return np.asarray(cv2.distanceTransform((mask == 0).astype(np.uint8), cv2.DIST_L2, 3) <= radius_px)
