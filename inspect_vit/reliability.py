"""Can this overlay be believed, on this board: does the score fall when what it points at is replaced?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ImageError
from inspect_vit.inspector import Inspector
from inspect_vit.perturbation import BoolMap, FloatMap, free_cells, pose, rank_cells, take_cells
from inspect_vit.results import BoxXyxy, Defect

TOP_SHARE = 0.01
"""The most relevant part of the region around a defect that is replaced: 32 x 32 px of 320 x 320."""
NUM_RANDOM = 4
"""Areas of the same shape elsewhere that it is measured against."""
RELIABLE_FROM = 0.5
"""A map is called reliable if its area takes at least this share of the score more than a random one."""
_TRIES = 50


@dataclass(frozen=True)
class Reliability:
    """What replacing a map's most relevant area by the golden reference does to the defect's score."""

    score: float
    """Highest centre score of the class in the defect's box, 0..1."""
    score_without: float
    """The same after the most relevant cells were replaced."""
    score_without_random: float
    """The same after an equal area elsewhere was, mean over NUM_RANDOM places."""
    num_cells: int
    """Cells of 4 x 4 px replaced each time."""

    @property
    def faithfulness(self) -> float:
        """Share of the score that the map's area holds beyond a random one: 1 all, 0 none, < 0 misleading."""
        return (self.score_without_random - self.score_without) / max(self.score, 1e-6)

    @property
    def is_reliable(self) -> bool:
        return self.faithfulness >= RELIABLE_FROM


def faithfulness_of(
    evidence: FloatMap,
    *,
    inspector: Inspector,
    image: NDArray[np.uint8],
    reference: NDArray[np.uint8],
    defect: Defect,
    others: Sequence[BoxXyxy] = (),
    share: float = TOP_SHARE,
    seed: int = 0,
) -> Reliability:
    """Replace a map's most relevant area by the golden reference and see how far the defect's score falls.

    Costs 2 + NUM_RANDOM passes over the region around the defect and up to two over the whole board. Needs a
    reference: without one there is nothing known to be good to put in the area's place.

    Args:
        evidence: (h, w), relevance of each 4 px cell of the board.
        image, reference: as `Inspector.inspect` takes them.
        others: boxes of the board's other defects; cells under them alone are never replaced.
        share: of the region around the defect.
        seed: of the random areas, and of the order of cells of equal relevance.

    Raises:
        ImageError: a map or a reference of another size than the board.
    """
    rng = np.random.default_rng(seed)
    scene = pose(inspector, image, reference=reference, defect=defect)
    if evidence.shape != scene.cells:
        raise ImageError(
            f"the map has shape {evidence.shape}, wanted {scene.cells} (height, width): "
            f"one value per 4 px cell of the board"
        )
    region = scene.region
    allowed = free_cells(region, defect, others)
    count = min(max(round(share * allowed.size), 1), int(allowed.sum()))
    order = rank_cells(np.asarray(region.of(evidence), np.float32), allowed, rng)
    top = take_cells(order, [count], region.shape)[0]
    elsewhere = [_moved(top, allowed, rng) for _ in range(NUM_RANDOM)]
    scores = scene.scores(np.stack([np.zeros_like(top), top, *elsewhere]))[:, scene.label]
    return Reliability(
        score=float(scores[0]),
        score_without=float(scores[1]),
        score_without_random=float(scores[2:].mean()),
        num_cells=count,
    )


def _moved(area: BoolMap, allowed: BoolMap, rng: np.random.Generator) -> BoolMap:
    """The same area at a random place of the region, round its edges, off itself and on allowed cells.

    The shape is kept because scattered cells would disturb a network otherwise than one compact patch does;
    an area so spread that it fits nowhere else gives as many scattered cells.
    """
    for _ in range(_TRIES):
        steps = int(rng.integers(area.shape[0])), int(rng.integers(area.shape[1]))
        moved: BoolMap = np.roll(area, steps, (0, 1))
        if not (moved & (area | ~allowed)).any():
            return moved
    free = rng.permutation(np.flatnonzero(allowed & ~area))
    return np.asarray(take_cells(free, [int(area.sum())], (area.shape[0], area.shape[1]))[0], np.bool_)
