"""What the network sees at one place of a board, where it called nothing: the evidence for and against.

Shape letters: H, W pixels of the board, h, w = ceil(H / 4), ceil(W / 4) its cells, K defect classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from inspect_vit.ablation import evidence_at
from inspect_vit.attribution import attention_heads
from inspect_vit.cells import box_cells, to_cells
from inspect_vit.close_up import close_up
from inspect_vit.differences import PIXEL_DIFFERS
from inspect_vit.inspector import LEVEL_NAMES, Inspector
from inspect_vit.results import BoxXyxy, Defect
from inspect_vit.trace import Trace, cells_per_token, trace

MARGIN_CELLS = 1
"""A centre that lies just beside the box is meant too: boxes are drawn by hand."""
LEAST = 1e-6
"""Stands for a threshold of 0."""


@dataclass(frozen=True)
class LevelAtSpot:
    """One level's part."""

    attention: float
    """Mean attention that the spot's tokens receive, against the mean over the picture: 1 is as anywhere."""
    removed: float
    """Centre score of the spot's class, 0..1, without what the level hands to the fusion."""


@dataclass(frozen=True)
class Spot:
    """One place. Scores are those of the tile around it on a board that is inspected in tiles."""

    scores: dict[str, float]
    """By class: the highest centre score, 0..1, of any cell of the spot."""
    peaks: dict[str, float]
    """By class: the highest score of a cell from which a call can come, one that no neighbour exceeds."""
    label: str
    """The class that came nearest to its threshold, as a share of it."""
    score: float
    """Its centre score."""
    gate_share: dict[str, float]
    """{"4", "16", "32"}: mean share in the fusion; sums to 1."""
    levels: dict[str, LevelAtSpot]
    difference: float | None
    """Share of the box's pixels that differ from the reference; None without one."""


@torch.inference_mode()
def look_at(
    inspector: Inspector,
    image: NDArray[np.uint8],
    *,
    reference: NDArray[np.uint8] | None,
    box: BoxXyxy,
    thresholds: Mapping[str, float],
) -> Spot:
    """The evidence in a box, px, and one cell around it.

    Costs the levels once, without reference, else twice, and five times fusion and head.

    Args:
        image, reference: (H, W, 3) uint8 RGB, aligned.
        thresholds: by class; one that is not there counts as 1.

    Raises as `Inspector.inspect`.
    """
    seen = close_up(inspector, image, reference=reference, box=box)
    here = seen.defect(Defect("", 0.0, box, 0, {})).box_xyxy
    traced = trace(inspector, seen.image, reference=seen.reference)
    rows, columns = _around(here, traced.cells)
    names = inspector.metadata.model.class_names
    centres = traced.output.head.centre_logits[0].float().sigmoid()
    inside = centres[:, rows, columns]
    scores = inside.amax((1, 2)).tolist()
    peaks = (inside * _is_peak(centres)[:, rows, columns]).amax((1, 2)).tolist()
    nearest = max(range(len(names)), key=lambda k: scores[k] / max(thresholds.get(names[k], 1.0), LEAST))
    row, column = divmod(int(inside[nearest].argmax()), inside.shape[2])
    cell = (nearest, rows.start + row, columns.start + column)
    (evidence,) = evidence_at(inspector, traced, [cell], reference=seen.reference)
    shares = traced.output.gate_shares[0, :, rows, columns].float().mean((1, 2)).tolist()
    return Spot(
        scores=dict(zip(names, scores, strict=True)),
        peaks=dict(zip(names, peaks, strict=True)),
        label=names[nearest],
        score=scores[nearest],
        gate_share=dict(zip(LEVEL_NAMES, shares, strict=True)),
        levels={
            level: LevelAtSpot(
                attention=_attention(inspector, traced, level, rows, columns),
                removed=scores[nearest] - evidence.score_drop[level],
            )
            for level in LEVEL_NAMES
        },
        difference=_difference(image, reference, box),
    )


def _around(box: BoxXyxy, cells: tuple[int, int]) -> tuple[slice, slice]:
    """Rows and columns of a box's cells and those beside it, within the picture."""
    rows, columns = (
        slice(max(part.start - MARGIN_CELLS, 0), min(part.stop + MARGIN_CELLS, limit))
        for part, limit in zip(box_cells(box), cells, strict=True)
    )
    return rows, columns


def _is_peak(centres: Tensor) -> Tensor:
    """(K, h, w): whether no neighbour of the cell has a higher score, as calls are found."""
    return centres == functional.max_pool2d(centres[None], 3, stride=1, padding=1)[0]


def _attention(inspector: Inspector, traced: Trace, level: str, rows: slice, columns: slice) -> float:
    heads = attention_heads(inspector, traced, level).mean(0)
    received = to_cells(heads, traced.cells, cells_per_token(inspector.model, level))
    return float(received[rows, columns].mean() / received.mean())


def _difference(image: NDArray[np.uint8], reference: NDArray[np.uint8] | None, box: BoxXyxy) -> float | None:
    if reference is None:
        return None
    left, top, right, bottom = (round(edge) for edge in box)
    part = slice(top, max(bottom, top + 1)), slice(left, max(right, left + 1))
    board, golden = (cv2.cvtColor(one[part], cv2.COLOR_RGB2GRAY) for one in (image, reference))
    return float((np.asarray(cv2.absdiff(board, golden)) >= PIXEL_DIFFERS).mean())
