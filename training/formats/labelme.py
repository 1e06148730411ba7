"""LabelMe: one JSON file beside each picture.

Points are px of the upright picture with 0 at the outer edge of the first pixel. A `rectangle` is a box. A
`polygon` is an outline, an `oriented_rectangle` (or `rotation`) one of four points, a `circle` a polygon
that is never more than 0.02 px off the curve, a `mask` the pixels of its PNG from its first point on.
Shapes of one label and `group_id` are the parts of one defect. Points and lines have no area: they are left
out and named.

Objects whose `flags` hold "ignored", "difficult" or "crowd" are ignored ones. Written and read beyond
LabelMe's own keys: `split` and `group` of the picture. Classes are listed in labels.txt, where there is
one.

A picture that is embedded and nowhere else is written out beside its JSON file: fault "embedded-picture".

What LabelMe cannot hold: a box that differs from its outline. Its polygons have no holes: these are joined to
the ring by cuts of no width, which this reader takes out again. References are written to pairs.csv.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PureWindowsPath
from typing import Any

from inspect_vit.errors import ConfigError
from training.formats.dataset import DataSet
from training.formats.export import read_class_list
from training.formats.labelme_shapes import read_shapes, unpack_picture
from training.formats.labelme_writer import write_labelme
from training.formats.picture_labels import (
    PictureLabels,
    Tally,
    find_picture,
    name_unlabelled,
    read_lines,
    read_split,
    read_text,
    split_of_folders,
)
from training.formats.pictures import PictureFinder
from training.formats.reading import Reading
from training.formats.values import is_unicode

__all__ = ["looks_like_labelme", "read_labelme", "write_labelme"]

_READ = {"shapes", "imagePath", "imageData", "imageHeight", "imageWidth", "version", "split", "group"}
_HEAD_BYTES = 1 << 20


def looks_like_labelme(root: Path) -> bool:
    """Whether one of the first JSON files speaks of shapes near its beginning."""
    return any(_speaks_of_shapes(path) for path in islice(_json_paths(root), 5))


def _speaks_of_shapes(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES).replace(b"\0", b"")  # UTF-16 too
    return b'"shapes"' in head and (b'"imagePath"' in head or b'"flags"' in head or b'"version"' in head)


def read_labelme(root: Path) -> DataSet:
    """Read every JSON file with shapes below `root`.

    Raises:
        ConfigError: no such file.
    """
    root = root.resolve()
    reading, tally = Reading(), Tally()
    finders: dict[Path, PictureFinder] = {}
    samples = []
    labelled: set[Path] = set()
    for path in _json_paths(root):
        if (tree := _load(path, reading)) is None:
            continue
        finder = finders.setdefault(path.parent, PictureFinder(_places(path.parent, root)))
        image = _picture(path, tree, finder, reading, tally)
        size = reading.size_of(image, str(path)) if image is not None else None
        if image is None or size is None:
            continue
        labelled.add(image)
        labels = PictureLabels(image, size, reading)
        stated = tree.get("imageWidth"), tree.get("imageHeight")
        if isinstance(stated[0], int) and isinstance(stated[1], int):
            labels.check_stated_size((stated[0], stated[1]), str(path))
        read_shapes(tree["shapes"], path, labels, tally)
        for key in (key for key, value in tree.items() if key not in _READ and value):
            tally.note("unread-key", f"{key!r} of a picture is not read", str(path))
        split = read_split(tree.get("split"), str(path), reading, image) or split_of_folders(path, root)
        group = _text(tree, "group")
        if not is_unicode(group):
            labels.fault("not-unicode", str(path), f"group {group!r} is no valid Unicode; kept without")
            group = ""
        samples.append(labels.sample(origin=str(path), group=group, split=split))
    if not finders:
        raise ConfigError(f"{root}: no JSON file holds LabelMe's shapes; wanted one beside each picture")
    places = (
        folder for finder in finders.values() for folder in finder.folders if folder.is_relative_to(root)
    )
    name_unlabelled(places, labelled, reading)
    tally.say(reading)
    used = sorted({label for sample in samples for label in sample.labels})
    names = dict.fromkeys((*_class_list(root, reading), *used))
    return DataSet(tuple(samples), tuple(names), tuple(reading.faults), "labelme", root)


def _json_paths(root: Path) -> Iterator[Path]:
    """In order, and lazily folder by folder: the first is found without a walk through all."""
    if not root.is_dir():
        return
    entries = sorted(root.iterdir())
    yield from (
        path for path in entries if path.suffix.lower() == ".json" and path.is_file() and path.name[0] != "."
    )
    for folder in entries:
        if folder.is_dir() and not folder.is_symlink():
            yield from _json_paths(folder)


def _places(folder: Path, root: Path) -> list[Path]:
    """Where the pictures of a folder's JSON files may lie: there, or in a folder of their own beside it."""
    beside = [folder.parent / name for name in ("images", "imgs", "JPEGImages", "pictures")]
    return [folder, *beside, *([folder.parent] if folder != root else [])]


def _load(path: Path, reading: Reading) -> dict[str, Any] | None:
    try:
        tree = json.loads(read_text(path))
    except ConfigError as error:
        reading.fault("corrupt-labels", str(path), f"{error}; left out")
        return None
    except (ValueError, RecursionError) as error:
        line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        reading.fault("corrupt-labels", f"{path}{line}", f"not JSON: {error}; left out")
        return None
    if not isinstance(tree, dict) or not isinstance(tree.get("shapes"), list):
        reading.fault("not-labelme", str(path), "there is no list of shapes; left out")
        return None
    return tree


def _picture(
    path: Path, tree: dict[str, Any], finder: PictureFinder, reading: Reading, tally: Tally
) -> Path | None:
    """The picture by `imagePath`, else by the name of the JSON file, else the embedded one, written out."""
    name, embedded = _text(tree, "imagePath"), _text(tree, "imageData")
    is_there = finder.find(name) is not None or any(
        finder.with_stem(stem) for stem in (PureWindowsPath(name).stem, path.stem)
    )
    if not is_there and embedded:
        return unpack_picture(embedded, name, path, reading)
    return find_picture(finder, name, str(path), reading, tally, stems=[path.stem])


def _text(tree: dict[str, Any], key: str) -> str:
    value = tree.get(key)
    return value if isinstance(value, str) else ""


def _class_list(root: Path, reading: Reading) -> list[str]:
    names = read_class_list(read_lines(root / "labels.txt", reading))
    return [name for name in names if name not in ("__ignore__", "_background_")]
