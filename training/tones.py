"""Two tones in the ground of a photograph: light taken out, a boundary between them.

Light multiplies what a surface reflects, so tones are compared as logarithms: `logs` are (H, W, 3) float32,
the logarithms of red, green and blue.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ImageError
from training.layers import Mask

Plane = NDArray[np.float32]
Values = NDArray[np.float64]
_LEAST_EDGES = 100
_LEAST_PARTED = 0.45
"""Share of the edges whose sides lie on either side of the boundary."""
_LEAST_BROAD = 0.55
"""Share of each tone that is at least 5 px wide."""
_LEAST_SHARE = 0.005
"""Of the ground that each tone covers."""
_TILE_PX, _OVERLAP_PX = 700, 60
_CELL_PX = 16
_LIGHT_PX = 120.0
"""Light is alike over about this length."""
_SIDE_PX = 3.5
"""The sides of an edge are looked at this far from it."""
_LUMA = np.array([0.30, 0.59, 0.11])
_NUM_POINTS = 40_000


@dataclass(frozen=True)
class Tones:
    """The two tones of the ground. Masks are (H, W)."""

    light: Mask
    sure: Mask
    """Clear of the boundary between the tones."""
    accuracy: float
    """Expected share of ground pixels on the right side, from how much the tones overlap."""


def split_tones(picture: NDArray[np.uint8], ground: Mask) -> Tones:
    """Part the ground of a picture, (H, W, 3) RGB, into a lighter and a darker tone, tile by tile.

    A tile where that cannot be done is nowhere sure.

    Raises:
        ImageError: it can be done in no tile; the error of the one with most ground.
    """
    height, width = ground.shape
    light, sure = np.zeros((height, width), bool), np.zeros((height, width), bool)
    found: list[tuple[int, float]] = []
    errors: list[tuple[int, ImageError]] = []
    for top, bottom in _tiles(height):
        for left, right in _tiles(width):
            tile = (
                slice(max(top - _OVERLAP_PX, 0), bottom + _OVERLAP_PX),
                slice(max(left - _OVERLAP_PX, 0), right + _OVERLAP_PX),
            )
            area = int(ground[tile].sum())
            try:
                part = _split_tile(picture[tile], ground[tile])
            except ImageError as error:
                errors.append((area, error))
                continue
            inside = (
                slice(top - tile[0].start, bottom - tile[0].start),
                slice(left - tile[1].start, right - tile[1].start),
            )
            light[top:bottom, left:right], sure[top:bottom, left:right] = (
                part.light[inside],
                part.sure[inside],
            )
            found.append((area, part.accuracy))
    if not found:
        raise max(errors, key=lambda entry: entry[0])[1]
    areas, accuracies = np.array(found).T
    return Tones(light, sure, float((areas * accuracies).sum() / max(areas.sum(), 1)))


def _tiles(length: int) -> list[tuple[int, int]]:
    """(start, stop) of tiles alike long, each about `_TILE_PX`."""
    cuts = np.linspace(0, length, max(round(length / _TILE_PX), 1) + 1).round().astype(int).tolist()
    return list(pairwise(cuts))


def _split_tile(picture: NDArray[np.uint8], ground: Mask) -> Tones:
    """Part the ground of one tile, uneven light taken out.

    The two sides of an edge lie in the same light: their difference tells the contrast of the tones, their
    mean the boundary at that place, which is then carried over the picture as a smooth field.

    Raises:
        ImageError: no edges, or tones too near each other.
    """
    logs = np.asarray(np.log(cv2.GaussianBlur(picture.astype(np.float32), (0, 0), 1.0) + 6.0), np.float32)
    rows, columns, dark, light = _edge_pairs(logs, ground)
    if len(rows) < _LEAST_EDGES:
        raise ImageError(
            f"only {len(rows)} px of edges between two tones, wanted {_LEAST_EDGES}; give a sharper picture, "
            "or one that shows both copper and laminate"
        )
    step = light - dark
    mean = np.median(step, axis=0)
    # A channel counts by its contrast and against its noise.
    noise = np.median(np.abs(logs - cv2.GaussianBlur(logs, (0, 0), 2.0))[ground], axis=0).astype(np.float64)
    axis = mean / (noise**2 + 1e-4)
    axis /= np.linalg.norm(axis)
    contrast = float(np.median(step @ axis))
    even = logs @ axis.astype(np.float32) - _carried(rows, columns, (dark + light) @ axis / 2, ground.shape)
    inner = _inner(ground)
    cut, fullness = _valley(even[inner], contrast)
    middle = even[rows, columns] - (logs[rows, columns] @ axis).astype(np.float32) - np.float32(cut)
    parted = float(((dark @ axis + middle < 0) & (light @ axis + middle > 0)).mean())
    if parted < _LEAST_PARTED:
        raise ImageError(
            f"copper and laminate look alike: one boundary parts {parted:.0%} of the edges, wanted "
            f"{_LEAST_PARTED:.0%}; give an evenly lit picture, or one with more contrast"
        )
    near = np.abs(even[inner] - cut) < contrast / 8
    accuracy = float(1.0 - near.mean() / 2 - 0.1 * fullness)
    above = np.asarray(cv2.GaussianBlur(even - np.float32(cut), (0, 0), 0.8), np.float32)
    found = _without_specks(above > 0)
    for tone in (found, ~found):
        broad = cv2.morphologyEx(tone.astype(np.uint8), cv2.MORPH_OPEN, np.ones((5, 5), np.uint8)) > 0
        if broad[inner].sum() < _LEAST_BROAD * tone[inner].sum():
            raise ImageError(
                "copper and laminate look alike: one of the two tones is nothing but lines under 5 px wide, "
                "as light and shade draw along edges; give a larger picture, or one with more contrast"
            )
    edge = cv2.morphologyEx(found.astype(np.uint8), cv2.MORPH_GRADIENT, np.ones((5, 5), np.uint8)) > 0
    return Tones(found, inner & ((np.abs(above) > 0.1 * contrast) | edge), accuracy)


def _inner(ground: Mask) -> Mask:
    """Ground that is clear of pads, silk and holes: along them it is mixed, shaded or bare laminate."""
    reach = max(3, round(max(ground.shape) / 200))
    return np.asarray(cv2.erode(ground.astype(np.uint8), np.ones((2 * reach + 1,) * 2, np.uint8)) > 0)


def _edge_pairs(
    logs: NDArray[np.float32], ground: Mask
) -> tuple[NDArray[np.int64], NDArray[np.int64], Values, Values]:
    """Rows and columns (N,) of edges on the ground; the logarithms on their dark and light side (N, 3)."""
    inner = _inner(ground)
    # Along the colour in which the picture has its edges; bare copper may be as light as its laminate.
    slopes = np.array(
        [[part[inner] for part in _gradient(logs[..., i])] for i in range(3)], np.float64
    ).reshape(3, -1)
    axis = np.linalg.eigh(slopes @ slopes.T)[1][:, -1]
    axis *= np.sign(axis @ _LUMA)
    plane = np.asarray(cv2.GaussianBlur(logs @ axis.astype(np.float32), (0, 0), 1.0), np.float32)
    down, across = _gradient(plane)
    slope = np.asarray(np.hypot(across, down), np.float32)
    ridge = slope >= cv2.dilate(slope, np.ones((3, 3), np.uint8))
    level = 4.0 * float(np.median(slope[inner])) if inner.any() else np.inf
    rows, columns = np.nonzero(ridge & inner & (slope > max(level, 0.02)))
    every = max(len(rows) // _NUM_POINTS, 1)
    rows, columns = rows[::every], columns[::every]
    reach = _SIDE_PX / np.maximum(slope[rows, columns], 1e-6)
    dx, dy = (np.rint(part[rows, columns] * reach).astype(np.int64) for part in (across, down))
    height, width = ground.shape
    sides = [
        ((rows + sign * dy).clip(0, height - 1), (columns + sign * dx).clip(0, width - 1)) for sign in (-1, 1)
    ]
    on = ground[sides[0]] & ground[sides[1]]
    dark, light = (logs[side][on].astype(np.float64) for side in sides)
    return rows[on], columns[on], dark, light


def _gradient(plane: Plane) -> tuple[Plane, Plane]:
    """Change down and across, (H, W) each."""
    down, across = np.gradient(plane, axis=(0, 1))
    return np.asarray(down, np.float32), np.asarray(across, np.float32)


def _carried(
    rows: NDArray[np.int64], columns: NDArray[np.int64], values: Values, shape: tuple[int, ...]
) -> Plane:
    """Values at points, (N,), as a smooth field over the picture, (H, W)."""
    height, width = shape
    terms = _terms(columns / width, rows / height)
    weights = _robust_fit(terms, values)
    rest = values - np.stack(terms, axis=1) @ weights
    rest = rest.clip(*np.percentile(rest, (5, 95)))
    x, y = np.arange(width) / width, np.arange(height)[:, None] / height
    field = sum(weight * term for weight, term in zip(weights.tolist(), _terms(x, y), strict=True))
    # What is left varies within a few hundred px; far from all edges it fades out.
    cells = (height // _CELL_PX + 1, width // _CELL_PX + 1)
    at = (rows // _CELL_PX) * cells[1] + columns // _CELL_PX
    sums, counts = (
        np.bincount(at, weights=w, minlength=cells[0] * cells[1]).reshape(cells)
        for w in (rest, np.ones_like(rest))
    )
    near, weight = (
        np.asarray(cv2.GaussianBlur(plane.astype(np.float32), (0, 0), _LIGHT_PX / _CELL_PX))
        for plane in (sums, counts)
    )
    local = np.asarray(near / (weight + 0.2), np.float32)
    place = (np.arange(width, dtype=np.float32)[None, :] + 0.5) / _CELL_PX - 0.5
    down = (np.arange(height, dtype=np.float32)[:, None] + 0.5) / _CELL_PX - 0.5
    xs, ys = (np.ascontiguousarray(np.broadcast_to(grid, shape)) for grid in (place, down))
    spread = cv2.remap(local, xs, ys, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(field + spread, np.float32)


def _terms(x: Values, y: Values) -> list[Values]:
    """A smooth field of third order over the picture, x and y from 0 to 1."""
    x, y = 2.0 * x - 1.0, 2.0 * y - 1.0
    return [x**i * y**j + 0.0 * (x + y) for i in range(4) for j in range(4 - i)]


def _robust_fit(terms: list[Values], values: Values) -> Values:
    """Weights of the terms, points far off counting less; slow terms where there are few points."""
    design = np.stack(terms, axis=1)
    trust = np.ones(len(values))
    damping = np.diag([0.0 if i == 0 else 0.003 * len(values) for i in range(design.shape[1])])
    for _ in range(6):
        weighted = design * trust[:, None]
        weights = np.linalg.solve(weighted.T @ design + damping, weighted.T @ values)
        off = np.abs(values - design @ weights)
        trust = 1.0 / (1.0 + (off / max(float(np.median(off)), 1e-6)) ** 2)
    return np.asarray(weights)


def _valley(values: NDArray[np.float32], contrast: float) -> tuple[float, float]:
    """The gap between the two tones, and how full it is against the emptier of the two.

    Laminate may have tones of its own (shade along copper, fill on the far side), copper has one: of several
    gaps the lightest counts.
    """
    counts, edges = np.histogram(values, bins=120, range=(-1.2 * contrast, 1.2 * contrast))
    full = np.convolve(counts, np.array([1, 2, 3, 2, 1]) / 9, "same")
    grid = (edges[1:] + edges[:-1]) / 2
    least = _LEAST_SHARE * full.sum()
    for i in np.flatnonzero((grid > -0.6 * contrast) & (grid < 0.45 * contrast))[::-1].tolist():
        peaks = min(full[:i].max(), full[i:].max())
        is_valley = full[i] <= min(full[i - 1], full[i + 1]) and full[i] < 0.5 * peaks
        if is_valley and min(full[i:].sum(), full[:i].sum()) > least:
            return float(grid[i]), float(full[i] / peaks)
    raise ImageError(
        "copper and laminate look alike: no gap between the two tones; give a sharper picture, or one with "
        "more contrast"
    )


def _without_specks(light: Mask) -> Mask:
    """Pieces of either tone too small for a conductor or a gap join what is around them."""
    least = max(12, round(light.size / 40_000))
    for tone in (True, False):
        mask = (light == tone).astype(np.uint8)
        _, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
        small = stats[:, cv2.CC_STAT_AREA] < least
        small[0] = False
        light = np.where(small[labels], not tone, light)
    return np.asarray(light, bool)
