"""Examples on other boards: the pixels of a real defect where another board looks as its own board did.

Copy and paste (Ghiasi et al., CVPR 2021, arXiv:2012.07177) with one change: a short is one only between two
tracks, so an example goes where the other board's reference matches the example's reference around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.image_io import read_image
from inspect_vit.results import Sample
from inspect_vit.shapes import Shape
from training.data import DIFFERENT

Picture = NDArray[np.uint8]
CONTEXT_PX = 6
"""An example is matched with this much of its surroundings on each side of its box."""
NEAR_PX = 5
"""Pixels this near to the defect count fully in a match, those further off FAR_WEIGHT."""
FAR_WEIGHT = 0.1
WORST_MATCH = 0.06
"""Largest mean squared difference of a match, as a share of that between black and white."""
GAP_PX = 8
"""Least distance to the labelled defects of the other board."""
SCALE = 2
"""Matches are looked for at this fraction of the resolution."""
ZOOM = (0.85, 1.18)
TRIES = 3
"""Examples tried for each one wanted."""


@dataclass(frozen=True)
class Example:
    """One labelled defect with what surrounds it. Pictures are (h, w, 3) RGB."""

    label: str
    board: Picture
    good: Picture
    """The reference there; without one the board itself."""
    mask: Picture
    """(h, w) of 0 and 1: the pixels that are the defect."""
    margin_px: float
    """By how much the labelled box is wider than the mask, mean of the sides."""


@dataclass(frozen=True)
class Pasted:
    """A board with examples in it."""

    board: Picture
    boxes: list[tuple[float, float, float, float]]
    labels: list[str]
    masks: list[tuple[Picture, tuple[int, int]]]
    """Of each: the mask and (left, top) of its place."""


def cut_examples(samples: Sequence[Sample], labels: Sequence[str]) -> list[Example]:
    """The labelled defects of those classes whose pixels are known: by outline or by what differs there."""
    found = []
    for sample in samples:
        wanted = [i for i in np.flatnonzero(~sample.is_ignored) if sample.labels[i] in labels]
        if not wanted or (sample.reference is None and sample.masks is None):
            continue
        board = read_image(sample.image)[0]
        good = board if sample.reference is None else read_image(sample.reference)[0]
        for i in wanted:
            shape = sample.masks[i] if sample.masks is not None else None
            example = _cut(board, good, sample.boxes[i], sample.labels[i], shape)
            if example is not None:
                found.append(example)
    return found


def _cut(
    board: Picture, good: Picture, box: NDArray[np.float32], label: str, shape: Shape | None
) -> Example | None:
    height, width = board.shape[:2]
    left, top, right, bottom = np.round(box).astype(int).tolist()
    mask = np.zeros((height, width), np.uint8)
    if shape is not None:
        shape.paint(mask, 1)
    else:
        inside = np.s_[max(top, 0) : bottom, max(left, 0) : right]
        mask[inside] = cv2.absdiff(board[inside], good[inside]).max(-1) > DIFFERENT
        mask = cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((2, 2), np.uint8))  # type: ignore[assignment]
    if not mask.any():
        return None
    y, x = np.nonzero(mask)
    sides = np.array([x.min() - left, y.min() - top, right - 1 - x.max(), bottom - 1 - y.max()])
    view = np.s_[
        max(top - CONTEXT_PX, 0) : bottom + CONTEXT_PX, max(left - CONTEXT_PX, 0) : right + CONTEXT_PX
    ]
    return Example(label, board[view], good[view], mask[view], float(max(sides.mean(), 0.0)))


def paste(
    examples: Sequence[Example],
    board: Picture,
    good: Picture,
    taken: NDArray[np.float32],
    rng: np.random.Generator,
    *,
    most: int,
) -> Pasted:
    """Paste up to `most` examples, turned, mirrored and zoomed at random, where they fit.

    Args:
        board, good: (H, W, 3), the picture pasted into and its reference (or itself).
        taken: (n, 4) boxes that stay free.
    """
    pasted = Pasted(board.copy(), [], [], [])
    free = np.ones(board.shape[:2], np.uint8)
    for left, top, right, bottom in np.round(taken).astype(int).tolist():
        free[max(top - GAP_PX, 0) : bottom + GAP_PX, max(left - GAP_PX, 0) : right + GAP_PX] = 0
    small = _shrink(_grey(good))
    for index in rng.integers(len(examples), size=TRIES * most).tolist():
        if len(pasted.labels) == most:
            break
        example = _turned(examples[index], rng)
        place = _place(example, small, free, rng)
        if place is not None:
            _put(pasted, example, place, free)
    return pasted


def _put(pasted: Pasted, example: Example, place: tuple[int, int], free: Picture) -> None:
    left, top = place
    height, width = example.mask.shape
    view = np.s_[top : top + height, left : left + width]
    edge = cv2.dilate(example.mask, np.ones((3, 3), np.uint8)) > 0
    pasted.board[view][edge] = example.board[edge]
    y, x = np.nonzero(example.mask)
    margin, (rows, columns) = example.margin_px, free.shape
    pasted.boxes.append(
        (
            max(left + float(x.min()) - margin, 0.0),
            max(top + float(y.min()) - margin, 0.0),
            min(left + float(x.max()) + 1 + margin, float(columns)),
            min(top + float(y.max()) + 1 + margin, float(rows)),
        )
    )
    pasted.labels.append(example.label)
    pasted.masks.append((example.mask, place))
    free[max(top - GAP_PX, 0) : top + height + GAP_PX, max(left - GAP_PX, 0) : left + width + GAP_PX] = 0


def _place(
    example: Example, small: NDArray[np.float32], free: Picture, rng: np.random.Generator
) -> tuple[int, int] | None:
    """(left, top) of one of the places that match, at random; None where none does."""
    height, width = example.mask.shape
    if height + SCALE >= free.shape[0] or width + SCALE >= free.shape[1]:
        return None
    near = cv2.dilate(example.mask, np.ones((2 * NEAR_PX + 1,) * 2, np.uint8)) > 0
    weight = _shrink(np.where(near, 1.0, FAR_WEIGHT).astype(np.float32))
    if example.good is example.board:
        weight[_shrink(example.mask.astype(np.float32)) > 0] = 0
    template = _shrink(_grey(example.good))
    # TM_SQDIFF weighs by the square of the mask.
    found = cv2.matchTemplate(small, template, cv2.TM_SQDIFF, mask=np.sqrt(weight))
    error = np.asarray(found, np.float32) / max(float(weight.sum()) * 255.0**2, 1e-6)
    blocked = cv2.integral(1 - free)
    tops, lefts = (np.arange(n) * SCALE for n in error.shape)
    bottoms, rights = np.minimum(tops + height, free.shape[0]), np.minimum(lefts + width, free.shape[1])
    inside = (tops + height <= free.shape[0])[:, None] & (lefts + width <= free.shape[1])[None]
    count = (
        blocked[bottoms[:, None], rights]
        - blocked[tops[:, None], rights]
        - blocked[bottoms[:, None], lefts]
        + blocked[tops[:, None], lefts]
    )
    error[(count > 0) | ~inside] = np.inf
    best = float(error.min())
    if not best <= WORST_MATCH:
        return None
    rows, columns = np.nonzero(error <= max(2 * best, WORST_MATCH / 4))
    chosen = int(rng.integers(len(rows)))
    return int(columns[chosen]) * SCALE, int(rows[chosen]) * SCALE


def _turned(example: Example, rng: np.random.Generator) -> Example:
    """One of the eight orientations, a little smaller or larger."""
    quarter, mirrored, zoom = int(rng.integers(4)), bool(rng.integers(2)), float(rng.uniform(*ZOOM))

    def turn(picture: Picture, interpolation: int) -> Picture:
        out = np.rot90(picture, quarter)
        out = out[:, ::-1] if mirrored else out
        size = (max(round(out.shape[1] * zoom), 4), max(round(out.shape[0] * zoom), 4))
        return cv2.resize(np.ascontiguousarray(out), size, interpolation=interpolation)  # type: ignore[return-value]

    mask = turn(example.mask, cv2.INTER_NEAREST)
    if not mask.any():
        return example
    board = turn(example.board, cv2.INTER_LINEAR)
    good = board if example.good is example.board else turn(example.good, cv2.INTER_LINEAR)
    return Example(example.label, board, good, mask, example.margin_px)


def _grey(picture: Picture) -> Picture:
    return cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)  # type: ignore[return-value]


def _shrink(picture: NDArray[np.float32] | Picture) -> NDArray[np.float32]:
    size = (max(picture.shape[1] // SCALE, 1), max(picture.shape[0] // SCALE, 1))
    return cv2.resize(picture, size, interpolation=cv2.INTER_AREA).astype(np.float32)
