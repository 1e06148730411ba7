"""Of calls that overlap the best one stays: greedy suppression, exact, without a loop over the calls.

A board of noise has tens of thousands of peaks, so overlapping pairs are looked for among neighbours only.

Shape letters: n boxes, p pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

BIN_PX = 32.0
"""Side of the finest bins; at IoU 0.5 it serves boxes of up to 95 px, all but a few."""
MAX_PAIRS = 2**22
"""Pairs compared at a time, some 100 bytes each."""

Boxes = NDArray[np.float32]
Index = NDArray[np.int64]


def suppress(boxes: Boxes, max_iou: float) -> Index:
    """Greedy suppression. boxes: (n, 4) box_xyxy, best first. Returns the indices kept, in order.

    All boxes that no better one can touch any more are kept at once, and those that they overlap go: the
    same answer as one after the other, in as many rounds as the longest chain of overlaps is long.
    """
    better, worse = overlapping_pairs(boxes, max_iou)
    alive = np.ones(len(boxes), np.bool_)
    while len(better):
        kept = np.ones(len(boxes), np.bool_)
        kept[worse] = False
        gone = np.zeros(len(boxes), np.bool_)
        gone[worse[kept[better]]] = True
        alive &= ~gone
        open_pairs = ~(gone[better] | gone[worse])
        better, worse = better[open_pairs], worse[open_pairs]
    return np.flatnonzero(alive)


def overlapping_pairs(boxes: Boxes, max_iou: float) -> tuple[Index, Index]:
    """All pairs of boxes (n, 4) with an IoU above max_iou: (p,) lower and (p,) higher index.

    Where IoU is above t, centres lie apart by less than (1 - t) / (1 + t) of the longer side, and sides have
    a ratio above t. So boxes are sorted by size into levels of doubling bins, and meet only in
    neighbouring bins.
    """
    if not len(boxes):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    reach = (boxes[:, 2:] - boxes[:, :2]).max(1).clip(1e-3) * (1 - max_iou) / (1 + max_iou)
    level = np.ceil(np.log2(reach / (0.99 * BIN_PX))).clip(0).astype(np.int64)
    spread = math.ceil(math.log2(1 / max_iou)) if max_iou > 0 else int(level.max())
    found: list[tuple[Index, Index]] = []
    for current in np.unique(level):
        members = np.flatnonzero((level <= current) & (level >= current - spread))
        for first, second in _neighbours(boxes[members], BIN_PX * 2.0**current):
            one, other = members[first], members[second]
            here = np.maximum(level[one], level[other]) == current
            one, other = one[here], other[here]
            over = _overlap(boxes[one], boxes[other], max_iou)
            one, other = one[over], other[over]
            found.append((np.minimum(one, other), np.maximum(one, other)))
    return np.concatenate([pair[0] for pair in found]), np.concatenate([pair[1] for pair in found])


def _neighbours(boxes: Boxes, bin_px: float) -> Iterator[tuple[Index, Index]]:
    """Each pair of boxes whose centres lie in the same or touching bins once, in parts."""
    bins = np.floor((boxes[:, :2] + boxes[:, 2:]) / (2 * bin_px)).astype(np.int64)
    bins -= bins.min(0) - 1
    row_length = int(bins[:, 0].max()) + 2
    key = bins[:, 1] * row_length + bins[:, 0]
    order = np.argsort(key, kind="stable")
    key = key[order]
    place = np.arange(len(key))
    # To the right in the same row of bins, then the three bins of the next row.
    for start, end in (
        (place + 1, np.searchsorted(key, key + 1, side="right")),
        (np.searchsorted(key, key + row_length - 1), np.searchsorted(key, key + row_length + 1, "right")),
    ):
        counts = end - start
        total = np.cumsum(counts)
        cuts = np.searchsorted(total, np.arange(MAX_PAIRS, int(total[-1]), MAX_PAIRS))
        for part in np.split(place, np.unique(cuts)):
            number = counts[part]
            first = np.repeat(part, number)
            shift = np.repeat(start[part] - np.cumsum(number) + number, number)
            yield order[first], order[np.arange(len(first)) + shift]


def _overlap(one: Boxes, other: Boxes, max_iou: float) -> NDArray[np.bool_]:
    """(p, 4) and (p, 4): whether the IoU of each pair is above max_iou."""
    sides = np.minimum(one[:, 2:], other[:, 2:]) - np.maximum(one[:, :2], other[:, :2])
    inter = sides.clip(0).prod(1)
    area, other_area = ((b[:, 2:] - b[:, :2]).clip(0).prod(1) for b in (one, other))
    return np.asarray(inter > np.float32(max_iou) * (area + other_area - inter), np.bool_)
