"""The network's answer about a whole board: tiles run one by one, their maps blended, then read once.

Boxes are read off the blended maps, so none is cut or doubled where tiles meet. Only the maps that a result
keeps are held for the whole board; the rest lives one row of tiles long.

Shape letters: h, w = ceil(H / 4), ceil(W / 4) cells of the board, K defect classes, n calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inspect_vit.cells import CELL_PX, cells_of
from inspect_vit.heads import PeakFinder
from inspect_vit.model import ModelOutput
from inspect_vit.suppression import suppress
from inspect_vit.tiling import Plan, Tile, blend_rows

MAP_THRESHOLD = 0.5
"""A defect-map cell at or above this belongs to the defect; each has at least the cell it was found in."""
MAX_LISTED = 300
"""Most defects in a list. Nobody reviews more one by one: beyond it not a spot has failed but the process."""
MAX_IOU = 0.5
"""A call that overlaps a better one by more is the same defect."""
NUM_UNSURE = 4 * MAX_LISTED
"""Peaks below every threshold that are looked at; those above one always are."""


@dataclass(frozen=True)
class Findings:
    """What the network says of one board, before any threshold."""

    defect_map: NDArray[np.float32]
    """(K, h, w), probability 0..1."""
    gate_shares: NDArray[np.float32]
    """(3, h, w), fine to coarse; sums to 1 over the first axis."""
    boxes: NDArray[np.float32]
    """(n, 4) box_xyxy, px, inside the board; best call first."""
    scores: NDArray[np.float32]
    """(n,)"""
    labels: NDArray[np.int64]
    """(n,) class index."""
    top_score: float
    """Highest centre score of any cell or call that is not ignored."""
    is_answered: NDArray[np.bool_]
    """(h, w): False where the network gave no finite number, so that nothing is known of the cell."""

    def only(self, kept: NDArray[np.bool_]) -> Findings:
        """The calls (n,) that are kept."""
        return replace(self, boxes=self.boxes[kept], scores=self.scores[kept], labels=self.labels[kept])


@torch.inference_mode()
def find(
    run: Callable[[Tile], ModelOutput],
    plan: Plan,
    *,
    height: int,
    width: int,
    min_score: float,
    sure_score: float,
    ignore: NDArray[np.bool_] | None = None,
) -> Findings:
    """Inspect a board of that size, px, by its plan.

    Args:
        run: a tile to the model's answer for it, one picture, padded.
        min_score: calls below are not wanted.
        sure_score: of calls from here on none is left out, however many there are.
        ignore: (h, w), True where a call that lies there with more than half of its box is none.
    """
    rows, columns = cells_of(height, width)
    finder = PeakFinder(stride=CELL_PX, min_score=min_score, sure_score=sure_score, num_unsure=NUM_UNSURE)
    answered = np.empty((rows, columns), np.bool_)
    top_logit = -math.inf
    maps: tuple[NDArray[np.float32], ...] = ()

    def tensors(tile: Tile) -> tuple[Tensor, ...]:
        output = run(tile)
        return *(part[0] for part in output.head), output.gate_shares[0]

    num_padded = plan.rows[-1][1] // CELL_PX
    for top, (centres, distances, masks, shares) in blend_rows(plan, tensors, cell_px=CELL_PX):
        finder.add(top, centres, distances, is_last=top + centres.shape[1] == num_padded)
        end = min(top + centres.shape[1], rows)
        centres, distances, masks, shares = (
            part[:, : end - top, :columns].float() for part in (centres, distances, masks, shares)
        )
        highest = centres.amax(0)
        finite = highest.isfinite() & masks.amax(0).isfinite() & distances.amax(0).isfinite()
        answered[top:end] = finite.cpu().numpy()
        if ignore is not None:
            highest = highest.masked_fill(torch.from_numpy(ignore[top:end]).to(highest.device), -math.inf)
        top_logit = max(top_logit, float(highest.masked_fill(~finite, -math.inf).max()))
        parts = masks.sigmoid().cpu().numpy(), shares.cpu().numpy()
        if plan.num_tiles == 1:
            maps = parts
            continue
        maps = maps or tuple(np.empty((len(part), rows, columns), np.float32) for part in parts)
        for whole, part in zip(maps, parts, strict=True):
            whole[:, top:end] = part
    best = finder.best()
    boxes, scores, labels = (part.cpu().numpy() for part in best)
    if ignore is not None:
        clear = ~lies_in(np.clip(boxes, 0, _limit(width, height)), ignore)
        boxes, scores, labels = boxes[clear], scores[clear], labels[clear]
    kept = suppress(boxes, MAX_IOU)
    boxes = np.clip(boxes[kept], 0, _limit(width, height))
    inside = (boxes[:, 2:] > boxes[:, :2]).all(1)
    kept = kept[inside]
    return Findings(
        maps[0],
        maps[1],
        boxes[inside],
        scores[kept],
        labels[kept],
        max(torch.tensor(top_logit).sigmoid().item(), *scores[kept[:1]].tolist(), 0.0),
        answered,
    )


def lies_in(boxes: NDArray[np.float32], zone: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n,): whether more than half of the cells that a box touches are in the zone.

    boxes: (n, 4) box_xyxy, px, inside the board. zone: (h, w) cells.
    """
    rows, columns = zone.shape
    area = np.zeros((rows + 1, columns + 1), np.int64)
    np.cumsum(zone, axis=0, out=area[1:, 1:])
    np.cumsum(area[1:, 1:], axis=1, out=area[1:, 1:])
    left, top = (np.floor(boxes[:, i] / CELL_PX).astype(np.int64) for i in (0, 1))
    right, bottom = (np.ceil(boxes[:, i] / CELL_PX).astype(np.int64) for i in (2, 3))
    left, top = left.clip(0, columns - 1), top.clip(0, rows - 1)
    right, bottom = np.maximum(right, left + 1).clip(0, columns), np.maximum(bottom, top + 1).clip(0, rows)
    covered = area[bottom, right] - area[top, right] - area[bottom, left] + area[top, left]
    return np.asarray(2 * covered > (bottom - top) * (right - left), np.bool_)


def _limit(width: int, height: int) -> NDArray[np.float32]:
    return np.array([width, height, width, height], np.float32)
