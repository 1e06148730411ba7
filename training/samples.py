"""Small folders of sample boards with COCO labels; data_samples/ is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from training.artwork import make_layers
from training.colour_style import draw_style
from training.defect_kinds import COPPER_KINDS, DEFECT_KINDS
from training.pair_files import write_labels, write_pair
from training.pairs import DefectPlan, colour_pair, scan_pair
from training.render import ScanStyle

PLACING = ScanStyle(shift_px=0.5, turn_degrees=0.04, stretch_px=0.0, etch=0.35, dust=0.0, jpeg=None)
"""In register to the pixel, two tones exactly: what differs is defects and frayed edges."""


@dataclass(frozen=True)
class SampleBoard:
    """One pair of pictures, a function of its fields alone."""

    name: str
    seed: int
    style: Literal["scan", "colour"] = "scan"
    mask: str | None = None
    """Solder mask of a colour board, "none" for bare copper; at random if None. So the finish."""
    finish: str | None = None
    good: bool = False
    """Gets no defects."""


SHIPPED = (
    SampleBoard("board_01", 112),
    SampleBoard("board_02", 118),
    SampleBoard("board_03", 106),
    SampleBoard("board_04", 100),
    SampleBoard("board_05", 122),
    SampleBoard("board_06", 113, good=True),
    SampleBoard("colour_01", 112, "colour", "green", "hasl"),
    SampleBoard("colour_02", 106, "colour", "red", "hasl"),
    SampleBoard("colour_03", 100, "colour", "blue", "enig"),
    SampleBoard("colour_04", 118, "colour", "green", "enig", good=True),
)
"""What data_samples/ holds."""


def write_samples(
    folder: str | Path, boards: Sequence[SampleBoard], *, defects: tuple[int, int] = (5, 8), size: int = 640
) -> list[Path]:
    """Write NAME_test.png and NAME_temp.png per board, and annotations.coco.json; return what was written.

    Args:
        defects: least and most defects on each board that is not good.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for board in boards:
        layers, rng = make_layers(board.seed, size), np.random.default_rng([board.seed, 1])
        classes = COPPER_KINDS if board.style == "scan" else tuple(DEFECT_KINDS)
        plan = DefectPlan(defects, kinds=dict.fromkeys(classes, 1.0), good_share=float(board.good))
        if board.style == "scan":
            pair = scan_pair(layers, rng, plan=plan, style=PLACING)
        else:
            look = draw_style(rng, mask=board.mask, finish=board.finish)
            pair = colour_pair(layers, rng, plan=plan, style=look, placing=PLACING, nuisance=0.5)
        entries.append(write_pair(folder, board.name, pair))
    labels = write_labels(folder, entries, tuple(DEFECT_KINDS))
    pictures = [folder / str(image[key]) for image, _ in entries for key in ("file_name", "reference")]
    return [*pictures, labels]
