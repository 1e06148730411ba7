"""What is read off planted answers: boxes whole across tiles, ignored ones left out, gaps named."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from inspect_vit.coverage import any_cells, coverage
from inspect_vit.findings import Findings, find, lies_in
from inspect_vit.heads import HeadOutput
from inspect_vit.model import ModelOutput
from inspect_vit.tiling import Plan, Tile, plan_tiles

Spot = tuple[int, int, int, float]


def planted(*spots: Spot, side: int = 80) -> ModelOutput:
    """Centre scores at (class, row, column), cells of a square board; boxes reach 6 px left, 8 up, 10 right,
    12 down."""
    centres = torch.full((1, 3, side, side), -9.0)
    for label, row, column, score in spots:
        centres[0, label, row, column] = float(np.log(score / (1 - score)))
    distances = torch.tensor([6.0, 8.0, 10.0, 12.0]).view(1, 4, 1, 1).expand(1, 4, side, side)
    shares = torch.tensor([0.5, 0.3, 0.2]).view(1, 3, 1, 1).expand(1, 3, side, side)
    return ModelOutput(HeadOutput(centres, distances, torch.zeros(1, 3, side, side)), shares, None)


def found(
    output: ModelOutput,
    *,
    tile_px: int = 320,
    min_score: float = 0.1,
    size: tuple[int, int] | None = None,
    ignore: np.ndarray | None = None,
) -> Findings:
    """Found by tiles that each answer with their part of the planted board."""

    def run(tile: Tile) -> ModelOutput:
        part = (..., slice(tile.top // 4, tile.bottom // 4), slice(tile.left // 4, tile.right // 4))
        return ModelOutput(HeadOutput(*(m[part] for m in output.head)), output.gate_shares[part], None)

    side = output.gate_shares.shape[-1] * 4
    height, width = size or (side, side)
    plan: Plan = plan_tiles(height, width, step=32, tile_px=tile_px)
    return find(run, plan, height=height, width=width, min_score=min_score, sure_score=0.5, ignore=ignore)


def test_a_planted_centre_comes_back_as_its_box() -> None:
    calls = found(planted((2, 5, 7, 0.8)))
    assert calls.labels.tolist() == [2]
    np.testing.assert_allclose(calls.scores, [0.8], atol=1e-6)
    assert calls.top_score == pytest.approx(0.8)
    # the centre of cell (5, 7) is (x, y) = (30, 22)
    np.testing.assert_allclose(calls.boxes, [[24, 14, 40, 34]])


def test_only_peaks_above_the_score_are_calls_best_first() -> None:
    spots = ((0, 2, 2, 0.6), (0, 2, 3, 0.5), (1, 12, 12, 0.9), (2, 18, 3, 0.05))
    calls = found(planted(*spots))
    assert calls.labels.tolist() == [1, 0]
    assert calls.scores.tolist() == sorted(calls.scores.tolist(), reverse=True)


def test_two_classes_at_one_spot_are_one_call() -> None:
    assert found(planted((0, 9, 9, 0.7), (1, 9, 9, 0.6))).labels.tolist() == [0]


def test_tiles_find_what_one_piece_finds_each_once() -> None:
    rng = np.random.default_rng(3)
    spots = [
        (int(rng.integers(3)), int(row), int(column), float(rng.uniform(0.3, 0.99)))
        for row in range(2, 160, 6)
        for column in range(2, 160, 6)
    ]
    board = planted(*spots, side=160)
    whole, tiled = found(board, tile_px=640), found(board, tile_px=160)
    assert len(whole.scores) == len(spots)
    order, tiled_order = (np.lexsort((c.boxes[:, 0], c.boxes[:, 1])) for c in (whole, tiled))
    np.testing.assert_allclose(tiled.boxes[tiled_order], whole.boxes[order], atol=1e-3)
    np.testing.assert_allclose(tiled.scores[tiled_order], whole.scores[order], atol=1e-5)
    assert tiled.labels[tiled_order].tolist() == whole.labels[order].tolist()
    np.testing.assert_allclose(tiled.defect_map, whole.defect_map, atol=1e-6)
    np.testing.assert_allclose(tiled.gate_shares.sum(0), 1, atol=1e-5)


def test_boxes_end_with_the_picture_and_those_beyond_it_are_none() -> None:
    calls = found(planted((0, 10, 74, 0.9), (0, 10, 79, 0.8)), size=(320, 300))
    np.testing.assert_allclose(calls.boxes, [[292, 34, 300, 54]])
    assert calls.defect_map.shape == (3, 80, 75)


def test_calls_mostly_in_an_ignore_zone_are_none_and_take_no_other_with_them() -> None:
    ignore = np.zeros((80, 80), np.bool_)
    ignore[:, :9] = True
    # of the four columns of cells under the first box three are ignored, of the second, beneath it, two
    calls = found(planted((0, 30, 7, 0.9), (1, 30, 8, 0.6), (2, 50, 3, 0.95)), ignore=ignore)
    assert calls.boxes.tolist() == [[28, 114, 44, 134]]
    assert calls.top_score == pytest.approx(0.6)


def test_more_than_half_of_a_box_counts() -> None:
    zone = np.zeros((10, 10), np.bool_)
    zone[2:6, 2:6] = True
    boxes = np.array([[8, 8, 24, 24], [0, 8, 24, 24], [0, 0, 24, 24], [38, 38, 40, 40]], np.float32)
    assert lies_in(boxes, zone).tolist() == [True, True, False, False]


def test_a_cell_without_a_number_is_not_covered() -> None:
    output = planted((0, 9, 9, 0.7))
    output.head.mask_logits[0, 1, 40, 41] = torch.nan
    calls = found(output)
    assert np.argwhere(~calls.is_answered).tolist() == [[40, 41]]
    covered, faults = coverage(calls.is_answered, unseen=None, ignore=None)
    assert covered == 1 - 1 / 6400
    assert "0.016 % of the board was not covered (1 cells of 4 px between x 164 and 168" in faults[0]
    assert "no finite number" in faults[0]


def test_what_is_unseen_counts_outside_ignore_zones_only() -> None:
    answered, unseen, ignore = np.ones((20, 30), np.bool_), *np.zeros((2, 20, 30), np.bool_)
    unseen[:2] = True
    ignore[:, 15:] = True
    covered, faults = coverage(answered, unseen=unseen, ignore=ignore)
    assert covered == 0.9
    assert "10 % of the board was not covered (30 cells of 4 px between x 0 and 60, y 0 and 8)" in faults[0]
    ignore[:2] = True
    assert coverage(answered, unseen=unseen, ignore=ignore) == (1.0, ())
    assert coverage(answered, unseen=None, ignore=~ignore | ignore)[1][0].startswith("all of the board lies")


def test_a_cell_is_unseen_where_one_of_its_pixels_is() -> None:
    pixels = np.zeros((9, 14), np.bool_)
    pixels[3, 4] = pixels[8, 13] = True
    assert np.argwhere(any_cells(pixels)).tolist() == [[0, 1], [2, 3]]
