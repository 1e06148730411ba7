"""COCO segmentations -> Shape and back: polygons, run lengths as numbers, run lengths packed into text.

The packed form is that of COCO's mask API: each count in groups of 5 bits, low bits first, bit 6 says that
more follow, 48 is added to make it text; from the fourth count on it is the difference to the count two
before. The run lengths stay exact, without the detour over pixels that the libraries take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inspect_vit.errors import ConfigError
from inspect_vit.shapes import Polygon, Ring, Shape


def unpack_runs(text: str) -> tuple[int, ...]:
    """Counts of a packed run-length string.

    Raises:
        ConfigError: a character outside the code, a number over 60 bits, or an end inside a number.
    """
    counts: list[int] = []
    value, shift = 0, 0
    for position, character in enumerate(text):
        code = ord(character) - 48
        if not 0 <= code < 64 or shift > 60:
            raise ConfigError(f"packed run lengths: {character!r} at character {position} is not of the code")
        value |= (code & 31) << shift
        shift += 5
        if not code & 32:
            if code & 16:
                value -= 1 << shift
            counts.append(value + counts[-2] if len(counts) > 2 else value)
            value, shift = 0, 0
    if shift:
        raise ConfigError(f"packed run lengths end inside a number, after {len(counts)} counts")
    return tuple(counts)


def pack_runs(counts: Sequence[int]) -> str:
    """The packed string of run lengths."""
    text = []
    for index, count in enumerate(counts):
        value = count - counts[index - 2] if index > 2 else count
        more = True
        while more:
            bits, value = value & 31, value >> 5
            more = value != (-1 if bits & 16 else 0)
            text.append(chr(bits + 32 * more + 48))
    return "".join(text)


def read_segmentation(segmentation: Any, rings: Any = None) -> Shape | None:
    """The outline that an annotation states; None where it states none (absent or empty).

    Args:
        segmentation: a list of polygons (flat lists x, y, x, y, ...), or {"size": [height, width], "counts":
            run lengths as a list or packed}.
        rings: our own key, preferred: per part a list of rings, the exterior first, then its holes.

    Raises:
        ConfigError: anything else.
    """
    if rings:
        if not isinstance(rings, list) or not all(isinstance(part, list) and part for part in rings):
            raise ConfigError(f"rings {_shown(rings)}; wanted, per part, a list of an exterior and its holes")
        parts = [[_ring(ring) for ring in part] for part in rings]
        return Shape(polygons=tuple(Polygon(part[0], tuple(part[1:])) for part in parts))
    if not segmentation:
        return None
    if isinstance(segmentation, list):
        return Shape(polygons=tuple(Polygon(_ring(ring)) for ring in segmentation))
    if not isinstance(segmentation, dict) or not {"size", "counts"} <= segmentation.keys():
        raise ConfigError(f"segmentation {_shown(segmentation)}; wanted polygons or run lengths with a size")
    size, counts = segmentation["size"], segmentation["counts"]
    if not (isinstance(size, list) and len(size) == 2 and all(isinstance(side, int) for side in size)):
        raise ConfigError(f"run lengths for size {_shown(size)}; wanted [height, width]")
    if isinstance(counts, str):
        counts = unpack_runs(counts)
    elif not isinstance(counts, list) or not all(type(count) is int for count in counts):
        raise ConfigError(f"run lengths {_shown(counts)}; wanted whole numbers")
    return Shape(runs=tuple(counts), size=(size[0], size[1]))


def write_segmentation(shape: Shape, height: int, width: int) -> dict[str, Any]:
    """The keys `segmentation` and, where COCO cannot hold the rings, `rings` of an annotation.

    COCO polygons have no holes: other tools get the exact pixels as run lengths, we get the rings as well.
    """
    if shape.runs is not None:
        return {"segmentation": {"size": list(shape.size or ()), "counts": list(shape.runs)}}
    if not any(polygon.holes for polygon in shape.polygons):
        return {"segmentation": [polygon.exterior.ravel().tolist() for polygon in shape.polygons]}
    left, top, window = shape.window(height, width)
    pixels = Shape.from_mask(window, at=(left, top), size=(height, width))
    return {
        **write_segmentation(pixels, height, width),
        "rings": [
            [ring.ravel().tolist() for ring in (polygon.exterior, *polygon.holes)]
            for polygon in shape.polygons
        ],
    }


def is_number(value: Any) -> bool:
    """Whether a JSON value can be px; true, false and numbers beyond any picture cannot."""
    return type(value) in (int, float) and abs(value) < 1e9


def _ring(flat: Any) -> Ring:
    if not isinstance(flat, list) or len(flat) % 2 or not all(map(is_number, flat)):
        raise ConfigError(f"polygon {_shown(flat)}; wanted a flat list of numbers of px, x, y, x, y, ...")
    ring = np.array(flat, np.float64).reshape(-1, 2)
    return ring[:-1] if len(ring) > 3 and (ring[0] == ring[-1]).all() else ring


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
