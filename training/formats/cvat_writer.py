"""A set as CVAT XML for images; `cvat` says how it is laid out and what it cannot hold."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from inspect_vit.image_io import picture_size
from inspect_vit.results import Sample
from inspect_vit.shapes import Shape
from training.formats.dataset import DataSet, Fault
from training.formats.export import Export, final_name, relative_name, shape_of
from training.formats.pair_table import write_pairs
from training.formats.xml_tree import add, decimal, xml_text

_IGNORED = "ignored"
_SUBSETS = {"train": "Train", "val": "Validation", "test": "Test"}


def write_cvat(
    data: DataSet, out: Path, *, copy_pictures: bool = True, lost: list[Fault] | None = None
) -> list[Path]:
    """Write annotations.xml and images/ into an empty folder; return the files.

    References and groups go to pairs.csv.

    Args:
        copy_pictures: else the file names the pictures where they are.
        lost: gets a fault for whatever CVAT cannot hold.

    Raises:
        ConfigError: `out` is not empty or cannot be written, or a name holds a control character.
    """
    export = Export(data, out, lost)
    samples = export.once_each()
    root = ElementTree.Element("annotations")
    add(root, "version", "1.1")
    _add_meta(root, samples, export)
    placed = []
    for number, sample in enumerate(samples):
        name = export.names[sample.image]
        picture = export.place(sample.image, export.out / "images" / name, copy=copy_pictures)
        placed.append((sample, picture))
        named = name if copy_pictures else relative_name(picture, export.out)
        size = picture_size(sample.image)
        subset = {"subset": _SUBSETS[sample.split]} if sample.split in _SUBSETS else {}
        sides = {"width": str(size[0]), "height": str(size[1])}
        image = add(root, "image", id=str(number), name=named, **subset, **sides)
        _add_shapes(image, sample, size, export)
    export.write_text(export.out / "annotations.xml", xml_text(root))
    write_pairs(export, placed, copy=copy_pictures)
    return export.written


def _add_meta(root: ElementTree.Element, samples: list[Sample], export: Export) -> None:
    task = add(add(root, "meta"), "task")
    add(task, "name", final_name(export.out))
    add(task, "size", str(len(samples)))
    add(task, "mode", "annotation")
    labels = add(task, "labels")
    for name in export.class_names:
        label = add(labels, "label")
        add(label, "name", name)
        add(label, "type", "any")
        attribute = add(add(label, "attributes"), "attribute")
        for tag, text in (
            ("name", _IGNORED),
            ("mutable", "False"),
            ("input_type", "checkbox"),
            ("default_value", "false"),
            ("values", "false"),
        ):
            add(attribute, tag, text)


def _add_shapes(image: ElementTree.Element, sample: Sample, size: tuple[int, int], export: Export) -> None:
    groups = count(1)
    ignored = sample.is_ignored.tolist()
    for index, (box, label) in enumerate(zip(sample.boxes.tolist(), sample.labels, strict=True)):
        common = {"label": label, "source": "manual", "occluded": "0", "z_order": "0"}
        shape = shape_of(sample, index)
        if shape is None:
            sides = dict(zip(("xtl", "ytl", "xbr", "ybr"), map(decimal, box), strict=True))
            elements = [add(image, "box", **common, **sides)]
        else:
            export.check_box(sample, index, shape, size)
            if len(shape.polygons) > 1:
                common["group_id"] = str(next(groups))
            elements = [
                add(image, tag, **common, **values) for tag, values in _outlines(shape, size, sample, export)
            ]
        if ignored[index]:
            for element in elements:
                add(element, "attribute", "true", name=_IGNORED)


def _outlines(
    shape: Shape, size: tuple[int, int], sample: Sample, export: Export
) -> list[tuple[str, dict[str, str]]]:
    """Tag and attributes of each part."""
    if shape.runs is not None:
        left, top, pixels = shape.window(size[1], size[0])
        marks = np.flatnonzero(np.diff(pixels.ravel(), prepend=False, append=~pixels.ravel()[-1]))
        runs = np.diff(marks, prepend=0)
        sides = {"left": left, "top": top, "width": pixels.shape[1], "height": pixels.shape[0]}
        return [("mask", {"rle": ", ".join(map(str, runs)), **{k: str(v) for k, v in sides.items()}})]
    found = []
    for polygon in shape.polygons:
        ring = export.joined(sample, polygon, size)
        points = ";".join(f"{x!r},{y!r}" for x, y in ring.tolist())
        found.append(("polygon", {"points": points}))
    return found
