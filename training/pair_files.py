"""Pairs on disk: NAME_test.png, NAME_temp.png (its reference), and one file of COCO labels for all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2

from inspect_vit.files import write_atomically
from inspect_vit.shapes import Shape
from training.pairs import Pair

LABELS = "annotations.coco.json"
Entry = tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]
"""COCO's entries for one image and its annotations, by name where COCO has numbers: `license` and `label`."""


def write_pair(folder: Path, name: str, pair: Pair) -> Entry:
    """Write the two pictures; return their labels."""
    names = [f"{name}_{part}.png" for part in ("test", "temp")]
    for file_name, picture in zip(names, (pair.board, pair.reference), strict=True):
        _, data = cv2.imencode(".png", picture if picture.ndim == 2 else picture[..., ::-1])
        write_whole(folder / file_name, data.tobytes())
    height, width = pair.board.shape[:2]
    image = {"file_name": names[0], "reference": names[1], "width": width, "height": height}
    annotations = []
    for (left, top, right, bottom), label, patch in zip(
        pair.drawn.boxes.tolist(), pair.drawn.labels, pair.drawn.patches, strict=True
    ):
        shape = Shape.from_mask(patch.mask, at=(patch.left, patch.top), size=(height, width))
        assert shape.runs is not None
        annotations.append(
            {
                "label": label,
                "bbox": [left, top, right - left, bottom - top],
                "area": int(patch.mask.sum()),
                "segmentation": {"size": [height, width], "counts": list(shape.runs)},
                "iscrowd": 0,
            }
        )
    return image, annotations


def write_labels(folder: Path, entries: Sequence[Entry], class_names: Sequence[str]) -> Path:
    """Write annotations.coco.json; images are numbered in order, licences named once each."""
    licences = sorted({str(image["license"]) for image, _ in entries if image.get("license")})
    numbers = {label: number for number, label in enumerate(class_names, 1)}
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, (image, marks) in enumerate(entries, 1):
        images.append({"id": number, **{key: value for key, value in image.items() if key != "license"}})
        if image.get("license"):
            images[-1]["license"] = licences.index(str(image["license"])) + 1
        for mark in marks:
            rest = {key: value for key, value in mark.items() if key != "label"}
            ids = {"id": len(annotations) + 1, "image_id": number, "category_id": numbers[mark["label"]]}
            annotations.append(ids | rest)
    categories = [{"id": number, "name": label} for label, number in numbers.items()]
    tree: dict[str, Any] = {"images": images, "annotations": annotations, "categories": categories}
    if licences:
        tree["licenses"] = [{"id": number, "name": name} for number, name in enumerate(licences, 1)]
    write_whole(folder / LABELS, json.dumps(tree, indent=1) + "\n")
    return folder / LABELS


def write_whole(path: Path, content: str | bytes) -> None:
    """All of it or nothing, whenever the run is stopped."""
    write_atomically(path, content if isinstance(content, bytes) else content.encode())
