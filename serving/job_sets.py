"""What a job reads of a data set: labels of its own beside the pictures that stay where they are.

A class that no model of the job knows is neither a defect nor good: its places are `iscrowd` there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspect_vit.files import write_atomically
from serving.dataset_files import LABELS, coco_text


@dataclass(frozen=True)
class LabelledPart:
    """One part of a data set, as its label file has it."""

    folder: Path
    images: list[dict[str, Any]]
    annotations: list[dict[str, Any]]
    classes: dict[int, str]

    def boards_with(self, labels: Collection[str]) -> set[str]:
        """Boards on which a defect of one of these classes is labelled."""
        wanted = {class_key(label) for label in labels}
        groups = {image["id"]: str(image["group"]) for image in self.images}
        return {
            groups[one["image_id"]]
            for one in self.annotations
            if not one["iscrowd"] and class_key(self.classes[one["category_id"]]) in wanted
        }

    def write(self, out: Path, *, known: Collection[str], boards: Collection[str]) -> int:
        """Labels of these boards alone; returns the number of their pictures."""
        keys = {class_key(label) for label in known}
        images = [image for image in self.images if image["group"] in boards]
        shown = {image["id"] for image in images}
        annotations = [
            one
            | {"iscrowd": max(one["iscrowd"], int(class_key(self.classes[one["category_id"]]) not in keys))}
            for one in self.annotations
            if one["image_id"] in shown
        ]
        out.mkdir(parents=True, exist_ok=True)
        lists = {
            "images": [self._moved(image, out) for image in images],
            "annotations": annotations,
            "categories": [{"id": number, "name": name} for number, name in self.classes.items()],
        }
        write_atomically(out / LABELS, coco_text(lists).encode())
        return len(images)

    def _moved(self, image: dict[str, Any], out: Path) -> dict[str, Any]:
        paths = {name: image[name] for name in ("file_name", "reference") if name in image}
        return image | {name: os.path.relpath(self.folder / path, out) for name, path in paths.items()}


def read_part(folder: Path) -> LabelledPart:
    """The part of a data set in a folder; one without boards where the folder is not there."""
    try:
        tree = json.loads((folder / LABELS).read_bytes())
    except FileNotFoundError:
        tree = {"images": [], "annotations": [], "categories": []}
    classes = {one["id"]: one["name"] for one in tree["categories"]}
    return LabelledPart(folder, tree["images"], tree["annotations"], classes)


def class_key(label: str) -> str:
    """Case, spaces, - and _ do not make another class, here as in training."""
    return re.sub(r"[\s_-]+", "", label.casefold())
