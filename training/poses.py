"""What an evaluation shows to the inspector: boards as they are, good boards, moved references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from inspect_vit.alignment import LaidReference
from inspect_vit.alignment import as_posted as taken_as_aligned
from inspect_vit.errors import ImageError
from inspect_vit.image_io import read_image
from inspect_vit.results import IntakeReport, Sample
from training.measured_set import MeasuredSet
from training.protocols import CLEAN_RUN, SHIFT_RUN, TURN_RUN
from training.reimage import reimage

Pixels = NDArray[np.uint8]
Posed = tuple[Pixels, Pixels | LaidReference | None, IntakeReport | None]
"""Picture, reference, and the intake of the picture where it came from a file."""
Pose = Callable[[int, Sample], Posed]
"""Number of a sample in its pass, and the sample -> what is shown."""


def passes(
    measured: MeasuredSet,
    *,
    shifts: Sequence[int],
    turns: Sequence[float],
    seed: int,
    alone: bool,
    as_posted: bool,
) -> dict[str, tuple[Sequence[Sample], Pose]]:
    """Each pass: over which samples, and what is shown to the inspector for number i of them.

    Args:
        shifts, turns: passes with the reference moved by px, turned by degrees.
        alone: boards are inspected without their references too.
        as_posted: references are taken as aligned.
    """
    samples = measured.samples

    def golden(image: Pixels, reference: Pixels) -> Pixels | LaidReference:
        return taken_as_aligned(image, reference) if as_posted else reference

    def with_reference(number: int, sample: Sample) -> Posed:
        image, intake = read_picture(sample.image)
        return image, golden(image, read_reference(sample)), intake

    def without_reference(number: int, sample: Sample) -> Posed:
        image, intake = read_picture(sample.image)
        return image, None, intake

    def template(number: int, sample: Sample) -> Posed:
        return read_reference(sample), None, None

    def reimaged_template(number: int, sample: Sample) -> Posed:
        reference = read_reference(sample)
        again = reimage(reference, np.random.default_rng((seed, number)))[0]
        return again, golden(again, reference), None

    def moved(move: Callable[[Pixels, int], Pixels]) -> tuple[Sequence[Sample], Pose]:
        def pose(number: int, sample: Sample) -> Posed:
            image, intake = read_picture(sample.image)
            return image, golden(image, move(read_reference(sample), number)), intake

        return samples, pose

    if not measured.has_references:
        return {"without_reference": (samples, without_reference)}
    # Boards of one product share a reference, which is one good board however many are inspected with it.
    good = list({sample.reference: sample for sample in samples}.values())
    blind: dict[str, tuple[Sequence[Sample], Pose]] = {
        "without_reference": (samples, without_reference),
        CLEAN_RUN["without_reference"]: (good, template),
    }
    aided: dict[str, tuple[Sequence[Sample], Pose]] = {
        "with_reference": (samples, with_reference),
        CLEAN_RUN["with_reference"]: (good, reimaged_template),
    }
    return (
        aided
        | (blind if alone else {})
        | {SHIFT_RUN.format(px): moved(partial(_shifted, shift_px=px)) for px in shifts}
        | {TURN_RUN.format(degrees): moved(partial(_turned, degrees=degrees)) for degrees in turns}
    )


def shift_picture(picture: Pixels, shift_px: int, turn: int) -> Pixels:
    """Move a picture right, down, left or up (turn modulo 4); what comes in repeats the border."""
    axis, sign = ((1, 1), (0, 1), (1, -1), (0, -1))[turn % 4]
    size = picture.shape[axis]
    source = (np.arange(size) - sign * shift_px).clip(0, size - 1)
    return np.take(picture, source, axis=axis)


def turn_picture(picture: Pixels, degrees: float) -> Pixels:
    """Turn a picture about its middle, anticlockwise as seen; what comes in repeats the border."""
    height, width = picture.shape[:2]
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), degrees, 1.0)
    turned = cv2.warpAffine(
        picture, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(turned, np.uint8)


def _shifted(picture: Pixels, number: int, *, shift_px: int) -> Pixels:
    return shift_picture(picture, shift_px, number)


def _turned(picture: Pixels, number: int, *, degrees: float) -> Pixels:
    return turn_picture(picture, degrees if number % 2 else -degrees)


def read_picture(path: Path) -> tuple[Pixels, IntakeReport]:
    """A picture of the set; an error names it."""
    try:
        return read_image(path)
    except ImageError as error:
        raise type(error)(f"{path}: {error}") from error


def read_reference(sample: Sample) -> Pixels:
    assert sample.reference is not None
    return read_picture(sample.reference)[0]
