"""Row slips near the lower edge of a line scan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inspect_vit.registration_grey import NORMALISE_PX, Grey, without_means
from inspect_vit.registration_map import BoardMap, Floats, Slip, project
from inspect_vit.registration_slip import brought, misfits, with_slip

EDGE_ROWS, EDGE_REACH_PX = 72, 16
"""Rows of the level along the lower edge that are searched one by one, and rows lost or repeated there."""
EDGE_SHARE, EDGE_MISFIT, EDGE_GAIN, EDGE_LEAST = 0.85, 0.04, 0.15, 5
"""A slip there must bring the misfit of at least EDGE_LEAST rows down to EDGE_SHARE, from EDGE_MISFIT a pixel
and more, and take away at least EDGE_GAIN: the whole misfit of a row of CLIP would be 1.5."""


def with_edge_slip(reference: Grey, board: Grey, board_map: BoardMap, *, least: int) -> BoardMap:
    """Add to a map without slips one so near the lower edge that bands and cells see too little below it.

    Each row there is compared with the reference as it lies and moved by whole rows; fewer than `least` are
    no slip. Rows that belong beyond the reference's edge say nothing.
    """
    height, width = board.shape
    low = max(height - EDGE_ROWS, 0)
    if height - low < EDGE_LEAST:
        return board_map
    rows = np.arange(low, height)
    # Near its edge a picture was normalised without what the other one may show beyond.
    strip = without_means(board[low:])

    def look(move: int) -> tuple[Floats, NDArray[np.bool_]]:
        offset = (0.0, float(move))
        # Of a turned board one end of a row may lie beyond the edge.
        ends = [np.stack((np.full(len(rows), x), rows + offset[1]), -1) for x in (0, width - 1)]
        lowest = np.maximum(*(project(board_map.matrix, end)[:, 1] for end in ends))
        golden = without_means(brought(reference, board_map, low, strip.shape, offset))
        last = len(reference) - 1
        inside = lowest <= (last if lowest[-1] <= last else last - NORMALISE_PX // 2)
        return misfits(golden, strip), inside

    plain, here = look(0)
    best = (-np.inf, 0.0, 0, 0, 0.0, 0)
    for move in range(-EDGE_REACH_PX, EDGE_REACH_PX + 1):
        moved, there = look(move)
        gains = np.where(here & there, plain - moved, 0)[::-1].cumsum()[::-1]
        cut = int(gains.argmax())
        below = (here & there)[cut:]
        num = int(below.sum())
        if num >= EDGE_LEAST:
            before, gain = float(plain[cut:][below].sum()), float(gains[cut])
            # a move that sees more rows could gain more on them and fit worse: what it leaves counts too
            best = max(best, (2 * gain - before, gain, move, cut, before, num))
    _, gain, move, cut, before, num = best
    if (
        abs(move) < least
        or gain < max(EDGE_GAIN * width, (1 - EDGE_SHARE) * before)
        or before < EDGE_MISFIT * width * num
    ):
        return board_map
    return with_slip(board_map, Slip(float(low + cut), (0.0, float(move))))
