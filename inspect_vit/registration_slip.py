"""Row slips: find the row of a line scan from which on everything lies some pixels elsewhere."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.registration_fit import CLIP, Cells, sample
from inspect_vit.registration_grey import Grey
from inspect_vit.registration_map import BoardMap, Floats, Slip, project

NUM_BANDS = 24
"""Bands of rows whose shifts are compared."""
REACH_PX = 12
"""Largest shift of a band that is searched, pixels of the level."""
DRIFT_COST, JUMP_COST = 0.15, 0.25
"""Price of shifting a band otherwise than the band above: by one pixel, as a slope does, and by any number.
The unit is the correlation of one band that matches fully."""
SLIVER_ROWS = 8
"""Parts between slips have at least so many rows of the level."""
LEAST_STEP_PX = 0.5
"""A slip of less, pixels of the level, is none."""
MIN_GAIN = 0.7
"""A small slip must bring the bands' misfit down to this share."""
EDGE_BANDS = 2
"""Fewest bands above and below a small slip."""


def with_large_slips(reference: Grey, board: Grey, board_map: BoardMap) -> BoardMap:
    """Add the slips of 2 to REACH_PX pixels that a level's map leaves: the path of best correlation.

    Each band of rows is correlated with the reference at all shifts within reach. From band to band the
    shift may drift by a pixel, or jump, each at a price. Dynamic programming finds the best path over all
    bands; a band that looks alike at several shifts follows its neighbours.
    """
    warped, seen, _ = sample(board, board_map)
    height = len(reference)
    band = max(height // NUM_BANDS, 4)
    tops = range(0, height - band + 1, band)
    border = (REACH_PX,) * 4
    padded = cv2.copyMakeBorder(warped * seen, *border, cv2.BORDER_CONSTANT, value=0)
    surfaces = [
        cv2.matchTemplate(padded[top : top + band + 2 * REACH_PX], reference[top : top + band], cv2.TM_CCORR)
        for top in tops
    ]
    scale = max(float(np.mean([(reference[top : top + band] ** 2).sum() for top in tops])), 1e-6)
    path = _best_path(np.stack(surfaces).astype(np.float32) / np.float32(scale))
    level = replace(board_map, matrix=_move(-path[0]) @ board_map.matrix)
    for cut, jump in _jumps(path):
        level = with_slip(level, _as_slip(level, tops[cut] - 0.5, jump))
    return level


def _jumps(path: NDArray[np.intp]) -> list[tuple[int, Floats]]:
    """(band, (x, y)): where and how far a path jumps. Two jumps around one band are one slip inside it."""
    cuts = [int(cut) for cut in np.flatnonzero(np.abs(np.diff(path, axis=0)).max(1) > 1) + 1]
    found: list[tuple[int, Floats]] = []
    while cuts:
        first = last = cuts.pop(0)
        if cuts and cuts[0] == first + 1:
            last = cuts.pop(0)
        jump = (path[last] - path[first - 1]).astype(np.float64)
        if np.abs(jump).max() > 1:
            found.append((last, jump))
    return found


def _move(offset: Floats | NDArray[np.intp]) -> Floats:
    return np.array([[1, 0, offset[0]], [0, 1, offset[1]], [0, 0, 1.0]])


def _best_path(surfaces: NDArray[np.float32]) -> NDArray[np.intp]:
    """(bands, n, n) gains at each shift (y, x) to the (bands, 2) shifts (x, y) of the best path."""
    side = surfaces.shape[1]
    reach = side // 2
    score = surfaces[0].astype(np.float64)
    origins = []
    moves = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
    places = np.arange(side * side).reshape(side, side)
    for surface in surfaces[1:]:
        wide = np.pad(score, 1, constant_values=-np.inf)
        drifts = np.stack(
            [
                wide[1 + dy : 1 + dy + side, 1 + dx : 1 + dx + side] - DRIFT_COST * (abs(dy) + abs(dx))
                for dy, dx in moves
            ]
        )
        choice = drifts.argmax(0)
        step = np.array([dy * side + dx for dy, dx in moves])
        origin = places + step[choice]
        best = drifts.max(0)
        jump = score.max() - JUMP_COST > best
        origins.append(np.where(jump, int(score.argmax()), origin))
        score = np.where(jump, score.max() - JUMP_COST, best) + surface
    place = int(score.argmax())
    path = [place]
    for origin in reversed(origins):
        place = int(origin.flat[place])
        path.append(place)
    rows, columns = np.divmod(np.array(path[::-1]), side)
    return np.stack((columns - reach, rows - reach), -1)


def residual_step(cells: Cells, board_map: BoardMap, *, min_step: float) -> Slip | None:
    """A small slip that shows in what a fit leaves; sums over whole rows of cells see a tenth of a pixel."""
    good = cells.weights().reshape(cells.match.shape)
    tensor = (cells.tensor * good[..., None, None]).sum(1)
    pull = (cells.pull * good[..., None]).sum(1)
    held = tensor + 10 * cells.noise * np.eye(2)
    shifts = np.linalg.solve(held, pull[..., None])[..., 0]
    strength = np.stack((tensor[:, 0, 0], tensor[:, 1, 1]), -1)
    weights = np.clip(strength / max(float(np.median(strength)), 1e-9), 0, 1)
    middles = (np.arange(len(shifts)) + 0.5) * cells.size - 0.5
    found = find_step(middles, shifts, weights, min_step=min_step)
    return None if found is None else _as_slip(board_map, *found)


def find_step(y: Floats, shifts: Floats, weights: Floats, *, min_step: float) -> tuple[float, Floats] | None:
    """A jump in shifts that otherwise change evenly with y: (row, (x, y) of the jump), or None.

    Args:
        y: (N,) middles of bands; shifts, weights: (N, 2), per direction.
    """
    if len(y) < 2 * EDGE_BANDS + 2:
        return None
    at = (y - y.mean()) / np.ptp(y)
    plain = np.stack((np.ones_like(at), at), -1)
    before = sum(_fit(plain, shifts[:, i], weights[:, i])[1] for i in (0, 1))
    best: tuple[float, int, Floats] | None = None
    for cut in range(EDGE_BANDS, len(y) - EDGE_BANDS + 1):
        design = np.concatenate((plain, (np.arange(len(y)) >= cut)[:, None]), -1)
        fits = [_fit(design, shifts[:, i], weights[:, i]) for i in (0, 1)]
        cost = fits[0][1] + fits[1][1]
        if best is None or cost < best[0]:
            best = cost, cut, np.array([fits[0][0][2], fits[1][0][2]])
    assert best is not None
    cost, cut, jump = best
    if np.abs(jump).max() < min_step or cost > MIN_GAIN * before:
        return None
    return float((y[cut - 1] + y[cut]) / 2), jump


def _fit(design: Floats, values: Floats, weights: Floats) -> tuple[Floats, float]:
    """Least absolute deviations by reweighting: (coefficients, weighted sum of deviations capped at 2 px)."""
    trust = weights.copy()
    ridge = np.eye(design.shape[1]) * 1e-3
    left: Floats = values
    coefficients: Floats = np.zeros(design.shape[1])
    for _ in range(6):
        weighted = design * trust[:, None]
        coefficients = np.linalg.solve(weighted.T @ design + ridge, weighted.T @ values)
        left = values - design @ coefficients
        trust = weights / np.maximum(np.abs(left), 0.1)
    return coefficients, float((weights * np.minimum(np.abs(left), 2.0)).sum()) + 0.02 * len(values)


def _as_slip(board_map: BoardMap, row: float, jump: Floats) -> Slip:
    """A jump at a row of the reference as a slip of the posted picture, rows below it displaced by `jump`."""
    middle = np.array([[board_map.reference_shape[1] / 2, row]])
    back = np.linalg.inv(board_map.matrix)
    y = float(board_map.to_board(middle)[0, 1]) + 0.5
    ends = project(back, np.concatenate((middle, middle + jump)))
    # the rows below are found `jump` further on in the reference's frame: bring them back
    offset = ends[0] - ends[1]
    above = next((s.offset for s in reversed(board_map.slips) if s.row <= y), (0.0, 0.0))
    return Slip(y, (float(offset[0] + above[0]), float(offset[1] + above[1])))


def with_slip(board_map: BoardMap, slip: Slip) -> BoardMap:
    """The map with one more slip; slips further down move with it."""
    above = next((s.offset for s in reversed(board_map.slips) if s.row <= slip.row), (0.0, 0.0))
    more = (slip.offset[0] - above[0], slip.offset[1] - above[1])
    below = [
        Slip(s.row, (s.offset[0] + more[0], s.offset[1] + more[1]))
        for s in board_map.slips
        if s.row > slip.row
    ]
    kept = [s for s in board_map.slips if s.row <= slip.row]
    return replace(board_map, slips=(*kept, slip, *below))


def without_slivers(board_map: BoardMap) -> BoardMap:
    """Drop what explains nothing: parts of a few rows between slips, or between a slip and the edge, and
    slips that a fit has brought down to next to nothing.
    """
    height = board_map.board_shape[0]
    slips = [slip for slip in board_map.slips if slip.row >= SLIVER_ROWS]
    top = board_map.slips[: len(board_map.slips) - len(slips)]
    if top:  # the part below them is the first one now, whose offset is 0
        x, y = top[-1].offset
        slips = [Slip(slip.row, (slip.offset[0] - x, slip.offset[1] - y)) for slip in slips]
        board_map = replace(board_map, matrix=board_map.matrix @ _move(np.array([x, y])))
    kept: list[Slip] = []
    for slip in slips:
        if kept and slip.row - kept[-1].row < SLIVER_ROWS:
            kept.pop()
        above = kept[-1].offset if kept else (0.0, 0.0)
        step = np.hypot(slip.offset[0] - above[0], slip.offset[1] - above[1])
        if height - slip.row >= SLIVER_ROWS and step >= LEAST_STEP_PX:
            kept.append(slip)
    return replace(board_map, slips=tuple(kept))


def parts_alone(board_map: BoardMap) -> list[BoardMap]:
    """The map that each part between slips would give to the whole picture."""
    return [
        replace(board_map, matrix=board_map.matrix @ _move(offset), slips=())
        for _, _, offset in board_map.parts()
    ]


def without_stretch(board_map: BoardMap) -> BoardMap:
    """Shift, turn and one scale, read off the direction of rows alone, which no slip between rows changes."""
    height, width = board_map.board_shape
    middle = np.array([[(width - 1) / 2, (height - 1) / 2]])
    (cos, sin), _ = board_map.axes()
    x, y = project(board_map.matrix, middle)[0] - np.array([[cos, -sin], [sin, cos]]) @ middle[0]
    return replace(board_map, matrix=np.array([[cos, -sin, x], [sin, cos, y], [0, 0, 1]]))


def settle_rows(reference: Grey, board: Grey, board_map: BoardMap, *, reach: int) -> BoardMap:
    """Move each slip to the row of the level, within `reach`, that explains the picture best."""
    slips = list(board_map.slips)
    for k, slip in enumerate(slips):
        low = max(1, round(slip.row) - reach, round(slips[k - 1].row) + 1 if k else 1)
        high = min(len(board) - 1, round(slip.row) + reach, *(round(s.row) - 1 for s in slips[k + 1 : k + 2]))
        if high <= low:
            continue
        above = slips[k - 1].offset if k else (0.0, 0.0)
        costs = [
            _row_costs(reference, board, board_map, low, high, offset) for offset in (above, slip.offset)
        ]
        running = np.concatenate(([0.0], np.cumsum(costs[0] - costs[1])))
        slips[k] = Slip(float(low + int(running.argmin())), slip.offset)
    return replace(board_map, slips=tuple(slips))


def _row_costs(
    reference: Grey, board: Grey, board_map: BoardMap, low: int, high: int, offset: tuple[float, float]
) -> Floats:
    """(high - low,) misfit of rows of the board if they belong to a part with this offset."""
    golden = brought(reference, board_map, low, (high - low, board.shape[1]), offset)
    return misfits(golden, board[low:high])


def brought(
    reference: Grey, board_map: BoardMap, low: int, shape: tuple[int, ...], offset: tuple[float, float]
) -> Grey:
    """(height, width) of the reference as a part with this offset shows it from row `low` of the board on."""
    move = np.array([[1, 0, offset[0]], [0, 1, offset[1] + low], [0, 0, 1]])
    back = np.linalg.inv(board_map.matrix @ move)
    return np.asarray(cv2.warpPerspective(reference, back, shape[::-1]), np.float32)


def misfits(golden: Grey, board: Grey) -> Floats:
    """(rows,) sums of what differs."""
    return np.asarray(np.minimum(np.abs(golden - board), CLIP).sum(1), np.float64)
