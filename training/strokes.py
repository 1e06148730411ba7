"""Shapes of defects as small pixel patches: strokes of uneven width, blobs, ragged edges.

Coordinates are (x, y) in px of the board picture; a pixel's centre has whole-number coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.results import BoxXyxy

Mask = NDArray[np.bool_]
Points = NDArray[np.float64]

_SUBPIXEL_BITS = 4
_LAPS = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)


@dataclass(frozen=True)
class Patch:
    """Pixels of a picture: `mask` (h, w) lies with its corner at (left, top), all inside the picture."""

    left: int
    top: int
    mask: Mask

    @property
    def view(self) -> tuple[slice, slice]:
        """The rows and columns of the picture under this patch."""
        height, width = self.mask.shape
        return slice(self.top, self.top + height), slice(self.left, self.left + width)

    def box(self, margin_px: int, shape: tuple[int, int]) -> BoxXyxy:
        """Bounds, wider by the margin where a picture of `shape` (height, width) allows."""
        height, width = self.mask.shape
        return (
            float(max(self.left - margin_px, 0)),
            float(max(self.top - margin_px, 0)),
            float(min(self.left + width + margin_px, shape[1])),
            float(min(self.top + height + margin_px, shape[0])),
        )

    def full(self, shape: tuple[int, int]) -> Mask:
        """The same pixels as one mask of the whole picture, (height, width)."""
        mask = np.zeros(shape, bool)
        mask[self.view] = self.mask
        return mask


def trimmed(patch: Patch) -> Patch:
    """The same pixels in the smallest patch; the patch must not be empty."""
    left, top, width, height = cv2.boundingRect(patch.mask.view(np.uint8))
    return Patch(patch.left + left, patch.top + top, patch.mask[top : top + height, left : left + width])


def draw_stroke(points: Points, width_px: float, rng: np.random.Generator) -> Patch:
    """A brush stroke along the points, (N, 2): even, tapering or lumpy, with round ends.

    Args:
        width_px: mean width; the patch may reach outside the picture.
    """
    steps = np.hypot(*np.diff(points, axis=0).T)
    places = np.concatenate([[0.0], np.cumsum(steps)])
    count = max(int(places[-1] / 2.5), 2)
    at = np.linspace(0.0, places[-1], count)
    line = np.stack([np.interp(at, places, points[:, 0]), np.interp(at, places, points[:, 1])], axis=1)
    profile = np.ones(count)
    style = rng.random()
    if style < 0.3:
        profile = np.linspace(1.0, rng.uniform(0.3, 0.8), count)[:: int(rng.choice([-1, 1]))]
    elif style < 0.65:
        profile = 1.0 + rng.uniform(0.1, 0.35) * rng.standard_normal(count)
    # Filled polygons include their outline, which is half a pixel on each side.
    radii = np.maximum(width_px / 2 * profile - 0.5, 0.1)
    low = np.floor(line.min(axis=0) - radii.max() - 1).astype(int)
    size = np.ceil(line.max(axis=0) + radii.max() + 2).astype(int) - low
    image = np.zeros((size[1], size[0]), np.uint8)
    line = line - low
    one = 1 << _SUBPIXEL_BITS
    slope = np.gradient(line, axis=0)
    normals = np.stack([-slope[:, 1], slope[:, 0]], axis=1)
    normals *= (radii / np.maximum(np.hypot(slope[:, 0], slope[:, 1]), 1e-6))[:, None]
    sides = np.rint(np.stack([line + normals, line - normals], axis=1) * one).astype(np.int32)
    quads = np.concatenate([sides[:-1], sides[1:, ::-1]], axis=1)
    for quad in quads:
        cv2.fillConvexPoly(image, quad, 1, cv2.LINE_8, _SUBPIXEL_BITS)
    for (x, y), radius in zip((line * one).round().astype(int).tolist(), radii.tolist(), strict=True):
        cv2.circle(image, (x, y), round(radius * one), 1, -1, cv2.LINE_8, _SUBPIXEL_BITS)
    return Patch(int(low[0]), int(low[1]), image.view(bool))


def draw_blob(
    centre: Points, length_px: float, width_px: float, angle: float, rng: np.random.Generator
) -> Patch:
    """An irregular rounded blob about `length_px` long along `angle` (radians) and `width_px` wide."""
    rough = rng.uniform(0.0, 0.3)
    waves = rng.standard_normal((2, 4)) * rough / np.arange(1, 5)
    laps = np.arange(2, 6)[:, None] * _LAPS
    radius = np.maximum(1.0 + waves[0] @ np.cos(laps) + waves[1] @ np.sin(laps), 0.3)
    along = (length_px - 1) / 2 * radius * np.cos(_LAPS)
    across = (width_px - 1) / 2 * radius * np.sin(_LAPS)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    outline = centre + np.stack([along, across], axis=1) @ turn
    low = np.floor(outline.min(axis=0) - 1).astype(int)
    size = np.ceil(outline.max(axis=0) + 2).astype(int) - low
    image = np.zeros((size[1], size[0]), np.uint8)
    points = np.rint((outline - low) * (1 << _SUBPIXEL_BITS)).astype(np.int32)
    cv2.fillPoly(image, [points], 1, cv2.LINE_8, _SUBPIXEL_BITS)
    return Patch(int(low[0]), int(low[1]), image.view(bool))


def roughen(patch: Patch, angle: float, rng: np.random.Generator) -> Patch:
    """The stroke of a dry brush along `angle`: streaks and specks of it are missing.

    What is left may be in pieces; the caller keeps the piece it needs.
    """
    height, width = patch.mask.shape
    rows, columns = np.mgrid[:height, :width]
    across = np.rint(columns * np.sin(angle) - rows * np.cos(angle)).astype(int)
    streaks = rng.standard_normal(int(np.ptp(across)) + 1)[across - across.min()]
    specks = rng.standard_normal((height, width))
    gaps = streaks * rng.uniform(0.2, 0.8) + specks * rng.uniform(0.4, 0.8) > rng.uniform(0.5, 1.0)
    return Patch(patch.left, patch.top, patch.mask & ~gaps)


def bent_line(start: Points, end: Points, rng: np.random.Generator, *, bend: float = 0.25) -> Points:
    """(5, 2) points from start to end, straight, on an arc or wavering; `bend` in lengths of the line."""
    along = end - start
    across = np.array([-along[1], along[0]])
    at = np.linspace(0.0, 1.0, 5)
    style = rng.random()
    if style < 0.5:
        sway = np.zeros(5)
    elif style < 0.85:
        sway = rng.uniform(-bend, bend) * 4.0 * at * (1.0 - at)
    else:
        sway = rng.uniform(-bend, bend, 5) * 0.4
        sway[[0, -1]] = 0.0
    return np.asarray(start + at[:, None] * along + sway[:, None] * across)
