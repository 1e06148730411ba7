"""MVTec AD and VisA: good boards, defective boards by type, and one ground-truth mask per defective board.

MVTec AD, in whose layout VisA is often handed on too: `train/good/`, `test/good/`, `test/DEFECT/NAME.png` and
`ground_truth/DEFECT/NAME_mask.png` (or `NAME.png`). VisA as published: `Data/Images/Normal/`,
`Data/Images/Anomaly/NAME.JPG`, `Data/Masks/Anomaly/NAME.png`, the types in `image_anno.csv`.

The folder holds one product, or one folder per product, whose name becomes the group. Each blob of a mask
(8-connected) is one defect.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from inspect_vit.shapes import Shape
from training.formats.dataset import DataSet
from training.formats.pictures import list_pictures
from training.formats.reading import Reading

GOOD = "good"
UNNAMED = "anomaly"
"""Class of a VisA defect whose type is not known, or is one of several on the board."""
_SPLITS = {"train": "train", "validation": "val", "val": "val", "test": "test"}


@dataclass(frozen=True)
class _Board:
    """A picture, its class ("" for a good board), where its masks may lie, and its split."""

    image: Path
    label: str
    masks: tuple[Path, ...]
    split: str


def looks_like_mvtec(root: Path) -> bool:
    """Whether the folder, or a folder in it, has MVTec AD's `train/good` or VisA's `Data/Images`."""
    return bool(_products(root))


def read_mvtec(root: Path) -> DataSet:
    """Read all products of a folder. A defective board whose mask is missing or empty is left out.

    Raises:
        ConfigError: no product.
    """
    root = root.resolve()
    products = _products(root)
    if not products:
        raise ConfigError(f"{root}: neither train/good nor Data/Images here or in a sub-folder")
    reading = Reading()
    samples: list[Sample] = []
    names: dict[str, None] = {}
    for product in products:
        boards = (
            _visa_boards(product, reading) if (product / "Data").is_dir() else _mvtec_boards(product, reading)
        )
        for board in boards:
            names |= {board.label: None} if board.label else {}
            if (sample := _sample(board, product.name if product != root else "", root, reading)) is not None:
                samples.append(sample)
    return DataSet(tuple(samples), tuple(names), tuple(reading.faults), "mvtec", root)


def _products(root: Path) -> list[Path]:
    if not root.is_dir():
        return []
    folders = [root, *sorted(folder for folder in root.iterdir() if folder.is_dir())]
    return [
        folder
        for folder in folders
        if (folder / "train" / GOOD).is_dir() or (folder / "Data" / "Images").is_dir()
    ]


def _mvtec_boards(product: Path, reading: Reading) -> Iterator[_Board]:
    """Boards by split, then by folder; masks that no board has are named."""
    used: set[Path] = set()
    for split_folder, split in _SPLITS.items():
        kinds = product / split_folder
        for folder in sorted(kinds.iterdir()) if kinds.is_dir() else ():
            for image in list_pictures(folder) if folder.is_dir() else ():
                truths = product / "ground_truth" / folder.name
                masks = tuple(truths / f"{image.stem}{end}.png" for end in ("_mask", ""))
                used.update(masks)
                yield _Board(image, "" if folder.name == GOOD else folder.name, masks, split)
    truths = product / "ground_truth"
    for mask in list_pictures(truths, deep=True) if truths.is_dir() else ():
        if mask not in used:
            reading.fault("missing-image", str(mask), "no picture in test/ goes with this mask; left out")


def _visa_boards(product: Path, reading: Reading) -> Iterator[_Board]:
    labels = _visa_labels(product / "image_anno.csv", reading)
    splits = _visa_splits(product)
    for folder in ("Normal", "Anomaly"):
        place = product / "Data" / "Images" / folder
        for image in list_pictures(place) if place.is_dir() else ():
            key = f"{folder}/{image.name}"
            label = "" if folder == "Normal" else labels.get(key, UNNAMED)
            mask = product / "Data" / "Masks" / folder / f"{image.stem}.png"
            if "," in label:
                message = (
                    f"the board has {label}, and its mask does not say which is where; read as {UNNAMED!r}"
                )
                reading.fault("several-classes", str(mask), message, image)
                label = UNNAMED
            yield _Board(image, label, (mask,), splits.get(key, ""))


def _visa_labels(path: Path, reading: Reading) -> dict[str, str]:
    """`Anomaly/000.JPG` -> type."""
    if not path.is_file():
        reading.fault("missing-labels", str(path), f"no file says the types of defects; read as {UNNAMED!r}")
        return {}
    return {_tail(row["image"]): row["label"] for row in _rows(path) if row.get("image") and row.get("label")}


def _visa_splits(product: Path) -> dict[str, str]:
    """`Normal/0000.JPG` -> split, by the set's own one-class split file beside the products."""
    path = product.parent / "split_csv" / "1cls.csv"
    rows = _rows(path) if path.is_file() else []
    mine = (row for row in rows if row.get("object") == product.name and row.get("image"))
    return {_tail(row["image"]): _SPLITS.get(row.get("split") or "", "") for row in mine}


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error


def _tail(path: str) -> str:
    return "/".join(path.replace("\\", "/").split("/")[-2:])


def _sample(board: _Board, group: str, root: Path, reading: Reading) -> Sample | None:
    where = board.image.relative_to(root).as_posix()
    size = reading.size_of(board.image, where)
    if size is None:
        return None
    shapes: list[Shape] = []
    if board.label:
        mask = _read_mask(board, size, where, reading)
        if mask is None:
            return None
        shapes = blobs(mask)
        if not shapes:
            message = f"the mask of {board.label!r} is empty: a good board, or a lost mask; left out"
            reading.fault("empty-mask", where, message, board.image)
            return None
    return Sample(
        board.image.resolve(),
        np.array([shape.bounds() for shape in shapes], np.float32).reshape(-1, 4),
        (board.label,) * len(shapes),
        group=group,
        origin=where,
        masks=tuple(shapes) if shapes else None,
        split=board.split,
    )


def _read_mask(
    board: _Board, size: tuple[int, int], where: str, reading: Reading
) -> NDArray[np.bool_] | None:
    path = next((mask for mask in board.masks if mask.is_file()), None)
    if path is None:
        message = f"no mask {board.masks[0].name} in {board.masks[0].parent}; left out"
        reading.fault("missing-mask", where, message, board.image)
        return None
    try:
        with Image.open(path) as image:
            colours = [band for band in image.getbands() if band != "A"]
            values = np.asarray(image.convert("".join(colours)) if "A" in image.getbands() else image)
    except Exception as error:  # Pillow raises whatever a damaged file provokes
        reading.fault("corrupt-mask", str(path), f"{error}; the board is left out", board.image)
        return None
    mask: NDArray[np.bool_] = (values if values.ndim == 2 else values.max(2)) > 0
    if mask.shape != size[::-1]:
        message = (
            f"mask of {mask.shape[1]} x {mask.shape[0]} px, the picture has {size[0]} x {size[1]}; left out"
        )
        reading.fault("mask-size", str(path), message, board.image)
        return None
    return mask


def blobs(mask: NDArray[np.bool_]) -> list[Shape]:
    """The 8-connected parts of a (H, W) mask, top to bottom, exactly as they are."""
    count, parts, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    shapes = []
    for number in range(1, count):
        left, top, width, height = stats[number, :4].tolist()
        window = parts[top : top + height, left : left + width] == number
        shapes.append(Shape.from_mask(window, at=(left, top), size=mask.shape))
    return shapes
