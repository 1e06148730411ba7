"""Noise and specks of a camera are no structure: they make a good board no other product."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from inspect_vit.alignment import lay_under
from inspect_vit.registration import register


@pytest.fixture
def reference(project: Path) -> NDArray[np.uint8]:
    """A photograph with little contrast, 640x640."""
    path = project / "data_samples" / "colour_02_temp.png"
    return np.asarray(cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB), np.uint8)


@pytest.mark.parametrize("spread", [8, 12])
def test_noise_on_bare_laminate_is_no_other_product(reference: NDArray[np.uint8], spread: int) -> None:
    """A noise-free reference with a plain margin, and a noisy picture of the same board, 10 px off."""
    plain = np.median(reference.reshape(-1, 3), axis=0).tolist()
    reference = cv2.copyMakeBorder(reference, 80, 80, 80, 80, cv2.BORDER_CONSTANT, value=plain)
    noise = np.random.default_rng(3).normal(0, spread, reference.shape)
    seen = np.roll(reference, 10, axis=1) + noise
    laid = lay_under(seen.clip(0, 255).astype(np.uint8), reference)
    assert (laid.faults, laid.lacks) == ((), "")
    found = laid.registration
    assert found is not None and found.inliers > 0.7
    assert abs(found.shift_px[0] + 10) < 0.3 and abs(found.shift_px[1]) < 0.3


def test_specks_are_no_other_product(reference: NDArray[np.uint8]) -> None:
    """As many as are inspected with a warning, on a photograph with little contrast."""
    chance = np.random.default_rng(1).random(reference.shape[:2])
    seen = np.roll(reference, 6, axis=0)
    seen[chance < 0.015], seen[chance > 0.985] = 0, 255
    found = register(seen, reference)
    assert found.inliers > 0.85 and abs(found.shift_px[1] + 6) < 0.3


def test_fine_texture_all_over_is_structure() -> None:
    """Noise that both pictures share is no noise."""
    texture = np.random.default_rng(4).integers(0, 2, (320, 320, 1)).repeat(3, 2) * 150 + 50
    reference = texture.astype(np.uint8)
    assert register(np.roll(reference, 3, axis=0), reference).inliers > 0.9
