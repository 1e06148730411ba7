"""Painted defects show the other material where the mask is, and leave the rest of the picture alone."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from inspect_vit.errors import ImageError
from training.defect_kinds import DEFECT_KINDS
from training.defects import draw_defects
from training.layers import Mask
from training.paint import paint_defects


def bars() -> Mask:
    copper = np.zeros((240, 240), bool)
    for left in range(20, 220, 50):
        copper[:, left : left + 24] = True
    return copper


def test_scans_are_painted_in_their_two_tones_exactly() -> None:
    copper = bars()
    picture = np.where(copper, 0, 255).astype(np.uint8)
    drawn = draw_defects(copper, np.random.default_rng(2), 8)
    painted = paint_defects(picture, copper, drawn, np.random.default_rng(0), feather_px=0.0)
    assert len(drawn.labels) == 8
    assert np.array_equal(painted, np.where(drawn.copper, 0, 255))


def test_colour_is_painted_with_the_texture_of_the_place() -> None:
    copper, rng = bars(), np.random.default_rng(1)
    # Light falls off from top to bottom; copper is red and grainy, laminate blue and smooth.
    light = np.linspace(1.0, 0.5, 240)[:, None, None]
    tones = np.where(copper[..., None], np.array([180.0, 40, 40]), np.array([40.0, 40, 160])) * light
    grain = np.where(copper, 8.0, 1.0)[..., None] * rng.standard_normal((240, 240, 3))
    picture = (tones + grain).clip(0, 255).astype(np.uint8)
    drawn = draw_defects(copper, np.random.default_rng(3), 10, size_px=(8, 40))
    painted = paint_defects(picture, copper, drawn, np.random.default_rng(0))
    assert len(drawn.labels) >= 8
    for label, mask in zip(drawn.labels, drawn.masks, strict=True):
        core = cv2.erode(mask.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
        if core.sum() < 12:
            continue
        rows = np.nonzero(core)[0]
        tone = np.array([40.0, 40, 160]) if DEFECT_KINDS[label].removes else np.array([180.0, 40, 40])
        wanted = tone * np.linspace(1.0, 0.5, 240)[rows].mean()
        assert np.abs(painted[core].mean(axis=0) - wanted).max() < 22, "the tone, in the light of the place"
        spread = painted[core].std(axis=0).mean()
        assert spread < 5 if DEFECT_KINDS[label].removes else spread > 4, "the grain of the material"
    touched = cv2.dilate(np.any(drawn.masks, axis=0).astype(np.uint8), np.ones((15, 15), np.uint8)) > 0
    assert np.array_equal(painted[~touched], picture[~touched])


def test_a_picture_without_the_material_is_refused() -> None:
    copper = np.zeros((80, 80), bool)
    drawn = draw_defects(copper, np.random.default_rng(0), 1, kinds=["copper"])
    assert drawn.labels == ("copper",)
    with pytest.raises(ImageError, match="no copper"):
        paint_defects(np.full((80, 80), 255, np.uint8), copper, drawn, np.random.default_rng(0))
