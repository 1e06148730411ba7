"""COCO: boxes, polygons and run lengths in one JSON file, or in one per split.

Read are `annotations.coco.json` and `_annotations.coco.json` in the folder or in its sub-folders,
`annotations/*.json`, and any other JSON file of the folder that has `images` and `annotations`.

Beyond COCO, an image may name its `reference` (or `template`), its board as `group` (or `board`) and its
`split`. COCO polygons cannot hold holes: a shape with holes is written as exact run lengths for other tools,
and its rings beside them under the key `rings`, which is preferred in reading.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from inspect_vit.errors import ConfigError
from inspect_vit.image_io import picture_size
from inspect_vit.results import Sample
from training.formats.coco_file import LabelFile
from training.formats.dataset import DataSet, Fault
from training.formats.pictures import copy_picture, unique_names
from training.formats.reading import Reading
from training.formats.segments import write_segmentation

_NAMES = ("annotations.coco.json", "_annotations.coco.json")


def looks_like_coco(root: Path) -> bool:
    """Whether a JSON file in one of the usual places starts with COCO's keys."""
    return any(path.name in _NAMES or _has_coco_keys(path) for path in _label_files(root))


def read_coco(root: Path) -> DataSet:
    """Read every label file of a folder, or the one given, as one set; classes are joined by name.

    Boxes without an outline keep None; an outline without a box gives the box. `iscrowd` and `ignore` become
    `ignored`. Keys that are not read are named once each in the faults.

    Raises:
        ConfigError: no label file, or one that is not COCO's JSON.
    """
    root = root.resolve()
    paths = [
        path for path in _label_files(root) if path.name in _NAMES or _has_coco_keys(path) or path == root
    ]
    if not paths:
        raise ConfigError(
            f"{root}: no COCO labels; wanted {' or '.join(_NAMES)} here or in a sub-folder, or "
            "annotations/*.json"
        )
    reading = Reading()
    files = [LabelFile(path, root, reading) for path in paths]
    samples = [sample for file in files for sample in file.samples()]
    names = dict.fromkeys(name for file in files for name in file.classes.values())
    base = root if root.is_dir() else root.parent
    return DataSet(tuple(samples), tuple(names), tuple(reading.faults), "coco", base)


def _label_files(root: Path) -> list[Path]:
    """JSON files in the usual places; where some are named as COCO's, those alone."""
    if root.is_file():
        return [root] if root.suffix.lower() == ".json" else []
    if not root.is_dir():
        return []
    own = [p for p in sorted(root.glob("*.json")) if p.is_file() and (p.name in _NAMES or _has_coco_keys(p))]
    if own:  # label files of sub-folders are sets of their own
        return [p for p in own if p.name in _NAMES] or own
    places = [root, *sorted(folder for folder in root.iterdir() if folder.is_dir())]
    found = [path for place in places for path in sorted(place.glob("*.json")) if path.is_file()]
    if named := [path for path in found if path.name in _NAMES]:
        return named
    if instances := [path for path in found if path.name.startswith("instances_")]:
        return instances
    return [path for path in found if path.parent == root or path.parent.name == "annotations"]


def _has_coco_keys(path: Path) -> bool:
    """Whether the start or the end of the file shows `images` and `annotations`, in whatever order."""
    with path.open("rb") as file:
        head = file.read(65536)
        file.seek(max(path.stat().st_size - 65536, 0))
        text = (head + file.read()).replace(b"\0", b"")  # UTF-16 is JSON too
    pairs = ((b'"annotations"', b'"images"'), (b'"categories"', b'"image_id"'))
    return any(first in text and second in text for first, second in pairs)


def write_coco(
    data: DataSet, out: Path, *, copy_pictures: bool = True, lost: list[Fault] | None = None
) -> list[Path]:
    """Write annotations.coco.json, and the pictures into images/ and references/; return what was written.

    Args:
        copy_pictures: else the labels name the pictures where they are, relative to `out` where they can.
        lost: gets a fault for each picture that needs another name; all else is held.
    """
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    named: dict[Path, str] = {}
    references = [sample.reference for sample in data.samples if sample.reference is not None]
    for folder, paths in (("images", [sample.image for sample in data.samples]), ("references", references)):
        for path, name in unique_names((path for path in paths if path not in named), data.root).items():
            named[path] = f"{folder}/{name}" if copy_pictures else _relative(path, out)
            if copy_pictures:
                copy_picture(path, out / named[path])
                written.append(out / named[path])
                if lost is not None and name != path.name:
                    lost.append(Fault("renamed", str(path), f"another is called so; now {named[path]}", path))
    used = {label for sample in data.samples for label in sample.labels}
    classes = list(dict.fromkeys((*data.class_names, *sorted(used))))
    images = [_image_entry(number, sample, named) for number, sample in enumerate(data.samples, 1)]
    annotations = [
        entry
        for image, sample in zip(images, data.samples, strict=True)
        for entry in _annotations(image, sample, classes)
    ]
    for number, entry in enumerate(annotations, 1):
        entry["id"] = number
    categories = [{"id": number, "name": name} for number, name in enumerate(classes, 1)]
    labels_path = out / _NAMES[0]
    lists = {"images": images, "annotations": annotations, "categories": categories}
    text = ",\n".join(f'"{key}": [{_lines(entries)}]' for key, entries in lists.items())
    labels_path.write_text(f"{{\n{text}\n}}\n", encoding="utf-8", newline="\n")
    return [*written, labels_path]


def _lines(entries: list[dict[str, Any]]) -> str:
    """Entries of a JSON list, one a line: people read and compare these files."""
    return ",".join("\n" + json.dumps(entry, ensure_ascii=False, allow_nan=False) for entry in entries)


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return path.as_posix()


def _image_entry(number: int, sample: Sample, named: dict[Path, str]) -> dict[str, Any]:
    width, height = picture_size(sample.image)
    entry = {"id": number, "file_name": named[sample.image], "width": width, "height": height}
    stated = {
        "reference": sample.reference and named[sample.reference],
        "group": sample.group,
        "split": sample.split,
    }
    return entry | {key: value for key, value in stated.items() if value}


def _annotations(image: dict[str, Any], sample: Sample, classes: list[str]) -> list[dict[str, Any]]:
    entries = []
    for index, (box, label) in enumerate(zip(sample.boxes.tolist(), sample.labels, strict=True)):
        left, top, right, bottom = box
        entry = {
            "id": 0,
            "image_id": image["id"],
            "category_id": classes.index(label) + 1,
            "bbox": [left, top, right - left, bottom - top],
            "area": (right - left) * (bottom - top),
            "iscrowd": int(bool(sample.ignored and sample.ignored[index])),
        }
        shape = sample.masks[index] if sample.masks is not None else None
        if shape is not None:
            entry["area"] = int(shape.window(image["height"], image["width"])[2].sum())
            entry |= write_segmentation(shape, image["height"], image["width"])
        entries.append(entry)
    return entries
