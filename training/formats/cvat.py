"""CVAT XML for images 1.1: one file for all pictures, which lie in images/, images/SUBSET/ or beside it.

Coordinates are px of the upright picture with 0 at the outer edge of the first pixel. A `box` is a box, or
where it has a `rotation` (degrees clockwise about its centre) the outline of its four corners. A `polygon`
is an outline, an `ellipse` one that is never more than 0.02 px off the curve, a `mask` pixels: run lengths
along the rows of its window, beginning with pixels outside. Polygons and masks of one label and `group_id`
are the parts of one defect. Tags, points, lines, cuboids and skeletons have no area: they are left out and
named. `occluded` and `z_order` change no outline and are not read.

Objects with an attribute "ignored", "difficult", "crowd" or "is_crowd" that is true are ignored ones. A
subset named train, validation or test is the split. Tracks, CVAT's format for video, are refused.

What CVAT cannot hold: a box that differs from its outline. Its polygons have no holes: these are joined to
the ring by cuts of no width, which this reader takes out again. References and groups of pictures are
written to pairs.csv.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from training.formats.cvat_shapes import read_shapes
from training.formats.cvat_writer import write_cvat
from training.formats.dataset import DataSet
from training.formats.picture_labels import (
    PictureLabels,
    Tally,
    find_picture,
    name_unlabelled,
    say_unclear,
    split_of_folders,
    split_word,
)
from training.formats.pictures import PictureFinder
from training.formats.reading import Reading
from training.formats.xml_tree import Node, head_of, read_xml

__all__ = ["looks_like_cvat", "read_cvat", "write_cvat"]


def looks_like_cvat(root: Path) -> bool:
    """Whether an XML file here, or the first one below, is <annotations>."""
    return any(head_of(path) == "annotations" for path in _xml_paths(root))


def read_cvat(root: Path) -> DataSet:
    """Read the file given, or the XML files of a folder, as one set; classes are joined by name.

    Raises:
        ConfigError: no such file, or one of tracks only.
    """
    root = root.resolve()
    base = root if root.is_dir() else root.parent
    reading, tally = Reading(), Tally()
    trees = []
    for path in _xml_paths(root):
        try:
            tree = read_xml(path)
        except ConfigError as error:
            if path == root:
                raise
            reading.fault("corrupt-labels", str(path), f"{error}; left out")
            continue
        if tree.tag == "annotations":
            trees.append((path, tree))
        else:
            reading.fault("not-cvat", str(path), f"the root is <{tree.tag}>, wanted <annotations>; left out")
    if not trees:
        reasons = "".join(f"; {fault.message}" for fault in reading.faults[:3])
        raise ConfigError(f"{root}: no XML file is <annotations> of CVAT for images{reasons}")
    samples = [sample for path, tree in trees for sample in _read_file(path, tree, base, reading, tally)]
    tally.say(reading)
    listed = [name for _, tree in trees for name in _class_list(tree)]
    used = sorted({label for sample in samples for label in sample.labels})
    for name in (name for name in used if listed and name not in listed):
        reading.fault(
            "unlisted-class", str(trees[0][0]), f"{name!r} is not among the labels of the task; kept"
        )
    names = dict.fromkeys((*listed, *used))
    return DataSet(tuple(samples), tuple(names), tuple(reading.faults), "cvat", base)


def _xml_paths(root: Path) -> list[Path]:
    """The file given, or those of a folder and, where it has none, of its sub-folders."""
    if root.is_file():
        return [root] if root.suffix.lower() == ".xml" else []
    here = sorted(root.glob("*.xml")) or sorted(root.glob("*/*.xml"))
    return [path for path in here if path.is_file() and path.name[0] != "."]


def _class_list(tree: Node) -> list[str]:
    """Labels of the task, project or job, without the sub-labels of skeletons."""
    found = []
    for node in (tree.first("meta"), *(tree.first("meta", name) for name in ("task", "project", "job"))):
        labels = node.first("labels") if node else None
        for label in labels.all("label") if labels else ():
            name = label.text_of("name")
            if name and label.first("parent") is None:
                found.append(name)
    return found


def _read_file(path: Path, tree: Node, base: Path, reading: Reading, tally: Tally) -> list[Sample]:
    if tracks := tree.all("track"):
        message = "holds tracks, which are CVAT's format for video; export it as 'CVAT for images 1.1'"
        if not tree.all("image"):
            raise ConfigError(f"{path}:{tracks[0].line} {message}")
        reading.fault("track", f"{path}:{tracks[0].line}", f"{message}; {len(tracks)} tracks are left out")
    finders: dict[str, PictureFinder] = {}
    names: dict[str, list[str]] = {}
    for node in tree.all("image"):
        names.setdefault(node.attributes.get("subset", ""), []).append(node.attributes.get("name", ""))
    unclear: dict[str, set[str]] = {}
    samples = []
    labelled: set[Path] = set()
    for node in tree.all("image"):
        where = f"{path}:{node.line}"
        name, subset = node.attributes.get("name", ""), node.attributes.get("subset", "")
        places = [
            path.parent / "images" / subset,
            path.parent / "images",
            path.parent / subset,
            path.parent,
            base,
        ]
        finder = finders.setdefault(subset, PictureFinder([*dict.fromkeys(places)]))
        if subset not in unclear:
            unclear[subset] = finder.unclear(names.get(subset, ()))
        if name in unclear[subset]:
            say_unclear(name, where, reading)
            continue
        image = find_picture(finder, name, where, reading, tally)
        size = reading.size_of(image, where) if image is not None else None
        if image is None or size is None:
            continue
        labelled.add(image)
        labels = PictureLabels(image, size, reading)
        stated = node.attributes.get("width", ""), node.attributes.get("height", "")
        labels.check_size_texts(*stated, where)
        read_shapes(node, path, labels, tally)
        split = split_word(subset) or split_of_folders(Path(PurePosixPath(name)), Path())
        if subset and subset != "default" and not split:
            tally.note("unread-key", f"the subset {subset!r} is none of train, val and test; not read", where)
        samples.append(labels.sample(origin=where, split=split))
    places = [folder for finder in finders.values() for folder in finder.folders]
    name_unlabelled((folder for folder in places if folder.is_relative_to(base)), labelled, reading)
    return samples
