"""Samples of any depth -> 8 bit, opaque, upright. Pure functions on arrays; `image_io` says what was done."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ImageError

FULL_16_BIT = 65535
FULL_12_BIT = 4095


def full_scale_of(largest: int) -> int:
    """The value that becomes 255, for a file of 16-bit samples.

    Cameras of 12 bit write their values as they are, and no file format says so. So a frame in which no value
    exceeds 4095 is taken as one of 12 bit; every other frame uses the whole range.
    """
    return FULL_12_BIT if largest <= FULL_12_BIT else FULL_16_BIT


def check_floats(parts: Iterable[NDArray[Any]]) -> None:
    """0..1 is the one range that float pixels have in common; others are refused, not guessed.

    Raises:
        ImageError: NaN, infinite, or outside 0..1.
    """
    num_bad, low, high = 0, 0.0, 0.0
    for part in parts:
        finite = np.isfinite(part)
        num_bad += int(part.size - np.count_nonzero(finite))
        if not num_bad:
            low, high = min(low, float(part.min())), max(high, float(part.max()))
    if num_bad:
        raise ImageError(f"{num_bad} samples are NaN or infinite; send finite values")
    if low < 0 or high > 1:
        raise ImageError(f"float samples run from {low:g} to {high:g}; send 0 to 1, or 8 or 16 bit integers")


def to_8_bit(values: NDArray[Any], full_scale: float) -> NDArray[np.uint8]:
    """value x 255 / full_scale, rounded to the nearest, for uint8 (as it is), uint16 and float samples."""
    if values.dtype == np.uint8:
        return values
    if values.dtype.kind == "f":
        wide = values.astype(np.result_type(values, np.float32), copy=False)  # half floats round too early
        return np.rint(wide * (255 / full_scale)).astype(np.uint8)
    table = np.rint(np.arange(FULL_16_BIT + 1) * (255 / full_scale)).clip(max=255).astype(np.uint8)
    scaled: NDArray[np.uint8] = np.take(table, values)
    return scaled


def on_black(colour: NDArray[Any], alpha: NDArray[Any]) -> NDArray[Any]:
    """Composite (H, W, C) on black by alpha (H, W) of the same type.

    Black is "no light", as outside the frame of a camera or line scan. White would glare in photographs, and
    which of the two is copper differs between scanners.
    """
    composited: NDArray[Any]
    if colour.dtype.kind == "f":
        composited = colour * alpha[..., None]
    else:
        opaque = opaque_value(alpha)
        product = colour.astype(np.uint32) * alpha[..., None]
        composited = ((product + opaque // 2) // opaque).astype(colour.dtype)
    return composited


def opaque_value(alpha: NDArray[Any]) -> int:
    return 1 if alpha.dtype.kind == "f" else int(np.iinfo(alpha.dtype).max)


def stored_view(upright: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]:
    """A view of an upright picture (H, W, ...) in the order of the file, by EXIF orientation 1 to 8.

    What is written to the view lands where it is seen (EXIF 2.32, tag 274), without a copy.
    """
    if orientation in (3, 4, 7, 8):
        upright = upright[::-1]
    if orientation in (2, 3, 6, 7):
        upright = upright[:, ::-1]
    if orientation >= 5:
        upright = np.swapaxes(upright, 0, 1)  # the first stored row is a column of the scene
    return upright


def to_channels(picture: NDArray[np.uint8], in_chans: int) -> NDArray[np.uint8]:
    """(H, W, 3) RGB to what a model takes: (H, W, 3) as it is, or (H, W, 1) luma (Rec. 601)."""
    return picture if in_chans == 3 else cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)[:, :, None]  # type: ignore[return-value]
