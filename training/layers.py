"""One side of a bare board as pixel maps: the meeting point of artwork and renderer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ConfigError

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Layers:
    """One side of a board, all maps (H, W), as the camera sees that side (the back is mirrored)."""

    copper: Mask
    """Copper of the finished board: drilled out where there is a hole, none outside the outline."""
    nets: NDArray[np.int32]
    """0 where there is no copper, else the number of the net."""
    holes: Mask
    """Drilled or milled through, inside the outline."""
    mask_open: Mask
    """Openings of the solder mask: True where the surface is bare."""
    silk: Mask
    board: Mask
    """Inside the outline; holes count as inside."""
    px_per_mm: float
    name: str

    def __post_init__(self) -> None:
        shape = self.copper.shape
        for name in ("nets", "holes", "mask_open", "silk", "board"):
            found = getattr(self, name).shape
            if found != shape:
                raise ConfigError(f"layer {name!r} is {found}, copper is {shape}; give maps of one size")

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) in px."""
        height, width = self.copper.shape
        return height, width

    def crop(self, window: tuple[int, int, int, int]) -> Layers:
        """The part inside `window` = (x, y, width, height) in px, which may not reach outside."""
        x, y, w, h = window
        height, width = self.size
        if x < 0 or y < 0 or w < 1 or h < 1 or x + w > width or y + h > height:
            raise ConfigError(
                f"window {window} reaches outside layers of {width} x {height} px; move it inside"
            )
        part = (slice(y, y + h), slice(x, x + w))
        return replace(
            self,
            copper=self.copper[part],
            nets=self.nets[part],
            holes=self.holes[part],
            mask_open=self.mask_open[part],
            silk=self.silk[part],
            board=self.board[part],
        )
