"""Rings of outlines: drawn from circles and turned boxes, nested into polygons, cut to a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from inspect_vit.errors import ConfigError
from inspect_vit.shapes import Polygon, Ring, Shape

CIRCLE_ERROR_PX = 0.02
"""A circle or ellipse becomes a polygon whose edges are nowhere further than this from the curve."""

FAR_PX = 1e7
"""Nothing in a picture is further from its corner than this."""

_MIDDLES = 16
"""At most so many edges are tried to tell whether one ring lies in another."""


def open_ring(points: Ring) -> Ring:
    """The ring without a last point that repeats the first."""
    return points[:-1] if len(points) > 3 and (points[0] == points[-1]).all() else points


def ellipse_ring(centre: tuple[float, float], radii: tuple[float, float], degrees: float = 0.0) -> Ring:
    """Polygon of an ellipse with its vertices on the curve, among them the four ends of its axes.

    Args:
        radii: along x and along y before the turn.
        degrees: clockwise on the screen, where y grows downwards.

    Raises:
        ConfigError: a radius that is negative or larger than any picture.
    """
    if not 0 <= min(radii) <= max(radii) <= FAR_PX:
        raise ConfigError(f"radii of {radii[0]:g} and {radii[1]:g} px; wanted 0 to {FAR_PX:g}")
    bend = math.acos(max(1 - CIRCLE_ERROR_PX / max(*radii, CIRCLE_ERROR_PX), 0.0))
    count = 4 * max(math.ceil(math.pi / 4 / bend), 4)
    angle = np.arange(count) * (2 * math.pi / count)
    points = np.stack([np.cos(angle) * radii[0], np.sin(angle) * radii[1]], 1)
    points[np.abs(points) < 1e-12 * max(radii)] = 0.0
    return _turn(points, degrees) + centre


def turned_box(box_xyxy: tuple[float, float, float, float], degrees: float) -> Ring:
    """The four corners of a box turned about its centre, clockwise on the screen."""
    left, top, right, bottom = box_xyxy
    centre = np.array([left + right, top + bottom]) / 2
    corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float64)
    return _turn(corners - centre, degrees) + centre


def _turn(points: Ring, degrees: float) -> Ring:
    if not degrees % 360:
        return points
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turned: Ring = points @ np.array([[cos, sin], [-sin, cos]])
    return turned


def signed_area(ring: Ring) -> float:
    """px squared; positive where the ring runs clockwise on the screen."""
    x, y = (ring - ring[0]).T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def is_flat(shape: Shape) -> bool:
    """Whether every polygon of the shape lies on one line, so that it has no area however it is drawn."""
    return bool(shape.polygons) and all(_on_a_line(polygon.exterior) for polygon in shape.polygons)


def _on_a_line(ring: Ring) -> bool:
    spread = np.linalg.svd(ring - ring.mean(0), compute_uv=False)
    return bool(spread[-1] <= 1e-9 * max(spread[0], 1.0))


def nest(rings: Sequence[Ring]) -> tuple[Polygon, ...]:
    """Polygons of rings that do not cross: what lies inside an odd number of the others is a hole."""
    if len(rings) == 1:
        return (Polygon(rings[0]),)
    low, high = (np.array([end(ring, 0) for ring in rings]) for end in (np.min, np.max))
    around: list[list[int]] = []
    for i, ring in enumerate(rings):
        larger = (low <= low[i]).all(1) & (high >= high[i]).all(1)
        larger[i] = False
        around.append([j for j in np.flatnonzero(larger).tolist() if _contains(rings[j], ring)])
    holes: dict[int, list[Ring]] = {i: [] for i in range(len(rings)) if not len(around[i]) % 2}
    for i, ring in enumerate(rings):
        if i not in holes:
            owner = max((j for j in around[i] if j in holes), key=lambda j: len(around[j]))
            holes[owner].append(ring)
    return tuple(Polygon(rings[i], tuple(inside)) for i, inside in holes.items())


def _contains(outer: Ring, inner: Ring) -> bool:
    """Whether most of some edges of `inner` have their middle inside `outer`; the rest may touch it."""
    middles = (inner + np.roll(inner, -1, 0))[:: len(inner) // _MIDDLES + 1] / 2
    x0, y0 = outer.T
    x1, y1 = np.roll(outer, -1, 0).T
    inside = 0
    for x, y in middles:
        crosses = (y0 <= y) != (y1 <= y)
        at = x0[crosses] + (y - y0[crosses]) / (y1 - y0)[crosses] * (x1 - x0)[crosses]
        inside += int(np.count_nonzero(at > x)) % 2
    return 2 * inside > len(middles)


def clip_ring(ring: Ring, width: float, height: float) -> Ring | None:
    """The part of a ring inside the picture (Sutherland and Hodgman, 1974), or None where none is.

    Parts that come apart stay joined along the border, which changes no pixel.
    """
    for axis, limit, side in ((0, 0.0, 1), (0, width, -1), (1, 0.0, 1), (1, height, -1)):
        inside = side * (ring[:, axis] - limit)
        if (inside >= 0).all():
            continue
        kept = []
        for start, end, a, b in zip(ring, np.roll(ring, -1, 0), inside, np.roll(inside, -1), strict=True):
            if a >= 0:
                kept.append(start)
            if a * b < 0:
                crossing = start + a / (a - b) * (end - start)
                crossing[axis] = limit
                kept.append(crossing)
        if len(kept) < 3:
            return None
        ring = np.array(kept)
    return None if _on_a_line(ring) else ring
