"""Is a picture fit to be inspected? Blank, black and washed-out frames never pass; poor ones are warned of.

All limits are on 8-bit grey levels (0..255), so they hold for every source after it was scaled to 8 bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.pixels import FULL_12_BIT, FULL_16_BIT
from inspect_vit.results import IntakeReport

BLANK_STD = 2.0
"""Standard deviation of 4x4 px means below which a frame shows nothing: the mean takes sensor noise away."""
CONTRAST_ERROR, CONTRAST_WARNING = 64, 100
"""Grey levels between the darkest and the lightest 4x4 px mean. Boards at hand have 110 and more."""
BLACK_P995 = 20
"""A frame whose 99.5th percentile is below this is black: lamp off, lens cap on."""
WASHED_OUT_SHARE = 0.98
"""Share of pixels at OVER_LEVEL or above beyond which a photograph holds no board any more."""
OVER_LEVEL = 250
OVER_SHARE = 0.2
"""Share of pixels at OVER_LEVEL or above from which a photograph is called over-exposed."""
UNDER_P95 = 60
"""A photograph whose 95th percentile is below this is called under-exposed."""
DARK_P95 = 30
"""... and below this it holds too few grey levels to be inspected."""
BLUR_LIMIT = 0.7
"""Blur effect of soft edges. Sharp boards have 0.1 to 0.4; with a Gaussian blur of 2 px, 0.65 to 0.78."""
BLUR_ERROR = 0.8
"""Blur effect beyond which fine defects are gone: a Gaussian blur of some 4 px and more."""
SPECK_STEP = 100
"""Grey levels by which a pixel is lighter, or darker, than all eight around it to count as a speck."""
SPECKS_WARNING, SPECKS_ERROR = 0.003, 0.015
"""Share of specks. Boards at hand have 0.0001 and less. Of salt and pepper half is seen, the rest falls on
its own colour, and in heavy noise specks touch: 1 % shows as 0.4 to 0.5 %, 5 % as 2 %, 50 % as 2.3 %."""

SAME_PICTURE = (
    "image and reference are the same picture, so no difference can be seen; "
    "send the board and a picture of a good board"
)
FIT_LIMIT = 0.4
"""Least correlation of board and reference, both averaged over 8x8 px. Pairs of DeepPCB have 0.53 and more;
with another board's reference, 99 in 100 have less than 0.3."""

SCAN_DARK, SCAN_BRIGHT = 10, 245
SCAN_MIDDLE_SHARE = 0.2

BLUR_PX = 9
"""Length of the second blur along one direction."""
PART_PX = 2**22
"""Pixels that are blurred at a time."""


def check_quality(grey: NDArray[np.uint8]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Judge one grey picture (H, W).

    Returns:
        (warnings, errors) in words with the value met and the limit. Errors mean "do not inspect this".
    """
    share = np.asarray(cv2.calcHist([grey], [0], None, [256], [0, 256]), np.float64).reshape(-1) / grey.size
    cumulative = np.cumsum(share)
    p95, p995 = (int(np.searchsorted(cumulative, q)) for q in (0.95, 0.995))
    over = float(share[OVER_LEVEL:].sum())

    if p995 < BLACK_P995:
        return (), (
            f"black frame: 99.5 % of pixels are at grey level {p995} or darker (limit {BLACK_P995} of 255); "
            "check lamp, lens cap and exposure",
        )
    coarse = _means(grey, 4)
    std, contrast = float(cv2.meanStdDev(coarse)[1][0, 0]), int(coarse.max()) - int(coarse.min())
    if std < BLANK_STD:
        return (), (
            f"almost blank: grey levels vary by {std:.1f} (standard deviation, limit {BLANK_STD:.0f}), "
            "so no board is to be seen",
        )
    scan = is_binary_scan(share)
    if not scan and over > WASHED_OUT_SHARE:
        return (), (
            f"washed out: {over:.0%} of pixels are {OVER_LEVEL} or brighter (limit {WASHED_OUT_SHARE:.0%}); "
            "lower the exposure",
        )

    if not scan and p95 < DARK_P95:
        return (), (
            f"too dark: 95 % of pixels are at grey level {p95} or darker (limit {DARK_P95} of 255); "
            "raise the exposure",
        )
    if contrast < CONTRAST_ERROR:
        return (), (
            f"low contrast: {contrast} grey levels between the darkest and the lightest place (limit "
            f"{CONTRAST_ERROR}); check the light and the exposure",
        )
    blur = blur_effect(grey)
    if blur > BLUR_ERROR:
        return (), (
            f"out of focus: blur effect {blur:.2f} (limit {BLUR_ERROR}, sharp boards {BLUR_LIMIT}); "
            "focus the camera",
        )
    specks = speck_share(grey)
    noisy = f"salt-and-pepper noise: {specks:.1%} of pixels are black or white specks"
    if specks > SPECKS_ERROR:
        return (), (f"{noisy} (limit {SPECKS_ERROR:.1%}); check camera, cable and frame grabber",)

    warnings = []
    if specks > SPECKS_WARNING:
        warnings.append(f"{noisy} (boards have less than {SPECKS_WARNING:.1%})")
    if not scan and over > OVER_SHARE:
        warnings.append(
            f"over-exposed: {over:.0%} of pixels are {OVER_LEVEL} or brighter (limit {OVER_SHARE:.0%})"
        )
    if not scan and p95 < UNDER_P95:
        warnings.append(
            f"under-exposed: 95 % of pixels are at grey level {p95} or darker (limit {UNDER_P95} of 255)"
        )
    if contrast < CONTRAST_WARNING:
        warnings.append(f"low contrast: {contrast} grey levels (boards have {CONTRAST_WARNING} and more)")
    if blur > BLUR_LIMIT:
        warnings.append(f"out of focus: blur effect {blur:.2f} (sharp boards are below {BLUR_LIMIT})")
    return tuple(warnings), ()


def with_reference_faults(board: IntakeReport, reference: IntakeReport) -> IntakeReport:
    """The board's report with the reference's faults added: a black frame is no reference to inspect by.

    Nor is a frame of 16-bit samples that was scaled by another rule: its greys do not compare.
    """
    errors = [f"reference: {error}" for error in reference.errors]
    if {board.full_scale, reference.full_scale} == {FULL_12_BIT, FULL_16_BIT}:
        errors.append(
            f"reference: scaled from {reference.full_scale} to 255, the board from {board.full_scale}; "
            "send both at the same depth and exposure"
        )
    return replace(
        board,
        warnings=board.warnings + tuple(f"reference: {warning}" for warning in reference.warnings),
        errors=(*board.errors, *errors),
    )


def pair_faults(image: NDArray[np.uint8], reference: NDArray[np.uint8]) -> tuple[str, ...]:
    """Why a reference cannot be that of the board: errors in words. Both are (H, W, 3) RGB, aligned."""
    fit = correlation(image, reference)
    if fit is not None and fit < FIT_LIMIT:
        return (
            f"reference does not fit: its correlation with the board is {fit:.2f} (limit {FIT_LIMIT}); "
            "another product or side, black and white exchanged, or not aligned",
        )
    return ()


def correlation(image: NDArray[np.uint8], reference: NDArray[np.uint8]) -> float | None:
    """Of two (H, W, 3) RGB pictures averaged over 8x8 px, -1..1; None where one is flat."""
    coarse = [
        _means(np.asarray(cv2.cvtColor(p, cv2.COLOR_RGB2GRAY), np.uint8), 8) for p in (image, reference)
    ]
    board, golden = (picture.astype(np.float32) - picture.mean() for picture in coarse)
    scale = float(np.sqrt((board**2).sum() * (golden**2).sum()))
    if not scale:  # a flat picture: check_quality has told
        return None
    return float((board * golden).sum()) / scale


def is_binary_scan(share: NDArray[np.float64]) -> bool:
    """Whether a grey histogram (256 shares) is that of a two-level scan, where 0 and 255 are meant.

    Such a scan has fewer pixels between the ends than at its rarer end, however sparse its tracks are; JPEG
    noise and soft edges put up to 15 % there.
    """
    dark, bright = float(share[: SCAN_DARK + 1].sum()), float(share[SCAN_BRIGHT:].sum())
    middle = 1.0 - dark - bright
    return middle < SCAN_MIDDLE_SHARE and middle <= min(dark, bright)


def speck_share(grey: NDArray[np.uint8]) -> float:
    """Share of pixels that stand alone, far lighter or far darker than all their neighbours; (H, W) grey."""
    height, width = grey.shape
    around = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]], np.uint8)
    step = max(1, PART_PX // width)
    specks = 0
    for top in range(0, height, step):
        first, last = max(top - 1, 0), min(top + step + 1, height)
        inner = slice(top - first, top - first + min(step, height - top))
        part = grey[first:last]
        for lighter, darker in (
            (part, cv2.dilate(part, around)),
            (cv2.erode(part, around), part),
        ):
            step_up = np.asarray(cv2.subtract(lighter, darker))[inner]
            specks += int(np.count_nonzero(step_up >= SPECK_STEP))
    return specks / grey.size


def blur_effect(grey: NDArray[np.uint8]) -> float:
    """How little a picture changes when it is blurred once more: 0 sharp, 1 blurred; (H, W) grey.

    Crete et al. 2007, "The blur effect: perception and estimation with a new no-reference
    perceptual blur metric".
    The worse of the two directions counts, so motion blur along a line scan is seen too.
    """
    worst = 0.0
    for axis in (0, 1):
        lost = total = 0.0
        for part, blurred in _blurred_parts(grey, axis):
            edges = _steps(part, axis)
            total += cv2.sumElems(edges)[0]
            lost += cv2.sumElems(cv2.subtract(edges, _steps(blurred, axis)))[0]
        if total > 0:
            worst = max(worst, 1.0 - lost / total)
    return worst


def _blurred_parts(
    grey: NDArray[np.uint8], axis: int
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
    """Rows in parts, each with its copy blurred along an axis: of a line scan, copies take little memory so.

    Along axis 0 neighbours share a row: the step between them belongs to one of the two.
    """
    height, width = grey.shape
    shared = 1 - axis
    step = max(1, PART_PX // width)
    for top in range(0, height - shared, step):
        bottom = min(top + step + shared, height)
        above = min(top, BLUR_PX)
        blurred = cv2.blur(grey[top - above : bottom + BLUR_PX], ((1, BLUR_PX), (BLUR_PX, 1))[axis])
        yield grey[top:bottom], np.asarray(blurred[above : above + bottom - top], np.uint8)


def _steps(grey: NDArray[np.uint8], axis: int) -> NDArray[np.uint8]:
    if axis == 0:
        return np.asarray(cv2.absdiff(grey[1:], grey[:-1]), np.uint8)
    return np.asarray(cv2.absdiff(grey[:, 1:], grey[:, :-1]), np.uint8)


def _means(grey: NDArray[np.uint8], side_px: int) -> NDArray[np.uint8]:
    """Means over squares, which take noise away; a picture under 64 px stays as it is."""
    height, width = grey.shape
    if min(height, width) >= 64:
        size = (width // side_px, height // side_px)
        grey = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), np.uint8)
    return grey
