"""One product's settings: what of the board is inspected, how large a defect must be, what is promised.

Zones and millimetres live in the frame of the golden reference, px of its picture; a posted board is looked
at through its registration. Shape letters: H, W pixels of the reference, h, w cells of the posted picture.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat, model_validator

from inspect_vit.alignment import LaidReference, lay_under
from inspect_vit.calibration import Calibration, Target
from inspect_vit.config import Frozen
from inspect_vit.coverage import any_cells
from inspect_vit.errors import ConfigError
from inspect_vit.registration import Golden, Registration
from inspect_vit.shapes import Polygon, Shape

Mask = NDArray[np.bool_]
MAX_POINTS, MAX_ZONES = 200, 200
SURE_FIT = 0.98
"""Share of matching structure from which no other reference of the recipe is tried."""
Coordinate = Annotated[FiniteFloat, Field(ge=-1e6, le=1e6)]


class Zone(Frozen):
    """A polygon on the golden reference."""

    name: str = Field("", max_length=200, description="what it is, as 'fiducial' or 'panel edge'")
    polygon: tuple[tuple[Coordinate, Coordinate], ...] = Field(
        min_length=3, max_length=MAX_POINTS, description="corners (x, y), px of the reference"
    )

    @model_validator(mode="after")
    def _encloses_an_area(self) -> Self:
        x, y = np.array(self.polygon, np.float64).T
        area = abs(float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))) / 2
        if area < 1.0:
            raise ValueError(f"the polygon encloses {area:.2g} px, wanted 1 or more")
        if _crosses_itself(np.stack((x, y), -1)):
            raise ValueError("the polygon crosses itself; draw several, or give its corners in order")
        return self


class Recipe(Frozen):
    """The settings of one product. Everything is optional: an empty recipe inspects the whole board."""

    note: str = Field("", max_length=2000)
    px_per_mm: float | None = Field(None, gt=0, le=1e5, description="scale of the reference")
    board_mm: tuple[Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0)]] | None = Field(
        None, description="width and height of the board"
    )
    ignore: tuple[Zone, ...] = Field((), max_length=MAX_ZONES, description="zones where nothing is a defect")
    regions: tuple[Zone, ...] = Field(
        (),
        max_length=MAX_ZONES,
        description="regions of interest; all else is ignored. Empty: all counts",
    )
    min_defect_mm: dict[str, Annotated[float, Field(gt=0)]] = Field(
        {},
        description="by class: smaller ones are no defects. Longest side of what differs from the reference",
    )
    targets: tuple[Target, ...] = Field(
        (), max_length=50, description="what `inspect-vit calibrate` is to keep"
    )
    calibration: Calibration | None = Field(
        None, description="thresholds and their guarantee, as `inspect-vit calibrate` wrote them"
    )
    camera: str | None = Field(None, max_length=200, description="camera and lighting the pictures come from")
    model_version: str | None = Field(
        None, max_length=64, description="version that inspects this product; default: the one in production"
    )

    @model_validator(mode="after")
    def _sizes_have_a_scale(self) -> Self:
        if self.min_defect_mm and self.px_per_mm is None:
            raise ValueError("min_defect_mm needs px_per_mm, the scale of the reference")
        return self

    def check_zones(self, sizes: Sequence[tuple[int, int]]) -> None:
        """Raises ConfigError for a zone that lies wholly outside each of the references.

        sizes: (width, height) of each reference, px; without any, zones live in the posted pictures.
        """
        for kind, zones in (("ignore", self.ignore), ("regions", self.regions)):
            for n, zone in enumerate(zones):
                x, y = zip(*zone.polygon, strict=True)
                inside = (
                    min(x) < width and max(x) > 0 and min(y) < height and max(y) > 0
                    for width, height in sizes
                )
                if sizes and not any(inside):
                    named = f" ({zone.name!r})" if zone.name else ""
                    them = " and ".join(dict.fromkeys(f"{width} x {height}" for width, height in sizes))
                    raise ConfigError(
                        f"{kind}.{n}{named} lies outside the reference, which is {them} px: it spans "
                        f"x {min(x):g} to {max(x):g} and y {min(y):g} to {max(y):g}; draw it on the reference"
                    )

    def check_classes(self, class_names: Sequence[str]) -> None:
        """Raises ConfigError for a class that the model does not know, or the calibration lacks."""
        named = {*self.min_defect_mm, *(target.label for target in self.targets if target.label is not None)}
        if unknown := sorted(named - set(class_names)):
            raise ConfigError(
                f"class {', '.join(unknown)} is not known to the model; it knows {', '.join(class_names)}"
            )
        if self.calibration is not None and set(self.calibration.thresholds) != set(class_names):
            raise ConfigError(
                f"the calibration has thresholds for {', '.join(self.calibration.thresholds)}, "
                f"the model knows {', '.join(class_names)}; calibrate with this model"
            )


@dataclass(frozen=True)
class GoldenReference:
    """One reference of a recipe, ready for use."""

    name: str
    picture: NDArray[np.uint8]
    """(H, W, 3) RGB."""
    golden: Golden

    @property
    def nbytes(self) -> int:
        return self.picture.nbytes + self.golden.nbytes


def best_fit(
    image: NDArray[np.uint8],
    references: Iterable[GoldenReference],
    *,
    recipe: Recipe | None = None,
) -> tuple[str, LaidReference]:
    """Lay under the board the reference that fits it best: name and reference.

    Sides, lightings and revisions of one product are told apart by how much of the board's structure matches.
    Where none can be aligned, the causes of all are given.

    Raises:
        ConfigError: no reference.
    """
    best: tuple[float, str, LaidReference] | None = None
    failed: list[tuple[str, str]] = []
    recipe = recipe or Recipe()
    for one in references:
        laid = lay_under(
            image,
            one.picture,
            golden=one.golden,
            px_per_mm=recipe.px_per_mm,
            ignored=ignored_pixels(recipe, one.golden.shape),
        )
        if laid.picture is None:
            failed += [(one.name, fault) for fault in laid.faults]
            continue
        # One that was taken as posted, or that shows a part of the board, gives way to one that fits.
        found = laid.registration
        fit = 0.0
        if found is not None and laid.alignment is not None and not laid.faults:
            fit = found.inliers * laid.alignment.covered
        if best is None or fit > best[0]:
            best = fit, one.name, laid
        if fit >= SURE_FIT:
            break
    if best is not None:
        return best[1:]
    if not failed:
        raise ConfigError("the recipe has no golden reference; give it one, or post one with the board")
    if len(failed) == 1:
        return failed[0][0], LaidReference(None, (failed[0][1],))
    return failed[0][0], LaidReference(None, tuple(f"reference {name}: {fault}" for name, fault in failed))


def ignored_pixels(recipe: Recipe, shape: tuple[int, int]) -> Mask | None:
    """(H, W) of the reference: True where the recipe looks for nothing; None where it looks everywhere."""
    if not recipe.ignore and not recipe.regions:
        return None
    ignored = ~_filled(recipe.regions, shape) if recipe.regions else np.zeros(shape, np.bool_)
    return ignored | _filled(recipe.ignore, shape)


def ignored_cells(ignored: Mask, found: Registration) -> Mask:
    """(h, w) of the posted picture: True where a cell lies wholly in what is ignored.

    ignored: (H, W) of the reference. Beyond the reference's edges counts what its edge pixels show.
    """
    brought, _ = found.bring(ignored.astype(np.uint8) * 255)
    return ~any_cells(brought < 128)


def counted_where(
    recipe: Recipe, shape: tuple[int, int], laid: LaidReference | None
) -> tuple[Mask | None, dict[str, float]]:
    """What does not count on a board: cells (h, w) of the posted picture, and by class the smallest size, px.

    Args:
        shape: (height, width) of the posted picture, which is its own frame without a reference.
        laid: the reference under it.
    """
    if laid is None:
        ignored = ignored_pixels(recipe, shape)
        return None if ignored is None else ~any_cells(~ignored), {}
    found = laid.registration
    if found is None:
        return None, {}
    ignored = ignored_pixels(recipe, found.reference_shape)
    return None if ignored is None else ignored_cells(ignored, found), min_sizes_px(recipe, found)


def min_sizes_px(recipe: Recipe, found: Registration | None) -> dict[str, float]:
    """By class: the smallest defect's longest side, px of the posted picture; empty without minimum sizes."""
    if recipe.px_per_mm is None or found is None:
        return {}
    return {label: size * recipe.px_per_mm / scale_of(found) for label, size in recipe.min_defect_mm.items()}


def scale_of(found: Registration) -> float:
    """Pixels of the reference per pixel of the posted picture, mean of both directions."""
    return math.sqrt(found.scale[0] * found.scale[1])


def _crosses_itself(corners: NDArray[np.float64]) -> bool:
    """Whether two sides of a closed polygon (n, 2) that are no neighbours meet."""
    start, end = corners, np.roll(corners, -1, 0)
    n = len(corners)

    def side(a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64]) -> NDArray[np.float64]:
        (ux, uy), (vx, vy) = (b - a).T, (c - a).T
        return np.asarray(np.sign(ux * vy - uy * vx))

    i, j = np.triu_indices(n, 2)
    apart = (j - i) % n != n - 1
    i, j = i[apart], j[apart]
    first = side(start[i], end[i], start[j]) * side(start[i], end[i], end[j])
    second = side(start[j], end[j], start[i]) * side(start[j], end[j], end[i])
    return bool(((first < 0) & (second < 0)).any() or len(np.unique(corners, axis=0)) < n)


@lru_cache(maxsize=4)
def _filled(zones: tuple[Zone, ...], shape: tuple[int, int]) -> Mask:
    """(H, W), kept for the next board of the recipe: do not change it."""
    filled = np.zeros(shape, np.bool_)
    for zone in zones:
        Shape((Polygon(np.array(zone.polygon, np.float64)),)).paint(filled, True)
    return filled
