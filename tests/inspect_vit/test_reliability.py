"""Replacing parts of a board: the right pixels, the right score, and maps known to be good or bad."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from inspect_vit.alignment import as_posted
from inspect_vit.checkpoint import default_checkpoint
from inspect_vit.errors import ImageError
from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from inspect_vit.perturbation import (
    MARGIN_PX,
    MAX_CROP_ERROR,
    Region,
    difference_map,
    free_cells,
    pose,
    rank_cells,
    take_cells,
    view_around,
)
from inspect_vit.reliability import RELIABLE_FROM, Reliability, faithfulness_of, set_up, try_map
from inspect_vit.results import BoxXyxy, Defect, InspectionResult


def make_defect(label: str, box: BoxXyxy) -> Defect:
    return Defect(label, 0.5, box, 16, {"4": 1.0, "16": 0.0, "32": 0.0})


@pytest.fixture(scope="module")
def shipped() -> Inspector:
    return Inspector(default_checkpoint(), device="cpu")


@pytest.fixture(scope="module")
def board(
    shipped: Inspector, sample_pair: tuple[Path, Path]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], InspectionResult]:
    image, reference = (read_image(path)[0] for path in sample_pair)
    return image, reference, shipped.inspect(image, reference=as_posted(image, reference))


def test_scores_are_those_of_a_picture_with_the_pixels_pasted(tiny_checkpoint: Path) -> None:
    """Cells at the lower and right edge are cut by the picture, and repeated beyond it."""
    inspector = Inspector(tiny_checkpoint, device="cpu")
    rng = np.random.default_rng(0)
    image, reference, infill = rng.integers(0, 256, (3, 70, 50, 3), np.uint8)
    scene = pose(
        inspector, image, reference=reference, infill=infill, defect=make_defect("open", (0, 0, 50, 70))
    )
    assert scene.region.shape == (18, 13)
    masks = rng.random((3, 18, 13)) < 0.5
    scores = scene.scores(masks)
    assert scores.shape == (3, 6)
    for mask, found in zip(masks, scores, strict=True):
        pixels = np.kron(mask, np.ones((4, 4), bool))[:70, :50, None]
        pasted = np.where(pixels, infill, image)
        assert found.max() == pytest.approx(
            inspector.inspect(pasted, reference=as_posted(pasted, reference)).score, abs=1e-6
        )


def test_without_reference_holes_are_filled_from_around_them(tiny_checkpoint: Path) -> None:
    """The score is that of a picture whose hole was painted over before it was inspected."""
    inspector = Inspector(tiny_checkpoint, device="cpu")
    rng = np.random.default_rng(3)
    image = cv2.GaussianBlur(rng.integers(0, 256, (96, 120, 3), np.uint8), (0, 0), 3)
    image = np.ascontiguousarray(np.repeat(image[..., :1], 3, axis=2))
    scene = pose(inspector, image, reference=None, defect=make_defect("open", (0, 0, 120, 96)))
    mask = np.zeros((1, *scene.region.shape), np.bool_)
    mask[0, 6:10, 8:14] = True
    pixels = np.kron(mask[0], np.ones((4, 4), np.uint8)).astype(np.uint8)
    grey = cv2.inpaint(image[..., 0], pixels, 5, cv2.INPAINT_TELEA)
    painted = inspector.inspect(np.repeat(grey[..., None], 3, axis=2)).score
    assert scene.scores(mask).max() == pytest.approx(painted, abs=1e-5)
    assert painted != pytest.approx(inspector.inspect(image).score, abs=1e-5)


@pytest.mark.parametrize("size", [(640, 640), (320, 900), (1000, 650)])
def test_the_view_holds_the_box_and_begins_where_windows_begin(
    shipped: Inspector, size: tuple[int, int]
) -> None:
    height, width = size
    rng = np.random.default_rng(1)
    for _ in range(50):
        left, top = rng.uniform(0, width - 60), rng.uniform(0, height - 60)
        box = (left, top, left + rng.uniform(4, 60), top + rng.uniform(4, 60))
        view = view_around(box, height, width, shipped.metadata.model)
        left_px, top_px, right_px, bottom_px = (
            4 * edge for edge in (view.left, view.top, view.right, view.bottom)
        )
        assert left_px % 160 == top_px % 160 == 0
        assert (right_px - left_px) % 320 == (bottom_px - top_px) % 320 == 0
        assert right_px <= math.ceil(width / 320) * 320 and bottom_px <= math.ceil(height / 320) * 320
        assert left_px <= max(box[0] - MARGIN_PX, 0) and top_px <= max(box[1] - MARGIN_PX, 0)
        assert right_px >= min(box[2] + MARGIN_PX, width) and bottom_px >= min(box[3] + MARGIN_PX, height)


def test_a_large_box_gets_a_large_view(shipped: Inspector) -> None:
    view = view_around((100, 10, 500, 40), 960, 960, shipped.metadata.model)
    assert view.shape == (160, 160)


def test_the_crop_leaves_the_score_within_tolerance(
    shipped: Inspector, board: tuple[NDArray[np.uint8], NDArray[np.uint8], InspectionResult]
) -> None:
    image, reference, result = board
    cropped = 0
    for defect in result.defects[:3]:
        whole = pose(shipped, image, reference=reference, defect=defect, whole=True)
        scene = pose(shipped, image, reference=reference, defect=defect)
        nothing = np.zeros((1, *scene.region.shape), np.bool_)
        before = whole.scores(nothing)[0, whole.label]
        assert before >= defect.score - 1e-5  # the call's own cell lies in its box
        assert scene.scores(nothing)[0, scene.label] == pytest.approx(before, abs=MAX_CROP_ERROR)
        cropped += scene.is_cropped
    assert cropped >= 2


def test_cells_under_other_defects_stay_unless_this_one_lies_there_too() -> None:
    region = Region(10, 0, 16, 4)  # x 40..64, y 0..16
    under = region.under((44, 4, 52, 9))
    assert np.argwhere(under).tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]
    free = free_cells(region, make_defect("open", (51, 0, 53, 8)), [(44, 4, 52, 9), (0, 0, 8, 8)])
    assert np.argwhere(~free).tolist() == [[1, 1], [2, 1], [2, 2]]


def test_equal_cells_are_ranked_in_random_order_and_others_by_value() -> None:
    evidence = np.array([[0, 3, 0], [2, 0, 9]], np.float32)
    allowed = np.array([[True, True, True], [True, True, False]])
    orders = [rank_cells(evidence, allowed, np.random.default_rng(seed)).tolist() for seed in range(20)]
    assert all(order[:2] == [1, 3] and sorted(order) == [0, 1, 2, 3, 4] for order in orders)
    assert {tuple(order[2:]) for order in orders} >= {(0, 2, 4), (4, 2, 0), (2, 0, 4)}
    assert orders[0] == rank_cells(evidence, allowed, np.random.default_rng(0)).tolist()
    taken = take_cells(np.array([1, 3, 0]), [0, 2], (2, 3))
    assert taken.astype(int).tolist() == [[[0, 0, 0], [0, 0, 0]], [[0, 1, 0], [1, 0, 0]]]


def test_the_difference_of_a_cell_is_the_mean_of_its_pixels() -> None:
    image = np.zeros((6, 8, 3), np.uint8)
    other = image.copy()
    other[1, 1] = 255
    other[4:, 4:] = 102
    np.testing.assert_allclose(difference_map(image, other), [[1 / 16, 0], [0, 0.4]], atol=1e-6)


def test_a_true_map_is_reliable_and_a_map_of_elsewhere_is_not(
    shipped: Inspector, board: tuple[NDArray[np.uint8], NDArray[np.uint8], InspectionResult]
) -> None:
    image, reference, result = board
    defect = result.defects[0]
    others = [other.box_xyxy for other in result.defects[1:]]
    left, top, right, bottom = (int(edge // 4) for edge in defect.box_xyxy)
    true = np.zeros((160, 160), np.float32)
    inside = slice(top, bottom + 1), slice(left, right + 1)
    true[inside] = difference_map(image, reference)[inside]
    asked = {"inspector": shipped, "image": image, "reference": reference, "others": others}
    good = faithfulness_of(true, defect=defect, **asked)
    assert good.is_reliable and good.faithfulness > 0.8
    assert good.num_cells == 64  # 1 % of 320 x 320 px
    assert good.score_without < result.thresholds[defect.label] < good.score
    assert not faithfulness_of(1.0 - true, defect=defect, **asked).is_reliable
    assert faithfulness_of(true, defect=defect, **asked) == good


def test_without_reference_a_true_map_is_reliable_and_says_how_it_was_tested(
    sample_pair: tuple[Path, Path],
) -> None:
    inspector = Inspector(default_checkpoint().with_name("deeppcb-nano.safetensors"), device="cpu")
    image = read_image(sample_pair[0])[0]
    defect = inspector.inspect(image).defects[0]
    left, top, right, bottom = (int(edge // 4) for edge in defect.box_xyxy)
    true = np.zeros((160, 160), np.float32)
    true[top : bottom + 1, left : right + 1] = 1.0
    trial = set_up(inspector, image, reference=None, defect=defect)
    good, bad = try_map(trial, true), try_map(trial, 1.0 - true)
    assert good.is_reliable and not bad.is_reliable
    assert good.words.startswith("reliable: with the area it points at filled from around it the score goes")
    assert good.words.endswith("without a reference this is a weaker test")
    assert bad.note.is_warning and bad.note.title == "not reliable"
    assert not good.note.is_warning


def test_reliability_is_the_share_of_the_score_beyond_chance() -> None:
    measured = Reliability(score=0.8, score_without=0.2, score_without_random=0.7, num_cells=64)
    assert measured.faithfulness == pytest.approx(0.625)
    assert measured.is_reliable
    low = replace(measured, score_without=0.71)
    assert low.faithfulness < 0 < RELIABLE_FROM
    assert not low.is_reliable


def test_a_map_of_another_board_is_refused(
    shipped: Inspector, board: tuple[NDArray[np.uint8], NDArray[np.uint8], InspectionResult]
) -> None:
    image, reference, result = board
    asked = {"inspector": shipped, "image": image, "defect": result.defects[0]}
    with pytest.raises(ImageError, match=r"map has shape \(3, 4\), wanted \(160, 160\)"):
        faithfulness_of(np.zeros((3, 4), np.float32), reference=reference, **asked)
    with pytest.raises(ImageError, match="reference has shape"):
        faithfulness_of(np.zeros((160, 160), np.float32), reference=reference[:100], **asked)
