"""Pixels -> polygons along the pixels' edges, which cover exactly those pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inspect_vit.shapes import Polygon, Ring
from training.formats.rings import nest

_RIGHT = {(1, 0): (0, 1), (0, 1): (-1, 0), (-1, 0): (0, -1), (0, -1): (1, 0)}
"""Direction (x, y) of an edge -> its right turn on the screen."""


def pixel_outline(mask: NDArray[np.bool_], at: tuple[int, int] = (0, 0)) -> tuple[Polygon, ...]:
    """Polygons with corners on whole pixels; pixels that touch at a corner alone are parted there.

    Args:
        mask: (h, w), a window of the picture.
        at: (left, top) of that window.
    """
    return nest([ring + at for ring in _rings(mask)]) if mask.any() else ()


def _rings(mask: NDArray[np.bool_]) -> list[Ring]:
    """Closed walks along the edges, pixels on the right hand; corners only."""
    ways = _edges(mask)
    rings = []
    while ways:
        start = at = next(iter(ways))
        step = _leave(ways, at, ways[at][0])
        corners = [start]
        while (at := (at[0] + step[0], at[1] + step[1])) != start:
            steps = ways[at]
            following = next((s for s in (_RIGHT[step], step) if s in steps), steps[0])
            if following != step:
                corners.append(at)
            step = _leave(ways, at, following)
        rings.append(_without_straight(np.array(corners, np.float64)))
    return rings


def _leave(
    ways: dict[tuple[int, int], list[tuple[int, int]]], corner: tuple[int, int], step: tuple[int, int]
) -> tuple[int, int]:
    """Take an edge out of those still to be walked."""
    ways[corner].remove(step)
    if not ways[corner]:
        del ways[corner]
    return step


def _edges(mask: NDArray[np.bool_]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Corner (x, y) -> directions of the edges that leave it, clockwise around the pixels."""
    padded = np.pad(mask, 1)
    ways: dict[tuple[int, int], list[tuple[int, int]]] = {}
    sides = (
        (padded[:-2, 1:-1], (0, 0), (1, 0)),  # above
        (padded[1:-1, 2:], (1, 0), (0, 1)),  # right
        (padded[2:, 1:-1], (1, 1), (-1, 0)),  # below
        (padded[1:-1, :-2], (0, 1), (0, -1)),  # left
    )
    for neighbour, offset, direction in sides:
        rows, columns = np.nonzero(mask & ~neighbour)
        for x, y in zip((columns + offset[0]).tolist(), (rows + offset[1]).tolist(), strict=True):
            ways.setdefault((x, y), []).append(direction)
    return ways


def _without_straight(ring: Ring) -> Ring:
    """Drop the start where the walk passes straight through it."""
    before, after = ring[0] - ring[-1], ring[1] - ring[0]
    return ring[1:] if before[0] * after[1] == before[1] * after[0] else ring
