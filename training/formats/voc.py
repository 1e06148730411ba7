"""Pascal VOC: one XML file per picture, and outlines as numbered pixels in SegmentationObject.

Layouts: Annotations/, JPEGImages/, ImageSets/Main/{train,val,trainval,test}.txt and SegmentationObject/ as
in the devkit, or XML files beside their pictures, in folders that may name a split.

Pixels are those of the devkit: counted from 1, the last one inside, so that `xmin ymin xmax ymax` is the
box_xyxy (xmin - 1, ymin - 1, xmax, ymax). Many tools write outer edges counted from 0 instead. A set that
holds a 0 cannot be the devkit's: all of it is read as (xmin, ymin, xmax, ymax), and fault "counted-from-0"
says so. Written are the devkit's pixels, with decimals where a box has them: boxes come back as they were.

`difficult` objects are ignored ones. `truncated`, `occluded`, `pose` and `part` change no box and are not
read. In SegmentationObject pixel value k is the k-th object of the XML file, 0 background, 255 a border
that is left open. Classes are listed in labelmap.txt, where there is one, else in the order of the
alphabet.

What VOC cannot hold: outlines finer than pixels, pixels of two objects, more than 254 outlines in a
picture. References and groups are written to pairs.csv.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from inspect_vit.errors import ConfigError
from inspect_vit.results import BoxXyxy, Sample
from inspect_vit.shapes import Shape
from training.formats.dataset import DataSet
from training.formats.picture_labels import (
    PictureLabels,
    Tally,
    find_picture,
    name_unlabelled,
    read_lines,
    split_of_folders,
    split_word,
)
from training.formats.pictures import PictureFinder
from training.formats.reading import Reading
from training.formats.voc_masks import read_numbered
from training.formats.voc_writer import CORNERS, write_voc
from training.formats.xml_tree import Node, head_of, number_of, read_xml

__all__ = ["looks_like_voc", "read_voc", "write_voc"]

_PLAIN = {"truncated": "0", "occluded": "0", "pose": "Unspecified"}
"""Tags that say nothing when they have this text."""


def looks_like_voc(root: Path) -> bool:
    """Whether the first XML file found is an <annotation>."""
    first = next(iter(_xml_paths(root)), None)
    return first is not None and head_of(first) == "annotation"


def read_voc(root: Path) -> DataSet:
    """Read every XML file in Annotations/ or, where there is none, below `root`.

    Raises:
        ConfigError: no such file.
    """
    root = root.resolve()
    reading, tally = Reading(), Tally()
    files = _load_all(root, reading)
    if not files:
        raise ConfigError(f"{root}: no XML file is an <annotation>; wanted Annotations/*.xml")
    homes = list(dict.fromkeys(file.home for file in files))
    splits = {
        home: _read_lists(home, {f.path.stem for f in files if f.home == home}, reading) for home in homes
    }
    first_pixel = _first_pixel(files, reading)
    samples: list[Sample] = []
    labelled: set[Path] = set()
    for file in files:
        image = _find(file, reading, tally)
        size = reading.size_of(image, str(file.path)) if image is not None else None
        if image is None or size is None:
            continue
        labelled.add(image)
        labels = PictureLabels(image, size, reading)
        _read_objects(file, labels, first_pixel, tally)
        own = splits[file.home].get(file.path.stem) or [split_of_folders(file.path, root)]
        samples += [labels.sample(origin=str(file.path), split=split) for split in own]
    places = (folder for file in files for folder in file.finder.folders if folder.is_relative_to(root))
    name_unlabelled(places, labelled, reading)
    tally.say(reading)
    used = sorted({label for sample in samples for label in sample.labels})
    names = dict.fromkeys((*(name for home in homes for name in _class_list(home, reading)), *used))
    return DataSet(tuple(samples), tuple(names), tuple(reading.faults), "voc", root)


@dataclass(frozen=True)
class _File:
    path: Path
    tree: Node
    home: Path
    """Folder of Annotations/, or of the file itself."""
    inside: Path
    """Where below Annotations/ the file lies; its picture and outlines may lie there in their own folders."""
    finder: PictureFinder


def _xml_paths(root: Path) -> list[Path]:
    if not root.is_dir():
        return []
    folder = root / "Annotations" if (root / "Annotations").is_dir() else root
    return sorted(path for path in folder.rglob("*.xml") if path.is_file() and path.name[0] != ".")


def _load_all(root: Path, reading: Reading) -> list[_File]:
    files = []
    finders: dict[Path, PictureFinder] = {}
    for path in _xml_paths(root):
        try:
            tree = read_xml(path)
        except ConfigError as error:
            reading.fault("corrupt-labels", str(path), f"{error}; left out")
            continue
        if tree.tag != "annotation":
            reading.fault("not-voc", str(path), f"the root is <{tree.tag}>, wanted <annotation>; left out")
            continue
        marked = next((folder for folder in path.parents if folder.name == "Annotations"), None)
        home = marked.parent if marked else path.parent
        inside = path.parent.relative_to(marked) if marked else Path()
        beside = [home / name for name in ("JPEGImages", "images", "Images")]
        if not marked:
            beside += [home.parent / folder.name for folder in beside]
        places = dict.fromkeys([*(folder / inside for folder in beside), *beside, path.parent, home])
        finder = finders.setdefault(path.parent, PictureFinder([*places]))
        files.append(_File(path, tree, home, inside, finder))
    return files


def _read_lists(home: Path, stems: set[str], reading: Reading) -> dict[str, list[str]]:
    """Stem of an XML file -> the splits that list it; what only trainval lists is for training."""
    found: dict[str, list[str]] = {}
    sets = home / "ImageSets"
    folder = next((f for n in ("Main", "Segmentation", "Layout") if (f := sets / n).is_dir()), sets)
    for name in ("train", "val", "test", "trainval"):
        path = folder / f"{name}.txt"
        for number, line in enumerate(read_lines(path, reading), 1):
            stem = line.strip()
            if stem not in stems:
                stem = re.sub(r"\s+-?[01]$", "", stem)  # lists of one class mark who has it
            if stem and stem not in stems:
                message = f"there is no {stem}.xml for this entry; left out"
                reading.fault("no-label-file", f"{path}:{number}", message)
            elif stem and (name != "trainval" or stem not in found):
                found.setdefault(stem, []).append(split_word(name) or "train")
    return found


def _class_list(home: Path, reading: Reading) -> list[str]:
    """Names of labelmap.txt, whose lines are `name:colour:parts:actions`."""
    lines = read_lines(home / "labelmap.txt", reading)
    names = (line.rsplit(":", 3)[0].strip() for line in lines if not line.startswith("#"))
    return [name for name in names if name and name != "background"]


def _first_pixel(files: list[_File], reading: Reading) -> int:
    """1, or 0 where a box of the set shows that it is counted so."""
    zeros = [
        f"{file.path}:{corner.line}"
        for file in files
        for item in file.tree.all("object")
        for tag in ("xmin", "ymin")
        if (corner := item.first("bndbox", tag)) is not None and re.fullmatch(r"\+?0*(\.\d*)?", corner.text)
    ]
    if zeros:
        message = (
            f"{len(zeros)} boxes begin before 1, where the devkit's pixels begin; "
            "all boxes of the set are read as outer edges counted from 0"
        )
        reading.fault("counted-from-0", zeros[0], message)
    return 0 if zeros else 1


def _find(file: _File, reading: Reading, tally: Tally) -> Path | None:
    """The picture by its path or name in the file, else by the name of the file itself."""
    where = f"{file.path}:{file.tree.line}"
    name = file.tree.text_of("filename")
    if name and file.finder.find(name) is None and (path := file.tree.text_of("path")):
        name = path if file.finder.find(path) is not None else name
    return find_picture(file.finder, name, where, reading, tally, stems=[file.path.stem])


def _read_objects(file: _File, labels: PictureLabels, first_pixel: int, tally: Tally) -> None:
    stated = file.tree.text_of("size", "width"), file.tree.text_of("size", "height")
    labels.check_size_texts(*stated, str(file.path))
    objects = file.tree.all("object")
    shapes = _outlines(file, labels, len(objects))
    for index, item in enumerate(objects, 1):
        where = f"{file.path}:{item.line}"
        name, box = item.text_of("name"), _box(item, first_pixel)
        for child in item.children:
            plain = child.tag in ("name", "bndbox", "difficult") or child.text == _PLAIN.get(child.tag)
            if not plain and (child.text or child.children):
                tally.note("unread-key", f"<{child.tag}> of an object is not read", where)
        if not name:
            labels.fault("unknown-class", where, "the object has no <name>; left out")
        elif box is None:
            shown = {tag: item.text_of("bndbox", tag) for tag in CORNERS}
            labels.fault("bad-box", where, f"bndbox {shown}, wanted four numbers; left out")
        else:
            ignored = labels.flag(item.text_of("difficult"), "difficult", where)
            labels.add(name, where, box=box, shape=shapes.get(index), ignored=ignored)


def _box(item: Node, first_pixel: int) -> BoxXyxy | None:
    try:
        left, top, right, bottom = (number_of(item.text_of("bndbox", tag)) for tag in CORNERS)
    except ValueError:
        return None
    return left - first_pixel, top - first_pixel, right, bottom


def _outlines(file: _File, labels: PictureLabels, num_objects: int) -> dict[int, Shape]:
    """Object number from 1 -> its pixels, where SegmentationObject holds a picture of them."""
    names = [file.inside / f"{stem}.png" for stem in dict.fromkeys((file.path.stem, labels.image.stem))]
    path = next((p for name in names if (p := file.home / "SegmentationObject" / name).is_file()), None)
    if path is None:
        if any((file.home / "SegmentationClass" / name).is_file() for name in names):
            message = "SegmentationClass tells classes, not objects, apart; read without outlines"
            labels.fault("unread-outlines", str(file.path), message)
        return {}
    try:
        shapes = read_numbered(path, labels.size)
    except ConfigError as error:
        labels.fault("bad-outline", str(path), f"{error}; kept the boxes alone")
        return {}
    if extra := [number for number in shapes if number > num_objects]:
        message = f"pixels of {extra} belong to none of {num_objects} objects; left out"
        labels.fault("bad-outline", str(path), message)
    return shapes
