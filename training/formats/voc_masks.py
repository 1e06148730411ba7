"""Pascal VOC's SegmentationObject: one PNG per picture, pixel value k for its k-th object."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from inspect_vit.errors import ConfigError
from inspect_vit.shapes import Shape

BORDER = 255
"""Value of pixels between an object and the background that belong to neither."""
MAX_OBJECTS = BORDER - 1


def read_numbered(path: Path, size: tuple[int, int]) -> dict[int, Shape]:
    """Object number from 1 -> its pixels.

    Args:
        size: (width, height) of the picture.

    Raises:
        ConfigError: no picture of one channel of numbers, or one of another size.
    """
    try:
        with Image.open(path, formats=("PNG",)) as image:
            if image.size != size:
                raise ConfigError(f"{path} has {image.size} px (width, height), its picture has {size}")
            if image.mode not in ("P", "L"):
                raise ConfigError(f"{path} has pixels of type {image.mode}; wanted palette or grey, 8 bit")
            numbers = np.array(image)
    except ConfigError:
        raise
    except Exception as error:  # Pillow raises whatever a damaged file provokes
        raise ConfigError(f"{path} cannot be read: {error}") from error
    numbers[numbers == BORDER] = 0
    found: dict[int, Shape] = {}
    for number, window in enumerate(ndimage.find_objects(numbers), 1):
        if window is not None:
            rows, columns = window
            pixels = numbers[window] == number
            found[number] = Shape.from_mask(pixels, at=(columns.start, rows.start), size=numbers.shape)
    return found


def draw_numbered(
    shapes: Sequence[Shape | None], size: tuple[int, int]
) -> tuple[NDArray[np.uint8], list[int], int]:
    """Paint the shapes in their order, later ones over earlier ones.

    Returns:
        The numbers (height, width), indices of shapes that have no pixel in it, and how many pixels were
        covered by a later shape.
    """
    numbers = np.zeros(size[::-1], np.uint8)
    covered = 0
    for index, shape in enumerate(shapes[:MAX_OBJECTS]):
        if shape is not None:
            left, top, pixels = shape.window(size[1], size[0])
            window = numbers[top : top + pixels.shape[0], left : left + pixels.shape[1]]
            covered += int(np.count_nonzero(window[pixels]))
            window[pixels] = index + 1
    drawn = set(np.unique(numbers).tolist())
    return numbers, [i for i, shape in enumerate(shapes) if shape is not None and i + 1 not in drawn], covered


def write_numbered(path: Path, numbers: NDArray[np.uint8]) -> None:
    """An 8-bit PNG with VOC's palette, so that neighbours differ to the eye."""
    image = Image.fromarray(numbers)
    image.putpalette(_palette().ravel().tolist())
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)


def _palette() -> NDArray[np.uint8]:
    """(256, 3) RGB: bits 0, 3, 6 of the number make red from its high bit down, 1, 4, 7 green, 2, 5 blue."""
    numbers = np.arange(256)
    channels = [
        sum((numbers >> (3 * step + channel) & 1) << (7 - step) for step in range(3)) for channel in range(3)
    ]
    return np.stack(channels, 1).astype(np.uint8)
