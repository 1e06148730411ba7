"""A smooth local displacement field: a board's own stretches, which one matrix cannot undo."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inspect_vit.registration_fit import CORRELATED_PX, MATCH, measure, part_of
from inspect_vit.registration_grey import Grey
from inspect_vit.registration_map import BoardMap, Floats, spline_basis

FIELD_SIZE_PX, FIELD_BEND_PX = 6.0, 1.7
"""Standard deviation expected of the field, and of the second differences of its control points."""
FIELD_SPACING_PX = 64
"""Least distance of control points, so that no defect of 3 to 30 px is warped away."""


def refine_field(reference: Grey, board: Grey, board_map: BoardMap, *, size: int, factor: int) -> BoardMap:
    """Add a smooth local field to a level's map; `factor` is the level's reduction."""
    height, width = board_map.reference_shape
    spacing = max(FIELD_SPACING_PX / factor, max(height, width) / 10)
    shape = (int(height / spacing) + 3, int(width / spacing) + 3)
    field = np.zeros((*shape, 2))
    board_map = replace(board_map, field=field)
    smooth = sum(_bending(shape, axis) for axis in (0, 1)) * (factor / FIELD_BEND_PX) ** 2
    smooth = smooth + np.eye(shape[0] * shape[1]) * (factor / FIELD_SIZE_PX) ** 2
    num = shape[0] * shape[1]
    for _ in range(2):
        cells = measure(reference, board, board_map, size)
        centres = cells.centres()
        down = spline_basis(centres[:, 1], height, shape[0])
        basis = np.einsum("ki,kj->kij", down, spline_basis(centres[:, 0], width, shape[1])).reshape(-1, num)
        weights = np.where(cells.match.reshape(-1) >= MATCH, cells.weights(), 0) / (
            cells.noise * CORRELATED_PX
        )
        if board_map.slips:
            weights = weights * (part_of(board_map, centres, size) >= 0)
        tensor = cells.tensor.reshape(-1, 2, 2) * weights[:, None, None]
        pull = cells.pull.reshape(-1, 2) * weights[:, None]
        normal = np.zeros((2 * num, 2 * num))
        right = np.zeros((2, num))
        for i in (0, 1):
            right[i] = basis.T @ pull[:, i] - smooth @ field[..., i].reshape(-1)
            for j in (0, 1):
                block = (basis * tensor[:, i, j, None]).T @ basis + (smooth if i == j else 0)
                normal[i * num : (i + 1) * num, j * num : (j + 1) * num] = block
        step = np.linalg.solve(normal, right.reshape(-1)).reshape(2, *shape)
        field = field + np.moveaxis(step, 0, -1)
        board_map = replace(board_map, field=field)
    return board_map


def _bending(shape: tuple[int, int], axis: int) -> Floats:
    """(n, n) form of the squared second differences of n = rows * columns control points along an axis."""
    second = np.diff(np.eye(shape[axis]), 2, axis=0)
    form = second.T @ second
    return np.kron(form, np.eye(shape[1])) if axis == 0 else np.kron(np.eye(shape[0]), form)
