"""Segmentations of COCO: packed run lengths by COCO's own code, polygons and holes by hand."""

from __future__ import annotations

import faster_coco_eval.core.mask as coco_mask
import numpy as np
import pytest

from inspect_vit.errors import ConfigError
from inspect_vit.shapes import Polygon, Shape
from training.formats.segments import pack_runs, read_segmentation, unpack_runs, write_segmentation

OUTER = [10.25, 10.5, 30.125, 10.5, 30.125, 29.75, 10.25, 29.75]
HOLE = [15.1, 15.1, 20.2, 15.1, 20.2, 20.3]
APART = [40.5, 5.5, 44.5, 5.5, 44.5, 9.25]


@pytest.mark.parametrize("seed", range(40))
def test_packed_runs_are_those_of_coco_s_own_code(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mask = rng.random((int(rng.integers(1, 90)), int(rng.integers(1, 90)))) < rng.choice(
        [0.002, 0.1, 0.5, 0.999]
    )
    theirs = coco_mask.encode(np.asfortranarray(mask, np.uint8))["counts"]
    text = theirs.decode() if isinstance(theirs, bytes) else theirs
    assert unpack_runs(text) == Shape.from_mask(mask).runs
    assert pack_runs(Shape.from_mask(mask).runs or ()) == text
    shape = read_segmentation({"size": list(mask.shape), "counts": text})
    assert shape is not None
    np.testing.assert_array_equal(shape.mask(*mask.shape), mask)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p", "'p' at character 0"),
        ("11!", "'!' at character 2"),
        ("1Q", "end inside a number"),
        ("`" * 99, "not of"),
    ],
)
def test_damaged_packed_runs_are_named(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        unpack_runs(text)


def test_polygons_keep_every_coordinate_and_come_back_from_json() -> None:
    shape = read_segmentation([OUTER, APART])
    assert shape is not None
    assert [polygon.exterior.ravel().tolist() for polygon in shape.polygons] == [OUTER, APART]
    assert write_segmentation(shape, 50, 60) == {"segmentation": [OUTER, APART]}


def test_the_library_keeps_pixels_where_we_keep_coordinates() -> None:
    """Why it does not read outlines: two shapes a tenth of a pixel apart are one to it."""
    ring = [10.15, 12.15, 30.15, 12.15, 30.15, 28.15, 10.15, 28.15]
    moved = [value + 0.1 for value in ring]
    theirs = [coco_mask.segmToRle([flat], 60, 50)["counts"] for flat in (ring, moved)]
    ours = [read_segmentation([flat]) for flat in (ring, moved)]
    assert theirs[0] == theirs[1]
    assert ours[0] is not None and ours[1] is not None
    np.testing.assert_allclose(ours[1].polygons[0].exterior - ours[0].polygons[0].exterior, 0.1)


def test_holes_go_out_as_exact_pixels_with_the_rings_beside_them() -> None:
    outer, hole, apart = (np.array(ring).reshape(-1, 2) for ring in (OUTER, HOLE, APART))
    shape = Shape(polygons=(Polygon(outer, (hole,)), Polygon(apart)))
    written = write_segmentation(shape, 50, 60)
    theirs = coco_mask.decode(coco_mask.frPyObjects([written["segmentation"]], 50, 60))[..., 0]
    np.testing.assert_array_equal(theirs, shape.mask(50, 60))
    assert written["rings"] == [[OUTER, HOLE], [APART]]
    back = read_segmentation(written["segmentation"], written["rings"])
    assert back is not None
    assert [len(polygon.holes) for polygon in back.polygons] == [1, 0]
    np.testing.assert_array_equal(back.polygons[0].holes[0], hole)


def test_a_ring_that_repeats_its_first_point_is_opened() -> None:
    shape = read_segmentation([[*OUTER, *OUTER[:2]]])
    assert shape is not None
    assert shape.polygons[0].exterior.ravel().tolist() == OUTER


@pytest.mark.parametrize("nothing", [None, [], {}])
def test_no_segmentation_is_no_shape(nothing: object) -> None:
    assert read_segmentation(nothing) is None


@pytest.mark.parametrize(
    ("segmentation", "message"),
    [
        ([[1, 2, 3, 4]], "3 or more finite points"),
        ([[1, 2, 3, 4, 5]], "wanted a flat list"),
        ([[1, 2, 3, "4", 5, 6]], "wanted a flat list"),
        ([[1, 2, 3, 10**400, 5, 6]], "wanted a flat list"),
        ([1, 2, 3, 4, 5, 6], "wanted a flat list"),
        ("polygon", "wanted polygons or run lengths"),
        ({"size": [3, 2]}, "wanted polygons or run lengths"),
        ({"size": [3], "counts": [6]}, r"wanted \[height, width\]"),
        ({"size": [3, 2], "counts": [1.5, 4.5]}, "wanted whole numbers"),
        ({"size": [3, 2], "counts": [5]}, "runs sum to 5"),
    ],
)
def test_other_segmentations_are_named(segmentation: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_segmentation(segmentation)
