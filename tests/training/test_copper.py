"""Copper is found where it is, or the picture is refused."""

from __future__ import annotations

import os
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from inspect_vit.errors import ImageError
from training.artwork import make_layers
from training.colour_style import draw_style
from training.copper import segment_copper
from training.render import ScanStyle, render_scan
from training.render_colour import render_colour

Picture = NDArray[np.uint8]


def scan(seed: int) -> Picture:
    return render_scan(make_layers(seed, 320), np.random.default_rng(seed), ScanStyle(dust=0.0))


@pytest.mark.parametrize("copper", ["dark", "light"])
def test_scans_of_either_polarity_are_read_exactly_when_told_which(copper: str) -> None:
    picture = scan(9) if copper == "dark" else 255 - scan(9)
    found = segment_copper(picture, copper=copper)  # type: ignore[arg-type]
    assert np.array_equal(found.copper, (picture < 128) == (copper == "dark"))
    assert (found.kind, found.copper_is, found.sureness) == ("scan", copper, 1.0)
    assert found.known.all()


def test_the_tone_of_many_small_pieces_is_copper() -> None:
    """Pads on laminate: laminate is one piece, copper many, whichever of the two is dark."""
    pads = np.full((200, 200), 255, np.uint8)
    for row in range(20, 190, 40):
        for column in range(20, 190, 40):
            cv2.circle(pads, (column, row), 12, 0, -1)
    for picture, wanted in ((pads, "dark"), (255 - pads, "light")):
        found = segment_copper(picture)
        assert found.copper_is == wanted and found.sureness > 0.95


def test_stripes_without_a_clue_are_refused() -> None:
    stripes = np.where(np.arange(200) // 20 % 2 == 0, 0, 255).astype(np.uint8)[None].repeat(200, axis=0)
    with pytest.raises(ImageError, match=r"which tone is copper is a guess.*say which"):
        segment_copper(stripes)
    assert segment_copper(stripes, copper="light").sureness == 1.0


@pytest.mark.parametrize("mask", ["green", "blue", "red", "black"])
def test_copper_under_a_solder_mask_is_found(mask: str) -> None:
    found_any = 0
    for seed in (1, 6, 9, 14):
        layers = make_layers(seed, 480)
        rng = np.random.default_rng(seed)
        picture = render_colour(layers, rng, draw_style(rng, mask=mask, finish="hasl"), nuisance=0.3)
        try:
            found = segment_copper(picture)
        except ImageError:
            continue
        found_any += 1
        assert found.kind == "photograph"
        clear = found.known & layers.board
        assert (found.copper == layers.copper)[clear].mean() > 0.93
        assert clear.mean() > 0.2
    assert found_any >= 2


def test_white_masks_are_refused_unless_asked_for() -> None:
    layers = make_layers(9, 480)
    rng = np.random.default_rng(9)
    picture = render_colour(layers, rng, draw_style(rng, mask="white", finish="enig"), nuisance=0.0)
    with pytest.raises(ImageError, match="white mask"):
        segment_copper(picture)
    found = segment_copper(picture, min_sureness=0.6)
    assert 0.6 < found.sureness < 0.8 and "a white mask shows little of its copper" in found.notes


def test_grey_photographs_are_read_too() -> None:
    layers = make_layers(14, 480)
    rng = np.random.default_rng(3)
    colour = render_colour(layers, rng, draw_style(rng, mask="green", finish="hasl"), nuisance=0.0)
    grey = np.asarray(cv2.cvtColor(colour, cv2.COLOR_RGB2GRAY), np.uint8)
    found = segment_copper(grey)
    assert (found.copper == layers.copper)[found.known].mean() > 0.93


def blank() -> Picture:
    return np.full((200, 200, 3), (20, 90, 40), np.uint8)


def noise() -> Picture:
    return np.random.default_rng(0).integers(0, 256, (300, 300, 3)).astype(np.uint8)


def shaded() -> Picture:
    ramp = np.linspace(40, 200, 300)[None, :, None] * np.array([0.2, 0.8, 0.4])
    grainy = ramp.repeat(300, axis=0) + np.random.default_rng(1).normal(0, 4, (300, 300, 3))
    return grainy.clip(0, 255).astype(np.uint8)


def black() -> Picture:
    return np.zeros((200, 200), np.uint8)


@pytest.mark.parametrize("make", [blank, noise, shaded, black])
@pytest.mark.parametrize("copper", ["auto", "light"])
def test_what_is_no_board_is_refused(make: object, copper: str) -> None:
    with pytest.raises(ImageError, match=r"give|cut"):
        segment_copper(make(), copper=copper)  # type: ignore[operator, arg-type]


def test_photographs_of_boards_are_read() -> None:
    """Judged at places that were looked at: (x, y, copper) on the clean templates."""
    data = Path(os.environ.get("INSPECT_VIT_DATA", Path(__file__).parents[3] / "shared" / "data"))
    folder = data / "hripcb_3boards" / "templates"
    if not folder.is_dir():
        pytest.skip(f"INSPECT_VIT_DATA: no hripcb_3boards/templates in {data}")
    picture = cv2.imread(str(folder / "05.JPG"))
    assert picture is not None
    found = segment_copper(np.ascontiguousarray(picture[..., ::-1]))
    height, width = found.copper.shape
    # Centre of the board, where tracks run up and down.
    row = height // 2 - 220 + 300
    spots = {
        width // 2 - 330 + x: copper for x, copper in ((285, True), (315, False), (380, True), (405, False))
    }
    for x, copper in spots.items():
        assert found.known[row, x] and found.copper[row, x] == copper, (x, row)
    assert found.sureness > 0.9 and found.known.mean() > 0.5
