"""Lay the picture of a board onto its golden reference, or say why that cannot be done.

A map is found from coarse to fine (`registration_stages`): correlation of small pictures under small turns
(`registration_pose`), then Gauss-Newton on all pixels for shift, turn, scale, stretch, shear and perspective
(`registration_fit`), with an offset for every row slip of a line scan (`registration_slip`,
`registration_edge`), then a smooth local field where the rest asks for one (`registration_field`). Local
brightness and contrast are taken out of the pictures first (`registration_grey`). `registration_map` holds
the geometry, `registration_checks` the causes of a refusal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ImageError, RegistrationError
from inspect_vit.intake import SPECKS_WARNING, speck_share
from inspect_vit.registration_checks import (
    MAX_SCALE,
    MAX_SHIFT,
    MIN_MATCH,
    SURE_MATCH,
    check_limits,
    check_poses,
    check_product,
    check_structure,
)
from inspect_vit.registration_fit import Cells
from inspect_vit.registration_grey import Grey
from inspect_vit.registration_map import BoardMap, Floats, project, take
from inspect_vit.registration_pose import COARSE_SIDE, UPRIGHT, Pose, pyramid
from inspect_vit.registration_stages import align, bend

MIN_SIDE = 64
"""Smallest side of a picture that can be aligned, px."""
FINE_AREA = 1_300_000
"""The finest level that is fitted has at most so many pixels; larger pictures are reduced 2, 4, ... fold."""
SAME_SHAPE = 0.1
"""Pictures whose aspect ratios differ by less may show the same part at another resolution."""


@dataclass(frozen=True)
class Registration(BoardMap):
    """A BoardMap with its figures. Lengths are pixels of the reference unless said otherwise."""

    residual_px: float = 0.0
    """Displacement left between board and reference where they match, root mean square over cells."""
    residual_mm: float | None = None
    """The same in millimetres, where px_per_mm was given."""
    shift_px: tuple[float, float] = (0.0, 0.0)
    """(x, y): how far the middle of the posted picture is moved, against the middle of the reference."""
    turn_degrees: float = 0.0
    """How far the posted picture is turned, clockwise as seen."""
    scale: tuple[float, float] = (1.0, 1.0)
    """Pixels of the reference per pixel of the posted picture, along the posted picture's x and y."""
    inliers: float = 1.0
    """Share of the structured cells that match, 0..1. Defects cost a few."""
    missing: float = 0.0
    """Share of the reference's structured cells where the board shows nothing, 0..1."""
    coverage: float = 1.0
    """Share of the reference that the posted picture covers, 0..1."""

    def warp_boxes(self, boxes: Floats) -> Floats:
        """(N, 4) box_xyxy of the reference's frame to boxes of the posted picture, clipped to it.

        Each is the smallest upright box that holds the mapped corners and middles of the sides.
        """
        boxes = np.asarray(boxes, np.float64).reshape(-1, 4)
        left, top, right, bottom = boxes.T
        x, y = (left + right) / 2, (top + bottom) / 2
        ring = np.stack(
            (left, top, x, top, right, top, right, y, right, bottom, x, bottom, left, bottom, left, y), -1
        )
        places = self.to_board(ring.reshape(-1, 2) - 0.5).reshape(len(boxes), 8, 2) + 0.5
        height, width = self.board_shape
        limit = np.array([width, height, width, height], np.float64)
        return np.asarray(np.clip(np.concatenate((places.min(1), places.max(1)), -1), 0, limit))

    def warp_map(self, values: NDArray[np.float32], *, cell_px: int = 4) -> NDArray[np.float32]:
        """A map over cells of the reference to the same over cells of the posted picture.

        Args:
            values: (h, w) or (K, h, w), h = ceil(H / cell_px) of the reference.

        Returns:
            (h', w') or (K, h', w') of the posted picture, linearly interpolated; 0 outside the reference.
        """
        rows, columns = (-(-side // cell_px) for side in self.board_shape)
        y, x = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
        middles: Floats = (np.stack((x, y), -1).reshape(-1, 2) + 0.5) * cell_px - 0.5
        places = (self.to_reference(middles) + 0.5) / cell_px - 0.5
        cells = places.reshape(rows, columns, 2).astype(np.float32)
        # only the last half cell is beyond the middles of the outermost cells: repeat them there
        height, width = values.shape[-2:]
        inside = ((cells > -0.5) & (cells < np.array([width, height]) - 0.5)).all(-1)
        levels = values.reshape(-1, height, width)
        warped = [take(level, cells, cv2.INTER_LINEAR) * inside for level in levels]
        return np.stack(warped).astype(np.float32).reshape(*values.shape[:-2], rows, columns)


@dataclass(frozen=True)
class Golden:
    """What registration needs of a reference, made once for many boards: about 8 bytes a pixel."""

    shape: tuple[int, int]
    levels: dict[int, Grey]
    """{factor: normalised grey, reduced that many times}, from coarse to fine. `shape` is (height, width)."""

    @property
    def nbytes(self) -> int:
        return sum(level.nbytes for level in self.levels.values())


def prepare(reference: NDArray[np.uint8]) -> Golden:
    """Make a reference, (H, W, 3) uint8, ready for `register`; raises as it does for a bad one."""
    grey = _grey(reference, "reference")
    mean_side = float(np.sqrt(grey.shape[0] * grey.shape[1]))
    fine = _halvings(mean_side, float(np.sqrt(FINE_AREA)))
    coarse = max(fine, _halvings(mean_side, COARSE_SIDE))
    factors = [factor for factor in (2**k for k in range(16)) if fine <= factor <= coarse][::-1]
    levels = pyramid(grey, factors)
    check_structure(levels[coarse], "reference")
    return Golden((grey.shape[0], grey.shape[1]), levels)


def register(
    image: NDArray[np.uint8], reference: NDArray[np.uint8] | Golden, *, px_per_mm: float | None = None
) -> Registration:
    """Lay a board onto its reference.

    Args:
        image: (H, W, 3) uint8, the posted picture.
        reference: (H', W', 3) uint8, any size, or what `prepare` made of it; a picture of another resolution
            is scaled.
        px_per_mm: pixels of the reference per millimetre.

    Raises:
        ImageError: not a picture of that form.
        RegistrationError: too little to align by, upside down, turned, mirrored, another product or side.
    """
    golden = reference if isinstance(reference, Golden) else prepare(reference)
    board = _grey(image, "image")
    references, factors = golden.levels, list(golden.levels)
    coarse, fine = factors[0], factors[-1]
    boards = pyramid(board, factors)
    scales = _scales(board.shape, golden.shape)
    shapes = golden.shape, (board.shape[0], board.shape[1])

    def align_as(pose: Pose) -> tuple[BoardMap, Cells]:
        shown = boards if pose is UPRIGHT else {factor: pose.shows(level) for factor, level in boards.items()}
        size = shapes[1] if pose.quarter_turns % 2 == 0 else shapes[1][::-1]
        return align(references, shown, factors, scales, shapes[0], size)

    check_structure(boards[coarse], "image")
    best, cells = align_as(UPRIGHT)
    share = cells.share()
    if not _is_near(best):  # tracks repeat: where little overlaps, much of it may match by chance
        share = min(share, MIN_MATCH)
    if share < SURE_MATCH:
        check_poses(references[coarse], boards[coarse], scales, align_as, share, cells)
    best, cells = bend(references, boards, factors, best, cells)
    check_product(cells)
    found = _figures(best, cells, fine, px_per_mm)
    check_limits(found, scales)
    return found


def _figures(board_map: BoardMap, cells: Cells, factor: int, px_per_mm: float | None) -> Registration:
    shift = _shift_px(board_map)
    across, down = board_map.axes()
    residual = cells.residual_px() * factor
    seen = [inside.mean(1) for _, _, inside in board_map.scaled(4).dense()]
    return Registration(
        matrix=board_map.matrix,
        board_shape=board_map.board_shape,
        reference_shape=board_map.reference_shape,
        slips=board_map.slips,
        field=board_map.field,
        residual_px=residual,
        residual_mm=None if px_per_mm is None else residual / px_per_mm,
        shift_px=(float(shift[0]), float(shift[1])),
        turn_degrees=board_map.angle_degrees(),
        scale=(float(np.hypot(*across)), float(np.hypot(*down))),
        inliers=cells.share(),
        missing=cells.missing(),
        coverage=float(np.concatenate(seen).mean()),
    )


def _shift_px(board_map: BoardMap) -> Floats:
    """(x, y): the middle of the posted picture against that of the reference, pixels of the reference."""
    middle, centre = (
        (np.array(shape[::-1]) - 1) / 2 for shape in (board_map.board_shape, board_map.reference_shape)
    )
    return np.asarray(project(board_map.matrix, middle[None])[0] - centre)


def _is_near(board_map: BoardMap) -> bool:
    return float(np.hypot(*_shift_px(board_map))) <= MAX_SHIFT * max(board_map.reference_shape)


def _grey(picture: NDArray[np.uint8], what: str) -> NDArray[np.uint8]:
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or not picture.size:
        raise ImageError(
            f"{what} is an array of {picture.dtype} and shape {picture.shape}, "
            "wanted uint8 (height, width, 3) RGB"
        )
    if min(picture.shape[:2]) < MIN_SIDE:
        raise RegistrationError(
            f"cannot align: {what} has {picture.shape[1]}x{picture.shape[0]} px; "
            f"send at least {MIN_SIDE} px a side"
        )
    grey = np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY), np.uint8)
    # a camera's outermost pixels may be blank or half a pixel: next to dark copper, a line of structure
    grey = np.asarray(cv2.copyMakeBorder(grey[1:-1, 1:-1], *(1,) * 4, cv2.BORDER_REPLICATE), np.uint8)
    # specks weigh more than faint copper, and are no other product
    return np.asarray(cv2.medianBlur(grey, 3)) if speck_share(grey) > SPECKS_WARNING else grey


def _halvings(side: float, limit: float) -> int:
    """The smallest power of two that brings a side down to a limit."""
    return 1 << max(0, math.ceil(math.log2(side / limit)))


def _scales(board: tuple[int, ...], reference: tuple[int, ...]) -> tuple[float, ...]:
    """Sizes of the board to try: as it is, and as large as the reference where both have one shape."""
    down, across = reference[0] / board[0], reference[1] / board[1]
    ratio = float(np.sqrt(down * across))
    alike = abs(down / across - 1) < SAME_SHAPE
    return (1.0, ratio) if alike and abs(ratio - 1) > MAX_SCALE / 2 else (1.0,)
