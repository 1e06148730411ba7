"""How far a golden reference lies from its board: the shift of the whole, and that of places on it.

Pictures are grey, (H, W) uint8, of one size. A shift is (dx, dy) px: how far the reference has to move to lie
on the board.
"""

from __future__ import annotations

from itertools import product

import cv2
import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]
Shift = NDArray[np.float64]
View = tuple[slice, slice]
"""Rows and columns."""

COARSE_SIDE_PX = 1024
"""The first look is at pictures of at most this side: enough for a shift of any length."""
TILE_PX = 384
"""Side, at most, of the places at which the shift is then measured at full size."""
TILES = 3
"""Places a side: nine in all."""
MIN_STD = 12.0
"""Standard deviation of grey levels below which a place, or a picture, shows too little to be measured."""
MIN_RESPONSE = 0.1
"""Height of the correlation peak, 0..1, below which a measured shift means nothing."""
MAX_LOCAL_PX = 8
"""No place lies further than this from the shift of the whole: beyond, a track has met its neighbour."""
NEAR_PX = 1.0
"""A place further than this from the shift of the whole has to prove it: moved there, it must leave..."""
PROVEN_SHARE = 0.5
"""... at most this share of the disagreement (1 - correlation). Tracks in rows offer many false matches."""
_MAX_CORRELATED_PX = 500_000


def measure_shift(board: Picture, reference: Picture) -> tuple[Shift, NDArray[np.float64]]:
    """The shift of the whole, (0, 0) where none brings the pictures nearer; and (n, 2), those of places.

    A place counts when moving it alone brings it nearer; pictures with nothing in common have none.
    """
    coarse = _coarse_shift(board, reference)
    places = _local_shifts(board, reference, coarse)
    fine = np.median(places, axis=0) if len(places) else coarse
    unmoved = correlation(board, reference)
    for shift in (fine, coarse):
        moved, view = move(reference, shift)
        if board[view].size and correlation(board[view], moved[view]) > unmoved:
            return shift, places
    return np.zeros(2), places


def move(picture: Picture, shift: Shift) -> tuple[Picture, View]:
    """(H, W) or (H, W, 3) moved by (dx, dy) px, and the rows and columns that came from inside it."""
    height, width = picture.shape[:2]
    dx, dy = shift.tolist()
    rows = slice(max(int(np.ceil(dy)), 0), height + min(int(np.floor(dy)), 0))
    columns = slice(max(int(np.ceil(dx)), 0), width + min(int(np.floor(dx)), 0))
    if not shift.any():
        return picture, (rows, columns)
    moved = cv2.warpAffine(
        picture,
        np.array([[1, 0, dx], [0, 1, dy]]),
        (width, height),
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return np.asarray(moved, np.uint8), (rows, columns)


def correlation(left: Picture, right: Picture) -> float:
    """Pearson's, -1..1, on at most half a million pixels; 0 where either picture is flat."""
    step = max(int(np.ceil(np.sqrt(left.size / _MAX_CORRELATED_PX))), 1)
    a, b = (picture[::step, ::step].astype(np.float32) for picture in (left, right))
    a -= a.mean()
    b -= b.mean()
    norm = float(np.sqrt(float((a * a).sum()) * float((b * b).sum())))
    return float((a * b).sum()) / norm if norm > 0 else 0.0


def _coarse_shift(board: Picture, reference: Picture) -> Shift:
    if min(board.std(), reference.std()) < MIN_STD:
        return np.zeros(2)
    scale = min(COARSE_SIDE_PX / max(board.shape), 1.0)
    if scale < 1.0:
        size = (max(round(board.shape[1] * scale), 1), max(round(board.shape[0] * scale), 1))
        board, reference = (
            np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)
            for picture in (board, reference)
        )
    shift, response = _phase_shift(board, reference)
    return shift / scale if response >= MIN_RESPONSE else np.zeros(2)


def _local_shifts(board: Picture, reference: Picture, coarse: Shift) -> NDArray[np.float64]:
    height, width = board.shape
    side = max(min(TILE_PX, min(height, width) // 2), 8)
    dx, dy = np.round(coarse).astype(int).tolist()
    found = []
    for row, column in product(range(TILES), repeat=2):
        top = (height - side) * row // (TILES - 1)
        left = (width - side) * column // (TILES - 1)
        # The same place on the reference, kept inside the picture.
        ref_top = int(np.clip(top - dy, 0, height - side))
        ref_left = int(np.clip(left - dx, 0, width - side))
        tile = board[top : top + side, left : left + side]
        twin = reference[ref_top : ref_top + side, ref_left : ref_left + side]
        if min(tile.std(), twin.std()) < MIN_STD:
            continue
        local, response = _phase_shift(tile, twin)
        offset = np.array([left - ref_left, top - ref_top]) + local
        if response < MIN_RESPONSE or np.abs(offset - coarse).max() > MAX_LOCAL_PX:
            continue
        moved, view = move(twin, local)
        left_over = 1.0 - correlation(tile[view], moved[view])
        share = PROVEN_SHARE if np.abs(offset - coarse).max() > NEAR_PX else 1.0
        if left_over <= share * (1.0 - correlation(tile, twin)):
            found.append(offset)
    return np.array(found, np.float64).reshape(-1, 2)


def _phase_shift(board: Picture, reference: Picture) -> tuple[Shift, float]:
    height, width = board.shape
    window = cv2.createHanningWindow((width, height), cv2.CV_32F)
    shift, response = cv2.phaseCorrelate(reference.astype(np.float32), board.astype(np.float32), window)
    return np.array(shift), float(response)
