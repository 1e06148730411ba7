"""What every reader does with an entry: check its picture and its box, and say what became of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inspect_vit.errors import ImageError
from inspect_vit.image_io import picture_size
from inspect_vit.results import BoxXyxy
from training.formats.dataset import Fault
from training.formats.values import is_unicode

SLACK_PX = 0.01
"""Boxes that reach over the edge by less, as rounded decimals make them, stay as they are."""


@dataclass
class Reading:
    """Collects the faults of one set. Its checks answer None for what is left out, after saying so."""

    faults: list[Fault] = field(default_factory=list)
    _sizes: dict[Path, tuple[int, int] | None] = field(default_factory=dict)

    def fault(self, kind: str, where: str, message: str, image: Path | None = None) -> None:
        self.faults.append(Fault(kind, where, message, image))

    def size_of(self, image: Path, where: str) -> tuple[int, int] | None:
        """(width, height) of a picture, upright, from its header."""
        if image not in self._sizes:
            self._sizes[image] = self._measure(image, where)
        return self._sizes[image]

    def _measure(self, image: Path, where: str) -> tuple[int, int] | None:
        if not is_unicode(str(image)):
            message = f"the name of picture {image} is not UTF-8; left out, rename it"
            self.fault("not-unicode", where, message)
            return None
        if not image.is_file():
            self.fault("missing-image", where, f"there is no picture {image}; left out", image)
            return None
        try:
            return picture_size(image)
        except ImageError as error:
            self.fault("corrupt-image", where, f"{error}; left out", image)
            return None

    def box(self, values: Sequence[float], size: tuple[int, int], where: str, image: Path) -> BoxXyxy | None:
        """A box_xyxy that lies in a picture of `size` (width, height): clipped to it where it reaches out."""
        left, top, right, bottom = values
        shown = ", ".join(f"{value:g}" for value in values)
        if not all(map(math.isfinite, values)):
            self.fault("not-finite", where, f"box ({shown}), wanted finite numbers; left out", image)
            return None
        if right <= left or bottom <= top:
            self.fault(
                "empty-box", where, f"box ({shown}) left, top, right, bottom has no area; left out", image
            )
            return None
        width, height = size
        clipped = (max(left, 0.0), max(top, 0.0), min(right, float(width)), min(bottom, float(height)))
        if clipped[2] <= clipped[0] or clipped[3] <= clipped[1]:
            message = f"box ({shown}) lies outside the picture of {width} x {height} px; left out"
            self.fault("box-outside", where, message, image)
            return None
        if max(abs(a - b) for a, b in zip(values, clipped, strict=True)) <= SLACK_PX:
            return left, top, right, bottom
        message = f"box ({shown}) reaches out of the picture of {width} x {height} px; clipped to it"
        self.fault("box-clipped", where, message, image)
        return clipped
