"""Can this overlay be believed, on this board: does the score fall when what it points at is replaced?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ImageError
from inspect_vit.inspector import Inspector
from inspect_vit.legends import Note
from inspect_vit.perturbation import BoolMap, FloatMap, Scene, free_cells, pose, rank_cells, take_cells
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
    """What replacing a map's most relevant area does to the defect's score."""

    score: float
    """Highest centre score of the class in the defect's box, 0..1."""
    score_without: float
    """The same after the most relevant cells were replaced."""
    score_without_random: float
    """The same after an equal area elsewhere was, mean over NUM_RANDOM places."""
    num_cells: int
    """Cells of 4 x 4 px replaced each time."""
    with_reference: bool = True
    """Whether the golden reference replaced them; else they were filled from the board around them."""

    @property
    def faithfulness(self) -> float:
        """Share of the score that the map's area holds beyond a random one: 1 all, 0 none, < 0 misleading."""
        return (self.score_without_random - self.score_without) / max(self.score, 1e-6)

    @property
    def is_reliable(self) -> bool:
        return self.faithfulness >= RELIABLE_FROM

    @property
    def words(self) -> str:
        """The finding as one sentence for an operator."""
        how = "replaced by the reference" if self.with_reference else "filled from around it"
        beside = "" if self.with_reference else "; without a reference this is a weaker test"
        return (
            f"{'reliable' if self.is_reliable else 'not reliable'}: with the area it points at {how} the "
            f"score goes from {self.score:.2f} to {self.score_without:.2f}, with as large an area "
            f"elsewhere to {self.score_without_random:.2f}{beside}"
        )

    @property
    def note(self) -> Note:
        """The same for a picture's legend."""
        verdict = "reliable" if self.is_reliable else "not reliable"
        filled = () if self.with_reference else ("filled from around: weaker test",)
        lines = (
            f"score {self.score:.2f}, without this {self.score_without:.2f}",
            f"without as much elsewhere {self.score_without_random:.2f}",
            *filled,
        )
        return Note(verdict, lines, is_warning=not self.is_reliable)


@dataclass(frozen=True)
class Trial:
    """One defect, posed once so that several maps of it can be tried."""

    scene: Scene
    allowed: BoolMap
    """(r, c): cells of the region that may be replaced."""
    score: float
    """Highest centre score of the class in the defect's box as the board is, 0..1."""


def set_up(
    inspector: Inspector,
    image: NDArray[np.uint8],
    *,
    reference: NDArray[np.uint8] | None,
    defect: Defect,
    others: Sequence[BoxXyxy] = (),
) -> Trial:
    """Make one defect ready for trying maps of it: one pass over the region around it, four more over it and
    the board where the region is a part of the board.

    Args:
        image, reference: as `Inspector.inspect` takes them.
        others: boxes of the board's other defects; cells under them alone are never replaced.

    Raises:
        ImageError: a reference of another size than the board.
    """
    scene = pose(inspector, image, reference=reference, defect=defect)
    score = scene.scores(np.zeros((1, *scene.region.shape), np.bool_))[0, scene.label]
    return Trial(scene, free_cells(scene.region, defect, others), float(score))


def try_map(trial: Trial, evidence: FloatMap, *, share: float = TOP_SHARE, seed: int = 0) -> Reliability:
    """Replace a map's most relevant area and see how far the score falls: 1 + NUM_RANDOM passes over the
    region.

    The golden reference shows in the area's place. Without one the area is filled from the board around it,
    which is a guess: a fault may be left, or made.

    Args:
        evidence: (h, w), relevance of each 4 px cell of the board.
        share: of the region around the defect.
        seed: of the random areas, and of the order of cells of equal relevance.

    Raises:
        ImageError: a map of another size than the board.
    """
    rng = np.random.default_rng(seed)
    scene, allowed = trial.scene, trial.allowed
    if evidence.shape != scene.cells:
        raise ImageError(
            f"the map has shape {evidence.shape}, wanted {scene.cells} (height, width): "
            f"one value per 4 px cell of the board"
        )
    region = scene.region
    count = min(max(round(share * allowed.size), 1), int(allowed.sum()))
    order = rank_cells(np.asarray(region.of(evidence), np.float32), allowed, rng)
    top = take_cells(order, [count], region.shape)[0]
    elsewhere = [_moved(top, allowed, rng) for _ in range(NUM_RANDOM)]
    scores = scene.scores(np.stack([top, *elsewhere]))[:, scene.label]
    return Reliability(
        score=trial.score,
        score_without=float(scores[0]),
        score_without_random=float(scores[1:].mean()),
        num_cells=count,
        with_reference=scene.has_reference,
    )


def faithfulness_of(
    evidence: FloatMap,
    *,
    inspector: Inspector,
    image: NDArray[np.uint8],
    reference: NDArray[np.uint8] | None,
    defect: Defect,
    others: Sequence[BoxXyxy] = (),
    share: float = TOP_SHARE,
    seed: int = 0,
) -> Reliability:
    """`set_up` and `try_map` for one map."""
    trial = set_up(inspector, image, reference=reference, defect=defect, others=others)
    return try_map(trial, evidence, share=share, seed=seed)


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
