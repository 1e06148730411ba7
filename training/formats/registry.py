"""All label formats by name: which one a folder is in, read it, write it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from inspect_vit.errors import ConfigError
from training.formats.coco import looks_like_coco, read_coco, write_coco
from training.formats.cvat import looks_like_cvat, read_cvat, write_cvat
from training.formats.dataset import DataSet, Fault
from training.formats.deeppcb import looks_like_deeppcb, read_deeppcb_set
from training.formats.export import part_folder
from training.formats.good import looks_like_good, read_good
from training.formats.labelme import looks_like_labelme, read_labelme, write_labelme
from training.formats.mvtec import looks_like_mvtec, read_mvtec
from training.formats.pair_table import apply_pairs
from training.formats.references import (
    GroupRule,
    ReferenceRule,
    apply_groups,
    apply_references,
    check_references,
)
from training.formats.values import is_unicode
from training.formats.voc import looks_like_voc, read_voc, write_voc
from training.formats.yolo import looks_like_yolo, read_yolo, write_yolo


class Writer(Protocol):
    def __call__(
        self, data: DataSet, out: Path, *, copy_pictures: bool = True, lost: list[Fault] | None = None
    ) -> list[Path]: ...


@dataclass(frozen=True)
class Format:
    """One label format."""

    title: str
    read: Callable[[Path], DataSet]
    looks_like: Callable[[Path], bool]
    """Cheap: looks at names and at the first bytes of a few files."""
    wanted: str
    """What `looks_like` looks for, in words."""
    write: Writer | None = None


FORMATS: dict[str, Format] = {
    "deeppcb": Format(
        "DeepPCB",
        read_deeppcb_set,
        looks_like_deeppcb,
        "PCBData/trainval.txt or PCBData/test.txt",
    ),
    "coco": Format(
        "COCO",
        read_coco,
        looks_like_coco,
        "annotations.coco.json, _annotations.coco.json per folder, or annotations/*.json",
        write_coco,
    ),
    "yolo": Format(
        "YOLO",
        read_yolo,
        looks_like_yolo,
        "data.yaml with class names, a plain list of class names, or labels/ beside images/",
        write_yolo,
    ),
    "voc": Format(
        "Pascal VOC",
        read_voc,
        looks_like_voc,
        "XML files of one <annotation> each, in Annotations/ or beside the pictures",
        write_voc,
    ),
    "labelme": Format(
        "LabelMe",
        read_labelme,
        looks_like_labelme,
        "JSON files with `shapes` and `imagePath`, one per picture",
        write_labelme,
    ),
    "cvat": Format(
        "CVAT for images",
        read_cvat,
        looks_like_cvat,
        "an XML file of <annotations>",
        write_cvat,
    ),
    "mvtec": Format(
        "MVTec AD or VisA",
        read_mvtec,
        looks_like_mvtec,
        "train/good and test/, or Data/Images, here or in a sub-folder per product",
    ),
    "good": Format(
        "good boards",
        read_good,
        looks_like_good,
        "pictures, and no file that may hold labels",
    ),
}
WRITTEN = tuple(name for name, format_ in FORMATS.items() if format_.write is not None)
"""Formats that can be written."""


def detect_format(root: Path) -> str:
    """Name of the one format that the folder is in.

    Raises:
        ConfigError: no such folder, no format fits (says what each looked for), or several do.
    """
    if not root.exists():
        raise ConfigError(f"there is no folder {root}")
    fitting = [name for name, format_ in FORMATS.items() if format_.looks_like(root)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ConfigError(f"{root} may be {' or '.join(fitting)}; say which with --format")
    looked_for = "".join(f"\n  {name}: {format_.wanted}" for name, format_ in FORMATS.items())
    raise ConfigError(f"{root} is in no format that is known; each looked for:{looked_for}")


def read_dataset(
    root: str | Path,
    *,
    format: str = "auto",
    references: ReferenceRule | None = None,
    groups: GroupRule | None = None,
) -> DataSet:
    """Read a labelled set; `DataSet.format` says in which format it was found.

    A table pairs.csv in the folder of the set gives references and groups, each unless a rule does.
    References of another size than their board, and those that cannot be read, are taken off and named.

    Args:
        root: its folder, or for COCO and CVAT the label file.
        format: a name in FORMATS, or "auto".
        references, groups: rules for what the format itself does not say.

    Raises:
        ConfigError: nothing can be read, or a rule does not fit.
    """
    root = Path(root).resolve()
    name = detect_format(root) if format == "auto" else format
    if name not in FORMATS:
        raise ConfigError(f"there is no format {name!r}; use auto or one of {', '.join(FORMATS)}")
    data = replace(FORMATS[name].read(root), format=name)
    data = apply_pairs(data, references=references is None, groups=groups is None)
    if references is not None:
        data = apply_references(data, references)
    if groups is not None:
        data = apply_groups(data, groups)
    names = tuple(name for name in data.class_names if is_unicode(name))
    return check_references(replace(data, class_names=names))


def write_dataset(
    data: DataSet,
    out: str | Path,
    format: str,
    *,
    copy_pictures: bool = True,
    lost: list[Fault] | None = None,
) -> list[Path]:
    """Write the set in a format and return the files written.

    It grows in a folder `.NAME.part` beside `out`, which becomes `out` when all is written: a set that is
    there is whole. What an earlier run left of that folder is removed.

    Args:
        lost: gets a fault for whatever the format cannot hold.

    Raises:
        ConfigError: a format that is not written, or a folder that cannot be or is not empty.
    """
    write = FORMATS[format].write if format in FORMATS else None
    if write is None:
        raise ConfigError(f"format {format!r} is not written; use one of {', '.join(WRITTEN)}")
    out = Path(out).resolve()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} is not an empty folder; give a new one, so that two sets do not mix")
    part = part_folder(out)
    if any(path.is_relative_to(part) for s in data.samples for path in (s.image, s.reference or s.image)):
        raise ConfigError(f"{part} holds pictures of the set and would be removed; rename it")
    try:
        _remove(part)
        written = write(data, part, copy_pictures=copy_pictures, lost=lost)
        if out.exists():
            out.rmdir()  # empty, as was seen; not every system replaces a folder
        part.replace(out)
    except OSError as error:
        raise ConfigError(f"cannot write {error.filename or out}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return [out / path.relative_to(part) for path in written]


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)
