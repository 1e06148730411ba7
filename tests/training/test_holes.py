"""Holes are found where a disc was drilled into a pad and nowhere else, and go missing pixel by pixel."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from training.copper import CopperMap
from training.defect_kinds import COPPER_KINDS, DEFECT_KINDS
from training.holes import find_holes
from training.pairs import DefectPlan, picture_pair

Picture = NDArray[np.uint8]
Mask = NDArray[np.bool_]
SIZE = 240
DRILLED = ((50, 50), (50, 120), (50, 190))
"""(row, column) of pads with a hole of 9 px radius in 18 px of copper."""


def disc(row: int, column: int, radius: int) -> Mask:
    drawn = np.zeros((SIZE, SIZE), np.uint8)
    return cv2.circle(drawn, (column, row), radius, 1, -1) > 0


def artwork() -> tuple[Mask, Mask]:
    """(copper, holes): pads on a track, a plane with a hole and a clearance, openings that are no discs."""
    copper = np.zeros((SIZE, SIZE), bool)
    copper[46:54, 50:] = True
    copper[130:, :] = True
    copper[130:, 170:176] = False
    holes = np.zeros_like(copper)
    for place in DRILLED:
        copper |= disc(*place, 18)
        holes |= disc(*place, 9)
    copper &= ~holes
    copper &= ~disc(180, 40, 9)  # in a plane: drilled or a clearance, who knows
    copper &= ~(disc(180, 100, 20) & ~disc(180, 100, 10))  # a pad in its clearance
    copper |= disc(100, 60, 10) & ~disc(100, 60, 9)  # a ring too thin for a pad
    copper[90:110, 110:130] = True
    copper[95:105, 115:125] = False  # a square opening
    copper |= disc(100, 200, 18)
    copper[100:104, 190:212] = False  # a slit
    return copper, holes


@pytest.mark.parametrize("copper_is", ["dark", "light"])
def test_in_a_scan_the_holes_of_pads_are_found_to_the_pixel(copper_is: str) -> None:
    copper, holes = artwork()
    picture = np.where(copper == (copper_is == "dark"), 0, 255).astype(np.uint8)
    found = CopperMap(copper, np.ones_like(copper), "scan", copper_is, 1.0)  # type: ignore[arg-type]
    np.testing.assert_array_equal(find_holes(picture, found), holes)


def photograph(look: str) -> tuple[Picture, CopperMap]:
    """The same artwork under a green mask; pads are tinned, and their holes dark, lit from behind or full."""
    copper, holes = artwork()
    solid = copper | holes
    tones = np.where(solid[..., None], np.array([20.0, 120, 40]), np.array([8.0, 60, 18]))
    for place in (*DRILLED, (100, 200)):
        pad = disc(*place, 18)
        away = np.hypot(*(np.mgrid[:SIZE, :SIZE] - np.reshape(place, (2, 1, 1))))
        flat = 165.0 if look != "full" or place == (100, 200) else 200.0 - 70 * (away / 18) ** 2
        tones[pad] = np.broadcast_to(np.asarray(flat)[..., None], tones.shape)[pad] * [1.0, 0.98, 0.97]
    for row, column in ((200, 200), (200, 226)):  # silk: the letter O, and a full stop
        tones[disc(row, column, 11) & (~disc(row, column, 7) if column < 210 else True)] = 225.0
    if look != "full":
        tones[holes] = 8.0 if look == "dark" else 252.0
    soft = cv2.GaussianBlur(tones, (0, 0), 0.8)
    grain = np.random.default_rng(0).normal(0, 2.0, tones.shape)
    known = ~cv2.dilate(
        (disc(100, 200, 19) | disc(200, 200, 14) | disc(200, 226, 14)).astype(np.uint8), None
    ).astype(bool)
    for place in DRILLED:
        known &= ~disc(*place, 20)
    picture = (soft + grain).clip(0, 255).astype(np.uint8)
    return picture, CopperMap(solid, known, "photograph", "light", 0.95)


@pytest.mark.parametrize("look", ["dark", "lit", "full"])
def test_in_a_photograph_open_lit_and_full_holes_are_found(look: str) -> None:
    """Each drilled pad has one disc in its middle; the flat pad, the letter and the full stop have none."""
    found = find_holes(*photograph(look))
    count, _, stats, centres = cv2.connectedComponentsWithStats(found.astype(np.uint8))
    assert count - 1 == len(DRILLED)
    np.testing.assert_allclose(centres[1:, ::-1], DRILLED, atol=1.0)
    assert (np.abs(stats[1:, cv2.CC_STAT_WIDTH] - 20) <= 4).all(), "about the 19 px that were drilled"


@pytest.mark.parametrize("look", ["dark", "lit", "full"])
def test_a_missing_hole_changes_its_disc_and_nothing_else(look: str) -> None:
    picture, found = photograph(look)
    plan = DefectPlan(count=(3, 3), kinds={"missing-hole": 1.0}, good_share=0.0)
    pair = picture_pair(picture, found, np.random.default_rng(1), plan=plan)
    assert pair.drawn.labels == ("missing-hole",) * 3
    changed = (pair.board != picture).any(axis=2)
    every = np.any(pair.drawn.masks, axis=0)
    np.testing.assert_array_equal(every, find_holes(picture, found))
    near = cv2.dilate(every.astype(np.uint8), np.ones((7, 7), np.uint8)) > 0
    assert changed[every].mean() > 0.9 and not changed[~near].any()
    for patch, box in zip(pair.drawn.patches, pair.drawn.boxes, strict=True):
        inside = pair.board[patch.view][cv2.erode(patch.mask.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0]
        middle = np.median(inside, axis=0)
        as_metal = np.abs(middle - 160).max() < 25
        as_laminate = np.abs(middle - [8, 60, 18]).max() < 12
        assert as_metal or as_laminate, middle
        assert tuple(box) == patch.box(plan.margin_px, (SIZE, SIZE))


def test_in_a_scan_a_missing_hole_is_copper() -> None:
    copper, holes = artwork()
    picture = np.where(copper, 0, 255).astype(np.uint8)
    found = CopperMap(copper, np.ones_like(copper), "scan", "dark", 1.0)
    plan = DefectPlan(count=(3, 3), kinds={"missing-hole": 1.0}, good_share=0.0)
    pair = picture_pair(picture, found, np.random.default_rng(1), plan=plan)
    assert len(pair.drawn.labels) == 3
    np.testing.assert_array_equal(pair.board, np.where(copper | holes, 0, 255))


def test_holes_and_other_defects_keep_clear_of_each_other() -> None:
    picture, found = photograph("dark")
    plan = DefectPlan(count=(9, 9), kinds=dict.fromkeys(DEFECT_KINDS, 1.0), good_share=0.0, size_px=(4, 24))
    labels: set[str] = set()
    for seed in range(6):
        drawn = picture_pair(picture, found, np.random.default_rng(seed), plan=plan).drawn
        labels |= set(drawn.labels)
        assert np.sum(drawn.masks, axis=0).max() == 1
        for first, label in enumerate(drawn.labels):
            if label == "missing-hole":
                left, top, right, bottom = drawn.boxes[first].astype(int).tolist()
                others = [m for i, m in enumerate(drawn.masks) if i != first]
                assert not np.any([m[top:bottom, left:right].any() for m in others])
    assert "missing-hole" in labels and len(labels & set(COPPER_KINDS)) >= 3


def test_without_the_class_no_hole_goes_missing() -> None:
    picture, found = photograph("dark")
    plan = DefectPlan(count=(6, 6), kinds=dict.fromkeys(COPPER_KINDS, 1.0), good_share=0.0)
    assert (
        "missing-hole" not in picture_pair(picture, found, np.random.default_rng(0), plan=plan).drawn.labels
    )


def test_two_domes_of_solder_may_be_test_pads() -> None:
    picture, found = photograph("full")
    left = np.s_[:, :150]
    two = replace(found, copper=found.copper[left], known=found.known[left])
    assert not find_holes(picture[left], two).any()
