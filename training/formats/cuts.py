"""Several rings as one, for formats of one ring per defect: joined by cuts of no width, and parted again.

A cut runs from a vertex of one ring to a vertex of the next and back along the same line, so it encloses
nothing: by the even-odd rule the joined ring covers what its rings cover. Reading, an edge that is walked
there and back is such a cut, whoever wrote it, and taking it out changes no pixel either.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree

from inspect_vit.shapes import Polygon, Ring, Shape
from training.formats.outlines import pixel_outline
from training.formats.rings import nest, signed_area

_WIDEST_PX = 20_000
"""Rings that reach further are left as they are: they are in no picture."""
_OFF_CENTRE = (0.0837, 0.1119)


def join_rings(polygons: Sequence[Polygon]) -> Ring:
    """One ring for all polygons and their holes; holes run against their exteriors, for the non-zero rule.

    Polygons must not overlap: what two of them cover would count as outside.
    """
    rings = []
    for polygon in polygons:
        clockwise = signed_area(polygon.exterior) > 0
        against = (hole if (signed_area(hole) > 0) != clockwise else hole[::-1] for hole in polygon.holes)
        rings += [polygon.exterior, *against]
    joined = rings[0]
    for ring in rings[1:]:
        here, there = _nearest(joined, ring)
        loop = np.concatenate([np.roll(ring, -there, 0), ring[there : there + 1]])
        joined = np.concatenate([joined[: here + 1], loop, joined[here:]])
    return joined


def split_cuts(ring: Ring) -> tuple[Polygon, ...]:
    """The polygons that a ring with cuts stands for; a ring without cuts comes back as it is."""
    points = [(float(x), float(y)) for x, y in ring]
    if len(set(points)) == len(points):
        return (Polygon(ring),)
    path: list[tuple[float, float]] = []
    places: dict[tuple[float, float], list[int]] = {}
    """Where in the path each vertex stands."""
    loops: list[Ring] = []
    for point, following in zip(points, [*points[1:], points[0]], strict=True):
        if path and path[-1] == point and loops:
            places[path.pop()].pop()  # back at the vertex where a cut began
        # A loop that closes here was entered from `following` and leads back there.
        starts = (at for at in reversed(places.get(point, ())) if at > 0 and path[at - 1] == following)
        start = next((at for at in starts if len(path) - at >= 3), None)
        if start is None:
            places.setdefault(point, []).append(len(path))
            path.append(point)
        else:
            loops.append(np.array(path[start:]))
            for passed in path[start:]:
                places[passed].pop()
            del path[start:]
    if not loops or len(path) < 3:
        return (Polygon(ring),)
    if path[0] == path[-1] and len(path) > 3:
        path.pop()
    polygons = nest([np.array(path), *loops])
    return polygons if _same_region(ring, polygons) else (Polygon(ring),)


def _same_region(ring: Ring, polygons: Sequence[Polygon]) -> bool:
    """Whether polygons cover what the ring does, tried at one point in each pixel.

    It is not the pixel's centre: a cut that passes through one may by rounding count as an edge there.
    """
    corner = np.floor(ring.min(0)) - _OFF_CENTRE
    width, height = (np.ceil(ring.max(0) - corner)).astype(int).tolist()
    if max(width, height) > _WIDEST_PX:
        return False
    moved = (Polygon(p.exterior - corner, tuple(hole - corner for hole in p.holes)) for p in polygons)
    parted = Shape(polygons=tuple(moved)).mask(height, width)
    return np.array_equal(parted, Shape(polygons=(Polygon(ring - corner),)).mask(height, width))


def _nearest(first: Ring, second: Ring) -> tuple[int, int]:
    """Indices of the nearest vertices, one of each ring, that are not the same point, where there are any."""
    near = min(len(first), 4)
    far, index = cKDTree(first).query(second, k=near)
    far, index = far.reshape(len(second), near), index.reshape(len(second), near)
    there, choice = np.unravel_index(int(np.where(far > 0, far, np.inf).argmin()), far.shape)
    return int(index[there, choice]), int(there)


def one_ring(polygons: Sequence[Polygon], size: tuple[int, int]) -> tuple[Ring, bool]:
    """The polygons as one ring, and whether it is exact.

    Where polygons overlap or a hole leaves its polygon it is not, but follows the edges of the pixels.

    Args:
        size: (width, height) of the picture.
    """
    if len(polygons) == 1 and not polygons[0].holes:
        return polygons[0].exterior, True
    ring = join_rings(polygons)
    if _same_region(ring, polygons):
        return ring, True
    left, top, wanted = Shape(polygons=tuple(polygons)).window(size[1], size[0])
    if not wanted.any():
        return ring, True
    return join_rings(pixel_outline(wanted, (left, top))), False
