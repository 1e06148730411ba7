"""What the readers of one label file per picture share: its picture, its defects, what is not read."""

from __future__ import annotations

import codecs
import reprlib
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from inspect_vit.errors import ConfigError
from inspect_vit.results import BoxXyxy, Sample
from inspect_vit.shapes import Shape
from training.formats.pictures import PictureFinder, list_pictures
from training.formats.reading import Reading
from training.formats.rings import FAR_PX, is_flat
from training.formats.values import plain_int, read_flag

IGNORE_WORDS = frozenset({"ignored", "ignore", "difficult", "crowd", "is_crowd", "iscrowd"})
"""Names of flags and attributes that mark an object as neither defect nor background."""

SPLIT_WORDS = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "test": "test",
    "testing": "test",
}


def split_word(name: str) -> str:
    """Which of train, val and test a folder or subset means in one of the usual spellings, or ""."""
    return SPLIT_WORDS.get(name.lower().rstrip("0123456789"), "")


def read_split(value: Any, where: str, reading: Reading, image: Path | None = None) -> str:
    """The split that a label file states, or ""; says so where it states one that is not known."""
    if value is None or value == "":
        return ""
    split = split_word(value.strip()) if isinstance(value, str) else ""
    if not split:
        message = f"split {reprlib.repr(value)}, wanted train, val or test; not read"
        reading.fault("unknown-split", where, message, image)
    return split


def split_of_folders(path: Path, root: Path) -> str:
    """The split that the folders between `root` and a file name, the innermost first."""
    folders = path.relative_to(root).parts[:-1] if path.is_relative_to(root) else ()
    return next((split for name in reversed(folders) if (split := split_word(name))), "")


def read_text(path: Path) -> str:
    """A label file as text: UTF-8 with or without a byte order mark, or UTF-16 with one.

    Raises:
        ConfigError: it cannot be read, or is in another encoding.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not {encoding}; save the file as UTF-8") from error


def read_lines(path: Path, reading: Reading) -> list[str]:
    """The lines of a list beside the labels; none where there is no such file, or no text, as is said."""
    if not path.is_file():
        return []
    try:
        return read_text(path).splitlines()
    except ConfigError as error:
        reading.fault("corrupt-labels", str(path), f"{error}; not read")
        return []


@dataclass
class Tally:
    """Counts what a reader passes over, so that each kind is said once for the set."""

    _seen: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)

    def note(self, kind: str, what: str, where: str) -> None:
        """what: a sentence that holds for every case."""
        count, first = self._seen.get((kind, what), (0, where))
        self._seen[kind, what] = (count + 1, first)

    def say(self, reading: Reading) -> None:
        for (kind, what), (count, first) in self._seen.items():
            reading.fault(kind, first, what if count == 1 else f"{what}; {count} times, first here")


def find_picture(
    finder: PictureFinder, name: str, where: str, reading: Reading, tally: Tally, *, stems: Iterable[str] = ()
) -> Path | None:
    """The picture that a label file names, else one of its name with another suffix, else of `stems`."""
    found = finder.find(name)
    if found is not None:
        if found.name != PurePosixPath(name.replace("\\", "/")).name:
            tally.note("image-name", "the name of a picture is spelled otherwise in its label file", where)
        elif not ends_with(found, name):
            note_moved(where, tally)
        return found
    for stem in (PurePosixPath(name.replace("\\", "/")).stem, *stems):
        if stem and (alike := finder.with_stem(stem)):
            others = f" ({len(alike) - 1} others fit as well)" if len(alike) > 1 else ""
            message = f"there is no picture {name!r}; took {alike[0].name} instead{others}"
            reading.fault("image-by-stem", where, message, alike[0])
            return alike[0]
    wanted = finder.folders[0] / name.replace("\\", "/") if name and "\0" not in name else None
    reading.fault("missing-image", where, f"there is no picture {name!r}; left out", wanted)
    return None


def note_moved(where: str, tally: Tally, what: str = "picture") -> None:
    tally.note("image-moved", f"a {what} lies in another folder than its label file says", where)


def say_unclear(name: str, where: str, reading: Reading) -> None:
    """Refuse a name that `PictureFinder.unclear` names."""
    message = f"the folder of {name!r} is not here, and another name leads to the same picture; left out"
    reading.fault("unclear-image", where, message)


def ends_with(path: Path, name: str) -> bool:
    """Whether a path ends in the folders and the file that a label file names."""
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in (".", "..", "/")]
    return list(path.parts[-len(parts) :]) == parts


def name_unlabelled(folders: Iterable[Path], labelled: Set[Path], reading: Reading) -> None:
    """Say which pictures of these folders no label file names."""
    for folder in dict.fromkeys(folders):
        for path in list_pictures(folder) if folder.is_dir() else ():
            if (image := path.resolve()) not in labelled:
                message = "no label file names this picture: a good board, or one not labelled yet; left out"
                reading.fault("no-label-file", str(path), message, image)


def read_stated_flag(value: Any, name: str, where: str, reading: Reading, image: Path) -> bool:
    found = read_flag(value)
    if found is None:
        message = f"{name} is {reprlib.repr(value)}, wanted 0 or 1; read as 0"
        reading.fault("bad-flag", where, message, image)
    return bool(found)


@dataclass
class PictureLabels:
    """The defects of one picture; what has no area or lies outside is left out, and said."""

    image: Path
    size: tuple[int, int]
    """(width, height)."""
    reading: Reading
    _boxes: list[BoxXyxy] = field(default_factory=list)
    _labels: list[str] = field(default_factory=list)
    _shapes: list[Shape | None] = field(default_factory=list)
    _ignored: list[bool] = field(default_factory=list)

    def fault(self, kind: str, where: str, message: str) -> None:
        self.reading.fault(kind, where, message, self.image)

    def flag(self, value: Any, name: str, where: str) -> bool:
        """What a flag says; one that says neither true nor false is a fault, and false."""
        return read_stated_flag(value, name, where, self.reading, self.image)

    def check_size_texts(self, width: str, height: str, where: str) -> None:
        """Check the size that an XML file states, if it does."""
        if not (width and height) or not width.strip("0") or not height.strip("0"):
            return
        try:
            stated = plain_int(width), plain_int(height)
        except ValueError as error:
            self.fault(
                "bad-size", where, f"the size cannot be read ({error}); its labels are kept as they are"
            )
            return
        self.check_stated_size(stated, where)

    def check_stated_size(self, stated: tuple[int, int], where: str) -> None:
        """Say so where the label file gives another (width, height) than the picture has."""
        if stated != self.size:
            is_now = f"the picture has {self.size[0]} x {self.size[1]} upright"
            message = f"says {stated[0]} x {stated[1]} px, {is_now}; its labels are kept as they are"
            self.fault("size-mismatch", where, message)

    def add(
        self,
        label: str,
        where: str,
        *,
        box: BoxXyxy | None = None,
        shape: Shape | None = None,
        ignored: bool = False,
    ) -> None:
        """One defect; its box is that of its outline where none is given."""
        points = (
            [ring for p in shape.polygons for ring in (p.exterior, *p.holes)] if shape is not None else []
        )
        if any(np.abs(ring).max() > FAR_PX for ring in points):
            self.fault("bad-outline", where, f"a point lies over {FAR_PX:g} px away; left out")
            return
        if shape is not None and is_flat(shape):
            self.fault("empty-outline", where, "the points of the outline lie on one line; left out")
            return
        if box is None:
            assert shape is not None
            box = shape.bounds()
        kept = self.reading.box(box, self.size, where, self.image)
        if kept is not None:
            self._boxes.append(kept)
            self._labels.append(label)
            self._shapes.append(shape)
            self._ignored.append(ignored)

    def add_parts(self, label: str, where: str, shapes: Sequence[Shape], *, ignored: bool = False) -> None:
        """One defect of several outlines; where some are pixels, it is the pixels that all cover."""
        shape = shapes[0]
        if len(shapes) > 1 and all(part.runs is None for part in shapes):
            shape = Shape(polygons=tuple(polygon for part in shapes for polygon in part.polygons))
        elif len(shapes) > 1:
            mask = np.zeros(self.size[::-1], np.bool_)
            for part in shapes:
                part.paint(mask, True)
            shape = Shape.from_mask(mask)
            if any(part.runs is None for part in shapes):
                message = "a group of pixels and polygons; read as the pixels that they cover together"
                self.fault("outline-as-pixels", where, message)
        self.add(label, where, shape=shape, ignored=ignored)

    def sample(self, *, origin: str, group: str = "", split: str = "") -> Sample:
        return Sample(
            self.image,
            np.array(self._boxes, np.float32).reshape(-1, 4),
            tuple(self._labels),
            group=group,
            origin=origin,
            masks=tuple(self._shapes) if any(shape is not None for shape in self._shapes) else None,
            ignored=tuple(self._ignored) if any(self._ignored) else (),
            split=split,
        )
