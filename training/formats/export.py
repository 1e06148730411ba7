"""What the writers of one label file per picture share: names, copies, saying what a format cannot hold."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import chain, count
from pathlib import Path

import numpy as np

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from inspect_vit.shapes import Polygon, Ring, Shape
from training.formats.cuts import one_ring
from training.formats.dataset import DataSet, Fault
from training.formats.pictures import MAX_NAME_BYTES, copy_picture, shorten, unique_names
from training.formats.reading import SLACK_PX

_PART = ".part"


_MAX_STEM_BYTES = MAX_NAME_BYTES - len(".json")
"""So long may a picture's name be that its label file, of another suffix, can still be written."""


def part_folder(out: Path) -> Path:
    """Where a set is written until it is whole: beside its folder, so that relative names hold in both."""
    return out.with_name(f".{out.name}{_PART}")


def final_name(folder: Path) -> str:
    """Name of the folder that a set is written for."""
    is_part = folder.name.startswith(".") and folder.name.endswith(_PART)
    return folder.name[1 : -len(_PART)] if is_part else folder.name


class Export:
    """One set on its way into an empty folder; `lost` collects what the format could not hold."""

    def __init__(self, data: DataSet, out: Path, lost: list[Fault] | None) -> None:
        """Raises ConfigError where `out` holds something: its labels would mix with ours."""
        self.data = data
        self.out = out.resolve()
        self.lost = lost if lost is not None else []
        self.written: list[Path] = []
        if self.out.exists() and (not self.out.is_dir() or any(self.out.iterdir())):
            raise ConfigError(
                f"{self.out} is not an empty folder; give a new one, so that two sets do not mix"
            )
        self.out.mkdir(parents=True, exist_ok=True)
        self.names = self._names()

    @property
    def class_names(self) -> list[str]:
        """Those of the set in its order, then any that only defects name."""
        return list(
            dict.fromkeys((*self.data.class_names, *(n for s in self.data.samples for n in s.labels)))
        )

    def _names(self) -> dict[Path, str]:
        """Picture -> file name whose stem is unique too, because label files are named by it."""
        names: dict[Path, str] = {}
        taken: set[str] = set()
        for path, name in unique_names(
            (sample.image for sample in self.data.samples), self.data.root
        ).items():
            stem, suffix = Path(name).stem, Path(name).suffix
            tails = chain(("", f"_{suffix[1:]}"), (f"_{number}" for number in count(2)))
            free = (shorten(stem, _MAX_STEM_BYTES - len(os.fsencode(tail))) + tail for tail in tails)
            stem = next(n for n in free if n.casefold() not in taken)
            taken.add(stem.casefold())
            names[path] = stem + suffix
            if path.name != names[path]:
                self.lost.append(
                    Fault(
                        "renamed",
                        str(path),
                        f"another picture is called so, or too long; now {names[path]}",
                        path,
                    )
                )
        return names

    def once_each(self, *, by_split: bool = False) -> list[Sample]:
        """The samples without repeats of a picture, or with `by_split` in one split; repeats are lost."""
        kept: dict[tuple[Path, str], Sample] = {}
        for sample in self.data.samples:
            if kept.setdefault((sample.image, sample.split if by_split else ""), sample) is not sample:
                self.lose(
                    "listed-twice", sample, "this picture is in the set already; its second entry is left out"
                )
        return list(kept.values())

    def lose(self, kind: str, sample: Sample, message: str) -> None:
        self.lost.append(Fault(kind, sample.origin or str(sample.image), message, sample.image))

    def check_box(self, sample: Sample, index: int, shape: Shape, size: tuple[int, int]) -> None:
        """Say so where a box is not that of its outline and the outline alone can be written."""
        bounds = np.clip(np.array(shape.bounds()), 0, (*size, *size))
        if np.abs(sample.boxes[index] - bounds).max() > SLACK_PX:
            box, tight = (
                ", ".join(f"{value:g}" for value in values) for values in (sample.boxes[index], bounds)
            )
            self.lose(
                "no-box", sample, f"the box ({box}) of an outline is not written; read back it is ({tight})"
            )

    def joined(self, sample: Sample, polygon: Polygon, size: tuple[int, int]) -> Ring:
        """A polygon as one ring, its holes joined by cuts; says so where that changes it."""
        ring, exact = one_ring((polygon,), size)
        if not exact:
            message = "a hole leaves its polygon; written along the edges of the pixels it covers"
            self.lose("outline-as-pixels", sample, message)
        elif polygon.holes:
            message = "holes are joined by cuts of no width, which other programs keep"
            self.lose("outline-cut", sample, message)
        return ring

    def place(self, picture: Path, target: Path, *, copy: bool, link: bool = False) -> Path:
        """Copy a picture to `target`, or link it there, or leave it; answers where it is then."""
        if copy:
            copy_picture(picture, target)
            self.written.append(target)
            return target
        if not link:
            return picture
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(picture)
        except OSError as error:
            raise ConfigError(
                f"cannot link {target} to {picture} ({error.strerror}); let the pictures be copied"
            ) from error
        return target

    def write_text(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        self.written.append(path)


def relative_name(path: Path, folder: Path) -> str:
    """A picture's path as a label file in `folder` names it, with forward slashes."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return path.as_posix()


def shape_of(sample: Sample, index: int) -> Shape | None:
    return sample.masks[index] if sample.masks is not None else None


def read_class_list(lines: Iterable[str]) -> list[str]:
    """Class names, one a line, as `classes.txt` and `labels.txt` hold them, without blanks and repeats."""
    return list(dict.fromkeys(name for line in lines if (name := line.strip())))
