"""One COCO label file -> samples, every entry that cannot be read named and left out."""

from __future__ import annotations

import json
import re
import reprlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inspect_vit.errors import ConfigError
from inspect_vit.results import BoxXyxy, Sample
from inspect_vit.shapes import Shape
from training.formats.picture_labels import (
    Tally,
    note_moved,
    read_split,
    read_stated_flag,
    say_unclear,
    split_word,
)
from training.formats.pictures import PictureFinder
from training.formats.reading import Reading
from training.formats.segments import is_number, read_segmentation
from training.formats.values import is_unicode

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
        entries = [entry for _, entry in self._entries["images"]]
        names = (name for entry in entries if isinstance(name := entry.get("file_name"), str))
        references = (name for entry in entries if isinstance(name := _reference(entry), str))
        self._unclear = self._finder.unclear(names)
        self._unclear_references = self._finder.unclear(references)
        self._tally = Tally()

    def _checked(self, key: str, entries: list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The entries that are objects without NaN or infinity, and where each stands."""
        for index, entry in enumerate(entries):
            where = f"{self.path}:{key}[{index}]"
            if not isinstance(entry, dict):
                message = f"{reprlib.repr(entry)}, wanted an object; left out"
                self.reading.fault("not-an-object", where, message)
            elif (misfit := _misfit(entry)) is not None:
                kind, message = misfit
                self.reading.fault(kind, where, f"{message}; left out")
            else:
                yield where, entry

    def _read_classes(self) -> dict[str, str]:
        """Category id, as `_key` has it -> name."""
        classes: dict[str, str] = {}
        parents = {str(entry.get("supercategory")) for _, entry in self._entries["categories"]}
        used = {_key(entry.get("category_id")) for _, entry in self._entries["annotations"]}
        for where, entry in self._entries["categories"]:
            number, name = _key(entry.get("id")), entry.get("name")
            if number is None or not isinstance(name, str) or not name:
                message = f"{reprlib.repr(entry)}; wanted an id and a name; left out"
                self.reading.fault("bad-category", where, message)
            elif number in classes:
                message = f"id {entry['id']!r} is {classes[number]!r} already; {name!r} is left out"
                self.reading.fault("duplicate-category", where, message)
            elif name in parents and name != entry.get("supercategory") and number not in used:
                message = f"{name!r} only heads other categories and has no annotation; left out"
                self.reading.fault("empty-supercategory", where, message)
            else:
                if name in classes.values():
                    message = f"{name!r} is listed twice; both become one class"
                    self.reading.fault("duplicate-class", where, message)
                classes[number] = name
        return classes

    def samples(self) -> Iterator[Sample]:
        """One sample per image that can be read, in the order of the file."""
        images: dict[str, tuple[str, dict[str, Any], Path, tuple[int, int]]] = {}
        for where, entry in self._entries["images"]:
            if (found := self._picture(where, entry)) is None:
                continue
            number = _key(entry["id"]) or ""
            if number in images:
                message = f"id {entry['id']!r} was given to {images[number][2].name} already; left out"
                self.reading.fault("duplicate-image-id", where, message, found[0])
                continue
            images[number] = (where, entry, *found)
        known = {_key(entry.get("id")) for _, entry in self._entries["images"]} - {None}
        defects: dict[str, list[_Defect]] = {number: [] for number in images}
        for where, entry in self._entries["annotations"]:
            meant = _key(entry.get("image_id"))
            if meant is None or meant not in known:
                message = f"image_id {reprlib.repr(entry.get('image_id'))} is not in images; left out"
                self.reading.fault("unknown-image-id", where, message)
            elif meant in images:  # else the picture was left out, as was said
                read = self._annotation(where, entry, *images[meant][2:])
                defects[meant] += [read] if read is not None else []
        self._name_unread_keys("images", _IMAGE_KEYS)
        self._name_unread_keys("annotations", _ANNOTATION_KEYS)
        for number, (where, entry, picture, _) in images.items():
            yield self._sample(where, entry, picture, defects[number])
        self._tally.say(self.reading)

    def _picture(self, where: str, entry: dict[str, Any]) -> tuple[Path, tuple[int, int]] | None:
        """The picture of an image entry and its size (width, height)."""
        name, number = entry.get("file_name"), entry.get("id")
        if not isinstance(name, str) or _key(number) is None:
            message = f"{reprlib.repr(entry)}; wanted id and file_name; left out"
            self.reading.fault("bad-image", where, message)
            return None
        if name in self._unclear:
            say_unclear(name, where, self.reading)
            return None
        picture, moved = self._finder.trace(name)
        if picture is None:
            wanted = self.path.parent / name.replace("\\", "/")
            self.reading.fault("missing-image", where, f"there is no picture {name!r}; left out", wanted)
            return None
        if moved:
            note_moved(where, self._tally)
        size = self.reading.size_of(picture, where)
        stated = entry.get("width"), entry.get("height")
        if size is not None and None not in stated and stated != size:
            is_now = f"the picture has {size[0]} x {size[1]} upright"
            shown = " x ".join(map(reprlib.repr, stated))
            message = f"says {shown} px, {is_now}; its labels are kept as they are"
            self.reading.fault("size-mismatch", where, message, picture)
        return None if size is None else (picture, size)

    def _annotation(
        self, where: str, entry: dict[str, Any], picture: Path, size: tuple[int, int]
    ) -> _Defect | None:
        label = self.classes.get(_key(entry.get("category_id")) or "")
        if label is None:
            message = f"category_id {reprlib.repr(entry.get('category_id'))} is not in categories; left out"
            self.reading.fault("unknown-class", where, message, picture)
            return None
        shape = self._shape(where, entry, picture, size)
        bbox = entry.get("bbox")
        if bbox is None and shape is not None:
            values = shape.bounds()
        elif isinstance(bbox, list) and len(bbox) == 4 and all(map(is_number, bbox)):
            values = bbox[0], bbox[1], bbox[0] + bbox[2], bbox[1] + bbox[3]
        else:
            message = f"bbox {reprlib.repr(bbox)}; wanted [left, top, width, height] in px; left out"
            self.reading.fault("bad-box", where, message, picture)
            return None
        box = self.reading.box(values, size, where, picture)
        flags = [
            read_stated_flag(entry.get(key), key, where, self.reading, picture)
            for key in ("iscrowd", "ignore")
        ]
        return None if box is None else _Defect(box, label, shape, any(flags))

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
        named = _reference(entry)
        reference, moved = self._finder.trace(named) if isinstance(named, str) else (None, False)
        if isinstance(named, str) and named in self._unclear_references:
            message = (
                f"the folder of reference {named!r} is not here, and another name leads to the same picture"
            )
            self.reading.fault("unclear-reference", where, f"{message}; kept without", picture)
            reference = None
        elif named is not None and reference is None:
            message = f"there is no reference {reprlib.repr(named)}; kept without"
            self.reading.fault("missing-reference", where, message, picture)
        elif moved:
            note_moved(where, self._tally, "reference")
        return Sample(
            picture,
            np.array([defect.box for defect in defects], np.float32).reshape(-1, 4),
            tuple(defect.label for defect in defects),
            reference=reference,
            group=str(next((entry[key] for key in _GROUP_KEYS if entry.get(key) not in (None, "")), "")),
            origin=where,
            masks=tuple(d.shape for d in defects) if any(d.shape is not None for d in defects) else None,
            ignored=tuple(d.ignored for d in defects) if any(d.ignored for d in defects) else (),
            split=read_split(entry.get("split"), where, self.reading, picture) or self._split,
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


def _reference(entry: dict[str, Any]) -> Any:
    return next((entry[key] for key in _REFERENCE_KEYS if entry.get(key)), None)


def _key(number: Any) -> str | None:
    """An id as text, the same for 1, 1.0 and "1", which other programs mix; None for what is no id."""
    if isinstance(number, bool) or not isinstance(number, int | float | str):
        return None
    return str(int(number)) if isinstance(number, float) and number.is_integer() else str(number).strip()


def _misfit(entry: dict[str, Any]) -> tuple[str, str] | None:
    """Kind and words of what JSON or UTF-8 cannot hold in an entry, however deep; None where it holds all."""
    waiting: list[Any] = [entry]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, float) and not abs(value) < float("inf"):
            return "not-finite", "holds NaN or an infinity, which JSON has not"
        elif isinstance(value, str) and not is_unicode(value):
            return "not-unicode", f"holds the text {value!r:.60}, which is no valid Unicode"
    return None
