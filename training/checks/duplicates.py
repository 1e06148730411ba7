"""Pictures that show the same: equal pixels, the same shot in another guise, or the same board again.

Boards of one design look alike, and binary boards hash alike, so a hash only proposes: two pictures are
called alike when their pixels, aligned, differ nowhere (`near`) or in small places only (`board`). A crop of
another picture is not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ImageError
from inspect_vit.image_io import read_image
from training.checks.alignment import MIN_STD, Picture, correlation, measure_shift, move
from training.checks.differences import MAX_BLOBS, change_of_light, compare_pair, find_excess, limit_of

HASH_SIDE, HASH_SOURCE_SIDE = 8, 32
MAX_HASH_DISTANCE = 14
"""Of 63 bits; a copy with noise, other light or a small shift stays well below."""
MAX_CANDIDATES = 6
"""Nearest pictures that each is compared with: a copy comes before all that only resemble."""
MAX_ASPECT_CHANGE = 0.02
MIN_CORRELATION = 0.8
"""Grey levels of two small pictures, aligned: below this they show different things."""
SMALL_FACTOR = 2.0
"""How much more small pictures must differ than large ones: shrinking turns thin gaps into shades of grey."""
MIN_SPOT_PX = 3
"""Area, on the small pictures, of a difference that is more than the jitter of edges."""
MAX_BOARD_SHARE = 0.02
"""Share of the small picture that may differ between two pictures of one board."""

Likeness = Literal["near", "board"]


@dataclass(frozen=True)
class Pair:
    """Two of the pictures given, by number, and how alike they are."""

    first: int
    second: int
    turn: int
    """What brings the second onto the first: see `turned`."""
    likeness: Likeness


def turned(picture: Picture, turn: int) -> Picture:
    """Turned by `turn % 4` quarters, and mirrored first for 4 and above: (H, W, ...) -> (H or W, ...)."""
    return np.ascontiguousarray(np.rot90(picture[:, ::-1] if turn >= 4 else picture, turn % 4))


def find_pairs(thumbs: Sequence[Picture]) -> Iterator[tuple[int, list[Pair]]]:
    """For each picture in turn: (its number, the pairs with an earlier one).

    Args:
        thumbs: grey, of equal longest side unless the pictures were smaller than that.
    """
    hashes = np.array([[_hash(turned(thumb, turn)) for turn in range(8)] for thumb in thumbs], np.uint64)
    small = np.array([_square(thumb).reshape(-1) for thumb in thumbs], np.float32)
    telling = np.array([thumb.std() >= MIN_STD for thumb in thumbs], np.bool_)
    for number, thumb in enumerate(thumbs):
        pairs: list[Pair] = []
        if number and telling[number]:
            for other, turn in _candidates(number, hashes, small, telling):
                likeness = compare_thumbs(thumbs[other], turned(thumb, turn))
                if likeness is not None:
                    pairs.append(Pair(other, number, turn, likeness))
        yield number, pairs


def _candidates(
    number: int, hashes: NDArray[np.uint64], small: NDArray[np.float32], telling: NDArray[np.bool_]
) -> list[tuple[int, int]]:
    """(earlier picture, how to turn this one): the MAX_CANDIDATES nearest of those with a near hash."""
    distances = np.bitwise_count(hashes[:number, :1] ^ hashes[number])
    turns = distances.argmin(1)
    near = np.flatnonzero((distances.min(1) <= MAX_HASH_DISTANCE) & telling[:number])
    if not len(near):
        return []
    own = small[number].reshape(HASH_SOURCE_SIDE, HASH_SOURCE_SIDE)
    views = np.stack(
        [np.rot90(own[:, ::-1] if turn >= 4 else own, turn % 4).reshape(-1) for turn in range(8)]
    )
    gaps = np.abs(small[near] - views[turns[near]]).mean(1)
    return [(int(near[i]), int(turns[near[i]])) for i in np.argsort(gaps, kind="stable")[:MAX_CANDIDATES]]


def compare_thumbs(first: Picture, second: Picture) -> Likeness | None:
    """How alike two small grey pictures are once they are aligned and in the same light."""
    (height, width), (other_height, other_width) = first.shape, second.shape
    if abs(width * other_height / (height * other_width) - 1) > MAX_ASPECT_CHANGE:
        return None
    first, second = _same_size(first, second)
    shift, _ = measure_shift(first, second)
    moved, view = move(second, shift)
    if (
        min(first[view].shape) < HASH_SOURCE_SIDE // 2
        or correlation(first[view], moved[view]) < MIN_CORRELATION
    ):
        return None
    gain, offset = change_of_light(moved[view], first[view])
    moved = np.asarray(cv2.convertScaleAbs(moved, alpha=gain, beta=offset), np.uint8)
    excess = find_excess(first, moved, tolerance_px=1)[view][2:-2, 2:-2]
    different = (excess > SMALL_FACTOR * limit_of(first, excess)).astype(np.uint8)
    _, _, stats, _ = cv2.connectedComponentsWithStats(different, connectivity=8)
    areas = np.asarray(stats)[1:, cv2.CC_STAT_AREA]
    areas = areas[areas >= MIN_SPOT_PX]
    if not len(areas):
        return "near"
    return "board" if len(areas) <= MAX_BLOBS and areas.sum() <= MAX_BOARD_SHARE * excess.size else None


def confirm(first: Path, second: Path, turn: int) -> Likeness | None:
    """Compare at full size two pictures that are alike when small; one that went missing is like none."""
    try:
        picture, other = _same_size(read_image(first)[0], turned(read_image(second)[0], turn))
    except ImageError:
        return None
    facts = compare_pair(picture, other, np.zeros((0, 4), np.float32))
    return "near" if not len(facts.uncovered) and facts.num_differences <= MAX_BLOBS else "board"


def _same_size(first: Picture, second: Picture) -> tuple[Picture, Picture]:
    """The larger brought down to the smaller: what is lost in one is then lost in both."""
    if first.shape == second.shape:
        return first, second
    height, width = min(first.shape[:2], second.shape[:2])
    resized = (cv2.resize(p, (width, height), interpolation=cv2.INTER_AREA) for p in (first, second))
    first, second = (np.asarray(picture, np.uint8) for picture in resized)
    return first, second


def _square(thumb: Picture) -> NDArray[np.float32]:
    side = (HASH_SOURCE_SIDE, HASH_SOURCE_SIDE)
    return np.asarray(cv2.resize(thumb, side, interpolation=cv2.INTER_AREA), np.float32)


def _hash(thumb: Picture) -> np.uint64:
    """63 bits: which of the lowest frequencies, the mean left out, are above their median."""
    spectrum = np.asarray(cv2.dct(_square(thumb)))[:HASH_SIDE, :HASH_SIDE].reshape(-1)[1:]
    bits = spectrum > np.median(spectrum)
    return np.uint64(int("".join("1" if bit else "0" for bit in bits), 2))
