"""A board design as a camera could see it: features of the outer layers, drills, outline, nets; in mm."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from inspect_vit.errors import ConfigError
from training.kicad_raster import Flat, flatten
from training.kicad_shapes import Piece, Points

Side = Literal["front", "back"]
Plane = tuple[str, str]
"""("copper" | "mask" | "silk", side) or ("edge", "")."""
SIDES: tuple[Side, Side] = ("front", "back")


@dataclass(frozen=True)
class Note:
    """Something that was left out, guessed or found wrong while reading."""

    kind: str
    message: str


@dataclass(frozen=True)
class Feature:
    """One thing on one layer."""

    kind: str
    """track, arc, pad, via, zone, graphic or text."""
    pieces: tuple[Piece, ...]
    net: int = 0
    name: str = ""
    """Of a pad: its part and number, "U1.3"."""


@dataclass(frozen=True)
class Drill:
    piece: Piece
    plated: bool
    sides: frozenset[str]
    """The sides from which it is seen: both, but for blind vias."""


@dataclass(frozen=True, eq=False)
class KicadBoard:
    """One design, in the coordinates of its file: x right, y down, seen from the front."""

    name: str
    path: Path
    version: int
    """Of the file format: 3 (2013), 4 (KiCad 4), then dates such as 20171130."""
    outline: tuple[Points, ...]
    """Closed loops; what lies inside an odd number of them is board."""
    outline_found: bool
    """False where the edge cuts do not close: the outline is then the bounding box."""
    features: dict[Plane, tuple[Feature, ...]]
    """Copper, solder-mask openings and silk of both sides."""
    drills: tuple[Drill, ...]
    nets: dict[int, str]
    mask_min_width: float
    """Bridges of solder mask narrower than this are left out."""
    notes: tuple[Note, ...] = ()

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """(x, y, width, height) of the outline."""
        points = np.concatenate(self.outline)
        (x, y), (right, bottom) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
        return x, y, right - x, bottom - y

    def copper(self, side: Side) -> tuple[Feature, ...]:
        return self.features.get(("copper", side), ())

    def counts(self) -> dict[str, int]:
        """How many features of each kind lie on the copper; a through pad or via counts once a side."""
        return dict(Counter(feature.kind for side in SIDES for feature in self.copper(side)))

    @cached_property
    def flat(self) -> dict[Plane, Flat]:
        """All planes ready to be drawn; copper in values of net + 1, so that copper without a net is 1."""
        found = {
            plane: flatten((piece, feature.net + 1) for feature in features for piece in feature.pieces)
            for plane, features in self.features.items()
        }
        for side in SIDES:
            found["drill", side] = flatten((drill.piece, 1) for drill in self.drills if side in drill.sides)
        found["edge", ""] = flatten((Piece(loop, filled=True), 1) for loop in self.outline)
        return found


def plane_names(layers: list[tuple[str, str, str]], version: int) -> dict[str, frozenset[Plane]]:
    """Which planes a layer name of the file stands for, wildcards included.

    Args:
        layers: (number, name, use) of the file's layer table.
        version: of the file; until 2013 the front copper was layer 15 and the back layer 0.
    """
    copper = {number: name for number, name, use in layers if use in ("signal", "power", "mixed", "jumper")}
    numbered = {name: number for number, name in copper.items()}
    front = copper.get(numbered.get("F.Cu", "15" if version == 3 else "0"))
    back = copper.get(numbered.get("B.Cu", "0" if version == 3 else "31"))
    if front is None or back is None:
        raise ConfigError(
            f"the layer table names copper {sorted(copper.values())}; front and back copper are wanted"
        )
    planes: dict[str, frozenset[Plane]] = {"Edge.Cuts": frozenset({("edge", "")})}
    for kind, suffix in (("copper", "Cu"), ("mask", "Mask"), ("silk", "SilkS"), ("silk", "Silkscreen")):
        both: frozenset[Plane] = frozenset({(kind, "front"), (kind, "back")})
        planes[f"*.{suffix}"] = planes[f"F&B.{suffix}"] = both
        planes[f"F.{suffix}"], planes[f"B.{suffix}"] = (
            frozenset({(kind, "front")}),
            frozenset({(kind, "back")}),
        )
    planes[front], planes[back] = frozenset({("copper", "front")}), frozenset({("copper", "back")})
    return planes
