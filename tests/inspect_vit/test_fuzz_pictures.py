"""Damaged pictures of every kind give pixels or an ImageError: no other exception, no hang, no crash."""

from __future__ import annotations

import time

import numpy as np
import pytest

from benchmarks import fuzz_pictures as fuzz
from inspect_vit.errors import ImageError
from inspect_vit.image_io import picture_size, read_image

# Pillow warns of damaged TIFF directories before it gives up on them.
pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning:PIL")

NUM_CASES = 25
SLOW_S = 2.0
"""Processor time that no small picture may take, damaged as it may be."""


@pytest.mark.parametrize("source", fuzz.SOURCES)
def test_the_undamaged_picture_is_read(source: str) -> None:
    """So that the damage, and nothing else, is what is refused below. Every source shows the same blocks."""
    pixels, intake = read_image(fuzz.SOURCES[source]())
    assert intake.errors == ()
    want = fuzz.board()[..., 0].astype(float)
    if intake.orientation == 6:
        want = np.rot90(want, -1)
    assert np.corrcoef(pixels[..., 0].ravel(), want.ravel())[0, 1] > 0.5


@pytest.mark.parametrize("damage", fuzz.DAMAGES)
@pytest.mark.parametrize("source", fuzz.SOURCES)
def test_damaged_pictures_are_read_or_refused(source: str, damage: str) -> None:
    whole = fuzz.SOURCES[source]()
    for seed in range(NUM_CASES):
        data = fuzz.damaged_picture(source, damage, seed, whole=whole)
        started = time.process_time()
        try:
            pixels, intake = read_image(data, max_pixels=fuzz.MAX_PIXELS)
        except ImageError:
            pass
        else:
            assert pixels.dtype == np.uint8
            assert pixels.shape == (intake.height, intake.width, 3)
            assert picture_size(data) == (intake.width, intake.height)
        assert time.process_time() - started < SLOW_S, f"seed {seed}"


def test_cases_are_the_same_every_time() -> None:
    first, again, other = (fuzz.damaged_picture("tiff", "bit flips", seed) for seed in (3, 3, 4))
    assert first == again != other
    assert len(fuzz.damaged_picture("bmp", "truncation", 0)) < len(fuzz.SOURCES["bmp"]())
