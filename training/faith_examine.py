"""One defect, every map: the figures that the report on the evidence is made of."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from inspect_vit.alignment import as_posted
from inspect_vit.errors import ConfigError
from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from inspect_vit.matching import IOU_ABOVE, box_iou
from inspect_vit.perturbation import (
    BoolMap,
    FloatMap,
    difference_map,
    free_cells,
    pose,
    rank_cells,
    take_cells,
)
from inspect_vit.results import Defect
from training.faith_measures import FLIP_AT, cell_counts, energy_inside, rank_correlation
from training.faith_sample import Found, reference_under, true_cells
from training.poses import shift_picture

SHIFTS = (1, 2)
"""px by which the reference is moved, each time the way that the picture's number says."""
DIFFERENCE, RANDOM = "|board - reference|", "random"
"""The two maps that need no model."""
LISTED_FROM = 0.05
"""With a moved reference the defect is looked for among calls from this score on."""


class Explain(Protocol):
    """Maps of the evidence for one defect: {name: (h, w), >= 0}, as `attribution.explanation_maps`."""

    def __call__(
        self,
        inspector: Inspector,
        image: NDArray[np.uint8],
        /,
        *,
        reference: NDArray[np.uint8] | None,
        defect: Defect,
    ) -> dict[str, FloatMap]: ...


def examine(
    inspector: Inspector,
    found: Found,
    *,
    explain: Explain,
    shifts: Sequence[int] = SHIFTS,
    randomised: dict[str, Inspector] | None = None,
    seed: tuple[int, ...] = (0,),
) -> dict[str, Any]:
    """Everything that is measured on one defect.

    Replaced cells always show the good board as it lies under the board, also where the reference that the
    model and the maps get is moved: what is asked is whether the right cells are named, not what the moved
    picture does to the score.

    Args:
        randomised: inspectors whose maps are compared with the first one's, by name.

    Returns:
        {"label", "image", "group", "alignments": {"0", "1", ...}: see `_examine_maps`, "randomised": {name:
        {map: rank correlation}}}. Figures that do not exist are None.
    """
    image = read_image(found.sample.image)[0]
    reference = reference_under(image, found.sample)
    true = true_cells(found, image, reference)
    alignments, correlations = {}, {}
    for shift in (0, *shifts):
        rng = np.random.default_rng((*seed, shift))
        seen = shift_picture(reference, shift, found.number) if shift else reference
        defect = _called_again(inspector, image, seen, found.defect) if shift else found.defect
        maps = _candidates(explain, inspector, image, seen, defect, rng)
        alignments[str(shift)] = _examine_maps(
            inspector, found, defect, maps, true, pictures=(image, seen, reference), rng=rng, both=not shift
        )
        if not shift:
            for name, other in (randomised or {}).items():
                redrawn = _candidates(explain, other, image, seen, defect, rng)
                correlations[name] = _correlations(inspector, found, maps, redrawn, image, reference)
    return {
        "label": found.defect.label,
        "image": found.sample.image.name,
        "group": found.sample.group,
        "alignments": alignments,
        "randomised": correlations,
    }


def randomise(inspector: Inspector, part: str, *, seed: int) -> Inspector:
    """The same inspector with the weights of its head, or of the whole model, shuffled within each tensor.

    Shuffling keeps each tensor's values, so that only what was learned is lost (Adebayo et al. 2018).
    part: "head" or "model".
    """
    other = copy.copy(inspector)
    other.model = copy.deepcopy(inspector.model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in (other.model.head if part == "head" else other.model).parameters():
            order = torch.randperm(weights.numel(), generator=generator).to(weights.device)
            weights.copy_(weights.flatten()[order].view(weights.shape))
    return other


def _examine_maps(
    inspector: Inspector,
    found: Found,
    defect: Defect,
    maps: dict[str, FloatMap],
    true: BoolMap,
    *,
    pictures: tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]],
    rng: np.random.Generator,
    both: bool,
) -> dict[str, Any]:
    """The figures of one alignment.

    Args:
        true: (h, w) cells of the true defect.
        pictures: board, the reference that model and maps get, the good board that replaces.
        both: insertion too, not deletion alone.

    Returns:
        {"cropped", "area": share of the region's free cells that is true, "maps": {name: {
        "deletion", "insertion": score at each of SHARES,
        "pointing": whether the highest cell is true, "pointing_alone": the same where other defects count as
        misses, "energy",
        "flip": whether the score falls below its threshold with 1 % replaced, "flip_any": whether the score
        of every class does}}}; no pointing and energy where the true defect has no cell in the region.
    """
    image, seen, good = pictures
    scene = pose(inspector, image, reference=seen, defect=defect, infill=good)
    region, shape = scene.region, scene.region.shape
    allowed = free_cells(region, defect, found.others)
    everywhere = np.ones(shape, np.bool_)
    true_here = region.of(true)
    counts = cell_counts(allowed.size, int(allowed.sum()))
    orders = {name: rank_cells(region.of(values), allowed, rng) for name, values in maps.items()}
    inner = {name: take_cells(order, counts[1:-1], shape) for name, order in orders.items()}
    stacks = [np.zeros((1, *shape), np.bool_), allowed[None], *inner.values()]
    if both:
        stacks += [allowed & ~taken for taken in inner.values()]
    scores = scene.scores(np.concatenate(stacks))
    board, replaced = scores[0], scores[1]
    curves = scores[2:].reshape(-1, len(maps), len(counts) - 2, scores.shape[1])
    limits = _limits(inspector)
    true_share = 0.0 if not true_here.any() else float(true_here[allowed].mean())
    figures: dict[str, Any] = {}
    for place, (name, values) in enumerate(maps.items()):
        deletion = np.stack([board, *curves[0, place], replaced])
        seen_here = region.of(values)
        was_called = board[scene.label] >= limits[scene.label]
        without = deletion[FLIP_AT]
        figures[name] = {
            "deletion": _rounded(deletion[:, scene.label]),
            "flip": bool(without[scene.label] < limits[scene.label]) if was_called else None,
            "flip_any": bool((without < limits).all()) if was_called else None,
        }
        if both:
            figures[name]["insertion"] = _rounded(
                np.stack([replaced, *curves[1, place], board])[:, scene.label]
            )
        if true_here.any():
            first = rank_cells(seen_here, everywhere, rng)[0]
            energy = energy_inside(seen_here[allowed], true_here[allowed])
            figures[name] |= {
                "pointing": bool(true_here.flat[orders[name][0]]),
                "pointing_alone": bool(true_here.flat[first]),
                "energy": None if np.isnan(energy) else round(energy, 5),
            }
    return {"cropped": scene.is_cropped, "area": round(true_share, 5), "maps": figures}


def _candidates(
    explain: Explain,
    inspector: Inspector,
    image: NDArray[np.uint8],
    reference: NDArray[np.uint8],
    defect: Defect,
    rng: np.random.Generator,
) -> dict[str, FloatMap]:
    """Every map that is compared; each (h, w), >= 0."""
    difference = difference_map(image, reference)
    maps = dict(explain(inspector, image, reference=reference, defect=defect))
    for name, values in maps.items():
        if values.shape != difference.shape or not np.isfinite(values).all() or values.min() < 0:
            raise ConfigError(
                f"evidence map {name!r} of shape {values.shape}: wanted {difference.shape}, finite, >= 0"
            )
    return maps | {DIFFERENCE: difference, RANDOM: rng.random(difference.shape, np.float32)}


def _called_again(
    inspector: Inspector, image: NDArray[np.uint8], reference: NDArray[np.uint8], defect: Defect
) -> Defect:
    """The same defect as called with another reference; as it was if it is not called there at all."""
    laid = as_posted(image, reference)
    result = inspector.inspect(image, reference=laid, min_score=LISTED_FROM)
    same = [call for call in result.defects if call.label == defect.label]
    if not same:
        return defect
    overlaps = box_iou(np.array([defect.box_xyxy]), np.array([call.box_xyxy for call in same]))[0]
    return same[int(overlaps.argmax())] if overlaps.max() > IOU_ABOVE else defect


def _correlations(
    inspector: Inspector,
    found: Found,
    maps: dict[str, FloatMap],
    others: dict[str, FloatMap],
    image: NDArray[np.uint8],
    reference: NDArray[np.uint8],
) -> dict[str, float | None]:
    region = pose(inspector, image, reference=reference, defect=found.defect, whole=True).region
    allowed = free_cells(region, found.defect, found.others)
    values = {
        name: rank_correlation(region.of(maps[name])[allowed], region.of(others[name])[allowed])
        for name in maps
    }
    return {name: None if np.isnan(value) else round(value, 4) for name, value in values.items()}


def _limits(inspector: Inspector) -> NDArray[np.float64]:
    """(K,): the deployed threshold of each class, with reference."""
    thresholds = inspector.metadata.thresholds["with_reference"]
    return np.array([thresholds[name] for name in inspector.metadata.model.class_names])


def _rounded(scores: NDArray[np.float64]) -> list[float]:
    return [round(float(score), 5) for score in scores]
