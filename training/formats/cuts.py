"""Several rings as one, for formats of one ring per defect: joined by cuts of no width, and parted again.

A cut runs from a vertex of one ring to a vertex of the next and back along the same line, so it encloses
nothing: by the even-odd rule the joined ring covers what its rings cover. Reading, an edge that is walked
there and back is such a cut, whoever wrote it, and taking it out changes no pixel either.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inspect_vit.shapes import Polygon, Ring, Shape
from training.formats.outlines import pixel_outline
from training.formats.rings import nest, signed_area


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
    loops: list[Ring] = []
    for point, following in zip(points, [*points[1:], points[0]], strict=True):
        if path and path[-1] == point and loops:
            path.pop()  # back at the vertex where a cut began
        start = _start_of_loop(path, point, following)
        if start is None:
            path.append(point)
        else:
            loops.append(np.array(path[start:]))
            del path[start:]
    if not loops or len(path) < 3:
        return (Polygon(ring),)
    if path[0] == path[-1] and len(path) > 3:
        path.pop()
    return nest([np.array(path), *loops])


def _start_of_loop(
    path: Sequence[tuple[float, float]], point: tuple[float, float], following: tuple[float, float]
) -> int | None:
    """Where a loop that closes at `point` began, if it was entered from `following` and leads back there."""
    for start in range(len(path) - 3, 0, -1):
        if path[start] == point and path[start - 1] == following:
            return start
    return None


def _nearest(first: Ring, second: Ring) -> tuple[int, int]:
    """Indices of the two vertices, one of each, that lie nearest to each other without being the same."""
    squared = ((first[:, None] - second[None]) ** 2).sum(2)
    squared[squared == 0] = np.inf
    here, there = np.unravel_index(int(squared.argmin()), squared.shape)
    return int(here), int(there)


def one_ring(polygons: Sequence[Polygon], size: tuple[int, int]) -> tuple[Ring, bool]:
    """The polygons as one ring, and whether it is exact.

    Where polygons overlap or a hole leaves its polygon it is not, but follows the edges of the pixels.

    Args:
        size: (width, height) of the picture.
    """
    if len(polygons) == 1 and not polygons[0].holes:
        return polygons[0].exterior, True
    ring = join_rings(polygons)
    left, top, wanted = Shape(polygons=tuple(polygons)).window(size[1], size[0])
    if (
        np.array_equal(Shape(polygons=(Polygon(ring),)).window(size[1], size[0])[2], wanted)
        or not wanted.any()
    ):
        return ring, True
    return join_rings(pixel_outline(wanted, (left, top))), False
