"""What differs from the golden reference, without the network: large areas that no call names, and how long
the difference is at a call.

The network learnt defects of a few to a hundred pixels; a missing band of copper is like none of them and may
be called nothing at all. Plain comparison sees it at once, and only it.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.cells import CELL_PX
from inspect_vit.results import BoxXyxy

BLOCK_PX = 16
"""Means over blocks of so many px a side: edges that are off by a pixel or two change them little."""
DIFFERS_BY = 0.35
"""Of the reference's contrast, by which a block's mean must differ."""
LEAST_CONTRAST = 64.0
"""Grey levels: the contrast of a reference that is nearly all of one tone."""
LEAST_BLOCKS = 12
"""Connected blocks that are a large difference: 55 px a side, or a band of 16 px and 190 px."""
NAMED_SHARE = 0.5
"""Share of a difference's blocks under boxes of calls from which the calls name it."""
PIXEL_DIFFERS = 64
"""Grey levels by which a pixel differs."""
MARGIN_PX = 4


def large_differences(
    image: NDArray[np.uint8],
    reference: NDArray[np.uint8],
    boxes: NDArray[np.float32],
    *,
    ignore: NDArray[np.bool_] | None = None,
) -> tuple[BoxXyxy, ...]:
    """Boxes of large areas that do not look like the reference and that no call names, largest first.

    Args:
        image, reference: (H, W, 3) uint8 RGB, aligned.
        boxes: (n, 4) box_xyxy of the calls that count, px.
        ignore: (h, w) cells of 4 px where nothing counts.
    """
    height, width = image.shape[:2]
    rows, columns = height // BLOCK_PX, width // BLOCK_PX
    if not rows or not columns:
        return ()
    board, golden = (_blocks(picture, rows, columns) for picture in (image, reference))
    low, high = np.percentile(cv2.cvtColor(reference[::4, ::4], cv2.COLOR_RGB2GRAY), (2, 98))
    change = board - golden
    differs = np.abs(change - np.median(change)) > DIFFERS_BY * max(float(high - low), LEAST_CONTRAST)
    if ignore is not None:
        differs &= ~_blocks_of_cells(ignore, rows, columns)
    if not differs.any():
        return ()
    named = np.zeros((rows, columns), np.bool_)
    for left, top, right, bottom in boxes.tolist():
        down = slice(int(max(top - MARGIN_PX, 0) // BLOCK_PX), int(-(-(bottom + MARGIN_PX) // BLOCK_PX)))
        across = slice(int(max(left - MARGIN_PX, 0) // BLOCK_PX), int(-(-(right + MARGIN_PX) // BLOCK_PX)))
        named[down, across] = True
    found = []
    count, labels, parts, _ = cv2.connectedComponentsWithStats(differs.astype(np.uint8), connectivity=8)
    for number in range(1, count):
        x, y, across_blocks, down_blocks, area = (int(v) for v in parts[number])
        if area < LEAST_BLOCKS or named[labels == number].mean() >= NAMED_SHARE:
            continue
        box = (x, y, x + across_blocks, y + down_blocks)
        found.append((area, box))
    found.sort(reverse=True)
    return tuple(
        (
            float(BLOCK_PX * x0),
            float(BLOCK_PX * y0),
            float(min(BLOCK_PX * x1, width)),
            float(min(BLOCK_PX * y1, height)),
        )
        for _, (x0, y0, x1, y1) in found
    )


def difference_words(differences: tuple[BoxXyxy, ...]) -> tuple[str, ...]:
    """One reason each: where, how large."""
    return tuple(
        f"a large area of {right - left:.0f} x {bottom - top:.0f} px at x {left:.0f}, y {top:.0f} does not "
        "look like the reference, and no defect class names it"
        for left, top, right, bottom in differences
    )


def longest_px(image: NDArray[np.uint8], reference: NDArray[np.uint8] | None, box: BoxXyxy) -> float:
    """Longest side of what differs from the reference inside a box, px; of the box itself without one.

    Edges that fray are counted in, so it is rather too long than too short.
    """
    left, top, right, bottom = (round(edge) for edge in box)
    inside = slice(max(top, 0), max(bottom, top + 1)), slice(max(left, 0), max(right, left + 1))
    longest_side = float(max(box[2] - box[0], box[3] - box[1]))
    if reference is None:
        return longest_side
    grey = [cv2.cvtColor(picture[inside], cv2.COLOR_RGB2GRAY) for picture in (image, reference)]
    differs = np.asarray(cv2.absdiff(*grey)) >= PIXEL_DIFFERS
    if not differs.any():
        return longest_side
    return float(max(np.ptp(np.flatnonzero(differs.any(axis))) + 1 for axis in (0, 1)))


def _blocks(picture: NDArray[np.uint8], rows: int, columns: int) -> NDArray[np.float32]:
    grey = cv2.cvtColor(picture[: rows * BLOCK_PX, : columns * BLOCK_PX], cv2.COLOR_RGB2GRAY)
    return np.asarray(cv2.resize(grey, (columns, rows), interpolation=cv2.INTER_AREA), np.float32)


def _blocks_of_cells(cells: NDArray[np.bool_], rows: int, columns: int) -> NDArray[np.bool_]:
    """(rows, columns) of blocks: True where most of a block's cells are."""
    side = BLOCK_PX // CELL_PX
    part = cells[: rows * side, : columns * side].reshape(rows, side, columns, side)
    return np.asarray(part.mean((1, 3)) > 0.5, np.bool_)
