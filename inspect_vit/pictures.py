"""What an array must be to be inspected."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ImageError, ImageTooLargeError

MAX_PIXELS = 300_000_000
"""Largest picture, a line scan of 16384 x 16384 px and a little more: about 2.2 bytes a pixel for the maps,
6 for the two pictures, beside one row of tiles."""


def check_picture(picture: NDArray[np.uint8], what: str) -> None:
    """Raises ImageError unless (H, W, 3) uint8, ImageTooLargeError above MAX_PIXELS."""
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or not picture.size:
        raise ImageError(
            f"{what} is an array of {picture.dtype} and shape {picture.shape}, "
            "wanted uint8 (height, width, 3) RGB"
        )
    if picture.shape[0] * picture.shape[1] > MAX_PIXELS:
        raise ImageTooLargeError(
            f"{what} has {picture.shape[1]}x{picture.shape[0]} px, "
            f"the limit is {MAX_PIXELS / 1e6:.0f} megapixels; cut it into parts"
        )


def check_reference(reference: NDArray[np.uint8], image: NDArray[np.uint8]) -> None:
    check_picture(reference, "reference")
    if reference.shape != image.shape:
        raise ImageError(
            f"reference has {reference.shape[1]}x{reference.shape[0]} px, "
            f"the image {image.shape[1]}x{image.shape[0]}; "
            "send a reference of the same size, aligned with the image"
        )
