"""Small boards drawn here, and labelled sets of them on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

Picture = NDArray[np.uint8]


def draw_board(seed: int, *, height: int = 320, width: int = 400) -> Picture:
    """Grey (H, W): bright tracks and pads, no two seeds alike."""
    rng = np.random.default_rng(seed)
    board = np.full((height, width), 40, np.uint8)
    for _ in range(24):
        x, y = int(rng.integers(width)), int(rng.integers(height))
        end = (int(rng.integers(width)), y) if rng.random() < 0.5 else (x, int(rng.integers(height)))
        cv2.line(board, (x, y), end, 210, int(rng.integers(5, 12)))
        cv2.circle(board, end, int(rng.integers(8, 16)), 210, -1)
    return board


Entry = Mapping[str, Any]
WriteSet = Callable[[Sequence[Entry]], Path]


@pytest.fixture
def write_set(tmp_path: Path) -> WriteSet:
    """Write pictures and COCO labels by hand.

    Each entry: name, picture (array, or the bytes of the file), boxes [(left, top, right, bottom, class)],
    and optionally reference (the same), group, split, size (as the labels state it).
    """

    def write(entries: Sequence[Entry]) -> Path:
        images: list[dict[str, Any]] = []
        annotations: list[dict[str, Any]] = []
        names = list(dict.fromkeys(box[4] for entry in entries for box in entry.get("boxes", ())))
        for number, entry in enumerate(entries, 1):
            image: dict[str, Any] = {"id": number, "file_name": entry["name"]}
            save(tmp_path / entry["name"], entry["picture"])
            if "reference" in entry:
                image["reference"] = f"ref_{entry['name']}"
                save(tmp_path / image["reference"], entry["reference"])
            image |= {key: entry[key] for key in ("group", "split") if key in entry}
            if "size" in entry:
                image["width"], image["height"] = entry["size"]
            images.append(image)
            for left, top, right, bottom, name in entry.get("boxes", ()):
                annotations.append(
                    {
                        "id": len(annotations) + 1,
                        "image_id": number,
                        "category_id": names.index(name) + 1,
                        "bbox": [left, top, right - left, bottom - top],
                        "area": (right - left) * (bottom - top),
                        "iscrowd": 0,
                    }
                )
        categories = [{"id": i, "name": name} for i, name in enumerate(names, 1)]
        tree = {"images": images, "annotations": annotations, "categories": categories}
        (tmp_path / "annotations.coco.json").write_text(json.dumps(tree), encoding="utf-8")
        return tmp_path

    return write


def save(path: Path, picture: Picture | bytes) -> None:
    data = picture if isinstance(picture, bytes) else cv2.imencode(path.suffix, picture)[1].tobytes()
    path.write_bytes(data)
