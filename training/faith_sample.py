"""Which defects the evidence is tested on, and where they truly are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.alignment import lay_under
from inspect_vit.errors import ConfigError
from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from inspect_vit.matching import Truths, as_detections, match_images
from inspect_vit.perturbation import CELL_PX, BoolMap
from inspect_vit.results import BoxXyxy, Defect, Sample
from training.progress import track

DIFFERS_FROM = 64
"""Grey levels by which a pixel must differ from the reference to be part of a defect labelled by a box."""
DILATE_PX = 4
"""The true defect is widened by this, one cell: a map with 4 px cells cannot point finer."""


@dataclass(frozen=True)
class Found:
    """A labelled defect that the inspector called with the right class: a true positive."""

    sample: Sample
    number: int
    """Which picture of the set."""
    truth: int
    """Which label of the picture."""
    defect: Defect

    @property
    def others(self) -> list[BoxXyxy]:
        """Boxes of the picture's other labelled defects."""
        boxes = np.delete(self.sample.boxes, self.truth, axis=0).tolist()
        return [(left, top, right, bottom) for left, top, right, bottom in boxes]


def pick_found(inspector: Inspector, samples: Sequence[Sample], *, count: int, seed: int) -> list[Found]:
    """Draw true positives, called with reference at the deployed thresholds; fewer than `count` if there are.

    Pictures come in random order, one defect of each before a second of any, and each time the class that
    has the fewest so far. Pictures without a reference, and verdicts ERROR, give none.

    Raises:
        ConfigError: none was found.
    """
    rng = np.random.default_rng(seed)
    order = [int(number) for number in rng.permutation(len(samples))]
    waiting: dict[int, list[Found]] = {}
    chosen: list[Found] = []
    per_class: Counter[str] = Counter()

    def take(found: list[Found]) -> None:
        ties = rng.permutation(len(found))
        best = min(ties, key=lambda i: per_class[found[i].defect.label])
        chosen.append(found.pop(int(best)))
        per_class[chosen[-1].defect.label] += 1

    for number in track(order, total=len(order), label="looking for defects that are found"):
        if len(chosen) == count:
            break
        if samples[number].reference is not None:
            waiting[number] = true_positives(inspector, samples[number], number)
            if waiting[number]:
                take(waiting[number])
    while len(chosen) < count and any(waiting.values()):
        for found in waiting.values():
            if found and len(chosen) < count:
                take(found)
    if not chosen:
        raise ConfigError(
            f"none of the defects on {len(samples)} pictures was found with a reference: the evidence is "
            "tested on defects that were found; take a set with references, or another checkpoint"
        )
    return chosen


def true_positives(inspector: Inspector, sample: Sample, number: int) -> list[Found]:
    """The labelled defects of one picture that are called with the right class."""
    image, intake = read_image(sample.image)
    result = inspector.inspect(image, reference=lay_under(image, _read_reference(sample)), intake=intake)
    names = {name: label for label, name in enumerate(result.class_names)}
    counted = [
        truth
        for truth, (label, ignored) in enumerate(zip(sample.labels, sample.is_ignored, strict=True))
        if label in names and not ignored
    ]
    truths = Truths(sample.boxes[counted], np.array([names[sample.labels[i]] for i in counted], np.int64))
    detections = as_detections(result)
    matches = match_images([detections], [truths])
    called = np.argsort(-detections.scores, kind="stable")
    return [
        Found(sample, number, counted[truth], result.defects[int(call)])
        for call, truth, correct in zip(called, matches.truths.tolist(), matches.correct, strict=True)
        if correct
    ]


def reference_under(image: NDArray[np.uint8], sample: Sample) -> NDArray[np.uint8]:
    """The golden reference of a sample that has one, as it lies under the board."""
    laid = lay_under(image, _read_reference(sample)).picture
    assert laid is not None, "an inspection with verdict ERROR gives no sample"
    return laid


def _read_reference(sample: Sample) -> NDArray[np.uint8]:
    assert sample.reference is not None
    return read_image(sample.reference)[0]


def true_cells(found: Found, image: NDArray[np.uint8], reference: NDArray[np.uint8]) -> BoolMap:
    """Cells that the widened true defect touches: (h, w); none where nothing differs.

    The true defect is the label's outline where it has one, else what differs from the reference inside the
    label's box, without the single-pixel jitter of edges.

    image, reference: (H, W, 3) uint8 RGB, in register.
    """
    height, width = image.shape[:2]
    outline = None if found.sample.masks is None else found.sample.masks[found.truth]
    if outline is not None:
        true = outline.mask(height, width).astype(np.uint8)
    else:
        left, top, right, bottom = found.sample.boxes[found.truth]
        inside = slice(max(int(top), 0), int(np.ceil(bottom))), slice(max(int(left), 0), int(np.ceil(right)))
        grey = [cv2.cvtColor(picture[inside], cv2.COLOR_RGB2GRAY) for picture in (image, reference)]
        differs = (cv2.absdiff(*grey) >= DIFFERS_FROM).astype(np.uint8)
        square = np.ones((2, 2), np.uint8)  # of even side: to dilate about the other corner undoes the shift
        opened = cv2.dilate(cv2.erode(differs, square, anchor=(0, 0)), square, anchor=(1, 1))
        true = np.zeros((height, width), np.uint8)
        true[inside] = opened if opened.any() else differs
    wide = cv2.dilate(true, np.ones((2 * DILATE_PX + 1, 2 * DILATE_PX + 1), np.uint8))
    padded = np.pad(wide, ((0, -height % CELL_PX), (0, -width % CELL_PX)))
    return np.asarray(padded.reshape(padded.shape[0] // CELL_PX, CELL_PX, -1, CELL_PX).any((1, 3)), np.bool_)
