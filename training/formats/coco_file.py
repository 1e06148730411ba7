"""One COCO label file -> samples, every entry that cannot be read named and left out."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inspect_vit.errors import ConfigError
from inspect_vit.results import BoxXyxy, Sample
from inspect_vit.shapes import Shape
from training.formats.picture_labels import SPLIT_WORDS, split_word
from training.formats.pictures import PictureFinder
from training.formats.reading import Reading
from training.formats.segments import is_number, read_segmentation

_REFERENCE_KEYS, _GROUP_KEYS = ("reference", "template"), ("group", "board")
_IMAGE_KEYS = {"id", "file_name", "width", "height", "split", *_REFERENCE_KEYS, *_GROUP_KEYS}
_ANNOTATION_KEYS = {
    "id",
    "image_id",
    "category_id",
    "bbox",
    "area",
    "segmentation",
    "rings",
    "iscrowd",
    "ignore",
}
_LISTS = ("images", "annotations", "categories")
_ID = int | float | str


def _load(path: Path) -> dict[str, Any]:
    """The JSON tree; NaN and infinities come through, to be named with their entries."""
    try:
        tree = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}; export it again") from error
    if not isinstance(tree, dict) or not all(isinstance(tree.get(key), list) for key in _LISTS):
        raise ConfigError(f"{path} is not COCO: wanted the lists images, annotations and categories")
    return tree


@dataclass(frozen=True)
class _Defect:
    """One annotation that passed."""

    box: BoxXyxy
    label: str
    shape: Shape | None
    ignored: bool


class LabelFile:
    """One JSON file of the set under `root`, on its way to samples."""

    def __init__(self, path: Path, root: Path, reading: Reading) -> None:
        """Reads the classes. Raises ConfigError where the file is not COCO's JSON."""
        self.path = path
        self.reading = reading
        self._entries = {
            key: list(self._checked(key, entries)) for key, entries in _load(path).items() if key in _LISTS
        }
        folder = path.parent
        top = root if root.is_dir() else folder
        top = top.parent if top.name == "annotations" else top
        splits = _split_names(path, root)
        self._split = next(map(split_word, splits), "")
        inside = [top / part / name for name in splits for part in ("", "images")]
        self._finder = PictureFinder([folder, *inside, folder / "images", top, top / "images"])
        self.classes = self._read_classes()

    def _checked(self, key: str, entries: list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The entries that are objects without NaN or infinity, and where each stands."""
        for index, entry in enumerate(entries):
            where = f"{self.path}:{key}[{index}]"
            if not isinstance(entry, dict):
                self.reading.fault("not-an-object", where, f"{entry!r:.60}, wanted an object; left out")
            elif _has_nan(entry):
                self.reading.fault(
                    "not-finite", where, "holds NaN or an infinity, which JSON has not; left out"
                )
            else:
                yield where, entry

    def _read_classes(self) -> dict[Any, str]:
        """Category id -> name."""
        classes: dict[Any, str] = {}
        parents = {str(entry.get("supercategory")) for _, entry in self._entries["categories"]}
        used = {str(entry.get("category_id")) for _, entry in self._entries["annotations"]}
        for where, entry in self._entries["categories"]:
            number, name = entry.get("id"), entry.get("name")
            if not isinstance(number, _ID) or not isinstance(name, str) or not name:
                self.reading.fault("bad-category", where, f"{entry!r:.80}; wanted an id and a name; left out")
            elif number in classes:
                message = f"id {number!r} is {classes[number]!r} already; {name!r} is left out"
                self.reading.fault("duplicate-category", where, message)
            elif name in parents and name != entry.get("supercategory") and str(number) not in used:
                message = f"{name!r} only heads other categories and has no annotation; left out"
                self.reading.fault("empty-supercategory", where, message)
            else:
                classes[number] = name
        return classes

    def samples(self) -> Iterator[Sample]:
        """One sample per image that can be read, in the order of the file."""
        images: dict[Any, tuple[str, dict[str, Any], Path, tuple[int, int]]] = {}
        for where, entry in self._entries["images"]:
            if (found := self._picture(where, entry)) is None:
                continue
            if entry.get("id") in images:
                message = (
                    f"id {entry.get('id')!r} was given to {images[entry['id']][2].name} already; left out"
                )
                self.reading.fault("duplicate-image-id", where, message, found[0])
                continue
            images[entry["id"]] = (where, entry, *found)
        known = {str(entry.get("id")) for _, entry in self._entries["images"]}
        defects: dict[Any, list[_Defect]] = {number: [] for number in images}
        for where, entry in self._entries["annotations"]:
            number = entry.get("image_id")
            if not isinstance(number, _ID) or str(number) not in known:
                self.reading.fault(
                    "unknown-image-id", where, f"image_id {number!r} is not in images; left out"
                )
            elif (
                number in images and (read := self._annotation(where, entry, *images[number][2:])) is not None
            ):
                defects[number].append(read)
        self._name_unread_keys("images", _IMAGE_KEYS)
        self._name_unread_keys("annotations", _ANNOTATION_KEYS)
        for number, (where, entry, picture, _) in images.items():
            yield self._sample(where, entry, picture, defects[number])

    def _picture(self, where: str, entry: dict[str, Any]) -> tuple[Path, tuple[int, int]] | None:
        """The picture of an image entry and its size (width, height)."""
        name, number = entry.get("file_name"), entry.get("id")
        if not isinstance(name, str) or not isinstance(number, _ID):
            self.reading.fault("bad-image", where, f"{entry!r:.80}; wanted id and file_name; left out")
            return None
        picture = self._finder.find(name)
        if picture is None:
            wanted = self.path.parent / name.replace("\\", "/")
            self.reading.fault("missing-image", where, f"there is no picture {name!r}; left out", wanted)
            return None
        size = self.reading.size_of(picture, where)
        stated = entry.get("width"), entry.get("height")
        if size is not None and None not in stated and stated != size:
            is_now = f"the picture has {size[0]} x {size[1]} upright"
            message = f"says {stated[0]} x {stated[1]} px, {is_now}; its labels are kept as they are"
            self.reading.fault("size-mismatch", where, message, picture)
        return None if size is None else (picture, size)

    def _annotation(
        self, where: str, entry: dict[str, Any], picture: Path, size: tuple[int, int]
    ) -> _Defect | None:
        label = self.classes.get(entry["category_id"]) if isinstance(entry.get("category_id"), _ID) else None
        if label is None:
            message = f"category_id {entry.get('category_id')!r} is not in categories; left out"
            self.reading.fault("unknown-class", where, message, picture)
            return None
        shape = self._shape(where, entry, picture, size)
        bbox = entry.get("bbox")
        if bbox is None and shape is not None:
            values = shape.bounds()
        elif isinstance(bbox, list) and len(bbox) == 4 and all(map(is_number, bbox)):
            values = bbox[0], bbox[1], bbox[0] + bbox[2], bbox[1] + bbox[3]
        else:
            message = f"bbox {bbox!r:.60}; wanted [left, top, width, height] in px; left out"
            self.reading.fault("bad-box", where, message, picture)
            return None
        box = self.reading.box(values, size, where, picture)
        ignored = bool(entry.get("iscrowd")) or bool(entry.get("ignore"))
        return None if box is None else _Defect(box, label, shape, ignored)

    def _shape(self, where: str, entry: dict[str, Any], picture: Path, size: tuple[int, int]) -> Shape | None:
        try:
            shape = read_segmentation(entry.get("segmentation"), entry.get("rings"))
        except ConfigError as error:
            self.reading.fault("bad-outline", where, f"{error}; kept the box alone", picture)
            return None
        if shape is not None and shape.size not in (None, size[::-1]):
            message = (
                f"run lengths of {shape.size} (height, width), the picture has {size[::-1]}; kept the box"
            )
            self.reading.fault("bad-outline", where, message, picture)
            return None
        return shape

    def _sample(self, where: str, entry: dict[str, Any], picture: Path, defects: list[_Defect]) -> Sample:
        named = next((entry[key] for key in _REFERENCE_KEYS if entry.get(key)), None)
        reference = self._finder.find(named) if isinstance(named, str) else None
        if named is not None and reference is None:
            message = f"there is no reference {named!r}; kept without"
            self.reading.fault("missing-reference", where, message, picture)
        split = str(entry.get("split") or "").lower()
        return Sample(
            picture,
            np.array([defect.box for defect in defects], np.float32).reshape(-1, 4),
            tuple(defect.label for defect in defects),
            reference=reference,
            group=str(next((entry[key] for key in _GROUP_KEYS if entry.get(key) not in (None, "")), "")),
            origin=where,
            masks=tuple(d.shape for d in defects) if any(d.shape is not None for d in defects) else None,
            ignored=tuple(d.ignored for d in defects) if any(d.ignored for d in defects) else (),
            split=SPLIT_WORDS.get(split, self._split),
        )

    def _name_unread_keys(self, list_name: str, read: set[str]) -> None:
        entries = [entry for _, entry in self._entries[list_name]]
        for key, count in Counter(key for entry in entries for key in entry if key not in read).items():
            message = f"{key!r} of {count} {list_name} is not read"
            self.reading.fault("unread-key", f"{self.path}:{list_name}[].{key}", message)


def _split_names(path: Path, root: Path) -> list[str]:
    """Parts of the file's folder and name that name a split: `train2017` of instances_train2017.json."""
    folder = [path.parent.name] if path.parent not in (root, root.parent) else []
    return [name for name in (*folder, *re.split(r"[^A-Za-z0-9]+", path.stem)) if split_word(name)]


def _has_nan(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_has_nan, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float) and not abs(value) < float("inf")
