"""A golden reference from several good boards: what they share, without the dust and noise of any one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ConfigError, ImageError, RegistrationError
from inspect_vit.registration import prepare, register

Picture = NDArray[np.uint8]
LEAST_BOARDS, MOST_BOARDS = 3, 20
BAND_PX = 1_000_000
"""Pixels of each board whose median is taken together: bounds memory."""


@dataclass(frozen=True)
class BoardFit:
    """How one good board agrees with the reference that was built."""

    residual_px: float
    """Displacement left after registration with the first board, root mean square."""
    difference: float
    """Mean absolute difference from the reference, grey levels 0..255. A board that stands out is not good,
    or was taken otherwise."""


@dataclass(frozen=True)
class BuiltReference:
    picture: Picture
    """(H, W, 3) RGB, in the frame of the first board."""
    boards: tuple[BoardFit, ...]
    """One per good board, in the order given."""


def build_golden(pictures: Sequence[Picture], *, step: Callable[[], None] = lambda: None) -> BuiltReference:
    """The median of several good boards, each registered with the first.

    Where a board does not cover the first one's view, the first one counts in its place. A defect or speck is
    gone where fewer than half of the boards show it.

    Args:
        pictures: (H, W, 3) uint8 RGB each, LEAST_BOARDS to MOST_BOARDS.
        step: called after each board, for a progress bar.

    Raises:
        ConfigError: too few or too many.
        ImageError: a board that cannot be registered with the first; named by its number.
    """
    if not LEAST_BOARDS <= len(pictures) <= MOST_BOARDS:
        raise ConfigError(f"{len(pictures)} good boards; wanted {LEAST_BOARDS} to {MOST_BOARDS}")
    first = pictures[0]
    golden = prepare(first)
    laid, residuals = [first], [0.0]
    step()
    for number, picture in enumerate(pictures[1:], start=2):
        try:
            found = register(picture, golden)
        except RegistrationError as error:
            raise ImageError(f"good board {number} does not lie on the first: {error}") from error
        warped, covered = found.warp(picture)
        np.copyto(warped, first, where=~covered[..., None])
        laid.append(warped)
        residuals.append(found.residual_px)
        step()
    picture = _median(laid)
    fits = tuple(
        BoardFit(residual, float(np.abs(board.astype(np.int16) - picture).mean()))
        for residual, board in zip(residuals, laid, strict=True)
    )
    return BuiltReference(picture, fits)


def _median(boards: Sequence[Picture]) -> Picture:
    height, width = boards[0].shape[:2]
    out = np.empty_like(boards[0])
    band = max(1, BAND_PX // width)
    for top in range(0, height, band):
        rows = slice(top, top + band)
        out[rows] = np.rint(np.median([board[rows] for board in boards], axis=0))
    return out
