"""From what one picture showed to findings: the limits are here."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from inspect_vit.results import BoxXyxy, Sample
from training.checks.differences import MAX_BLOBS, PairFacts
from training.checks.findings import Finding
from training.checks.labels import check_labels
from training.checks.orientation import contradiction
from training.checks.pictures import PictureFacts

MAX_SHIFT_PX = 2.0
"""A reference further aside is reported; differences are looked for with a tolerance of as much."""
MAX_RESIDUAL_PX = 3.0
"""A place further than this from the shift of the whole: the reference is warped."""
MIN_AGREEMENT = 0.5
"""Correlation of board and reference, aligned; real pairs have 0.8 and more."""
MIN_PAINTED = 2
"""One box in 250 of DeepPCB seems framed by chance; two on one picture, and most of its boxes, are not."""
MOST_BOXES = 20
"""Places listed of one finding."""
STORED_SIZE_FAULTS = frozenset({"size-mismatch", "box-outside", "box-clipped"})
"""What readers say of labels that were made for the stored pixels of a picture that EXIF turns."""


def judge_picture(sample: Sample, facts: PictureFacts, told: Collection[str]) -> Iterator[Finding]:
    """Everything to be said of one picture and its labels.

    Args:
        told: kinds of the faults that the reader found on it.
    """
    image, where = sample.image, sample.origin
    if facts.error:
        yield Finding("corrupt-image", facts.error, image, where)
        return
    if facts.faults:
        yield Finding("unfit-image", "; ".join(facts.faults), image, where)
    elif facts.warnings:
        yield Finding("poor-image", "; ".join(facts.warnings), image, where)
    if not sample.labels:
        compared = facts.pair is not None and len(facts.pair.uncovered) == 0
        known = "; nothing differs from its reference" if compared else ""
        yield Finding("empty-labels", f"no box is labelled{known}", image, where)
    if len(facts.painted) >= MIN_PAINTED and 2 * len(facts.painted) > len(sample.boxes):
        message = f"frames run along {len(facts.painted)} of {len(sample.boxes)} boxes"
        yield Finding("painted-labels", message, image, where, _as_tuples(sample.boxes))
    yield from _judge_rotation(sample, facts, told)
    yield from check_labels(sample, (facts.width, facts.height))
    if sample.reference is not None:
        yield from _judge_reference(sample, facts)


def _judge_rotation(sample: Sample, facts: PictureFacts, told: Collection[str]) -> Iterator[Finding]:
    if facts.rotation is None:
        return
    told_by_reader = facts.orientation >= 5 and bool(STORED_SIZE_FAULTS & set(told))
    why = contradiction(facts.rotation, len(sample.boxes), told_by_reader=told_by_reader)
    kind = "labels-rotated" if why else "turned-by-exif"
    message = f"EXIF orientation {facts.orientation}: {why or 'its labels fit as they are'}"
    yield Finding(kind, message, sample.image, sample.origin, _as_tuples(sample.boxes))


def _judge_reference(sample: Sample, facts: PictureFacts) -> Iterator[Finding]:
    assert sample.reference is not None
    image, where, others = sample.image, sample.origin, (sample.reference,)
    if facts.reference_error:
        message = f"{sample.reference}: {facts.reference_error}"
        yield Finding("corrupt-reference", message, image, where, others=others)
        return
    if facts.reference_faults:
        message = f"reference {sample.reference.name}: {'; '.join(facts.reference_faults)}"
        yield Finding("unfit-image", message, image, where, others=others)
    if facts.pair is None:
        width, height = facts.reference_size
        message = f"the reference has {width} x {height} px, the board {facts.width} x {facts.height}"
        yield Finding("reference-size", message, image, where, others=others)
        return
    if not facts.faults:
        yield from _judge_pair(sample, facts.pair, blank_reference=bool(facts.reference_faults))


def _judge_pair(sample: Sample, pair: PairFacts, *, blank_reference: bool) -> Iterator[Finding]:
    assert sample.reference is not None
    image, where, others = sample.image, sample.origin, (sample.reference,)
    if pair.agreement < MIN_AGREEMENT and not blank_reference:
        message = f"correlation {pair.agreement:.2f} after the best shift, wanted {MIN_AGREEMENT} or more"
        yield Finding("reference-mismatch", message, image, where, others=others)
        return
    distance = float(np.hypot(*pair.shift_px))
    if distance > MAX_SHIFT_PX:
        dx, dy = pair.shift_px
        message = (
            f"the reference has to move by ({dx:+.1f}, {dy:+.1f}) px (right, down): {distance:.1f} px, "
            f"limit {MAX_SHIFT_PX:g}"
        )
        yield Finding("reference-shifted", message, image, where, others=others)
    if pair.residual_px > MAX_RESIDUAL_PX:
        message = (
            f"places lie up to {pair.residual_px:.1f} px from the shift of the whole, "
            f"limit {MAX_RESIDUAL_PX:g}"
        )
        yield Finding("reference-warped", message, image, where, others=others)
    if pair.num_differences > MAX_BLOBS:
        message = (
            f"{pair.num_differences} differences, more than {MAX_BLOBS}; they were not judged one by one"
        )
        yield Finding("many-differences", message, image, where, others=others)
    if len(pair.uncovered):
        count = len(pair.uncovered)
        sides = (pair.uncovered[:, 2:] - pair.uncovered[:, :2]).max(1)
        message = (
            f"{count} {'place differs' if count == 1 else 'places differ'} from the reference outside every "
            f"box, the largest {sides[0]:.0f} px long"
        )
        boxes = _as_tuples(pair.uncovered)
        yield Finding("unlabelled-difference", message, image, where, boxes, others)
    if pair.unchanged:
        named = ", ".join(f"{number + 1} ({sample.labels[number]})" for number in pair.unchanged[:5])
        more = f" and {len(pair.unchanged) - 5} more" if len(pair.unchanged) > 5 else ""
        message = f"of {len(sample.boxes)} boxes, nothing differs in {named}{more}"
        boxes = _as_tuples(sample.boxes[list(pair.unchanged)])
        yield Finding("unchanged-box", message, image, where, boxes, others)


def _as_tuples(boxes: NDArray[np.float32]) -> tuple[BoxXyxy, ...]:
    return tuple((box[0], box[1], box[2], box[3]) for box in boxes[:MOST_BOXES].tolist())
