"""DeepPCB: pairs of a tested board and its template, 640x640, boxes of six classes, official split files.

List lines name a pair, `group20085/20085/20085000.jpg group20085/20085_not/20085000.txt`; the pictures are
`..._test.jpg` (the board) and `..._temp.jpg` (the golden reference). Label lines are `x1 y1 x2 y2 type`.

A corner is the number of a pixel, 0 to 639, and means its middle: in every group and class labels reach a
pixel further beyond what differs on the left and above than on the right and below (docs/decisions.md). So a
box_xyxy lies half a pixel further right and down; read as edges, mirrored boards would contradict each other.
Source: Tang et al., "Online PCB Defect Detector On A New PCB Defect Dataset", arXiv:1902.06197.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from inspect_vit.errors import ConfigError
from inspect_vit.results import BoxXyxy, Sample
from training.formats.dataset import DataSet
from training.formats.reading import Reading

CLASS_NAMES = ("open", "short", "mousebite", "spur", "copper", "pin-hole")
"""In the order of the label files' types 1 to 6."""

MIDDLE = 0.5
"""From the number of a pixel to the middle of it, px."""

TEST_ONLY_GROUPS = frozenset({"12000", "12100", "12300", "90100"})
"""Board groups of the test split without a picture in the training split: 332 of its 500 pairs."""

Split = Literal["trainval", "test"]
SPLITS: tuple[Split, ...] = ("trainval", "test")
_ANY_SIZE = (2**31, 2**31)


def looks_like_deeppcb(root: Path) -> bool:
    """Whether one of the official split files is there."""
    return any(_split_file(root, split).is_file() for split in SPLITS)


def read_deeppcb_set(root: Path) -> DataSet:
    """Read the official splits that are there as one set; what cannot be read is left out and named.

    Raises:
        ConfigError: neither split file is there, or one is not text.
    """
    root = root.resolve()
    there = [split for split in SPLITS if _split_file(root, split).is_file()]
    if not there:
        raise ConfigError(f"{root}: no PCBData/trainval.txt or PCBData/test.txt, which list DeepPCB's pairs")
    reading = Reading()
    samples = [s for split in there for s in _read_split(root, split, reading, check_pictures=True)]
    return DataSet(tuple(samples), CLASS_NAMES, tuple(reading.faults), "deeppcb", root)


def read_deeppcb(root: str | Path, split: Split) -> list[Sample]:
    """Read one official split, in the order of its list file; pairs listed twice stay in.

    Args:
        root: the folder that holds PCBData/, or PCBData/ itself.

    Raises:
        ConfigError: a missing file, or a line that is not as described above; names file and line.
    """
    if split not in SPLITS:
        raise ConfigError(f"DeepPCB has no split {split!r}; use one of {', '.join(SPLITS)}")
    reading = Reading()
    samples = list(_read_split(Path(root).resolve(), split, reading, check_pictures=False))
    if reading.faults:
        raise ConfigError(f"{reading.faults[0].where}: {reading.faults[0].message}")
    return samples


def _split_file(root: Path, split: Split) -> Path:
    return (root / "PCBData" if (root / "PCBData").is_dir() else root) / f"{split}.txt"


def _read_split(root: Path, split: Split, reading: Reading, *, check_pictures: bool) -> Iterator[Sample]:
    """The pairs of a list file. `check_pictures` reads headers and holds the boxes against the size."""
    list_path = _split_file(root, split)
    data = list_path.parent
    for number, line in _lines(list_path, missing=f"give the folder that holds PCBData/, not {root}"):
        where = f"{list_path}:{number}"
        fields = line.split()
        if len(fields) != 2:
            message = f"{line!r} has {len(fields)} fields, wanted 'picture.jpg labels.txt'"
            reading.fault("bad-line", where, message)
            continue
        picture, label_path = data / fields[0], data / fields[1]
        board = picture.with_name(f"{picture.stem}_test{picture.suffix}")
        reference: Path | None = picture.with_name(f"{picture.stem}_temp{picture.suffix}")
        if not board.is_file():
            reading.fault("missing-image", where, f"there is no picture {board}", board)
            continue
        if reference is not None and not reference.is_file():
            reading.fault("missing-reference", where, f"there is no picture {reference}", board)
            reference = None
        try:
            lines = _lines(label_path, missing=f"named in {where}")
        except ConfigError as error:
            reading.fault("missing-labels", where, str(error), board)
            continue
        size = reading.size_of(board, where) if check_pictures else _ANY_SIZE
        if size is None:
            continue
        places = ((f"{label_path}:{at}", text) for at, text in lines)
        defects = [d for at, text in places if (d := _read_label(text, size, at, board, reading)) is not None]
        yield Sample(
            board,
            np.array([box for box, _ in defects], np.float32).reshape(-1, 4),
            tuple(name for _, name in defects),
            reference=reference,
            group=Path(fields[0]).parts[0].removeprefix("group"),
            origin=where,
            split="train" if split == "trainval" else "test",
        )


def _read_label(
    line: str, size: tuple[int, int], where: str, board: Path, reading: Reading
) -> tuple[BoxXyxy, str] | None:
    """Box and class name of one label line."""
    try:
        x1, y1, x2, y2, kind = (int(field) for field in line.split())
    except ValueError:
        message = f"{line!r}, wanted five whole numbers 'x1 y1 x2 y2 type'"
        reading.fault("bad-line", where, message, board)
        return None
    if not 1 <= kind <= len(CLASS_NAMES):
        known = ", ".join(f"{i} {name}" for i, name in enumerate(CLASS_NAMES, 1))
        reading.fault("unknown-class", where, f"unknown type {kind}; known are {known}", board)
        return None
    if not (0 <= x1 < x2 and 0 <= y1 < y2):
        message = f"empty box {line!r}, wanted 0 <= x1 < x2 and 0 <= y1 < y2"
        reading.fault("empty-box", where, message, board)
        return None
    corners = tuple(corner + MIDDLE for corner in (x1, y1, x2, y2))
    box = reading.box(corners, size, where, board)
    return None if box is None else (box, CLASS_NAMES[kind - 1])


def _lines(path: Path, *, missing: str) -> list[tuple[int, str]]:
    """The lines that are not blank, with their numbers from 1."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path} ({error.strerror}): {missing}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not a text file: byte {error.start} is not UTF-8") from error
    return [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
