"""Entries of a board file as pieces of artwork: graphics, text, pads, vias and zones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from training.kicad_file import Node, child, children, flag, number, numbers, point, word, words
from training.kicad_shapes import (
    Piece,
    Points,
    arc_by_angle,
    arc_by_middle,
    bezier,
    chamfered_rectangle,
    disc,
    oval,
    placed,
    rectangle,
    ring,
    rounded_rectangle,
    trapezoid,
)
from training.kicad_text import text_pieces

GRAPHICS = ("line", "arc", "circle", "rect", "poly", "curve")
_ORIGIN = np.zeros(2)


def position(node: Node) -> tuple[Points, float]:
    """(x, y) and angle in degrees of `(at x y [angle])`."""
    at = child(node, "at")
    if at is None:
        return _ORIGIN, 0.0
    values = words(at)
    # A third word may be `unlocked` instead of an angle.
    turned = len(values) > 2 and values[2] != "unlocked"
    found = numbers(at, 3 if turned else 2)
    return np.array(found[:2]), found[2] if turned else 0.0


def layer_names(node: Node) -> list[str]:
    """The names in `(layer ...)` or `(layers ...)`."""
    return [name for found in children(node, "layer", "layers") for name in words(found)]


def outline_points(node: Node) -> Points:
    """The points of `(pts (xy ...) (arc ...) ...)`, (n, 2)."""
    parts: list[Points] = []
    for pts in children(node, "pts"):
        for entry in children(pts, "xy", "arc"):
            parts.append(np.array([numbers(entry, 2)]) if entry[0] == "xy" else _arc(entry))
    return np.concatenate(parts) if parts else np.zeros((0, 2))


def line_width(node: Node) -> float:
    return number(child(node, "stroke") or node, "width")


def graphic_line(node: Node) -> Points:
    """The centre line of a graphic, (n, 2); closed ones repeat their first point."""
    shape = str(node[0]).partition("_")[2] or str(node[0])
    if shape == "line":
        return np.array([point(node, "start"), point(node, "end")])
    if shape == "arc":
        return _arc(node)
    if shape == "circle":
        centre = point(node, "center")
        return _closed(ring(centre, float(np.hypot(*(point(node, "end") - centre)))))
    if shape == "rect":
        (x0, y0), (x1, y1) = point(node, "start"), point(node, "end")
        return _closed(np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]]))
    points = outline_points(node)
    if shape == "curve":
        return bezier(points[:4]) if len(points) >= 4 else points
    return _closed(points) if len(points) else points


def graphic_pieces(node: Node, *, in_pad: bool = False) -> tuple[Piece, ...]:
    """A gr_ or fp_ line, arc, circle, rect, poly or curve about the origin of its parent.

    Args:
        in_pad: one of the primitives of a custom pad, where a circle or rectangle of no line width is filled.
    """
    shape, width = str(node[0]).partition("_")[2], line_width(node)
    fill = word(node, "fill", "")
    filled = fill in ("solid", "yes") if fill else shape == "poly" or (in_pad and width == 0.0)
    if shape == "circle" and filled:
        centre = point(node, "center")
        return (disc(centre, 2 * float(np.hypot(*(point(node, "end") - centre))) + width),)
    points = graphic_line(node)
    if filled and len(points) > 3 and shape in ("rect", "poly"):
        return (Piece(points[:-1], width, filled=True),)
    return (Piece(points, width),) if width > 0 and len(points) else ()


def text_of(node: Node, text: str, at: Points, degrees: float) -> tuple[Piece, ...]:
    """A text entry drawn with the stroke font; size and pen from its effects."""
    effects = child(node, "effects") or ["effects"]
    font = child(effects, "font") or ["font"]
    size = child(font, "size")
    height, width = numbers(size, 2) if size is not None else (1.0, 1.0)
    pen = number(font, "thickness") or min(height, width) * 0.15
    justify = child(effects, "justify")
    return text_pieces(
        text, at, degrees, size=(width, height), pen=pen, justify=frozenset(words(justify) if justify else ())
    )


def hidden(node: Node) -> bool:
    return flag(node, "hide") or any(flag(effects, "hide") for effects in children(node, "effects"))


def pad_pieces(node: Node, at: Points, degrees: float, *, margin: float = 0.0) -> tuple[Piece, ...]:
    """The copper of a pad whose hole is at `at`, grown by `margin` mm; a rectangle stays sharp.

    Args:
        degrees: the angle of the pad on the board, its part's angle included.
    """
    drill = child(node, "drill") or ["drill"]
    offset = child(drill, "offset")
    shift = np.array(numbers(offset, 2)) if offset is not None else _ORIGIN
    pieces = (
        Piece(piece.points + shift, max(0.0, piece.width), piece.filled) for piece in _pad_shape(node, margin)
    )
    return placed(pieces, at, degrees)


def pad_hole(node: Node, at: Points, degrees: float) -> Piece | None:
    """The drill of a pad: a disc or a slot; None for a pad without one."""
    drill = child(node, "drill")
    sizes = [float(value) for value in words(drill) if value != "oval"] if drill is not None else []
    if not sizes or min(sizes) <= 0:
        return None
    if len(sizes) > 1:
        return placed([oval(*sizes[:2])], at, degrees)[0]
    return disc(at, sizes[0])


def zone_fills(node: Node, version: int) -> Iterator[tuple[list[str], Piece]]:
    """Each filled polygon of a zone with the names of its layers.

    Until 2021 the polygon was drawn round with a pen of the zone's least width, which belongs to the copper.
    """
    plain = word(node, "filled_areas_thickness", "yes" if version < 20210606 else "no") == "no"
    pen = 0.0 if plain else number(node, "min_thickness")
    for polygon in children(node, "filled_polygon"):
        points = outline_points(polygon)
        if len(points) >= 3:
            yield layer_names(polygon) or layer_names(node), Piece(points, pen, filled=True)
    for segments in children(node, "fill_segments"):
        for segment in children(segments, "pts"):
            points = np.array([numbers(xy, 2) for xy in children(segment, "xy")])
            yield layer_names(node), Piece(points, number(node, "min_thickness"))


def class_drills(root: Node) -> dict[str, tuple[float, float]]:
    """For each net the via drill and micro-via drill of its class; "" holds the default class."""
    found: dict[str, tuple[float, float]] = {}
    setup = child(root, "setup") or ["setup"]
    found[""] = (number(setup, "via_drill"), number(setup, "uvia_drill"))
    for net_class in children(root, "net_class"):
        drills = (number(net_class, "via_drill"), number(net_class, "uvia_drill"))
        if net_class[1] == "Default":
            found[""] = drills
        for net in children(net_class, "add_net"):
            found[words(net)[0]] = drills
    return found


def _pad_shape(node: Node, margin: float) -> tuple[Piece, ...]:
    """The pad about its own centre, not turned."""
    shape = str(node[3])
    width, height = numbers(child(node, "size") or ["size"], 2)
    wide, high = max(0.0, width + 2 * margin), max(0.0, height + 2 * margin)
    if shape == "circle":
        return (disc(_ORIGIN, wide),)
    if shape == "oval":
        return (oval(wide, high),)
    if shape == "roundrect":
        return _round_pad(node, width, height, margin)
    if shape == "trapezoid":
        delta = child(node, "rect_delta")
        delta_y, delta_x = numbers(delta, 2) if delta is not None else (0.0, 0.0)
        return (Piece(trapezoid(width, height, delta_x, delta_y), 2 * margin, filled=True),)
    if shape == "custom":
        return _custom_pad(node, width, height, margin)
    return (Piece(rectangle(wide, high), filled=True),)


def _round_pad(node: Node, width: float, height: float, margin: float) -> tuple[Piece, ...]:
    short = min(width, height)
    corners = child(node, "chamfer")
    cut = number(node, "chamfer_ratio") * short
    if corners is not None and cut > 0:
        piece = chamfered_rectangle(width, height, cut, frozenset(words(corners)))
        return (Piece(piece.points, 2 * margin, filled=True),)
    radius = number(node, "roundrect_rratio", 0.25) * short
    wide, high = max(0.0, width + 2 * margin), max(0.0, height + 2 * margin)
    return (rounded_rectangle(wide, high, max(0.0, radius + margin)),)


def _custom_pad(node: Node, width: float, height: float, margin: float) -> tuple[Piece, ...]:
    """The anchor, a disc of the pad's width or a rectangle of its size, and what was drawn onto it."""
    options = child(node, "options") or ["options"]
    if word(options, "anchor") == "rect":
        pieces = [Piece(rectangle(width, height), 2 * margin, filled=True)]
    else:
        pieces = [disc(_ORIGIN, width + 2 * margin)]
    for primitive in children(
        child(node, "primitives") or ["primitives"], *(f"gr_{name}" for name in GRAPHICS)
    ):
        pieces += [
            Piece(piece.points, piece.width + 2 * margin, piece.filled)
            for piece in graphic_pieces(primitive, in_pad=True)
        ]
    return tuple(pieces)


def _arc(node: Node) -> Points:
    if child(node, "mid") is not None:
        return arc_by_middle(point(node, "start"), point(node, "mid"), point(node, "end"))
    return arc_by_angle(point(node, "start"), point(node, "end"), number(node, "angle", 90.0))


def _closed(points: Points) -> Points:
    return np.concatenate([points, points[:1]])
