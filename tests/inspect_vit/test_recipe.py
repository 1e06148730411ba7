"""A recipe's zones follow the board, and the reference that fits is the one that is used."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from inspect_vit.errors import ConfigError
from inspect_vit.image_io import read_image
from inspect_vit.recipe import (
    GoldenReference,
    Recipe,
    Zone,
    best_fit,
    ignored_cells,
    ignored_pixels,
    min_sizes_px,
)
from inspect_vit.registration import prepare, register

Picture = NDArray[np.uint8]
BOX = Zone(name="logo", polygon=((100, 200), (180, 200), (180, 260), (100, 260)))


@pytest.fixture(scope="module")
def goldens(project: Path) -> list[GoldenReference]:
    pictures = [read_image(project / "data_samples" / f"board_0{n}_temp.png")[0] for n in (1, 2, 3)]
    return [GoldenReference(f"side {n}", picture, prepare(picture)) for n, picture in enumerate(pictures)]


def moved(picture: Picture, matrix: NDArray[np.float64]) -> Picture:
    height, width = picture.shape[:2]
    border = cv2.BORDER_REPLICATE
    return np.asarray(cv2.warpAffine(picture, matrix, (width, height), borderMode=border), np.uint8)


def test_the_reference_that_fits_is_taken_and_named(goldens: list[GoldenReference]) -> None:
    board = moved(goldens[1].picture, np.array([[1, 0, 3.0], [0, 1, -5.0]]))
    name, laid = best_fit(board, goldens)
    assert name == "side 1"
    assert laid.alignment is not None
    assert laid.alignment.shift_px == pytest.approx(np.hypot(3, 5), abs=0.1)


def test_where_none_fits_every_cause_is_told(goldens: list[GoldenReference]) -> None:
    _, laid = best_fit(np.ascontiguousarray(goldens[0].picture[::-1, ::-1]), goldens)
    assert laid.picture is None
    assert len(laid.faults) == 3
    assert laid.faults[0].startswith("reference side 0: upside down")
    _, alone = best_fit(np.ascontiguousarray(goldens[0].picture[::-1, ::-1]), goldens[:1])
    assert alone.faults[0].startswith("upside down")
    with pytest.raises(ConfigError, match="has no golden reference"):
        best_fit(goldens[0].picture, [])


@pytest.mark.parametrize(("shift", "degrees"), [((8, -4), 0.0), ((0, 0), 1.5), ((-6, 5), -1.0)])
def test_an_ignore_zone_follows_the_board(
    goldens: list[GoldenReference], shift: tuple[float, float], degrees: float
) -> None:
    golden = goldens[0]
    height, width = golden.picture.shape[:2]
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), degrees, 1.0)
    matrix[:, 2] += shift
    board = moved(golden.picture, matrix)
    pixels = ignored_pixels(Recipe(ignore=(BOX,)), (height, width))
    assert pixels is not None
    assert (pixels.sum(), pixels[200:260, 100:180].all()) == (80 * 60, True)
    cells = ignored_cells(pixels, register(board, golden.golden))
    # where the zone's middle and corners, a cell inside, went by the matrix that moved the board
    inner = np.array([[140, 230], [106, 206], [174, 206], [174, 254], [106, 254]])
    outer = np.array([[94, 194], [186, 194], [186, 266], [94, 266], [140, 190], [140, 270]])
    for points, inside in ((inner, True), (outer, False)):
        for x, y in points @ matrix[:, :2].T + matrix[:, 2]:
            assert cells[int(y // 4), int(x // 4)] == inside
    assert cells.sum() * 16 == pytest.approx(80 * 60, rel=0.2)


def test_regions_of_interest_leave_out_all_else() -> None:
    both = Recipe(
        regions=(Zone(polygon=((0, 0), (40, 0), (40, 30), (0, 30))),),
        ignore=(Zone(polygon=((10, 10), (20, 10), (20, 20), (10, 20))),),
    )
    pixels = ignored_pixels(both, (60, 60))
    assert pixels is not None
    assert (~pixels).sum() == 40 * 30 - 10 * 10
    assert not pixels[5, 5]
    assert pixels[15, 15]
    assert pixels[50, 50]
    assert ignored_pixels(Recipe(), (60, 60)) is None


def test_least_sizes_are_px_of_the_posted_picture(goldens: list[GoldenReference]) -> None:
    recipe = Recipe(px_per_mm=48.0, min_defect_mm={"spur": 0.1})
    half = np.asarray(
        cv2.resize(goldens[0].picture, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA), np.uint8
    )
    found = register(half, goldens[0].golden)
    assert min_sizes_px(recipe, found)["spur"] == pytest.approx(2.4, rel=0.01)
    assert min_sizes_px(Recipe(), found) == {}


def test_a_zone_must_touch_one_of_the_references() -> None:
    beside = Zone(name="logo", polygon=((640, 0), (700, 0), (700, 40), (640, 40)))
    across = Zone(polygon=((-9, -9), (1, -9), (1, 1), (-9, 1)))
    Recipe(ignore=(across, BOX), regions=(across,)).check_zones([(640, 480)])
    Recipe(ignore=(beside,)).check_zones([(640, 480), (641, 480)])
    Recipe(ignore=(beside,)).check_zones([])
    with pytest.raises(ConfigError) as refused:
        Recipe(ignore=(across, beside)).check_zones([(640, 480), (600, 480), (640, 480)])
    assert str(refused.value) == (
        "ignore.1 ('logo') lies outside the reference, which is 640 x 480 and 600 x 480 px: it spans "
        "x 640 to 700 and y 0 to 40; draw it on the reference"
    )
    for corners in (((0, 480), (9, 480), (9, 490)), ((0, -9), (9, -9), (9, 0)), ((-9, 0), (0, 0), (0, 9))):
        with pytest.raises(ConfigError, match=r"regions\.0 lies outside the reference"):
            Recipe(regions=(Zone(polygon=corners),)).check_zones([(640, 480)])


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(ValidationError, match="min_defect_mm needs px_per_mm"):
        Recipe(min_defect_mm={"spur": 0.1})
    with pytest.raises(ValidationError, match="at least 3"):
        Zone(polygon=((0, 0), (1, 1)))
    with pytest.raises(ConfigError, match="class scratch is not known to the model; it knows open, short"):
        Recipe(px_per_mm=1.0, min_defect_mm={"scratch": 1.0}).check_classes(("open", "short"))
