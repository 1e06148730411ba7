"""DeepPCB: pairs of a tested board and its template, 640x640, boxes of six classes, official split files.

List lines name a pair, `group20085/20085/20085000.jpg group20085/20085_not/20085000.txt`; the pictures are
`..._test.jpg` (the board) and `..._temp.jpg` (the golden reference). Label lines are `x1 y1 x2 y2 type`.
Source: Tang et al., "Online PCB Defect Detector On A New PCB Defect Dataset", arXiv:1902.06197.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample

CLASS_NAMES = ("open", "short", "mousebite", "spur", "copper", "pin-hole")
"""In the order of the label files' types 1 to 6."""

TEST_ONLY_GROUPS = frozenset({"12000", "12100", "12300", "90100"})
"""Board groups of the test split without a picture in the training split: 332 of its 500 pairs."""

Split = Literal["trainval", "test"]
SPLITS: tuple[Split, ...] = ("trainval", "test")


def read_deeppcb(root: str | Path, split: Split) -> list[Sample]:
    """Read one official split, in the order of its list file; pairs listed twice stay in.

    Args:
        root: the folder that holds PCBData/, or PCBData/ itself.

    Raises:
        ConfigError: a missing file, or a line that is not as described above; names file and line.
    """
    if split not in SPLITS:
        raise ConfigError(f"DeepPCB has no split {split!r}; use one of {', '.join(SPLITS)}")
    root = Path(root)
    data = root / "PCBData" if (root / "PCBData").is_dir() else root
    list_path = data / f"{split}.txt"
    samples = []
    for number, line in _lines(list_path, missing=f"give the folder that holds PCBData/, not {root}"):
        where = f"{list_path}:{number}"
        fields = line.split()
        if len(fields) != 2:
            raise ConfigError(f"{where}: {line!r} has {len(fields)} fields, wanted 'picture.jpg labels.txt'")
        picture, label_path = data / fields[0], data / fields[1]
        board = picture.with_name(f"{picture.stem}_test{picture.suffix}")
        reference = picture.with_name(f"{picture.stem}_temp{picture.suffix}")
        for path in (board, reference):
            if not path.is_file():
                raise ConfigError(f"{where}: there is no picture {path}")
        boxes, labels = _read_labels(label_path, where)
        group = Path(fields[0]).parts[0].removeprefix("group")
        samples.append(Sample(board, boxes, labels, reference=reference, group=group, origin=where))
    return samples


def _read_labels(path: Path, listed_at: str) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """Boxes (N, 4) and N class names of one label file; a file without lines is a clean board."""
    boxes, labels = [], []
    for number, line in _lines(path, missing=f"named in {listed_at}"):
        where = f"{path}:{number}"
        try:
            x1, y1, x2, y2, kind = (int(field) for field in line.split())
        except ValueError as error:
            raise ConfigError(f"{where}: {line!r}, wanted five whole numbers 'x1 y1 x2 y2 type'") from error
        if not 1 <= kind <= len(CLASS_NAMES):
            known = ", ".join(f"{i} {name}" for i, name in enumerate(CLASS_NAMES, 1))
            raise ConfigError(f"{where}: unknown type {kind}; known are {known}")
        if not (0 <= x1 < x2 and 0 <= y1 < y2):
            raise ConfigError(f"{where}: empty box {line!r}, wanted 0 <= x1 < x2 and 0 <= y1 < y2")
        boxes.append((x1, y1, x2, y2))
        labels.append(CLASS_NAMES[kind - 1])
    return np.array(boxes, np.float32).reshape(-1, 4), tuple(labels)


def _lines(path: Path, *, missing: str) -> list[tuple[int, str]]:
    """The lines that are not blank, with their numbers from 1."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read {path} ({error.strerror}): {missing}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not a text file: byte {error.start} is not UTF-8") from error
    return [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
