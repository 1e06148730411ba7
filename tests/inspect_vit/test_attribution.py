"""Maps of a board, a defect or a point; relevance; ablation: each against something it must equal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from inspect_vit.ablation import Evidence, ablation_drop, evidence
from inspect_vit.alignment import as_posted
from inspect_vit.attribution import (
    attention_cells,
    attention_heads,
    explanation_maps,
    inspect_with_attention,
)
from inspect_vit.cells import defect_query, point_query, to_cells
from inspect_vit.errors import ConfigError
from inspect_vit.inspector import Inspector
from inspect_vit.relevance import relevance
from inspect_vit.results import Defect, InspectionResult
from inspect_vit.trace import called_cell, trace

Pair = tuple[NDArray[np.uint8], NDArray[np.uint8]]


@pytest.fixture(scope="module")
def result(small_inspector: Inspector, board_pair: Pair) -> InspectionResult:
    image, reference = board_pair
    return small_inspector.inspect(image, reference=as_posted(image, reference), min_score=0.02)


def test_attention_of_the_whole_board_is_what_the_inspector_gives(
    small_inspector: Inspector, board_pair: Pair
) -> None:
    image, reference = board_pair
    traced = trace(small_inspector, image, reference=reference)
    for level, wanted in small_inspector.attention(image, reference=as_posted(image, reference)).items():
        np.testing.assert_allclose(attention_cells(small_inspector, traced, level), wanted, atol=1e-6)


def test_a_point_is_asked_in_its_own_window_only(small_inspector: Inspector, board_pair: Pair) -> None:
    """x 70, y 41 lies in a 16 px window of the fine level and a 32 px window of the middle one."""
    image, _ = board_pair
    traced = trace(small_inspector, image)
    query = point_query(70, 41, width=118, height=90)
    assert query.shape == (23, 30)
    assert np.argwhere(query).tolist() == [[10, 17]]
    for level, side in (("4", 16), ("16", 32)):
        cells = attention_cells(small_inspector, traced, level, query=query)
        rows, columns = np.nonzero(cells)
        top, left, cell = 41 // side * side // 4, 70 // side * side // 4, side // 4
        assert (rows.min(), columns.min()) == (top, left)
        assert (rows.max(), columns.max()) == (top + cell - 1, left + cell - 1)
    assert (attention_cells(small_inspector, traced, "32", query=query) > 0).all()


def test_heads_are_apart_and_their_mean_is_the_default(small_inspector: Inspector, board_pair: Pair) -> None:
    traced = trace(small_inspector, board_pair[0])
    heads = attention_heads(small_inspector, traced, "16")
    assert heads.shape == (2, 6, 8)
    assert np.abs(heads[0] - heads[1]).max() > 1e-4
    cells = [attention_cells(small_inspector, traced, "16", head=head) for head in (0, 1, None)]
    np.testing.assert_allclose((cells[0] + cells[1]) / 2, cells[2], atol=1e-6)
    with pytest.raises(ConfigError, match="head: 2, wanted 0 to 1 on the 16 px level"):
        attention_cells(small_inspector, traced, "16", head=2)
    with pytest.raises(ConfigError, match="level '8', wanted one of 4, 16, 32"):
        attention_cells(small_inspector, traced, "8")


def test_a_defect_asks_its_cells_by_their_probability() -> None:
    defect_map = np.zeros((2, 23, 30), np.float32)
    defect_map[1, 8:12, 16:19] = 0.5
    defect_map[1, 9, 17] = 1.0
    defect_map[0] = 1.0
    query = defect_query(defect_map, ("a", "b"), Defect("b", 0.9, (65.0, 34.0, 75.0, 43.0), 16, {}))
    rows, columns = np.nonzero(query)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (8, 10, 16, 18)
    assert query[9, 17] == pytest.approx(2 * query[8, 16], rel=1e-4)
    with pytest.raises(ConfigError, match="x: 118, wanted 0 to below 118"):
        point_query(118, 5, width=118, height=90)
    with pytest.raises(ConfigError, match="defect class 'c', wanted one of a, b"):
        defect_query(defect_map, ("a", "b"), Defect("c", 0.9, (0, 0, 9, 9), 16, {}))


def test_tokens_cover_their_cells() -> None:
    grid = np.arange(6, dtype=np.float32).reshape(2, 3)
    cells = to_cells(grid, (5, 11), 4)
    assert cells.shape == (5, 11)
    assert (cells[3, 3], cells[4, 4], cells[0, 10]) == (0, 4, 2)


def test_every_call_is_traced_to_the_cell_that_made_it(
    small_inspector: Inspector, board_pair: Pair, result: InspectionResult
) -> None:
    """Its centre score is the call's score, also with a report's decimals; by hand, the likeliest."""
    assert len(result.defects) > 3
    head = trace(small_inspector, board_pair[0], reference=board_pair[1]).output.head
    for defect in result.defects:
        box = tuple(round(edge, 2) for edge in defect.box_xyxy)
        reported = replace(defect, box_xyxy=box, score=round(defect.score, 4))
        label = result.class_names.index(defect.label)
        row, column = called_cell(head, label, reported, height=90, width=118)
        score = float(head.centre_logits[0, label, row, column].sigmoid())
        assert score == pytest.approx(defect.score)
        row, column = called_cell(head, label, replace(defect, score=1.0), height=90, width=118)
        assert float(head.centre_logits[0, label, row, column].sigmoid()) >= score - 1e-6


def test_all_maps_of_a_defect_cover_the_board(
    small_inspector: Inspector, board_pair: Pair, result: InspectionResult
) -> None:
    image, reference = board_pair
    defect = result.defects[0]
    maps = explanation_maps(small_inspector, image, reference=reference, defect=defect)
    keys = ["attention 4", "attention 16", "attention 32", "gate", "rollout", "relevance", "defect map"]
    assert list(maps) == keys
    for name, cells in maps.items():
        assert cells.shape == (23, 30), name
        assert cells.dtype == np.float32
        assert cells.min() >= 0 and cells.max() > 0
    label = result.class_names.index(defect.label)
    np.testing.assert_allclose(maps["defect map"], result.defect_map[label], atol=1e-6)
    top = max(defect.gate_share, key=lambda level: defect.gate_share[level])
    np.testing.assert_allclose(maps["gate"], result.gate_maps[top], atol=1e-6)
    assert maps["rollout"].sum() <= 1 + 1e-5
    without = explanation_maps(small_inspector, image, reference=None, defect=defect)
    assert list(without) == keys


def test_relevance_sums_to_what_the_difference_did(
    small_inspector: Inspector, board_pair: Pair, result: InspectionResult
) -> None:
    """Completeness of integrated gradients, on cells and on pixels."""
    image, reference = board_pair
    found = relevance(small_inspector, image, reference=reference, defect=result.defects[0], steps=48)
    logit = float(torch.logit(torch.tensor(result.defects[0].score)))
    assert found.logit == pytest.approx(logit, abs=1e-4)
    done = found.logit - found.baseline_logit
    assert abs(done) > 0.1
    assert found.total.sum() == pytest.approx(done, rel=0.02)
    assert found.pixels.sum() == pytest.approx(done, rel=0.02)


def test_relevance_of_pixels_is_that_of_their_patches_split_up(
    small_inspector: Inspector, board_pair: Pair, result: InspectionResult
) -> None:
    image, reference = board_pair
    found = relevance(small_inspector, image, reference=reference, defect=result.defects[0])
    by_pixel = np.pad(found.pixels, ((0, 6), (0, 10))).reshape(3, 32, 4, 32).sum((1, 3))
    by_cell = np.pad(found.total, ((0, 1), (0, 2))).reshape(3, 8, 4, 8).sum((1, 3))
    np.testing.assert_allclose(by_pixel, by_cell, atol=1e-4)


def test_what_the_reference_shows_too_has_no_relevance(
    small_inspector: Inspector, board_pair: Pair, result: InspectionResult
) -> None:
    image, reference = board_pair
    found = relevance(small_inspector, image, reference=reference, defect=result.defects[0])
    differs = (image != reference).any(2)
    assert (found.pixels[~differs] == 0).all()
    assert (found.pixels[differs] != 0).all()
    rows, columns = np.nonzero(found.levels["4"])
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (8, 11, 16, 18)


def test_a_level_that_is_not_heard_loses_nothing(
    small_inspector: Inspector, board_pair: Pair, result: InspectionResult
) -> None:
    image, reference = board_pair
    heard = evidence(small_inspector, image, reference=reference, defects=result.defects)
    assert len(heard) == len(result.defects)
    assert all(abs(drop) > 1e-6 for drop in heard[0].drop.values())
    fuse16 = small_inspector.model.fuse16
    deaf = {"w_o_low.weight", "w_o_low.bias", "w_g_low.weight"}
    kept = {name: value.clone() for name, value in fuse16.state_dict().items()}
    try:
        with torch.no_grad():
            for name, value in fuse16.state_dict().items():
                if name in deaf:
                    value.zero_()
        for source in (reference, None):
            drop = ablation_drop(small_inspector, image, reference=source, defect=result.defects[0])
            assert drop["32"] == pytest.approx(0, abs=1e-6)
            assert abs(drop["4"]) > 1e-4
    finally:
        fuse16.load_state_dict(kept)


def test_a_board_that_is_its_reference_has_nothing_to_lose(
    small_inspector: Inspector, board_pair: Pair, result: InspectionResult
) -> None:
    _, reference = board_pair
    drop = ablation_drop(small_inspector, reference, reference=reference, defect=result.defects[0])
    assert drop == {"4": 0.0, "16": 0.0, "32": 0.0}


def test_levels_disagree_when_one_speaks_against_the_call() -> None:
    def shown(fine: float, context: float) -> Evidence:
        return Evidence(logit=2.0, drop={"4": fine, "16": 0.0, "32": 0.0}, context_drop=context)

    assert shown(3.0, 1.0).disagrees == ""
    assert shown(3.0, 1.0).disagreement == -1.0
    assert shown(3.0, -0.5).disagrees == "fine alarm, context against"
    assert shown(-0.5, 3.0).disagrees == "context alarm, fine against"
    assert shown(-0.5, 3.0).disagreement == 0.5
    assert shown(2.0, 0.0).score_drop["4"] == pytest.approx(1 / (1 + np.exp(-2)) - 0.5)


def test_verdict_and_attention_come_of_one_pass(small_inspector: Inspector, board_pair: Pair) -> None:
    image, reference = board_pair
    laid = as_posted(image, reference)
    alone = small_inspector.inspect(image, reference=laid, min_score=0.02)
    passes: list[int] = []
    counter = small_inspector.model.head.register_forward_hook(lambda *_: passes.append(1))
    try:
        together, heads = inspect_with_attention(small_inspector, image, reference=laid, min_score=0.02)
    finally:
        counter.remove()
    assert len(passes) == 1
    assert together.defects == alone.defects and together.verdict == alone.verdict
    np.testing.assert_array_equal(together.defect_map, alone.defect_map)
    assert set(together.timings_ms) == set(alone.timings_ms) and together.timings_ms["model"] > 0
    wanted = small_inspector.attention(image, reference=laid)
    for level, by_head in heads.items():
        cells = to_cells(by_head.mean(0), (23, 30), int(level) // 4)
        np.testing.assert_allclose(cells, wanted[level], atol=1e-6)
