"""How one posted board is looked at: its reference laid under it, and what the recipe says of it.

Pictures are (H, W, 3) uint8 RGB; masks are (h, w) cells of the posted picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inspect_vit.alignment import LaidReference, lay_under
from inspect_vit.recipe import Recipe, best_fit, counted_where, ignored_pixels, scale_of
from inspect_vit.results import BoxXyxy
from serving.goldens import Goldens
from serving.recipes import ReferenceFile, StoredRecipe

Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Framed:
    """What an inspection needs to know beside the picture."""

    laid: LaidReference | None = None
    reference: ReferenceFile | None = None
    """Of the recipe's references, the one that was used."""
    ignore: NDArray[np.bool_] | None = None
    min_size_px: Mapping[str, float] = field(default_factory=dict)
    px_per_mm: float | None = None

    def place_px(self, box: BoxXyxy) -> tuple[float, float]:
        """Middle (x, y) of a box in px of the reference; without one, of the posted picture."""
        left, top, right, bottom = box
        x, y = (left + right) / 2, (top + bottom) / 2
        found = None if self.laid is None else self.laid.registration
        if found is None:
            return x, y
        x, y = found.to_reference(np.array([[x - 0.5, y - 0.5]]))[0] + 0.5
        return float(x), float(y)

    def on_reference(self, box: BoxXyxy) -> tuple[float, float] | None:
        """Middle (x, y) of a box in px of the reference; None where none was laid under the board."""
        if self.laid is None or self.laid.registration is None:
            return None
        x, y = self.place_px(box)
        return round(x, 2), round(y, 2)

    def in_mm(self, box: BoxXyxy) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """Size (width, height) and middle (x, y) on the board of a box, px of the posted picture, in mm."""
        found = None if self.laid is None else self.laid.registration
        if self.px_per_mm is None or found is None:
            return None
        left, top, right, bottom = box
        scale = scale_of(found) / self.px_per_mm
        x, y = self.place_px(box)
        size = (round((right - left) * scale, 4), round((bottom - top) * scale, 4))
        return size, (round(x / self.px_per_mm, 4), round(y / self.px_per_mm, 4))


def frame(image: Pixels, posted: Pixels | None, stored: StoredRecipe | None, goldens: Goldens) -> Framed:
    """Lay the posted reference, or the best of the recipe's, under a board.

    Raises:
        ImageError: a reference that is no picture.
        NotFoundError: the file of a recipe's reference is gone.
    """
    recipe = Recipe() if stored is None else stored.recipe
    laid, used = None, None
    if posted is not None:
        ignored = ignored_pixels(recipe, (posted.shape[0], posted.shape[1]))
        laid = lay_under(image, posted, px_per_mm=recipe.px_per_mm, ignored=ignored)
    elif stored is not None and stored.references:
        files = {one.name: one for one in stored.references}
        name, laid = best_fit(
            image, (goldens.ready(one.name, one.sha256) for one in stored.references), recipe=recipe
        )
        used = files[name]
    ignore, min_size_px = counted_where(recipe, (image.shape[0], image.shape[1]), laid)
    return Framed(laid, used, ignore, min_size_px, None if laid is None else recipe.px_per_mm)
