"""YOLO's data.yaml in its several spellings -> class names, and the pictures with their splits.

`path` and the entries train, val and test are looked for as they stand, then from the folder of data.yaml,
then by their last parts below it: files move between machines, and some exports write `../train/images` for
`train/images`.
"""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from inspect_vit.errors import ConfigError
from training.formats.export import read_class_list
from training.formats.picture_labels import (
    Tally,
    note_moved,
    read_lines,
    read_text,
    say_unclear,
    split_of_folders,
    split_word,
)
from training.formats.pictures import PictureFinder, is_picture, list_pictures
from training.formats.reading import Reading
from training.formats.values import is_unicode, plain_int

_YAML_NAMES = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml")
_NAME_LISTS = ("classes.txt", "obj.names", "labels/classes.txt")
_KEYS = {"path", "train", "val", "test", "valid", "validation", "names", "nc"}


@dataclass(frozen=True)
class Listed:
    """A picture as the set lists it: labels are found from this path, before links are resolved."""

    path: Path
    split: str
    where: str


@dataclass(frozen=True)
class Layout:
    folder: Path
    names: dict[int, str] | None
    """Class id -> name; None where the set names no class."""
    pictures: tuple[Listed, ...]


def find_yaml(root: Path) -> Path | None:
    """The file that describes the set: `root` itself, or the likeliest YAML file in it."""
    if root.is_file():
        return root if root.suffix.lower() in (".yaml", ".yml") else None
    named = [path for name in _YAML_NAMES if (path := root / name).is_file()]
    others = sorted(path for end in ("*.yaml", "*.yml") for path in root.glob(end))
    return next((path for path in [*named, *others] if describes_yolo(path)), None)


def find_name_list(root: Path) -> Path | None:
    """The plain list of class names that stands for data.yaml in older sets."""
    return next((path for name in _NAME_LISTS if (path := root / name).is_file()), None)


def describes_yolo(path: Path) -> bool:
    try:
        tree = _load(path)
    except ConfigError:
        return path.name in _YAML_NAMES
    return isinstance(tree, dict) and ("names" in tree or "nc" in tree)


def read_layout(root: Path, reading: Reading) -> Layout:
    """Read data.yaml, or where there is none the folders `images` and `labels`.

    Raises:
        ConfigError: no such folder, a file that is not YAML, or one that describes key points.
    """
    path = find_yaml(root)
    if path is None:
        return _read_bare(root, reading)
    tree = _load(path)
    if not isinstance(tree, dict):
        raise ConfigError(f"{path} is not YOLO's: wanted the keys train, val and names")
    if "kpt_shape" in tree:
        raise ConfigError(
            f"{path} describes key points (kpt_shape); export the set for detection or segmentation"
        )
    for key in sorted(tree.keys() - _KEYS):
        reading.fault("unread-key", f"{path}:{key}", f"{key!r} is not read")
    base = _base(path, _stated(tree.get("path")), reading)
    entries = [
        (split_word(key), key, entry)
        for key, value in tree.items()
        for entry in (value if isinstance(value, list) else [value])
        if split_word(key) and _stated(entry)
    ]
    bases = list(dict.fromkeys((base, path.parent)))
    pictures = [
        listed
        for split, key, entry in entries
        for listed in _entry(entry, split, f"{path}:{key}", bases, reading)
    ]
    if not entries:
        reading.fault(
            "no-split", str(path), "neither train, val nor test is named; every picture below is read"
        )
        pictures = list(_pictures_below(base, str(path)))
    return Layout(path.parent, _names(path, tree, reading), tuple(pictures))


def _load(path: Path) -> Any:
    """The YAML tree with every scalar as text: to YAML itself, the class names `no` and `1e3` are none."""
    text = read_text(path)
    try:
        return yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{line} is not YAML: {getattr(error, 'problem', None) or error}") from error
    except (RecursionError, ValueError) as error:
        raise ConfigError(f"{path} is not YAML that describes a set: {error}") from error


def _read_bare(root: Path, reading: Reading) -> Layout:
    if not root.is_dir():
        raise ConfigError(f"{root} is neither a folder nor a data.yaml")
    path = find_name_list(root)
    listed = read_class_list(read_lines(path, reading)) if path else []
    names = dict(enumerate(listed)) or None
    where = str(path or root)
    reading.fault(
        "no-data-yaml", where, "no data.yaml; every picture is read, with the splits its folders name"
    )
    return Layout(root, names, tuple(_pictures_below(root, where)))


def _pictures_below(root: Path, where: str) -> Iterator[Listed]:
    folder = root / "images" if (root / "images").is_dir() else root
    for path in list_pictures(folder, deep=True):
        yield Listed(path, split_of_folders(path, root), where)


def _names(path: Path, tree: dict[str, Any], reading: Reading) -> dict[int, str] | None:
    names, count = tree.get("names"), tree.get("nc")
    if isinstance(names, list):
        found = dict(enumerate(names))
    elif isinstance(names, dict):
        try:
            found = dict(sorted((plain_int(number), name) for number, name in names.items()))
        except ValueError as error:
            raise ConfigError(
                f"{path}: names {reprlib.repr(names)}; wanted numbers before the names"
            ) from error
    else:
        reading.fault(
            "no-class-names", f"{path}:names", "classes have no names; called class_0, class_1, ..."
        )
        total = int(count) if isinstance(count, str) and re.fullmatch(r"\d{1,5}", count) else None
        return None if total is None else {number: f"class_{number}" for number in range(total)}
    if not all(isinstance(name, str) for name in found.values()):
        raise ConfigError(
            f"{path}: names {reprlib.repr(names)}; wanted a plain list, or numbers before the names"
        )
    found = {number: name.strip() for number, name in found.items()}
    for number in [number for number, name in found.items() if not is_unicode(name)]:
        message = f"name {found.pop(number)!r} of class {number} is no valid Unicode; the class is left out"
        reading.fault("not-unicode", f"{path}:names", message)
    if count is not None and count != str(len(found)):
        message = f"nc is {reprlib.repr(count)}, names are {len(found)}; the names are used"
        reading.fault("class-count", f"{path}:nc", message)
    for name in sorted({name for name in found.values() if list(found.values()).count(name) > 1}):
        reading.fault(
            "duplicate-class", f"{path}:names", f"{name!r} stands for several ids; they become one class"
        )
    return found


def _stated(value: Any) -> str:
    """The text of a scalar; "" for YAML's null and for anything else."""
    return value if isinstance(value, str) and value.lower() not in ("~", "null") else ""


def _base(path: Path, stated: str, reading: Reading) -> Path:
    """The folder that `path:` means here."""
    if not stated:
        return path.parent
    base = _locate(stated, [path.parent])
    if base is None or not base.is_dir():
        message = f"path {stated!r} is not a folder here; read from {path.parent}"
        reading.fault("path-moved", f"{path}:path", message)
        return path.parent
    return base


def _locate(entry: str, bases: Sequence[Path]) -> Path | None:
    """The file or folder that an entry names: as it stands, else by as many of its last parts as fit."""
    plain = entry.strip().replace("\\", "/")
    parts = [part for part in PurePosixPath(plain).parts if part not in ("..", ".", "/")]
    tails = [plain, *("/".join(parts[start:]) for start in range(len(parts)))]
    places = (base / tail for tail in tails for base in bases)
    return next((Path(os.path.normpath(place)) for place in places if os.path.exists(place)), None)


def _entry(entry: str, split: str, where: str, bases: Sequence[Path], reading: Reading) -> Iterator[Listed]:
    """The pictures of one folder, list file or picture."""
    place = _locate(entry, bases)
    if place is None:
        reading.fault(
            "missing-split", where, f"{entry!r} is no folder and no list here; its pictures are not read"
        )
        return
    as_it_stands = {os.path.normpath(base / entry.strip().replace("\\", "/")) for base in bases}
    if str(place) not in as_it_stands:
        reading.fault("path-moved", where, f"{entry!r} is not here; read {place} instead")
    if place.is_dir():
        found = list_pictures(place, deep=True)
        if not found:
            reading.fault("no-pictures", where, f"there are no pictures in {place}")
        yield from (Listed(path, split, where) for path in found)
    elif place.suffix.lower() == ".txt":
        yield from _list_file(place, split, bases, reading)
    elif is_picture(place):
        yield Listed(place, split, where)
    else:
        reading.fault("missing-split", where, f"{place} is no folder, no list and no picture; not read")


def _by_last_part(name: str, found: Path) -> bool:
    """Whether a name with folders led to a file in a folder of another name."""
    folders = PurePosixPath(name).parts[:-1]
    return bool(folders) and folders[-1] not in (".", "..", found.parent.name)


def _list_file(path: Path, split: str, bases: Sequence[Path], reading: Reading) -> Iterator[Listed]:
    """The pictures that a list names, one a line, from its own folder or the set's."""
    folders = list(dict.fromkeys((path.parent, *bases)))
    finder = PictureFinder(folders)
    tally = Tally()
    lines: list[tuple[str, str, Path | None, bool]] = []
    meant: dict[Path, set[str]] = {}
    for number, line in enumerate(read_lines(path, reading), 1):
        if plain := line.strip().replace("\\", "/"):
            here = next((place for folder in folders if os.path.isfile(place := folder / plain)), None)
            found = here or _locate(plain, folders) or finder.find(plain)
            found = Path(os.path.normpath(found)) if found is not None and is_picture(found) else None
            moved = here is None and found is not None and _by_last_part(plain, found)
            lines.append((f"{path}:{number}", plain, found, moved))
            if found is not None:
                meant.setdefault(found, set()).add(plain)
    for where, name, found, moved in lines:
        if found is None:
            reading.fault(
                "missing-image", where, f"there is no picture {name!r}; left out", path.parent / name
            )
        elif moved and len(meant[found]) > 1:
            say_unclear(name, where, reading)
        else:
            if moved:
                note_moved(where, tally)
            yield Listed(found, split, where)
    tally.say(reading)
