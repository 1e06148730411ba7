"""Small folders of sample boards with COCO labels, as data_samples/ is one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from training.artwork import make_layers
from training.defect_kinds import COPPER_KINDS
from training.pair_files import write_labels, write_pair
from training.pairs import DefectPlan, colour_pair, scan_pair
from training.render import ScanStyle

PLACING = ScanStyle(shift_px=0.5, turn_degrees=0.04, stretch_px=0.0, etch=0.35, dust=0.0, jpeg=None)
"""In register to the pixel, two tones exactly: what differs is defects and frayed edges."""


def write_samples(
    folder: str | Path,
    *,
    seeds: Sequence[int],
    good: int = 1,
    defects: tuple[int, int] = (5, 8),
    size: int = 640,
    style: Literal["scan", "colour"] = "scan",
) -> list[Path]:
    """Write NAME_test.png and NAME_temp.png per seed, and annotations.coco.json; return what was written.

    Args:
        good: the last this many boards get no defects.
        defects: least and most defects on each of the others.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for number, seed in enumerate(seeds, start=1):
        layers, rng = make_layers(seed, size), np.random.default_rng([seed, 1])
        is_good = number > len(seeds) - good
        plan = DefectPlan(defects, kinds=dict.fromkeys(COPPER_KINDS, 1.0), good_share=float(is_good))
        if style == "scan":
            pair = scan_pair(layers, rng, plan=plan, style=PLACING)
        else:
            pair = colour_pair(layers, rng, plan=plan, placing=PLACING)
        entries.append(write_pair(folder, f"board_{number:02d}", pair))
    labels = write_labels(folder, entries, COPPER_KINDS)
    pictures = [folder / str(image[key]) for image, _ in entries for key in ("file_name", "reference")]
    return [*pictures, labels]
