"""Boards larger than a tile through the front door: verdicts, counts, coverage, attention, questions."""

from __future__ import annotations

import copy
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from inspect_vit.ablation import evidence
from inspect_vit.alignment import as_posted
from inspect_vit.attribution import attention_cells, board_attention, explanation_maps
from inspect_vit.cells import point_query
from inspect_vit.errors import ConfigError, ImageTooLargeError
from inspect_vit.findings import MAX_LISTED, Findings, find
from inspect_vit.inspector import Inspector
from inspect_vit.matching import box_iou
from inspect_vit.model import ModelOutput
from inspect_vit.perturbation import pose
from inspect_vit.relevance import relevance
from inspect_vit.results import Defect, Verdict
from inspect_vit.tiling import Plan, Span, Tile
from inspect_vit.trace import trace

Picture = NDArray[np.uint8]


def board(height: int, width: int, seed: int = 0) -> Picture:
    coarse = (
        np.random.default_rng(seed).integers(0, 2, (height // 8 + 1, width // 8 + 1), np.uint8) * 200 + 20
    )
    whole = np.kron(coarse, np.ones((8, 8), np.uint8))[:height, :width]
    return np.repeat(whole[..., None], 3, 2)


@pytest.fixture(scope="module")
def tiled(small_inspector: Inspector) -> Inspector:
    """The small model, cutting boards of more than 128 px."""
    inspector = copy.copy(small_inspector)
    inspector.tile_px = 128
    return inspector


@pytest.fixture(scope="module")
def pair() -> tuple[Picture, Picture]:
    """A board of 250 x 390 px and its reference; they differ in rows 150 to 166, columns 200 to 212."""
    reference = board(250, 390)
    image = reference.copy()
    image[150:166, 200:212] = 255 - image[150:166, 200:212]
    return image, reference


def test_the_tiles_side_is_a_setting(tiny_checkpoint: Path) -> None:
    assert Inspector(tiny_checkpoint).tile_px == 1280
    assert Inspector(tiny_checkpoint, tile_px=640).tile_px == 640
    with pytest.raises(ConfigError, match="tile_px: 500, wanted a multiple of 320"):
        Inspector(tiny_checkpoint, tile_px=500)


def test_a_board_in_tiles_has_maps_boxes_and_shares_like_any_other(
    tiled: Inspector, pair: tuple[Picture, Picture]
) -> None:
    image, reference = pair
    assert tiled.plan(image).num_tiles > 6
    result = tiled.inspect(image, reference=as_posted(image, reference), min_score=0.05)
    assert result.defect_map.shape == (2, 63, 98)
    assert result.covered == 1.0
    np.testing.assert_allclose(sum(result.gate_maps.values()), np.ones((63, 98)), atol=1e-5)
    assert result.defects
    for defect in result.defects:
        left, top, right, bottom = defect.box_xyxy
        assert 0 <= left < right <= 390
        assert 0 <= top < bottom <= 250
        assert sum(defect.gate_share.values()) == pytest.approx(1)


def test_far_from_other_tiles_the_maps_are_those_of_the_tile_alone(
    tiled: Inspector, pair: tuple[Picture, Picture]
) -> None:
    image, reference = pair
    whole = tiled.inspect(image, reference=as_posted(image, reference))
    tile = tiled.plan(image).tiles[0]
    next_row, next_column = tiled.plan(image).rows[1][0], tiled.plan(image).columns[1][0]
    part = as_posted(tile.of(image), tile.of(reference))
    alone = tiled.inspect(tile.of(image), reference=part)
    inside = (..., slice(next_row // 4), slice(next_column // 4))
    np.testing.assert_allclose(whole.defect_map[inside], alone.defect_map[inside], atol=1e-6)


def test_every_call_is_counted_and_not_all_are_listed(small_inspector: Inspector) -> None:
    noise = board(1200, 1200, seed=3)
    result = small_inspector.inspect(noise)
    assert result.num_defects > MAX_LISTED == len(result.defects)
    assert result.reasons[0].startswith(f"process failure: {result.num_defects} calls (limit 300); check")
    assert sum(int(line.split()[0]) for line in result.reasons[1:]) == result.num_defects
    few = small_inspector.inspect(board(64, 64, seed=3))
    assert few.num_defects == len(few.defects) == sum(int(line.split()[0]) for line in few.reasons)
    assert not few.reasons[0].startswith("process failure")


def test_a_board_of_which_a_part_is_unseen_is_not_passed(tiled: Inspector) -> None:
    image = board(120, 390)
    unseen, ignore = np.zeros((2, 30, 98), np.bool_)
    unseen[:, 90:] = True
    result = tiled.inspect(image, unseen=unseen)
    assert result.verdict is Verdict.ERROR
    assert result.covered == pytest.approx(90 / 98)
    assert result.reasons == (
        "8.2 % of the board was not covered (240 cells of 4 px between x 360 and 392, y 0 and 120): the "
        "board is not in the picture there, or there is no reference to compare it with",
    )
    assert (result.defects, result.num_defects) == ((), 0)
    ignore[:, 80:] = True
    ignored = tiled.inspect(image, unseen=unseen, ignore=ignore)
    assert ignored.verdict is Verdict.FAIL
    assert ignored.covered == 1.0
    full = tiled.inspect(image)
    assert 0 < ignored.num_defects < full.num_defects
    assert max(defect.box_xyxy[0] for defect in full.defects) > 340
    # less than half of a box may lie in the zone
    assert all(sum(defect.box_xyxy[::2]) / 2 < 4 * 80 + 8 for defect in ignored.defects)
    assert tiled.inspect(image, ignore=~np.zeros_like(ignore)).verdict is Verdict.ERROR
    with pytest.raises(
        ConfigError, match=r"ignore: a mask of bool and shape \(120, 390\), wanted bool \(30, 98\)"
    ):
        tiled.inspect(image, ignore=np.zeros((120, 390), np.bool_))


def test_attention_of_a_board_in_tiles_averages_to_uniform(
    tiled: Inspector, pair: tuple[Picture, Picture]
) -> None:
    image, reference = pair
    maps = tiled.attention(image, reference=as_posted(image, reference))
    heads = board_attention(tiled, image, reference=reference)
    for level, factor in (("4", 1), ("16", 4), ("32", 8)):
        assert maps[level].shape == (63, 98)
        assert maps[level].mean() == pytest.approx(1, abs=0.15)
        assert heads[level].shape[1:] == (-(-63 // factor), -(-98 // factor))
        repeated = heads[level].mean(0).repeat(factor, 0).repeat(factor, 1)[:63, :98]
        np.testing.assert_allclose(repeated, maps[level], atol=1e-4)


def test_a_point_is_asked_of_the_tile_around_it(tiled: Inspector, pair: tuple[Picture, Picture]) -> None:
    image, reference = pair
    asked = board_attention(
        tiled, image, reference=reference, query=point_query(206, 158, width=390, height=250)
    )
    part = Tile(96, 128, 224, 256)  # the tile of 128 px at a multiple of 32 whose middle is nearest
    traced = trace(tiled, part.of(image), reference=part.of(reference))
    for level, factor in (("4", 1), ("16", 4), ("32", 8)):
        query = point_query(206 - 128, 158 - 96, width=128, height=128)
        alone = attention_cells(tiled, traced, level, query=query)
        spread = asked[level].mean(0).repeat(factor, 0).repeat(factor, 1)
        np.testing.assert_allclose(spread[24:56, 32:64], alone, atol=1e-5)
        assert spread.sum() == pytest.approx(alone.sum(), rel=1e-4)


def test_a_defect_is_explained_in_the_tile_around_it(tiled: Inspector, pair: tuple[Picture, Picture]) -> None:
    image, reference = pair
    defect = Defect("a", 0.5, (196, 146, 216, 170), 16, {"4": 0.4, "16": 0.3, "32": 0.3})
    part = Tile(96, 128, 224, 256)
    moved = Defect("a", 0.5, (68, 50, 88, 74), 16, defect.gate_share)
    pictures, parts = {"reference": reference}, {"reference": part.of(reference)}
    maps = explanation_maps(tiled, image, **pictures, defect=defect)
    alone = explanation_maps(tiled, part.of(image), **parts, defect=moved)
    assert maps.keys() == alone.keys()
    for name in maps:
        assert maps[name].shape == (63, 98)
        np.testing.assert_allclose(maps[name][24:56, 32:64], alone[name], atol=1e-5)
    spoke = relevance(tiled, image, **pictures, defect=defect)
    assert spoke.pixels.shape == (250, 390)
    rows, columns = np.nonzero(spoke.pixels)
    assert (rows.min() >= 150, rows.max() < 166, columns.min() >= 200, columns.max() < 212) == (True,) * 4
    (found,) = evidence(tiled, image, **pictures, defects=[defect])
    (same,) = evidence(tiled, part.of(image), **parts, defects=[moved])
    assert found.drop == pytest.approx(same.drop, abs=1e-4)
    scene = pose(tiled, image, **pictures, defect=defect, whole=True)
    nothing, everything = np.zeros((2, *scene.region.shape), np.bool_)
    everything[:] = True
    scores = scene.scores(np.stack([nothing, everything]))
    close = pose(tiled, part.of(image), **parts, defect=moved, whole=True)
    np.testing.assert_allclose(
        scores[0], close.scores(np.zeros((1, *close.region.shape), np.bool_))[0], atol=1e-5
    )
    assert np.abs(scores[1] - scores[0]).max() > 1e-3


def test_no_trace_is_kept_of_a_whole_large_board(tiled: Inspector) -> None:
    with pytest.raises(ImageTooLargeError, match="limit of a trace is 16 megapixels"):
        trace(tiled, np.broadcast_to(np.zeros((1, 1, 3), np.uint8), (4001, 4000, 3)))


def mosaic(root: Path, ending: str, names: list[str]) -> Picture:
    pictures = [cv2.imread(str(root / "PCBData" / f"{name}_{ending}.jpg")) for name in names]
    return np.ascontiguousarray(np.concatenate(pictures, 1))


def test_a_grid_shifted_by_half_a_tile_finds_the_same_defects(deeppcb_root: Path, project: Path) -> None:
    lines = (deeppcb_root / "PCBData" / "test.txt").read_text(encoding="utf-8").split("\n")
    names = [line.split()[0].removesuffix(".jpg") for line in lines[:400:100]]
    image, reference = (mosaic(deeppcb_root, ending, names) for ending in ("test", "temp"))
    inspector = Inspector(project / "inspect_vit" / "weights" / "generic-nano.safetensors", device="cpu")

    def run(tile: Tile) -> ModelOutput:
        output: ModelOutput = inspector.model(*inspector.tensors(tile.of(image), tile.of(reference)))
        return output

    def found(*columns: Span) -> Findings:
        plan = Plan(((0, 640),), columns, 320)
        return find(run, plan, height=640, width=2560, min_score=0.05, sure_score=0.3)

    grid = found((0, 1280), (960, 2240), (1920, 2560))
    shifted = found((0, 640), (320, 1600), (1280, 2560))
    limit = min(inspector.metadata.thresholds["with_reference"].values())
    for one, other in ((grid, shifted), (shifted, grid)):
        sure = one.scores > limit + 0.1
        assert sure.sum() >= 12
        overlap = box_iou(one.boxes[sure], other.boxes)
        same = (overlap > 0.7) & (one.labels[sure][:, None] == other.labels)
        assert same.any(1).all()
        assert np.abs(one.scores[sure] - other.scores[same.argmax(1)]).max() < 0.1
