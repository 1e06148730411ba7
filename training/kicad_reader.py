"""A `.kicad_pcb` file (KiCad 4 to 8) read into a KicadBoard."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from training.kicad_board import SIDES, Drill, Feature, KicadBoard, Note, Plane, plane_names
from training.kicad_file import Node, child, children, flag, number, numbers, point, read_tree, word, words
from training.kicad_items import (
    GRAPHICS,
    class_drills,
    graphic_line,
    graphic_pieces,
    hidden,
    layer_names,
    pad_hole,
    pad_pieces,
    position,
    text_of,
    zone_fills,
)
from training.kicad_outline import find_outline
from training.kicad_shapes import Piece, Points, arc_by_middle, disc, placed
from training.kicad_text import expanded, unknown_letters

NEWEST_VERSION = 20240108
_NOT_DRAWN = ("gr_text_box", "fp_text_box", "image", "target", "table", "fp_image")


def parse_board(path: Path, name: str = "") -> KicadBoard:
    """Read one design; `name` is the file's stem unless given.

    Raises:
        ConfigError: no such file, no KiCad board, damaged, or without any copper or outline.
    """
    root = read_tree(path)
    reader = _Reader(root)
    for entry in root[1:]:
        if isinstance(entry, list) and entry and str(entry[0]) in reader.readers:
            reader.readers[str(entry[0])](entry)
    outline, found = find_outline(
        reader.edges, _anchors(reader.features), lambda message: reader.note("outline", message)
    )
    reader.add_layer_notes()
    return KicadBoard(
        name=name or path.stem,
        path=path,
        version=reader.version,
        outline=tuple(outline),
        outline_found=found,
        features={plane: tuple(features) for plane, features in reader.features.items()},
        drills=tuple(reader.drills),
        nets=reader.nets,
        mask_min_width=number(reader.setup, "solder_mask_min_width"),
        notes=reader.notes(),
    )


class _Reader:
    """What was read so far, and what later entries need to know: layers, nets, margins, drill sizes."""

    def __init__(self, root: Node) -> None:
        self.version = int(number(root, "version", 3))
        self.setup = child(root, "setup") or ["setup"]
        table = [
            (str(entry[0]), str(entry[1]), str(entry[2]))
            for entry in child(root, "layers") or []
            if isinstance(entry, list) and len(entry) > 2
        ]
        self.planes = plane_names(table, self.version)
        self.copper_layers = sum(use in ("signal", "power", "mixed", "jumper") for _, _, use in table)
        self.nets = {int(numbers(net, 1)[0]): [*words(net), ""][1] for net in children(root, "net")}
        self.mask_margin = number(self.setup, "pad_to_mask_clearance")
        plot = child(self.setup, "pcbplotparams") or ["pcbplotparams"]
        self.vias_open = word(plot, "viasonmask", "false") == "true"
        self.class_drills = class_drills(root)
        self.features: dict[Plane, list[Feature]] = defaultdict(list)
        self.drills: list[Drill] = []
        self.edges: list[Points] = []
        self._notes: Counter[Note] = Counter()
        self._texts = 0
        self.readers: dict[str, Callable[[Node], None]] = {
            "segment": self.add_track,
            "arc": self.add_track,
            "via": self.add_via,
            "zone": self.add_zone,
            "module": self.add_part,
            "footprint": self.add_part,
            "gr_text": self.add_text,
            "dimension": self.add_dimension,
            **{f"gr_{shape}": self.add_graphic for shape in GRAPHICS},
            **{kind: self.add_not_drawn for kind in _NOT_DRAWN},
        }

    def note(self, kind: str, message: str) -> None:
        self._notes[Note(kind, message)] += 1

    def notes(self) -> tuple[Note, ...]:
        return tuple(
            note if count == 1 else Note(note.kind, f"{note.message} ({count} times)")
            for note, count in self._notes.items()
        )

    def planes_of(self, names: Iterable[str]) -> set[Plane]:
        return {plane for name in names for plane in self.planes.get(name, ())}

    def add(
        self, planes: Iterable[Plane], kind: str, pieces: tuple[Piece, ...], net: int = 0, name: str = ""
    ) -> None:
        if pieces:
            for plane in sorted(planes):
                self.features[plane].append(Feature(kind, pieces, net, name))

    def net(self, node: Node) -> int:
        found = child(node, "net")
        return int(numbers(found, 1)[0]) if found is not None else 0

    def add_track(self, node: Node) -> None:
        start, end = point(node, "start"), point(node, "end")
        kind = "track" if node[0] == "segment" else "arc"
        points = np.array([start, end]) if kind == "track" else arc_by_middle(start, point(node, "mid"), end)
        self.add(
            self.planes_of(layer_names(node)), kind, (Piece(points, number(node, "width")),), self.net(node)
        )

    def add_via(self, node: Node) -> None:
        at, _ = position(node)
        planes = self.planes_of(layer_names(node))
        size, net = number(node, "size"), self.net(node)
        self.add(planes, "via", (disc(at, size),), net)
        if self.vias_open:
            opening = (disc(at, size + 2 * self.mask_margin),)
            self.add({("mask", side) for _, side in planes}, "via", opening, net)
        micro = "micro" in words(node)
        drill = number(node, "drill") or self.class_drill(self.nets.get(net, ""), micro=micro)
        if drill > 0:
            self.drills.append(Drill(disc(at, drill), True, frozenset(side for _, side in planes)))
        else:
            self.note("via-drill", "a via names no drill and its net class has none: drawn without a hole")

    def class_drill(self, net: str, *, micro: bool) -> float:
        return self.class_drills.get(net, self.class_drills.get("", (0.0, 0.0)))[micro]

    def add_zone(self, node: Node) -> None:
        if child(node, "keepout") is not None:
            return
        net, drawn = self.net(node), False
        for names, piece in zone_fills(node, self.version):
            drawn = True
            self.add(self.planes_of(names), "zone", (piece,), net)
        if not drawn and self.planes_of(layer_names(node)):
            named = word(node, "net_name") or self.nets.get(net, "") or "no net"
            layers = ", ".join(layer_names(node))
            self.note("unfilled-zone", f"a zone of {named} on {layers} was never filled: left out")

    def add_graphic(self, node: Node, at: Points | None = None, degrees: float = 0.0) -> None:
        planes = self.planes_of(layer_names(node))
        if not planes:
            return
        at = np.zeros(2) if at is None else at
        if ("edge", "") in planes:
            (line,) = placed([Piece(graphic_line(node))], at, degrees)
            self.edges.append(line.points)
            return
        if word(child(node, "stroke") or ["stroke"], "type", "solid") not in ("solid", "default"):
            self.note("dashed-line", "a dashed or dotted line is drawn solid")
        self.add(planes, "graphic", placed(graphic_pieces(node), at, degrees), self.net(node))

    def add_text(
        self,
        node: Node,
        text: str | None = None,
        at: Points | None = None,
        degrees: float = 0.0,
        *,
        upright: bool = False,
    ) -> None:
        planes = self.planes_of(layer_names(node))
        if not planes or hidden(node):
            return
        if ("edge", "") in planes:
            self.note("edge-text", "text on the edge cuts is left out")
            return
        own, angle = position(node)
        if at is not None:
            (moved,) = placed([Piece(own.reshape(1, 2))], at, degrees)
            own = moved.points[0]
        if upright and not -90.0 < (angle + 180.0) % 360.0 - 180.0 <= 90.0:
            angle += 180.0
        text = [*words(node), ""][0] if text is None else text
        if missing := unknown_letters(text):
            self.note("text-letter", f"no letter for {''.join(sorted(missing))!a}: drawn as a box")
        if "knockout" in [entry for layer in children(node, "layer") for entry in words(layer)]:
            self.note("knockout-text", "knockout text is drawn as plain text")
        self._texts += 1
        self.add(planes, "text", text_of(node, text, own, angle))

    def add_dimension(self, node: Node) -> None:
        """Until KiCad 5 a dimension lists its lines and its text."""
        planes = self.planes_of(layer_names(node)) - {("edge", "")}
        lines = [
            np.array([numbers(xy, 2) for xy in children(pts, "xy")])
            for entry in node[1:]
            if isinstance(entry, list)
            for pts in children(entry, "pts")
        ]
        if planes and not lines:
            self.add_not_drawn(node)
        elif planes:
            self.add(
                planes, "graphic", tuple(Piece(line, number(node, "width")) for line in lines if len(line))
            )
            for text in children(node, "gr_text"):
                self.add_text(text)

    def add_not_drawn(self, node: Node) -> None:
        if self.planes_of(layer_names(node)):
            self.note("not-drawn", f"{node[0]} on {', '.join(layer_names(node))} is left out")

    def add_part(self, node: Node) -> None:
        at, degrees = position(node)
        texts = {
            str(entry[1]): str(entry[2]) for entry in children(node, "fp_text", "property") if len(entry) > 2
        }
        reference = texts.get("reference", texts.get("Reference", ""))
        value = texts.get("value", texts.get("Value", ""))
        margin = number(node, "solder_mask_margin") or self.mask_margin
        for entry in node[1:]:
            kind = entry[0] if isinstance(entry, list) and entry else ""
            if not isinstance(entry, list):
                continue
            if kind == "pad":
                self.add_pad(entry, at, degrees, margin, reference)
            elif kind in ("fp_text", "property"):
                if len(entry) > 2 and (place := child(entry, "at")) is not None:
                    text = expanded(str(entry[2]), reference, value)
                    self.add_text(entry, text, at, degrees, upright="unlocked" not in words(place))
            elif kind in _NOT_DRAWN:
                self.add_not_drawn(entry)
            elif kind == "zone":
                self.add_zone(entry)
            elif str(kind).startswith("fp_") and str(kind)[3:] in GRAPHICS:
                self.add_graphic(entry, at, degrees)

    def add_pad(self, node: Node, part_at: Points, part_degrees: float, margin: float, part: str) -> None:
        own, degrees = position(node)
        (moved,) = placed([Piece(own.reshape(1, 2))], part_at, part_degrees)
        at, planes = moved.points[0], self.planes_of(layer_names(node))
        hole = pad_hole(node, at, degrees)
        plated = node[2] != "np_thru_hole"
        if hole is not None:
            self.drills.append(Drill(hole, plated, frozenset(SIDES)))
        name, net = f"{part}.{node[1]}", self.net(node)
        if flag(node, "remove_unused_layers"):
            self.note("unused-layers", "a pad drops copper on layers that it does not use: drawn on all")
        margin = number(node, "solder_mask_margin") or margin
        if margin < 0 and node[3] in ("trapezoid", "custom"):
            self.note(
                "mask-margin", f"the mask opening of a {node[3]} pad is not shrunk by its negative margin"
            )
        copper = {plane for plane in planes if plane[0] == "copper"}
        width, height = numbers(child(node, "size") or ["size"], 2)
        if plated or hole is None or max(width, height) > hole.width or len(hole.points) > 1:
            self.add(copper, "pad", pad_pieces(node, at, degrees), net, name)
        openings = {plane for plane in planes if plane[0] == "mask"}
        self.add(openings, "pad", pad_pieces(node, at, degrees, margin=margin), net, name)

    def add_layer_notes(self) -> None:
        if self.copper_layers > 2:
            self.note("inner-layers", f"{self.copper_layers - 2} inner copper layers are not seen: left out")
        if self._texts:
            self.note(
                "text-font", f"{self._texts} texts are drawn with a plain stroke font, not the design's"
            )
        if not any(
            feature.kind in ("track", "arc", "zone")
            for side in SIDES
            for feature in self.features["copper", side]
        ):
            self.note("not-routed", "neither side has tracks or filled zones: an unfinished design")
        if self.version > NEWEST_VERSION:
            self.note("newer-format", f"format {self.version} is newer than KiCad 8: entries may be missed")


def _anchors(features: dict[Plane, list[Feature]]) -> Points:
    """Points that lie on the board by all means: pads, vias and track ends, (n, 2)."""
    kinds = ("pad", "via", "track", "arc")
    found = [
        piece.points[[0, -1]]
        for side in SIDES
        for feature in features.get(("copper", side), ())
        if feature.kind in kinds
        for piece in feature.pieces
    ]
    return np.concatenate(found) if found else np.zeros((0, 2))
