"""Styles of procedural boards: each draws its own kind of tracks, pads and planes on a canvas."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

from training.canvas import CLEARANCE_PX, Canvas, Points, grown


def _track(image: NDArray[np.uint8], points: Points, width_px: int) -> None:
    cv2.polylines(image, [np.rint(points).astype(np.int32)], False, 1, width_px)
    for x, y in np.rint(points).astype(int):
        cv2.circle(image, (int(x), int(y)), width_px // 2, 1, -1)


def _disc(image: NDArray[np.uint8], centre: Points, radius_px: int) -> None:
    cv2.circle(image, (round(centre[0]), round(centre[1])), radius_px, 1, -1)


def _route(rng: np.random.Generator, start: Points, end: Points) -> Points:
    """A path of straight and 45 degree pieces from start to end, (N, 2) as (x, y)."""
    delta = end - start
    diagonal = np.sign(delta) * np.abs(delta).min()
    straight = delta - diagonal
    first = straight * rng.choice([0.0, 0.5, 1.0, rng.random()])
    return np.array([start, start + first, start + first + diagonal, end])


def _beside(points: Points, offset_px: float) -> Points:
    """The path that runs parallel to `points` at this distance, corners mitred."""
    steps = np.diff(points, axis=0)
    keep = np.linalg.norm(steps, axis=1) > 1e-6
    points, steps = np.vstack([points[:1], points[1:][keep]]), steps[keep]
    steps = steps / np.linalg.norm(steps, axis=1, keepdims=True)
    normals = np.stack([-steps[:, 1], steps[:, 0]], axis=1)
    before, after = np.vstack([normals[:1], normals]), np.vstack([normals, normals[-1:]])
    mitres = (before + after) / (1.0 + (before * after).sum(axis=1, keepdims=True))
    return np.asarray(points + offset_px * mitres)


def _draw_buses(canvas: Canvas) -> None:
    """Bundles of parallel tracks that cross the picture with 45 degree jogs, and vias between them."""
    rng, size = canvas.rng, canvas.size
    upright = rng.random() < 0.4
    at = float(rng.integers(-20, 40))
    while at < size:
        width = int(rng.integers(6, 15))
        pitch = width + int(rng.integers(CLEARANCE_PX + 1, 22))
        lanes = int(rng.integers(2, 7))
        jog = float(rng.choice([0, 0, 1, -1])) * float(rng.integers(20, 90))
        turn = float(rng.integers(size // 6, size * 5 // 6))
        # Some bundles stop inside the picture, each track in a round pad, so that ends are seen too.
        stop = size + 40.0 if rng.random() < 0.6 else float(rng.integers(int(size * 0.6), size))
        path = np.array(
            [[-40, at], [turn, at], [turn + abs(jog), at + jog], [max(stop, turn + abs(jog) + 30), at + jog]]
        )
        for lane in range(lanes):
            line = _beside(path, lane * pitch)
            if stop < size:
                line[-1, 0] -= lane * pitch * 0.8
            if upright:
                line = line[:, ::-1]
            feature = canvas.blank()
            _track(feature, line, width)
            if stop < size:
                _disc(feature, line[-1], width // 2 + int(rng.integers(4, 9)))
            canvas.add(feature)
        at += lanes * pitch + float(rng.integers(15, 80))
    _draw_vias(canvas, int(rng.integers(5, 25)))


def _draw_through_hole(canvas: Canvas) -> None:
    """Rows of large drilled pads with wide tracks, as on a power or connector board."""
    rng = canvas.rng
    centres: list[Points] = []
    for _ in range(int(rng.integers(2, 6))):
        start, radius = canvas.spot(), int(rng.integers(20, 46))
        pitch = radius * 2 + int(rng.integers(14, 60))
        step = np.array([pitch, 0.0]) if rng.random() < 0.5 else np.array([0.0, pitch])
        for i in range(int(rng.integers(2, 8))):
            centre = start + i * step
            pad, hole = canvas.blank(), canvas.blank()
            _disc(pad, centre, radius)
            if i == 0 and rng.random() < 0.5:
                corner = np.rint(centre).astype(int)
                cv2.rectangle(
                    pad, tuple((corner - radius).tolist()), tuple((corner + radius).tolist()), 1, -1
                )
            _disc(hole, centre, int(radius * rng.uniform(0.35, 0.5)))
            if canvas.add(pad, hole, pad):
                centres.append(centre)
    _connect(canvas, centres, widths_px=(12, 26), share=0.8)
    _draw_vias(canvas, int(rng.integers(2, 10)))
    _draw_blocks(canvas, int(rng.integers(1, 4)))
    _draw_loose_tracks(canvas, 45, widths_px=(8, 20))


def _draw_surface_mount(canvas: Canvas) -> None:
    """Footprints of rectangular or rounded pads, each pad fanned out to a via by a thin track."""
    rng = canvas.rng
    for _ in range(int(rng.integers(5, 11))):
        start, upright = canvas.spot(), rng.random() < 0.5
        w, h = int(rng.integers(12, 34)), int(rng.integers(26, 60))
        pitch, round_pads = w + int(rng.integers(12, 22)), rng.random() < 0.4
        width = int(rng.integers(6, 11))
        for i in range(int(rng.integers(2, 9))):
            pad = canvas.blank()
            along, across = (
                (np.array([0.0, 1.0]), np.array([1.0, 0.0]))
                if upright
                else (np.array([1.0, 0.0]), np.array([0.0, 1.0]))
            )
            centre = start + i * pitch * along
            ends = np.array([centre - across * (h - w) / 2, centre + across * (h - w) / 2])
            if round_pads:
                _track(pad, ends, w)
            else:
                low = np.rint(centre - (w * along + h * across) / 2).astype(int)
                high = np.rint(centre + (w * along + h * across) / 2).astype(int)
                cv2.rectangle(pad, tuple(low.tolist()), tuple(high.tolist()), 1, -1)
            if rng.random() < 0.75:
                via = (
                    centre
                    + across * rng.choice([-1, 1]) * rng.uniform(h, h * 2.5)
                    + along * rng.uniform(-60, 60)
                )
                with_track = pad.copy()
                _track(with_track, _route(rng, centre, via), width)
                _disc(with_track, via, width // 2 + int(rng.integers(4, 9)))
                if canvas.add(with_track, pad=pad):
                    continue
            canvas.add(pad, pad=pad)
    _draw_loose_tracks(canvas, 60, widths_px=(6, 11))
    _draw_vias(canvas, int(rng.integers(10, 40)))


def _draw_ground(canvas: Canvas) -> None:
    """Few nets on a board that is mostly ground copper."""
    _draw_loose_tracks(canvas, 24, widths_px=(8, 18))
    _draw_vias(canvas, int(canvas.rng.integers(4, 16)), drilled=True)
    _draw_blocks(canvas, int(canvas.rng.integers(0, 3)))


def _connect(canvas: Canvas, centres: list[Points], *, widths_px: tuple[int, int], share: float) -> None:
    """Join a share of the pads to neighbours by tracks that touch no third pad."""
    rng = canvas.rng
    for i, start in enumerate(centres):
        if rng.random() > share:
            continue
        target = (
            start + rng.choice([-1, 1], 2) * rng.uniform(60, 260, 2) if rng.random() < 0.5 else centres[i - 1]
        )
        feature, own = canvas.blank(), canvas.blank()
        _track(feature, _route(rng, start, target), int(rng.integers(*widths_px)))
        for centre in (start, target):
            _disc(own, centre, 60)
        away = (feature > 0) & (own == 0)
        if not (canvas.blocked & away).any():
            canvas.copper |= feature > 0
            canvas.blocked |= grown(feature, CLEARANCE_PX)


def _draw_loose_tracks(canvas: Canvas, tries: int, *, widths_px: tuple[int, int]) -> None:
    rng = canvas.rng
    for _ in range(tries):
        start, width = canvas.spot(30), int(rng.integers(*widths_px))
        end = start + rng.uniform(-320, 320, 2)
        feature = canvas.blank()
        _track(feature, _route(rng, start, end), width)
        for centre in (start, end):
            _disc(feature, centre, width // 2 + int(rng.integers(3, 10)))
        canvas.add(feature)


def _draw_vias(canvas: Canvas, tries: int, *, drilled: bool = False) -> None:
    radius = int(canvas.rng.integers(9, 17))
    drilled, bare = drilled or canvas.rng.random() < 0.4, canvas.rng.random() < 0.5
    for _ in range(tries):
        via, hole, centre = canvas.blank(), canvas.blank(), canvas.spot()
        _disc(via, centre, radius * 2 if drilled else radius)
        if drilled:
            _disc(hole, centre, radius)
        canvas.add(via, hole, via if bare else None)


def _draw_blocks(canvas: Canvas, tries: int) -> None:
    """Large plain areas of copper: heat sinks, edge contacts."""
    for _ in range(tries):
        block, corner = canvas.blank(), np.rint(canvas.spot(40)).astype(int)
        far = corner + canvas.rng.integers(60, 260, 2)
        cv2.rectangle(block, tuple(corner.tolist()), tuple(far.tolist()), 1, -1)
        canvas.add(block)


def _draw_planes(canvas: Canvas) -> None:
    """All copper, parted by gaps: straight, with square meanders, around discs; and a few drilled holes."""
    rng, size = canvas.rng, canvas.size
    gaps = canvas.blank()
    at = float(rng.integers(0, 120))
    upright = rng.random() < 0.5
    while at < size:
        width = int(rng.choice([rng.integers(5, 12), rng.integers(12, 60)], p=[0.65, 0.35]))
        line = np.array([[-40.0, at], [size + 40.0, at]])
        shape = rng.random()
        if shape < 0.35:
            line = _meander(rng, size, at)
        elif shape < 0.6:
            bend = rng.uniform(-140, 140)
            turn = rng.uniform(0, size)
            line = np.array([[-40, at], [turn, at], [turn + abs(bend), at + bend], [size + 40, at + bend]])
        cv2.polylines(gaps, [np.rint(line[:, ::-1] if upright else line).astype(np.int32)], False, 1, width)
        at += width + float(rng.integers(24, 200))
    for _ in range(int(rng.integers(0, 4))):
        centre, radius = canvas.spot(), int(rng.integers(40, 200))
        if rng.random() < 0.5:
            cv2.circle(gaps, (int(centre[0]), int(centre[1])), radius, 1, int(rng.integers(5, 30)))
        else:
            _track(gaps, np.array([centre, centre + rng.uniform(-260, 260, 2)]), int(rng.integers(6, 16)))
    # Etched corners are round.
    gaps = cv2.morphologyEx(
        gaps, cv2.MORPH_CLOSE, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (9, 9))
    ).astype(np.uint8)
    canvas.copper |= gaps == 0
    canvas.blocked[:] = True
    for _ in range(int(rng.integers(0, 8))):
        hole, pad, centre, radius = canvas.blank(), canvas.blank(), canvas.spot(), int(rng.integers(6, 36))
        _disc(hole, centre, radius)
        _disc(pad, centre, radius + 12)
        if canvas.copper[pad > 0].all() and not canvas.holes[pad > 0].any():
            canvas.holes |= hole > 0
            if rng.random() < 0.4:
                canvas.bare |= grown(pad, 1)


def _meander(rng: np.random.Generator, size: int, at: float) -> Points:
    """A line across the picture that steps up and down by square corners."""
    points, x, up = [[-40.0, at]], float(rng.integers(-40, 60)), False
    height = rng.uniform(40, 130)
    while x < size:
        level = at + (height if up else 0.0)
        points += [[x, points[-1][1]], [x, level]]
        x, up = x + rng.uniform(40, 160), not up
    return np.array([*points, [size + 40.0, points[-1][1]]])


STYLES: dict[str, Callable[[Canvas], None]] = {
    "buses": _draw_buses,
    "through-hole": _draw_through_hole,
    "surface-mount": _draw_surface_mount,
    "ground": _draw_ground,
    "planes": _draw_planes,
}
