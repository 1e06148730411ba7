"""Pixels of any depth, transparency and orientation -> 8 bit, opaque, upright; each step says what it did."""

from __future__ import annotations

from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ImageError

DepthT = TypeVar("DepthT", np.uint8, np.uint16)


def scale_16_bit(values: NDArray[np.uint16], actions: list[str]) -> NDArray[np.uint8]:
    """A camera's 12-bit frame in a 16-bit file never exceeds 4095; anything else uses the whole range."""
    full_scale = 4095 if values.max() <= 4095 else 65535
    rule = "value / 16.06 (12-bit frame: 4095 becomes 255)" if full_scale == 4095 else "value / 257"
    actions.append(f"scaled 16 to 8 bit by {rule}")
    table: NDArray[np.uint8] = np.rint(np.arange(65536) * (255 / full_scale)).clip(max=255).astype(np.uint8)
    return np.take(table, values)


def scale_float(values: NDArray[np.float32], actions: list[str]) -> NDArray[np.uint8]:
    """0..1 is the one range that float pixels have in common; others are refused, not guessed."""
    if not np.isfinite(values).all():
        raise ImageError(
            f"{np.count_nonzero(~np.isfinite(values))} pixels are NaN or infinite; send finite values"
        )
    low, high = float(values.min()), float(values.max())
    if low < 0 or high > 1:
        raise ImageError(f"float pixels run from {low:g} to {high:g}; wanted 0 to 1, or 8 or 16 bit integers")
    actions.append("scaled float to 8 bit by value x 255")
    return np.rint(values * 255).astype(np.uint8)


def on_black(colour: NDArray[DepthT], alpha: NDArray[DepthT], actions: list[str]) -> NDArray[DepthT]:
    """Composite (H, W, 3) on black by alpha (H, W).

    Black is "no light", as outside the frame of a camera or line scan. White would glare in photographs, and
    which of the two is copper differs between scanners.
    """
    opaque = np.iinfo(alpha.dtype).max
    if alpha.min() == opaque:
        actions.append("dropped the alpha channel: every pixel is opaque")
        return colour
    actions.append("composited the transparent pixels on black")
    product = colour.astype(np.uint32) * alpha[..., None]
    return ((product + opaque // 2) // opaque).astype(colour.dtype)


def upright(pixels: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]:
    """Undo EXIF orientation 2 to 8 (EXIF 2.32, tag 274): (H, W, ...) as stored -> as seen."""
    if orientation >= 5:
        pixels = np.swapaxes(pixels, 0, 1)  # the first stored row is a column of the scene
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)


def to_channels(picture: NDArray[np.uint8], in_chans: int) -> NDArray[np.uint8]:
    """(H, W, 3) RGB to what a model takes: (H, W, 3) as it is, or (H, W, 1) luma (Rec. 601)."""
    return picture if in_chans == 3 else cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)[:, :, None]  # type: ignore[return-value]
