"""A plain folder of good boards: pictures and no labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from training.formats.dataset import DataSet
from training.formats.pair_table import PAIRS_NAME
from training.formats.pictures import is_picture, list_pictures
from training.formats.reading import Reading

_LABEL_SUFFIXES = frozenset({".csv", ".json", ".txt", ".xml", ".yaml", ".yml"})
_NO_BOXES = np.zeros((0, 4), np.float32)
_NOT_LABELS = frozenset(
    {"readme.txt", "license.txt", "licence.txt", "quarantine.json", "requirements.txt", PAIRS_NAME}
)


def looks_like_good(root: Path) -> bool:
    """Whether the folder, or its sub-folders, hold pictures and nothing that might be labels."""
    if not root.is_dir():
        return False
    files = [path for path in root.rglob("*") if path.is_file()]
    return any(map(is_picture, files)) and not any(map(_may_be_labels, files))


def read_good(root: Path) -> DataSet:
    """Every picture as a board without defects; the sub-folder it lies in, if any, is its group.

    Raises:
        ConfigError: no such folder, or no picture in it.
    """
    root = root.resolve()
    pictures = list_pictures(root, deep=True) if root.is_dir() else []
    if not pictures:
        raise ConfigError(f"{root}: no pictures here; wanted a folder of pictures of good boards")
    reading = Reading()
    samples = []
    for picture in pictures:
        inside = picture.relative_to(root)
        if reading.size_of(picture, inside.as_posix()) is not None:
            group = inside.parent.as_posix() if inside.parent.parts else ""
            samples.append(Sample(picture.resolve(), _NO_BOXES, (), group=group, origin=inside.as_posix()))
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        if _may_be_labels(path):
            message = "may hold labels; a folder of good boards has none, and this file was not read"
            reading.fault("unread-file", path.relative_to(root).as_posix(), message)
    return DataSet(tuple(samples), (), tuple(reading.faults), "good", root)


def _may_be_labels(path: Path) -> bool:
    return path.suffix.lower() in _LABEL_SUFFIXES and path.name.lower() not in _NOT_LABELS
