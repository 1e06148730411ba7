"""The shapes of one picture in CVAT XML -> defects."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from inspect_vit.errors import ConfigError
from inspect_vit.results import BoxXyxy
from inspect_vit.shapes import Polygon, Shape
from training.formats.cuts import split_cuts
from training.formats.picture_labels import IGNORE_WORDS, PictureLabels, Tally
from training.formats.rings import ellipse_ring, open_ring, turned_box
from training.formats.values import plain_int
from training.formats.xml_tree import Node, number_of

_SIDES = ("xtl", "ytl", "xbr", "ybr")


def read_shapes(image: Node, path: Path, labels: PictureLabels, tally: Tally) -> None:
    """Add the defects of an <image>; outlines of one label and group are one, placed with the first."""
    groups: dict[object, list[tuple[Node, Shape | BoxXyxy]]] = {}
    for index, node in enumerate(image.children):
        where = f"{path}:{node.line}"
        label = _label(node)
        if node.tag not in _READERS:
            labels.fault("not-an-area", where, f"a <{node.tag}> named {label!r} has no area; left out")
        elif not label:
            labels.fault("unknown-class", where, f"the <{node.tag}> has no label; left out")
        else:
            try:
                outline = _READERS[node.tag](node, labels.size)
            except (ConfigError, ValueError) as error:
                labels.fault("bad-outline", where, f"the <{node.tag}> cannot be read ({error}); left out")
                continue
            _note_unread(node, where, tally)
            number = node.attributes.get("group_id", "0")
            joins = number != "0" and node.tag != "box"
            groups.setdefault((label, number) if joins else index, []).append((node, outline))
    for parts in groups.values():
        node, outline = parts[0]
        where = f"{path}:{node.line}"
        ignored = any([_is_ignored(part, f"{path}:{part.line}", labels) for part, _ in parts])
        if isinstance(outline, Shape):
            shapes = [shape for _, shape in parts if isinstance(shape, Shape)]
            labels.add_parts(_label(node), where, shapes, ignored=ignored)
        else:
            labels.add(_label(node), where, box=outline, ignored=ignored)


def _label(node: Node) -> str:
    return node.attributes.get("label", "").strip()


def _box(node: Node, size: tuple[int, int]) -> Shape | BoxXyxy:
    left, top, right, bottom = _numbers(node, *_SIDES)
    degrees = number_of(node.attributes.get("rotation", "0"))
    if not degrees % 360:
        return left, top, right, bottom
    return Shape(polygons=(Polygon(turned_box((left, top, right, bottom), degrees)),))


def _polygon(node: Node, size: tuple[int, int]) -> Shape:
    points = [
        [number_of(value) for value in pair.split(",")]
        for pair in node.attributes.get("points", "").split(";")
    ]
    if len(points) < 3 or any(len(point) != 2 for point in points):
        raise ConfigError(f"points {node.attributes.get('points', '')!r:.80}; wanted three or more 'x,y;x,y'")
    return Shape(polygons=split_cuts(open_ring(np.array(points, np.float64))))


def _ellipse(node: Node, size: tuple[int, int]) -> Shape:
    x, y, across, down = _numbers(node, "cx", "cy", "rx", "ry")
    degrees = number_of(node.attributes.get("rotation", "0"))
    return Shape(polygons=(Polygon(ellipse_ring((x, y), (across, down), degrees)),))


def _mask(node: Node, size: tuple[int, int]) -> Shape:
    left, top, width, height = (
        plain_int(node.attributes.get(n, "")) for n in ("left", "top", "width", "height")
    )
    runs = [plain_int(text) for text in node.attributes.get("rle", "").split(",")]
    if min(runs) < 0 or width < 1 or height < 1 or sum(runs) != width * height:
        raise ConfigError(f"runs sum to {sum(runs)} pixels; wanted {width} x {height}, none negative")
    if left < 0 or top < 0 or left + width > size[0] or top + height > size[1]:
        raise ConfigError(
            f"{width} x {height} px at {left}, {top} leave the picture of {size[0]} x {size[1]}"
        )
    pixels = np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(height, width)
    return Shape.from_mask(pixels, at=(left, top), size=size[::-1])


_READERS = {"box": _box, "polygon": _polygon, "ellipse": _ellipse, "mask": _mask}


def _numbers(node: Node, *names: str) -> list[float]:
    return [number_of(node.attributes.get(name)) for name in names]


def _is_ignored(node: Node, where: str, labels: PictureLabels) -> bool:
    named = ((attribute.attributes.get("name", ""), attribute.text) for attribute in node.all("attribute"))
    return any([labels.flag(text, name, where) for name, text in named if name.lower() in IGNORE_WORDS])


def _note_unread(node: Node, where: str, tally: Tally) -> None:
    for name in ("occluded", "z_order"):
        if node.attributes.get(name, "0") not in ("0", ""):
            tally.note("unread-key", f"{name} of a shape is not read", where)
    for attribute in node.all("attribute"):
        name = attribute.attributes.get("name", "")
        if name.lower() not in IGNORE_WORDS and attribute.text:
            tally.note("unread-key", f"the attribute {name!r} of a shape is not read", where)
