"""Outlines: pixels by a point-in-polygon test of another library, run lengths by COCO's own code."""

from __future__ import annotations

from itertools import pairwise

import faster_coco_eval.core.mask as coco_mask
import numpy as np
import pytest
from matplotlib.path import Path as Outline

from inspect_vit.errors import ConfigError
from inspect_vit.shapes import Polygon, Shape


def square(left: float, top: float, right: float, bottom: float) -> np.ndarray:
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float64)


def random_star(rng: np.random.Generator, centre: tuple[float, float], radius: float) -> np.ndarray:
    """A ring of 12 sub-pixel points that does not cross itself."""
    angles = np.sort(rng.uniform(0, 2 * np.pi, 12))
    radii = radius * rng.uniform(0.3, 1.0, 12)
    return np.stack([centre[0] + radii * np.cos(angles), centre[1] + radii * np.sin(angles)], 1)


@pytest.mark.parametrize("seed", range(20))
def test_a_polygon_covers_the_pixels_whose_centre_is_inside(seed: int) -> None:
    ring = random_star(np.random.default_rng(seed), (20.0, 14.0), 18.0)
    y, x = np.mgrid[:30, :40] + 0.5
    inside = Outline(ring, closed=False).contains_points(np.stack([x.ravel(), y.ravel()], 1))
    np.testing.assert_array_equal(Shape(polygons=(Polygon(ring),)).mask(30, 40), inside.reshape(30, 40))


def test_a_box_on_whole_pixels_covers_exactly_its_pixels() -> None:
    expected = np.zeros((8, 10), bool)
    expected[2:5, 3:9] = True
    np.testing.assert_array_equal(Shape(polygons=(Polygon(square(3, 2, 9, 5)),)).mask(8, 10), expected)


def test_tiles_that_share_edges_cover_each_pixel_once() -> None:
    edges = [0.0, 2.5, 3.2, 7.0, 9.5, 12.0]
    times = sum(
        Shape(polygons=(Polygon(square(left, top, right, bottom)),)).mask(12, 12).astype(int)
        for left, right in pairwise(edges)
        for top, bottom in pairwise(edges)
    )
    assert (times == 1).all()


def test_holes_are_outside_and_a_part_in_a_hole_is_inside() -> None:
    ring_with_island = Shape(
        polygons=(Polygon(square(0, 0, 10, 10), (square(2, 2, 8, 8),)), Polygon(square(4, 4, 6, 6)))
    )
    mask = ring_with_island.mask(10, 12)
    assert mask.sum() == 100 - 36 + 4
    assert mask[5, 5] and not mask[3, 3] and mask[1, 1]


def test_what_lies_outside_the_picture_is_cut() -> None:
    shape = Shape(polygons=(Polygon(square(-5, -5, 3, 4)), Polygon(square(50, 50, 60, 60))))
    assert shape.mask(6, 8).sum() == 3 * 4
    assert shape.bounds() == (-5, -5, 60, 60)
    far = Shape(polygons=(Polygon(square(-9, -9, -1, -1)),))
    assert not far.mask(6, 8).any()


@pytest.mark.parametrize("seed", range(50))
def test_a_mask_comes_back_as_runs_of_coco_s_own_code(seed: int) -> None:
    rng = np.random.default_rng(seed)
    height, width = rng.integers(1, 12, 2)
    mask = rng.random((height, width)) < rng.choice([0.1, 0.5, 0.9])
    shape = Shape.from_mask(mask)
    np.testing.assert_array_equal(shape.mask(height, width), mask)
    theirs = coco_mask.frPyObjects(
        [{"size": [int(height), int(width)], "counts": list(shape.runs)}], height, width
    )
    np.testing.assert_array_equal(coco_mask.decode(theirs)[..., 0], mask)
    if mask.any():
        rows, columns = np.nonzero(mask)
        assert shape.bounds() == (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)


@pytest.mark.parametrize("seed", range(20))
def test_a_window_is_placed_as_the_whole_picture_would_be(seed: int) -> None:
    rng = np.random.default_rng(seed)
    window = rng.random(rng.integers(1, 6, 2)) < 0.6
    left, top = rng.integers(0, 4, 2)
    picture = np.zeros((top + window.shape[0] + seed % 3, left + window.shape[1] + seed % 2), bool)
    picture[top : top + window.shape[0], left : left + window.shape[1]] = window
    placed = Shape.from_mask(window, at=(left, top), size=picture.shape)
    assert placed.runs == Shape.from_mask(picture).runs
    np.testing.assert_array_equal(placed.mask(*picture.shape), picture)


def test_painting_writes_the_mask_and_leaves_the_rest() -> None:
    rng = np.random.default_rng(0)
    for shape in (
        Shape(polygons=(Polygon(random_star(rng, (15, 10), 12)),)),
        Shape.from_mask(rng.random((20, 30)) < 0.4),
    ):
        canvas = np.full((20, 30), 9, np.uint8)
        shape.paint(canvas, 3)
        np.testing.assert_array_equal(canvas, np.where(shape.mask(20, 30), 3, 9))


def test_full_and_empty_masks() -> None:
    assert Shape.from_mask(np.ones((3, 2), bool)).runs == (0, 6)
    assert Shape.from_mask(np.zeros((3, 2), bool)).runs == (6,)
    assert Shape.from_mask(np.zeros((3, 2), bool)).bounds() == (0, 0, 0, 0)
    assert Shape(runs=(0, 2, 0, 4), size=(3, 2)).mask(3, 2).all(), "empty runs inside are allowed"


def test_shapes_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="one of the two"):
        Shape()
    with pytest.raises(ConfigError, match="one of the two"):
        Shape(polygons=(Polygon(square(0, 0, 1, 1)),), runs=(1,), size=(1, 1))
    with pytest.raises(ConfigError, match=r"runs sum to 5 pixels.* has 6"):
        Shape(runs=(2, 3), size=(2, 3))
    with pytest.raises(ConfigError, match="none negative"):
        Shape(runs=(-1, 7), size=(2, 3))
    with pytest.raises(ConfigError, match=r"need the size"):
        Shape(runs=(6,))
    with pytest.raises(ConfigError, match="3 or more finite points"):
        Polygon(square(0, 0, 1, 1)[:2])
    with pytest.raises(ConfigError, match="3 or more finite points"):
        Polygon(square(0, 0, np.nan, 1))
    with pytest.raises(ConfigError, match=r"drawn on a picture of \(2, 3\), not \(3, 2\)"):
        Shape(runs=(6,), size=(2, 3)).mask(3, 2)
    with pytest.raises(ConfigError, match="leaves its 4 x 4 picture"):
        Shape.from_mask(np.ones((3, 3), bool), at=(2, 0), size=(4, 4))
