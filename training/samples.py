"""Folders of synthetic board pairs with COCO labels, as data_samples/ is one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from training.artwork import Mask, make_board
from training.synthesis import DEFECT_KINDS, draw_defects, scan


def write_samples(
    folder: str | Path,
    *,
    seeds: Sequence[int],
    good: int = 1,
    defects: tuple[int, int] = (5, 8),
    size: int = 640,
) -> list[Path]:
    """Write NAME_test.png and NAME_temp.png per seed, and annotations.coco.json; return what was written.

    Args:
        good: the last this many boards get no defects.
        defects: least and most defects on each of the others.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    written: list[Path] = []
    for number, seed in enumerate(seeds, start=1):
        board, rng = make_board(seed, size), np.random.default_rng([seed, 1])
        count = 0 if number > len(seeds) - good else int(rng.integers(defects[0], defects[1] + 1))
        reference = scan(board.copper, rng)
        drawn = draw_defects(scan(board.copper, rng), rng, count)
        names = [f"board_{number:02d}_{part}.png" for part in ("test", "temp")]
        for name, copper in zip(names, (drawn.copper, reference), strict=True):
            written.append(folder / name)
            cv2.imwrite(str(folder / name), np.where(copper, 0, 255).astype(np.uint8))
        images.append(
            {
                "id": number,
                "file_name": names[0],
                "reference": names[1],
                "width": size,
                "height": size,
                "seed": seed,
                "style": board.style,
            }
        )
        for box, label, mask in zip(drawn.boxes.tolist(), drawn.labels, drawn.masks, strict=True):
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": list(DEFECT_KINDS).index(label) + 1,
                    "bbox": [box[0], box[1], box[2] - box[0], box[3] - box[1]],
                    "area": int(mask.sum()),
                    "segmentation": {"size": [size, size], "counts": _run_lengths(mask)},
                    "iscrowd": 0,
                }
            )
    categories = [{"id": i, "name": label} for i, label in enumerate(DEFECT_KINDS, start=1)]
    labels_path = folder / "annotations.coco.json"
    tree = {"images": images, "annotations": annotations, "categories": categories}
    labels_path.write_text(json.dumps(tree, indent=1) + "\n", encoding="utf-8")
    return [*written, labels_path]


def _run_lengths(mask: Mask) -> list[int]:
    """COCO's uncompressed run lengths: column by column, zeros first."""
    flat = np.concatenate([[False], mask.ravel(order="F"), [False]])
    edges = np.flatnonzero(flat[1:] != flat[:-1])
    return np.diff(np.concatenate([[0], edges, [mask.size]])).tolist() if len(edges) else [mask.size]
