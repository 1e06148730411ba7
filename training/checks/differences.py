"""Where a board differs from its golden reference, and whether labels say so.

Pictures are (H, W) or (H, W, 3) uint8 of one size; boxes are (N, 4) box_xyxy, px of the board.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from training.checks.alignment import MAX_LOCAL_PX, MIN_STD, Picture, View, correlation, measure_shift, move

Boxes = NDArray[np.float32]

TOLERANCE_PX = 2
"""What a shift of up to this explains is no difference: edges fray, and shifts are known to a fraction."""
DIFFERENT_SHARE = 0.15
"""A pixel differs when it leaves what its neighbourhood allows by this share of the board's contrast..."""
NOISE_FACTOR = 2.0
"""... and by this multiple of what 9 of 10 pixels stay under (noise, texture), but never more than..."""
MOST_SHARE = 0.5
"""... this share of the contrast, so that a badly registered pair does not drown its defects..."""
MIN_LEVELS = 12.0
"""... and by at least so many grey levels."""
MIN_BLOB_PX = 16
"""Area from which a difference is reported: about that of the smallest defects that DeepPCB labels."""
MIN_BLOB_SIDE_PX = 4
MAX_BLOBS = 50
"""More differences than this mean that the pictures do not belong together, or the light changed."""
MARGIN_PX = 16
"""Surroundings by which a difference is recognised when it is looked for a few px aside."""
PIECE_PX = 64.0


@dataclass(frozen=True)
class PairFacts:
    """What a board and its reference have in common."""

    shift_px: tuple[float, float]
    """(dx, dy) of the reference towards the board, median over the places measured."""
    residual_px: float
    """Largest departure of a place from that shift: turned, stretched or warped. 0 without places."""
    agreement: float
    """Correlation of grey levels outside the boxes after the shift, -1..1; 0 where one picture is flat there,
    and 1 where both show so little that a few pixels would decide."""
    uncovered: Boxes
    """(M, 4) differences outside every box, largest first."""
    num_differences: int
    """All of them, inside boxes too, before local shifts were tried. Beyond MAX_BLOBS none is `uncovered`."""
    unchanged: tuple[int, ...]
    """Numbers of the boxes in which board and reference are the same."""


def compare_pair(board: Picture, reference: Picture, boxes: Boxes) -> PairFacts:
    """Measure shift, warp and differences of a board (H, W, 3) RGB and its reference of the same size."""
    grey, reference_grey = (to_grey(picture) for picture in (board, reference))
    shift, places = measure_shift(grey, reference_grey)
    moved_grey, view = move(reference_grey, shift)
    agreement = _agreement(grey[view], moved_grey[view], boxes - np.tile((view[1].start, view[0].start), 2))
    gain, offset = change_of_light(moved_grey[view], grey[view])
    if is_grey(board) and is_grey(reference):
        board, moved = grey, moved_grey
    else:
        moved, _ = move(reference, shift)
    if (gain, offset) != (1.0, 0.0):
        moved = np.asarray(cv2.convertScaleAbs(moved, alpha=gain, beta=offset), np.uint8)
    excess = find_excess(board, moved)
    limit = limit_of(grey, excess[view])
    differences = _blobs(excess, view, limit)
    uncovered = [box for box in differences if not overlaps(boxes, box).any()]
    if len(differences) > MAX_BLOBS:
        uncovered = []
    uncovered = [
        box
        for box in uncovered
        if not all(_is_displaced(board, moved, view, piece, limit) for piece in _pieces(box))
    ]
    return PairFacts(
        shift_px=(float(shift[0]), float(shift[1])),
        residual_px=float(np.linalg.norm(places - shift, axis=1).max(initial=0.0)),
        agreement=agreement,
        uncovered=np.array(uncovered, np.float32).reshape(-1, 4),
        num_differences=len(differences),
        unchanged=tuple(
            number for number, box in enumerate(boxes) if _is_unchanged(board, moved, view, box, limit)
        ),
    )


def _agreement(board: Picture, reference: Picture, boxes: Boxes) -> float:
    """Correlation of (h, w) pictures outside the boxes: what is labelled is expected to differ.

    On a nearly blank picture the correlation is that of a handful of pixels; its differences say it all.
    """
    outside = np.ones(board.shape, np.bool_)
    for left, top, right, bottom in np.rint(boxes).astype(int).clip(min=0).tolist():
        outside[top:bottom, left:right] = False
    if not outside.any() or max(board[outside].std(), reference[outside].std()) < MIN_STD:
        return 1.0
    # In columns, so that what is left is a picture again.
    return correlation(board[outside][:, None], reference[outside][:, None])


def to_grey(picture: Picture) -> Picture:
    """(H, W, 3) RGB -> (H, W)."""
    return np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY), np.uint8)


def is_grey(picture: Picture) -> bool:
    """Whether the three channels of (H, W, 3) are the same everywhere."""
    red, green, blue = cv2.split(picture)
    return not cv2.absdiff(red, green).any() and not cv2.absdiff(red, blue).any()


def largest_channel(picture: Picture) -> Picture:
    """(H, W) or (H, W, 3) -> (H, W)."""
    if picture.ndim == 2:
        return picture
    first, second, third = cv2.split(picture)
    return np.asarray(cv2.max(cv2.max(first, second), third), np.uint8)


def find_excess(board: Picture, reference: Picture, *, tolerance_px: int = TOLERANCE_PX) -> Picture:
    """(H, W): by how much either picture is brighter or darker than all of the other's neighbourhood."""
    side = 2 * tolerance_px + 1
    kernel = np.ones((side, side), np.uint8)
    excess = np.zeros_like(board)
    for picture, other in ((board, reference), (reference, board)):
        over = cv2.subtract(picture, np.asarray(cv2.dilate(other, kernel), np.uint8))
        under = cv2.subtract(np.asarray(cv2.erode(other, kernel), np.uint8), picture)
        excess = np.asarray(cv2.max(excess, cv2.max(over, under)), np.uint8)
    return largest_channel(excess)


def _blobs(excess: Picture, view: View, limit: float) -> Boxes:
    """Boxes (M, 4) of differences, largest first, clear of the edges of `view`."""
    edge = TOLERANCE_PX + 1
    rows, columns = (slice(part.start + edge, part.stop - edge) for part in view)
    different = np.zeros(excess.shape, np.uint8)
    different[rows, columns] = excess[rows, columns] > limit
    opened = np.asarray(cv2.morphologyEx(different, cv2.MORPH_OPEN, np.ones((2, 2), np.uint8)), np.uint8)
    # Gaps are closed for counting only, so that a ragged defect is one.
    _, blobs = cv2.connectedComponents(np.asarray(cv2.dilate(opened, np.ones((5, 5), np.uint8))))
    y, x = np.nonzero(opened)
    numbers = np.asarray(blobs)[y, x]
    order = np.argsort(numbers, kind="stable")
    found = []
    for members in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
        if len(members) < MIN_BLOB_PX:
            continue
        left, top = int(x[members].min()), int(y[members].min())
        right, bottom = int(x[members].max()) + 1, int(y[members].max()) + 1
        if max(right - left, bottom - top) >= MIN_BLOB_SIDE_PX:
            found.append((len(members), (left, top, right, bottom)))
    found.sort(key=lambda blob: -blob[0])
    return np.array([box for _, box in found], np.float32).reshape(-1, 4)


def _is_displaced(board: Picture, moved: Picture, view: View, box: Boxes, limit: float) -> bool:
    """Whether the surroundings of a difference fit elsewhere within MAX_LOCAL_PX, and it is gone there.

    Within MAX_LOCAL_PX of the picture's edge there is nothing to compare it with: it counts as displaced.
    """
    reach = MAX_LOCAL_PX
    (top_edge, bottom_edge), (left_edge, right_edge) = ((part.start, part.stop) for part in view)
    left = max(int(box[0]) - MARGIN_PX, left_edge + reach)
    top = max(int(box[1]) - MARGIN_PX, top_edge + reach)
    right = min(int(box[2]) + MARGIN_PX, right_edge - reach)
    bottom = min(int(box[3]) + MARGIN_PX, bottom_edge - reach)
    if right - left < 2 * reach or bottom - top < 2 * reach:
        return True
    place = board[top:bottom, left:right]
    around = moved[top - reach : bottom + reach, left - reach : right + reach]
    misfit = np.asarray(cv2.matchTemplate(around, place, cv2.TM_SQDIFF))
    y, x = np.unravel_index(int(misfit.argmin()), misfit.shape)
    twin = around[y : y + place.shape[0], x : x + place.shape[1]]
    left_over = _blobs(find_excess(place, twin), (slice(0, bottom - top), slice(0, right - left)), limit)
    here = box - np.array((left, top, left, top), np.float32)
    aside = here + reach - np.array((x, y, x, y), np.float32)  # where the reference's side of it has gone
    return not (overlaps(left_over, here) | overlaps(left_over, aside)).any()


def _pieces(box: Boxes) -> list[Boxes]:
    """The box cut to sides of at most PIECE_PX: a stretch moves the ends of a track differently."""
    columns, rows = (np.ceil((box[2:] - box[:2]) / PIECE_PX)).astype(int).tolist()
    x, y = np.linspace(box[0], box[2], columns + 1), np.linspace(box[1], box[3], rows + 1)
    return [
        np.array((x[column], y[row], x[column + 1], y[row + 1]), np.float32)
        for row in range(rows)
        for column in range(columns)
    ]


def _is_unchanged(board: Picture, moved: Picture, view: View, box: Boxes, limit: float) -> bool:
    """Whether nothing in a box differs, not even by what a shift by TOLERANCE_PX would explain."""
    rows, columns = view
    left, top = np.floor(box[:2]).astype(int).clip(min=(columns.start, rows.start)).tolist()
    right, bottom = np.ceil(box[2:]).astype(int).clip(max=(columns.stop, rows.stop)).tolist()
    if right - left < 2 or bottom - top < 2:
        return False
    place = np.s_[top:bottom, left:right]
    difference = largest_channel(np.asarray(cv2.absdiff(board[place], moved[place]), np.uint8))
    different = (difference > limit).astype(np.uint8)
    return not np.asarray(cv2.morphologyEx(different, cv2.MORPH_OPEN, np.ones((2, 2), np.uint8))).any()


def overlaps(boxes: Boxes, box: Boxes) -> NDArray[np.bool_]:
    """(N,) whether each box shares area with `box`."""
    size = np.minimum(boxes[:, 2:], box[2:]) - np.maximum(boxes[:, :2], box[:2])
    return np.asarray((size > 0).all(1), np.bool_)


def limit_of(grey: Picture, excess: Picture) -> float:
    """Grey levels from which a pixel differs."""
    step = max(int(np.sqrt(grey.size / 250_000)), 1)
    dark, bright = np.percentile(grey[::step, ::step], (1, 99))
    noise = NOISE_FACTOR * float(np.percentile(excess[::step, ::step], 90))
    contrast = float(bright - dark)
    return max(DIFFERENT_SHARE * contrast, min(noise, MOST_SHARE * contrast), MIN_LEVELS)


def change_of_light(reference: Picture, board: Picture) -> tuple[float, float]:
    """(gain, offset) that bring the reference into the board's light; (1, 0) where none is plausible."""
    step = max(int(np.sqrt(board.size / 250_000)), 1)
    r, b = (picture[::step, ::step].astype(np.float32) for picture in (reference, board))
    if not r.size or min(r.std(), b.std()) < MIN_STD:
        return 1.0, 0.0
    # A regression would take what lies askew, or is defective, for a loss of contrast.
    gain = float(b.std() / r.std())
    return (gain, float(b.mean() - gain * r.mean())) if 0.5 <= gain <= 2.0 else (1.0, 0.0)
