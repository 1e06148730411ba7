"""First guess: which way round a board lies and how far it is shifted, by correlation of small pictures."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.registration_fit import Cells, refine
from inspect_vit.registration_grey import Grey, noise_variance, normalise
from inspect_vit.registration_map import BoardMap, Matrix

COARSE_SIDE = 280
"""A level is small enough to search when its mean side is no longer than this, px."""
TURNS = np.deg2rad(np.arange(-4, 4.5, 1))
"""Small turns that are tried around each pose, nearest to 0 first once sorted."""
MAX_SHIFT = 0.15
"""Largest shift that is searched, as a share of the longer side."""
NEAR_CERTAIN = 0.9
"""Share of matching cells from which no other small turn is tried."""


@dataclass(frozen=True)
class Pose:
    """One of the eight ways a flat board can lie."""

    name: str
    quarter_turns: int
    """Clockwise, as the posted board is turned against its reference."""
    mirrored: bool

    @property
    def remedy(self) -> str:
        return "check the camera and the picture's origin" if self.mirrored else "turn the board round"

    def shows(self, picture: NDArray[np.float32]) -> NDArray[np.float32]:
        """The posted picture laid the right way round."""
        upright = np.rot90(picture, self.quarter_turns)
        return np.ascontiguousarray(upright[:, ::-1] if self.mirrored else upright)


UPRIGHT = Pose("upright", 0, False)
OTHERS = (
    Pose("upside down, turned by 180 degrees", 2, False),
    Pose("turned by 90 degrees clockwise", 1, False),
    Pose("turned by 90 degrees anticlockwise", 3, False),
    Pose("mirrored, left and right exchanged", 0, True),
    Pose("mirrored, top and bottom exchanged", 2, True),
    Pose("mirrored and turned by 90 degrees", 1, True),
    Pose("mirrored and turned by 90 degrees the other way", 3, True),
)


def pyramid(grey: NDArray[np.uint8], factors: list[int]) -> dict[int, Grey]:
    """{factor: normalised picture, reduced that many times}; remainders right and bottom are cut off."""
    levels, fine = {}, min(factors)
    small = {factor: _reduced(grey, factor) for factor in factors}
    noise = noise_variance(small[fine])
    for factor in factors:
        blur_px = 1.0 if factor == 1 else 0.7
        soft = cv2.GaussianBlur(small[factor].astype(np.float32), (0, 0), blur_px)
        # means of more pixels are less noisy; what looks like noise in a smaller picture may be tracks
        left = noise * (fine / factor) ** 2 / (4 * np.pi * blur_px**2)
        levels[factor] = normalise(np.asarray(soft, np.float32), noise=left)
    return levels


def _reduced(grey: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
    height, width = (side // factor for side in grey.shape)
    whole = grey[: height * factor, : width * factor]
    if factor == 1:
        return whole
    return np.asarray(cv2.resize(whole, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


def find_pose(
    reference: Grey,
    board: Grey,
    *,
    scales: tuple[float, ...] = (1.0,),
    turns: NDArray[np.float64] = TURNS,
    tries: int = 3,
) -> tuple[BoardMap, Cells]:
    """Small turn, shift and rough affine map of a board that lies as its reference does.

    Args:
        reference, board: one coarse level of both, normalised.
        scales: sizes of the board that are tried, as multiples of its own.
        turns: small turns that are tried, radians.
        tries: how many of the best-correlating turns are followed up.
    """
    size = cell_size(reference.shape)
    search = _Search(reference)
    best: tuple[BoardMap, Cells] | None = None
    guesses: list[tuple[float, BoardMap]] = []
    for scale in scales:
        for turn in sorted(turns, key=abs):
            guesses.append(search.shift(board, float(turn), scale))
            if turn == 0 and tries > 1:
                best = _better(best, _settle(reference, board, guesses[-1][1], size))
                if best[1].share() >= NEAR_CERTAIN:
                    return best
    for _, guess in sorted(guesses, key=lambda scored: -scored[0])[:tries]:
        best = _better(best, _settle(reference, board, guess, size))
    assert best is not None
    return best


def cell_size(shape: tuple[int, ...]) -> int:
    """Side of a cell so that about 20 lie along a board, px of the level."""
    return max(8, round(float(np.sqrt(shape[0] * shape[1])) / 20))


def _settle(reference: Grey, board: Grey, guess: BoardMap, size: int) -> tuple[BoardMap, Cells]:
    guess, _ = refine(reference, board, guess, size=size, rounds=4, num=3)
    return refine(reference, board, guess, size=size, rounds=4, num=6)


def _better(best: tuple[BoardMap, Cells] | None, other: tuple[BoardMap, Cells]) -> tuple[BoardMap, Cells]:
    return other if best is None or other[1].share() > best[1].share() else best


class _Search:
    """Cross-correlation with one reference, its transform kept."""

    def __init__(self, reference: Grey) -> None:
        self.shape = (reference.shape[0], reference.shape[1])
        self.reach = max(2, round(MAX_SHIFT * max(self.shape)))
        self.padded = tuple(cv2.getOptimalDFTSize(side + self.reach) for side in self.shape)
        self.transform = self._transform(reference)

    def shift(self, board: Grey, turn: float, scale: float) -> tuple[float, BoardMap]:
        """Best shift of a board turned and scaled about its middle: (correlation peak, map)."""
        height, width = self.shape
        start = about_middle((board.shape[0], board.shape[1]), self.shape, turn, scale)
        warped = cv2.warpPerspective(board, start, (width, height))
        both = cv2.mulSpectrums(
            self.transform, self._transform(np.asarray(warped, np.float32)), 0, conjB=True
        )
        surface = cv2.idft(both, flags=cv2.DFT_REAL_OUTPUT | cv2.DFT_SCALE)
        surface = np.roll(surface, (self.reach, self.reach), (0, 1))[
            : 2 * self.reach + 1, : 2 * self.reach + 1
        ]
        _, peak, _, (x, y) = cv2.minMaxLoc(surface)
        move = np.array([[1, 0, x - self.reach], [0, 1, y - self.reach], [0, 0, 1.0]])
        return peak, BoardMap(move @ start, (board.shape[0], board.shape[1]), self.shape)

    def _transform(self, picture: Grey) -> NDArray[np.float32]:
        padded = np.zeros(self.padded, np.float32)
        padded[: picture.shape[0], : picture.shape[1]] = picture
        return np.asarray(cv2.dft(padded), np.float32)


def about_middle(board: tuple[int, int], reference: tuple[int, int], turn: float, scale: float) -> Matrix:
    """(3, 3): middle of a (height, width) board onto the middle of the reference, turned and scaled there."""
    cos, sin = scale * np.cos(turn), scale * np.sin(turn)
    x, y = (board[1] - 1) / 2, (board[0] - 1) / 2
    to_x, to_y = (reference[1] - 1) / 2, (reference[0] - 1) / 2
    return np.array([[cos, -sin, to_x - cos * x + sin * y], [sin, cos, to_y - sin * x - cos * y], [0, 0, 1]])
