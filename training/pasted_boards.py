"""A folder of boards that examples were pasted into, to look at and to learn from: pairs and COCO labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.image_io import read_image
from inspect_vit.results import Sample
from inspect_vit.shapes import Shape
from training.formats.coco import read_coco
from training.pair_files import LABELS, Entry, write_labels, write_whole
from training.pasting import Example, Pasted, paste

Picture = NDArray[np.uint8]
SIDE_PX = 640
"""Larger boards are cut to a random square of this side."""
GOOD_SHARE = 0.5
"""Share of boards with a reference whose reference is pasted into: nothing else is on it."""


def write_pasted(
    folder: Path,
    examples: Sequence[Example],
    boards: Sequence[Sample],
    class_names: Sequence[str],
    *,
    count: int,
    most: int,
    only_good: bool,
    seed: int,
) -> Iterator[int]:
    """Write `count` boards and yield the number of each; the labels are written last and mark a whole folder.

    Board i is a function of the arguments and i alone.

    Args:
        boards: labelled boards of the old classes, pasted into.
        most: most examples on one board.
        only_good: paste into references alone, since the boards may carry defects that have no label.
    """
    folder.mkdir(parents=True, exist_ok=True)
    entries: list[Entry] = []
    for number in range(count):
        rng = np.random.default_rng((seed, number, 2))
        entry = _make(folder, f"board_{number:04d}", examples, boards, rng, most=most, only_good=only_good)
        if entry is not None:
            entries.append(entry)
        yield number
    write_labels(folder, entries, class_names)


def read_pasted(folder: Path) -> list[Sample]:
    """What `write_pasted` wrote, boards in which something was pasted; none where the folder is not whole."""
    if not (folder / LABELS).is_file():
        return []
    return [sample for sample in read_coco(folder).samples if len(sample.labels)]


def _make(
    folder: Path,
    name: str,
    examples: Sequence[Example],
    boards: Sequence[Sample],
    rng: np.random.Generator,
    *,
    most: int,
    only_good: bool,
) -> Entry | None:
    sample = boards[int(rng.integers(len(boards)))]
    into_good = sample.reference is not None and (only_good or bool(rng.random() < GOOD_SHARE))
    picture = sample.reference if into_good and sample.reference is not None else sample.image
    board = read_image(picture)[0]
    good = board if sample.reference is None or into_good else read_image(sample.reference)[0]
    top, left = (int(rng.integers(max(side - SIDE_PX, 0) + 1)) for side in board.shape[:2])
    view = np.s_[top : top + SIDE_PX, left : left + SIDE_PX]
    board, good = np.ascontiguousarray(board[view]), np.ascontiguousarray(good[view])
    height, width = board.shape[:2]
    known = [] if into_good else _known(sample, left, top, width, height)
    boxes = np.array([box for box, _, _ in known], np.float32).reshape(-1, 4)
    pasted = paste(examples, board, good, boxes, rng, most=most)
    if not pasted.labels:
        return None
    files = [f"{name}_test.png"] + ([f"{name}_temp.png"] if sample.reference is not None else [])
    for file_name, content in zip(files, (pasted.board, good), strict=False):
        _, data = cv2.imencode(".png", content[..., ::-1])
        write_whole(folder / file_name, data.tobytes())
    image: dict[str, Any] = {"file_name": files[0], "width": width, "height": height}
    image |= {"reference": files[1]} if len(files) > 1 else {}
    marks = [
        _mark(label, box) | {"iscrowd": int(is_ignored)} for box, label, is_ignored in known
    ] + _pasted_marks(pasted, width, height)
    return image, marks


def _known(
    sample: Sample, left: int, top: int, width: int, height: int
) -> list[tuple[tuple[float, ...], str, bool]]:
    """Labelled boxes in a cut-out; those that it cuts are ignored."""
    moved = sample.boxes - np.array((left, top, left, top), np.float32)
    clipped = np.clip(moved, 0, np.array((width, height, width, height), np.float32))
    return [
        (tuple(inside.tolist()), label, bool(is_ignored) or not np.array_equal(inside, whole))
        for whole, inside, label, is_ignored in zip(
            moved, clipped, sample.labels, sample.is_ignored, strict=True
        )
        if (inside[2:] - inside[:2]).min() >= 1
    ]


def _mark(label: str, box: Sequence[float]) -> dict[str, Any]:
    left, top, right, bottom = box
    bbox = [left, top, right - left, bottom - top]
    return {"label": label, "bbox": bbox, "area": bbox[2] * bbox[3]}


def _pasted_marks(pasted: Pasted, width: int, height: int) -> list[dict[str, Any]]:
    marks = []
    for box, label, (mask, place) in zip(pasted.boxes, pasted.labels, pasted.masks, strict=True):
        shape = Shape.from_mask(mask.astype(bool), at=place, size=(height, width))
        assert shape.runs is not None
        segmentation = {"size": [height, width], "counts": list(shape.runs)}
        marks.append(
            _mark(label, box) | {"area": int(mask.sum()), "segmentation": segmentation, "iscrowd": 0}
        )
    return marks
