"""What a recipe says of the acceptance boards: which calls and labelled defects on them count.

A board is looked at as the service looks at it: against the recipe's golden reference, without what lies in
its ignore zones, and without what is smaller than its smallest defects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inspect_vit.alignment import LaidReference, lay_under
from inspect_vit.differences import longest_px
from inspect_vit.documents import load_document
from inspect_vit.findings import lies_in
from inspect_vit.recipe import GoldenReference, Mask, Recipe, best_fit, counted_where, ignored_pixels
from inspect_vit.registration import prepare
from training.poses import Pixels, read_picture

KEY_CHARS = 12


@dataclass(frozen=True)
class Product:
    """A recipe's settings, and its references ready for use."""

    recipe: Recipe
    references: tuple[GoldenReference, ...]
    key: str
    """Names everything on which it depends what counts, in hexadecimal."""


@dataclass(frozen=True)
class Placed:
    """One board as it is inspected."""

    laid: LaidReference | None
    ignore: Mask | None = None
    """(h, w) cells."""
    min_size_px: Mapping[str, float] = field(default_factory=dict)


def read_product(settings: Path, references: Sequence[Path]) -> Product:
    """A recipe's settings as JSON, and the pictures of its golden references.

    Raises:
        ConfigError: no such document.
        ImageError: no picture.
        RegistrationError: a reference that shows too little to register by.
    """
    recipe = load_document(settings, Recipe, what="recipe", maker="GET /v1/recipes/NAME, under recipe,")
    counts = recipe.model_dump_json(include={"px_per_mm", "ignore", "regions", "min_defect_mm"})
    digest = hashlib.sha256(counts.encode())
    ready = []
    for path in references:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
        picture, _ = read_picture(path)
        ready.append(GoldenReference(path.stem, picture, prepare(picture)))
    return Product(recipe, tuple(ready), digest.hexdigest()[:KEY_CHARS])


def place(product: Product, image: Pixels, own: Pixels | None) -> Placed:
    """Lay the reference under a board and say what of it counts.

    Args:
        own: the reference that the acceptance set has for the board; taken where the recipe has none, or
            where the board fits none of them: it shows another product then, and all of it counts.
    """
    recipe = product.recipe
    laid: LaidReference | None = None
    if product.references:
        _, laid = best_fit(image, product.references, recipe=recipe)
        if laid.picture is None:
            return Placed(laid if own is None else lay_under(image, own))
    elif own is not None:
        ignored = ignored_pixels(recipe, (own.shape[0], own.shape[1]))
        laid = lay_under(image, own, px_per_mm=recipe.px_per_mm, ignored=ignored)
    ignore, min_size_px = counted_where(recipe, (image.shape[0], image.shape[1]), laid)
    return Placed(laid, ignore, min_size_px)


def does_not_count(
    placed: Placed, image: Pixels, boxes: NDArray[np.float32], labels: Sequence[str]
) -> NDArray[np.bool_]:
    """(n,): defects that the recipe lets pass, by the rules that the inspector applies to calls.

    boxes: (n, 4) box_xyxy, px.
    """
    out = np.zeros(len(boxes), np.bool_)
    if placed.ignore is not None and len(boxes):
        height, width = image.shape[:2]
        out |= lies_in(np.clip(boxes, 0, np.array([width, height, width, height], np.float32)), placed.ignore)
    if placed.min_size_px:
        golden = None if placed.laid is None else placed.laid.picture
        sizes = [longest_px(image, golden, tuple(box)) for box in boxes.tolist()]
        out |= np.array(sizes) < [placed.min_size_px.get(label, 0.0) for label in labels]
    return out
