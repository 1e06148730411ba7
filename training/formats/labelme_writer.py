"""A set as LabelMe files; `labelme` says how they are laid out and what they cannot hold."""

from __future__ import annotations

import base64
import io
import json
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from inspect_vit.image_io import picture_size
from inspect_vit.results import Sample
from inspect_vit.shapes import Shape
from training.formats.dataset import DataSet, Fault
from training.formats.export import Export, relative_name, shape_of
from training.formats.pair_table import write_pairs

_VERSION = "5.5.0"
"""The LabelMe whose keys are written."""


def write_labelme(
    data: DataSet, out: Path, *, copy_pictures: bool = True, lost: list[Fault] | None = None
) -> list[Path]:
    """Write a JSON file beside each picture, and labels.txt, into an empty folder; return the files.

    References go to pairs.csv.

    Args:
        copy_pictures: else the JSON files name the pictures where they are.
        lost: gets a fault for whatever LabelMe cannot hold.

    Raises:
        ConfigError: `out` is not empty, or cannot be written.
    """
    export = Export(data, out, lost)
    placed = []
    for sample in export.once_each():
        name = export.names[sample.image]
        path = export.out / f"{Path(name).stem}.json"
        picture = export.place(sample.image, export.out / name, copy=copy_pictures)
        placed.append((sample, picture))
        width, height = picture_size(sample.image)
        tree: dict[str, Any] = {
            "version": _VERSION,
            "flags": {},
            "shapes": _shapes(sample, (width, height), export),
            "imagePath": name if copy_pictures else relative_name(picture, path.parent),
            "imageData": None,
            "imageHeight": height,
            "imageWidth": width,
        }
        tree |= {key: value for key in ("split", "group") if (value := getattr(sample, key))}
        export.write_text(path, json.dumps(tree, ensure_ascii=False, allow_nan=False, indent=1) + "\n")
    export.write_text(export.out / "labels.txt", "".join(f"{name}\n" for name in export.class_names))
    write_pairs(export, placed, copy=copy_pictures, groups=False)
    return export.written


def _shapes(sample: Sample, size: tuple[int, int], export: Export) -> list[dict[str, Any]]:
    groups = count(1)
    entries: list[dict[str, Any]] = []
    ignored = sample.is_ignored.tolist()
    for index, (box, label) in enumerate(zip(sample.boxes.tolist(), sample.labels, strict=True)):
        shape = shape_of(sample, index)
        if shape is None:
            parts: list[dict[str, Any]] = [{"shape_type": "rectangle", "points": [box[:2], box[2:]]}]
        else:
            export.check_box(sample, index, shape, size)
            parts = _parts(shape, size, sample, export)
        group = next(groups) if len(parts) > 1 else None
        flags = {"ignored": True} if ignored[index] else {}
        own = {"label": label, "group_id": group, "description": "", "flags": flags, "mask": None}
        entries += [own | part for part in parts]
    return entries


def _parts(shape: Shape, size: tuple[int, int], sample: Sample, export: Export) -> list[dict[str, Any]]:
    if shape.runs is not None:
        left, top, pixels = shape.window(size[1], size[0])
        corners = [[left, top], [left + pixels.shape[1] - 1, top + pixels.shape[0] - 1]]
        return [{"shape_type": "mask", "points": corners, "mask": _pack(pixels)}]
    parts = []
    for polygon in shape.polygons:
        ring = export.joined(sample, polygon, size)
        parts.append({"shape_type": "polygon", "points": ring.tolist()})
    return parts


def _pack(pixels: NDArray[np.bool_]) -> str:
    """A PNG, 255 inside, as base64 text."""
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8) * 255).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode("ascii")
