"""From coarse to fine: matrix, slips, then a local field."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inspect_vit.registration_edge import with_edge_slip
from inspect_vit.registration_field import refine_field
from inspect_vit.registration_fit import Cells, measure, refine
from inspect_vit.registration_grey import Grey
from inspect_vit.registration_map import BoardMap
from inspect_vit.registration_pose import cell_size, find_pose
from inspect_vit.registration_slip import (
    parts_alone,
    residual_step,
    settle_rows,
    with_large_slips,
    with_slip,
    without_slivers,
    without_stretch,
)

MAX_SLIPS = 3
"""More jumps than this are no slips."""
SLIP_GAIN = 0.95
"""A slip is kept when it brings the misfit down to this share."""
BARE_SHARE, IDLE_SHARE = 0.2, 0.02
"""Where more than BARE_SHARE of the reference's structure is missing, slips that add less than IDLE_SHARE of
the matching cells are dropped."""
FIELD_FROM_PX = 0.5
"""A local field is sought when neighbouring cells share a displacement of more than this."""
FIELD_GAIN = 0.7
"""A field is kept when it brings that displacement down to this share."""
MAX_STRETCH = 0.01
"""A board is not longer one way by more than this share; a slip that is read as a stretch is."""
EDGE_SLIP_PX = 5
"""Smallest slip that is looked for along the lower edge, px: `alignment.LOST_ROWS` and one."""
SMALL_SLIP_PX = 0.6
"""Smallest slip that is looked for, pixels of the finest level."""


def align(
    references: dict[int, Grey],
    boards: dict[int, Grey],
    factors: list[int],
    scales: tuple[float, ...],
    reference_shape: tuple[int, int],
    board_shape: tuple[int, int],
) -> tuple[BoardMap, Cells]:
    """From coarse to fine: the map in full pixels, and the cells of the finest level."""
    coarse, fine = factors[0], factors[-1]
    rough, cells = find_pose(references[coarse], boards[coarse], scales=scales)
    full = replace(rough.scaled(1 / coarse), board_shape=board_shape, reference_shape=reference_shape)
    for k, factor in enumerate(factors[1:] or factors):
        golden, board = references[factor], boards[factor]
        size = cell_size(golden.shape)
        level = settle_rows(golden, board, _at_level(full, factor, golden, board), reach=4)
        if k == 0:
            level, cells = _settle_slips(golden, board, level, size)
        if factor == fine:
            level, cells = refine(golden, board, level, size=size, rounds=6)
            level, cells = _settle_small_slip(golden, board, level, cells)
            if level.slips and cells.missing() > BARE_SHARE:
                level, cells = _without_idle_slips(golden, board, level, cells)
            if not level.slips:
                level = with_edge_slip(golden, board, level, least=-(-EDGE_SLIP_PX // factor))
        elif k:
            level, cells = refine(golden, board, level, size=size, rounds=3, num=6)
        full = replace(level.scaled(1 / factor), board_shape=board_shape, reference_shape=reference_shape)
    return full, cells


def _settle_slips(golden: Grey, board: Grey, level: BoardMap, size: int) -> tuple[BoardMap, Cells]:
    """Refine a level, with the slips that a search finds if they make the pictures fit better.

    A stretch can hide a slip on a board with little structure, so the search starts without one, and a slip
    is preferred to a stretch that no board has.
    """
    plain = refine(golden, board, level, size=size, rounds=4, num=6)
    start, _ = refine(golden, board, without_stretch(level), size=size, rounds=4, num=2)
    start = with_large_slips(golden, board, start)
    if not 0 < len(start.slips) <= MAX_SLIPS:
        return plain
    across, down = plain[0].axes()
    odd = abs(np.hypot(*across) / np.hypot(*down) - 1) > MAX_STRETCH
    return _fitting_better(golden, board, start, plain, num=6, gain=1.05 if odd else SLIP_GAIN)


def _without_idle_slips(golden: Grey, board: Grey, level: BoardMap, cells: Cells) -> tuple[BoardMap, Cells]:
    """One part's map for all where slips add nothing that matches: any row fits where copper is missing."""
    alone = [(part, measure(golden, board, part, cells.size)) for part in parts_alone(level)]
    best = max(alone, key=lambda tried: tried[1].num_matching())
    return best if best[1].num_matching() > (1 - IDLE_SHARE) * cells.num_matching() else (level, cells)


def _settle_small_slip(golden: Grey, board: Grey, plain: BoardMap, cells: Cells) -> tuple[BoardMap, Cells]:
    """Add a slip of a pixel or two that shows in what the fit leaves."""
    slip = residual_step(cells, plain, min_step=SMALL_SLIP_PX)
    if slip is None or len(plain.slips) >= MAX_SLIPS:
        return plain, cells
    return _fitting_better(golden, board, with_slip(plain, slip), (plain, cells), num=8, gain=SLIP_GAIN)


def _fitting_better(
    golden: Grey, board: Grey, tried: BoardMap, plain: tuple[BoardMap, Cells], *, num: int, gain: float
) -> tuple[BoardMap, Cells]:
    """A map with new slips, refined, or the plain one where that fits about as well."""
    size = plain[1].size
    for _ in range(2):
        tried, _ = refine(golden, board, tried, size=size, rounds=4, num=num)
        tried = without_slivers(settle_rows(golden, board, tried, reach=len(golden) // 4))
    tried, cells = refine(golden, board, tried, size=size, rounds=3, num=num)
    return (tried, cells) if cells.misfit() < gain * plain[1].misfit() else plain


def bend(
    references: dict[int, Grey], boards: dict[int, Grey], factors: list[int], full: BoardMap, cells: Cells
) -> tuple[BoardMap, Cells]:
    """Add a local field where it takes away what a matrix leaves.

    It is smooth, so the level above the finest is fine enough to find it.
    """
    fine, factor = factors[-1], factors[-2:][0]
    left = cells.common_px()
    if left * fine < FIELD_FROM_PX:
        return full, cells
    golden, board = references[factor], boards[factor]
    level = _at_level(full, factor, golden, board)
    bent = refine_field(golden, board, level, size=cell_size(golden.shape), factor=factor)
    assert bent.field is not None
    field = bent.field * factor
    golden, board = references[fine], boards[fine]
    level = replace(_at_level(full, fine, golden, board), field=field / fine)
    after = measure(golden, board, level, cells.size)
    if after.common_px() > FIELD_GAIN * left or after.misfit() > cells.misfit():
        return full, cells
    return replace(full, field=field), after


def _at_level(full: BoardMap, factor: int, golden: Grey, board: Grey) -> BoardMap:
    return replace(
        full.scaled(factor),
        board_shape=(board.shape[0], board.shape[1]),
        reference_shape=(golden.shape[0], golden.shape[1]),
    )
