"""Boards as they would be had a class of defect never occurred: its spots come from the golden reference."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ConfigError
from inspect_vit.files import write_atomically
from inspect_vit.image_io import read_image
from inspect_vit.overlay import encode_png
from inspect_vit.results import Sample
from training.formats.deeppcb import CLASS_NAMES


def heal(
    board: NDArray[np.uint8], reference: NDArray[np.uint8], sample: Sample, classes: Collection[str]
) -> NDArray[np.uint8]:
    """The board with the reference's pixels inside every box of those classes. Pictures: (H, W, 3) uint8.

    Where another defect's box overlaps, its pixels stay.
    """
    healed = board.copy()
    for box, label in zip(sample.boxes, sample.labels, strict=True):
        if label in classes:
            view = _view(box)
            healed[view] = reference[view]
    for box, label in zip(sample.boxes, sample.labels, strict=True):
        if label not in classes:
            view = _view(box)
            healed[view] = board[view]
    return healed


def write_healed_deeppcb(samples: Sequence[Sample], out: Path, *, classes: Collection[str]) -> None:
    """Write pairs in DeepPCB's layout, as its training split, healed of those classes.

    Raises:
        ConfigError: a sample without a reference, or whose size differs from its board's.
    """
    data = out / "PCBData"
    lines = []
    for sample in samples:
        if sample.reference is None:
            raise ConfigError(f"{sample.image} has no reference to heal its defects from")
        stem = sample.image.stem.removesuffix("_test")
        folder = data / f"group{sample.group}" / sample.group
        folder.mkdir(parents=True, exist_ok=True)
        board, reference = (read_image(path)[0] for path in (sample.image, sample.reference))
        if board.shape != reference.shape:
            raise ConfigError(f"{sample.reference} is {reference.shape}, the board {board.shape}")
        healed = heal(board, reference, sample, classes)
        for kind, picture in (("test", healed), ("temp", reference)):
            write_atomically(folder / f"{stem}_{kind}.png", encode_png(picture[..., 0]))
        kept = [
            f"{' '.join(str(math.floor(corner)) for corner in box)} {CLASS_NAMES.index(label) + 1}"
            for box, label in zip(sample.boxes, sample.labels, strict=True)
            if label not in classes
        ]
        labels = folder / f"{stem}.txt"
        labels.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        lines.append(f"{(folder / stem).relative_to(data)}.png {labels.relative_to(data)}\n")
    (data / "trainval.txt").write_text("".join(lines), encoding="utf-8")


def _view(box: NDArray[np.float32]) -> tuple[slice, slice]:
    left, top, right, bottom = (int(edge) for edge in box)
    return np.s_[top:bottom, left:right]
