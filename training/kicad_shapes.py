"""Geometry of board artwork in mm: strokes, filled rings, arcs and pads.

x points right and y down, as in the file; a positive angle turns counter-clockwise on the screen. Curves are
replaced by chords that stay within `CHORD_MM` of them; discs, straight tracks and ovals are exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
CHORD_MM = 0.0005


@dataclass(frozen=True)
class Piece:
    """A line of points (n, 2), n >= 1, drawn with a round pen of `width` mm; `filled` closes and fills it.

    One point makes a disc. Width 0 draws no line.
    """

    points: Points
    width: float = 0.0
    filled: bool = False


def rotated(points: Points, degrees: float) -> Points:
    """The points turned about the origin."""
    if degrees == 0.0:
        return points
    # Right angles are exact: a pad at 90 degrees has the pixels of one that was drawn upright.
    quarter = {0.0: (1.0, 0.0), 90.0: (0.0, 1.0), 180.0: (-1.0, 0.0), 270.0: (0.0, -1.0)}
    turn = np.deg2rad(degrees)
    cos, sin = quarter.get(degrees % 360.0, (np.cos(turn), np.sin(turn)))
    turned: Points = points @ np.array([[cos, -sin], [sin, cos]])
    return turned


def placed(pieces: Iterable[Piece], at: Points, degrees: float) -> tuple[Piece, ...]:
    """The pieces turned about the origin, then moved to `at`."""
    return tuple(replace(piece, points=rotated(piece.points, degrees) + at) for piece in pieces)


def disc(centre: Points, diameter: float) -> Piece:
    return Piece(np.asarray(centre, np.float64).reshape(1, 2), diameter)


def ring(centre: Points, radius: float) -> Points:
    """A circle as a closed ring of chords; the first point is not repeated."""
    turns = 2 * np.pi * np.arange(_chords(radius, 2 * np.pi)) / _chords(radius, 2 * np.pi)
    return centre + radius * np.column_stack([np.cos(turns), np.sin(turns)])


def arc_by_angle(centre: Points, start: Points, degrees: float) -> Points:
    """Points of the arc from `start` about `centre`; positive is clockwise on the screen (KiCad 4, 5)."""
    spoke = start - centre
    sweep = np.deg2rad(degrees)
    turns = np.linspace(0.0, sweep, _chords(float(np.hypot(*spoke)), abs(sweep)) + 1)
    cos, sin = np.cos(turns), np.sin(turns)
    x, y = spoke
    return np.asarray(centre + np.column_stack([x * cos - y * sin, x * sin + y * cos]))


def arc_by_middle(start: Points, middle: Points, end: Points) -> Points:
    """Points of the arc through three points (KiCad 6 on); a straight line where they lie on one."""
    a, b = middle - start, end - start
    cross = float(a[0] * b[1] - a[1] * b[0])
    if abs(cross) <= 1e-9 * max(1e-9, float(a @ a + b @ b)):
        return np.array([start, middle, end])
    to_centre = np.array([b[1] * (a @ a) - a[1] * (b @ b), a[0] * (b @ b) - b[0] * (a @ a)]) / (2 * cross)
    centre = start + to_centre
    turn = np.arctan2(*(start - centre)[::-1])
    full = (np.arctan2(*(end - centre)[::-1]) - turn) % (2 * np.pi)
    half = (np.arctan2(*(middle - centre)[::-1]) - turn) % (2 * np.pi)
    sweep = full if half < full else full - 2 * np.pi
    points = arc_by_angle(centre, start, float(np.rad2deg(sweep)))
    points[-1] = end
    return points


def bezier(control: Points) -> Points:
    """Points of the cubic curve with these four control points."""
    reach = float(np.linalg.norm(np.diff(control, n=2, axis=0), axis=1).max())
    # A cubic cut into n equal parameter steps departs from its chords by at most 6 reach / (8 n^2).
    t = np.linspace(0.0, 1.0, int(np.ceil(np.sqrt(0.75 * reach / CHORD_MM))) + 2)[:, None]
    a, b, c, d = control
    return np.asarray((1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d)


def rectangle(width: float, height: float) -> Points:
    """The corners of a rectangle about the origin."""
    return np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]) * [width / 2, height / 2]


def oval(width: float, height: float) -> Piece:
    """A disc pulled long about the origin, as an oval pad or a slot."""
    half = np.array([max(width - height, 0.0), max(height - width, 0.0)]) / 2
    points = np.array([-half, half]) if half.any() else np.zeros((1, 2))
    return Piece(points, min(width, height))


def rounded_rectangle(width: float, height: float, radius: float) -> Piece:
    """A rectangle about the origin with corners of this radius."""
    radius = min(radius, width / 2, height / 2)
    return Piece(rectangle(width - 2 * radius, height - 2 * radius), 2 * radius, filled=True)


def chamfered_rectangle(width: float, height: float, cut: float, corners: frozenset[str]) -> Piece:
    """A rectangle whose named corners (top_left, bottom_right and so on) are cut at 45 degrees."""
    names = ("top_left", "top_right", "bottom_right", "bottom_left")
    outline: list[Points] = []
    points = rectangle(width, height)
    for i, (name, corner) in enumerate(zip(names, points, strict=True)):
        if name not in corners:
            outline.append(corner)
            continue
        before, after = points[i - 1] - corner, points[(i + 1) % 4] - corner
        outline.append(corner + cut * before / max(float(np.hypot(*before)), 1e-9))
        outline.append(corner + cut * after / max(float(np.hypot(*after)), 1e-9))
    return Piece(np.array(outline), filled=True)


def trapezoid(width: float, height: float, delta_x: float, delta_y: float) -> Points:
    """A rectangle whose sides lean: delta_y widens the lower edge, delta_x lengthens the left edge."""
    w, h, dx, dy = width / 2, height / 2, delta_x / 2, delta_y / 2
    return np.array([[-w + dy, -h - dx], [w - dy, -h + dx], [w + dy, h - dx], [-w - dy, h + dx]])


def _chords(radius: float, sweep: float) -> int:
    """How many chords keep within CHORD_MM of an arc."""
    step = 2 * np.arccos(1 - min(CHORD_MM / max(radius, 1e-9), 0.2))
    return max(1, int(np.ceil(sweep / step)))
