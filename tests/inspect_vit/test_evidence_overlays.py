"""Overlays of attention rows, heads and relevance, and views of a part of a board."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from inspect_vit import colours, evidence_overlay, overlay
from inspect_vit.drawing import upsample
from inspect_vit.errors import ConfigError
from inspect_vit.legends import WARNING, Note
from inspect_vit.results import Defect, InspectionResult, Verdict
from inspect_vit.views import View

GREY = np.full((160, 240, 3), 90, np.uint8)


def hot_cell(row: int, column: int, value: float = 1.0) -> NDArray[np.float32]:
    cells = np.zeros((40, 60), np.float32)
    cells[row, column] = value
    return cells


class TestView:
    @pytest.mark.parametrize("longest", [60, 400])
    def test_a_spot_of_the_map_stays_on_its_spot_of_the_picture(self, longest: int) -> None:
        """Cell (20, 35) covers pixels 80..84, 140..144 of the board: marked there, found at one place."""
        board = np.zeros((160, 240, 3), np.uint8)
        board[80:84, 140:144] = 255
        view = View.fit((100, 40, 200, 140), longest)
        shown = view.picture(board)[..., 0].astype(np.float64)
        cells = upsample(view.cells(hot_cell(20, 35)), *shown.shape).astype(np.float64)
        for part in (shown, cells):
            assert part.sum() > 0
        centres = [
            np.array([(part.sum(axis) * np.arange(part.shape[1 - axis])).sum() for axis in (1, 0)])
            / part.sum()
            for part in (shown, cells)
        ]
        np.testing.assert_allclose(centres[0], centres[1], atol=2.5)
        np.testing.assert_allclose(centres[0], np.array([42 - 0.5, 42 - 0.5]) * view.zoom, atol=1 + view.zoom)

    def test_a_result_is_cut_with_its_boxes(self) -> None:
        inside = Defect("a", 0.9, (120.0, 60.0, 140.0, 80.0), 16, {"4": 1.0})
        outside = Defect("a", 0.8, (0.0, 0.0, 90.0, 30.0), 16, {"4": 1.0})
        maps = {"4": np.ones((40, 60), np.float32)}
        result = InspectionResult(
            verdict=Verdict.FAIL,
            reasons=(),
            score=0.9,
            defects=(outside, inside),
            defect_map=hot_cell(17, 32)[None],
            gate_maps=maps,
            class_names=("a",),
            thresholds={"a": 0.5},
            width=240,
            height=160,
            with_reference=True,
            model_name="m",
            model_version="v",
            num_defects=1,
        )
        cut = View.fit((100, 40, 200, 140), 300).result(result)
        assert [defect.box_xyxy for defect in cut.defects] == [(60, 60, 120, 120)]
        assert cut.defect_map.shape == (1, 75, 75)
        assert overlay.render_overlay(View.fit((100, 40, 200, 140), 300).picture(GREY), cut).shape == (
            300,
            300,
            3,
        )

    def test_refuses_what_is_not_on_the_board(self) -> None:
        with pytest.raises(ConfigError, match="wanted left < right"):
            View.fit((10, 10, 10, 20), 100)
        with pytest.raises(ConfigError, match=r"\(0, 0, 300, 20\) does not lie on the picture of 240 x 160"):
            View.fit((0, 0, 300, 20), 100).picture(GREY)


class TestRelevance:
    def test_scale_is_fixed_and_two_sided(self) -> None:
        values = np.array([-9.0, -1.0, -0.5, 0.0, 0.5, 1.0, 9.0], np.float32)
        np.testing.assert_allclose(colours.relevance_scale(values), [0, 0, 0.25, 0.5, 0.75, 1, 1])

    def test_lightness_rises_evenly_to_both_sides(self) -> None:
        """Equal steps look equal, and the two sides are told apart by their blue against their red."""
        table = colours.RELEVANCE_TABLE
        lab = cv2.cvtColor((table[None] / 255).astype(np.float32), cv2.COLOR_RGB2LAB)[0]
        for side in (lab[127::-1], lab[128:]):
            steps = np.linalg.norm(np.diff(side[::8], axis=0), axis=1)
            assert steps.max() < 1.5 * steps.min()
            assert side[-1, 0] - side[0, 0] > 50
        assert int(table[0][2]) - int(table[0][0]) > 100
        assert int(table[-1][0]) - int(table[-1][2]) > 100

    def test_for_is_warm_against_is_cold_and_none_is_the_board(self) -> None:
        relevance = hot_cell(10, 10) - hot_cell(10, 40)
        picture = evidence_overlay.render_relevance(GREY, relevance, legend=False).astype(int)
        bare = evidence_overlay.render_relevance(GREY, np.zeros_like(relevance), legend=False).astype(int)
        assert picture[42, 42, 0] > picture[42, 42, 2] + 80
        assert picture[42, 162, 2] > picture[42, 162, 0] + 80
        np.testing.assert_array_equal(picture[100:], bare[100:])


class TestAttention:
    def test_the_asked_cells_are_framed(self) -> None:
        cells, query = np.ones((40, 60), np.float32), hot_cell(20, 30)
        plain = evidence_overlay.render_attention(GREY, cells, "4", legend=False)
        framed = evidence_overlay.render_attention(GREY, cells, "4", query=query, legend=False)
        rows, columns = np.nonzero((plain != framed).any(2))
        assert abs(rows.mean() - 82) < 2 and abs(columns.mean() - 122) < 2
        assert np.ptp(rows) < 40

    def test_a_contour_runs_where_it_is_asked(self) -> None:
        cells = np.ones((40, 60), np.float32)
        cells[:, 30:] = 16.0
        plain = evidence_overlay.render_attention(GREY, cells, "4", legend=False)
        drawn = evidence_overlay.render_attention(GREY, cells, "4", contour=4.0, legend=False)
        rows, columns = np.nonzero((plain != drawn).any(2)[5:-5, :-5])
        assert len(rows) and abs(columns - 120).max() <= 4

    @pytest.mark.parametrize(("count", "panels"), [(1, 1), (2, 3), (5, 6)])
    def test_every_head_has_its_panel_on_one_scale(self, count: int, panels: int) -> None:
        """Panels of uniform attention hold the colour of 1; the head that looks harder shows in its own."""
        heads = np.ones((count, 40, 60), np.float32)
        heads[0] = 16.0
        drawn = evidence_overlay.render_heads(GREY, heads, "16")
        columns = min(panels, 4)
        cell = (drawn.shape[1] - 2 * 28 - (columns - 1) * 20) // columns
        assert cell == evidence_overlay.HEAD_PANEL_PX
        colour = {1.0: colours.ATTENTION_TABLE[64], 16.0: colours.ATTENTION_TABLE[191]}
        for number in range(min(count, 4)):
            left = 28 + number * (cell + 20) + cell // 2
            want = colour[16.0 if number == 0 else 1.0].astype(int)
            assert np.abs(drawn[180, left].astype(int) - want).max() <= 1, number


class TestNote:
    def test_a_doubtful_map_says_so_on_the_picture(self) -> None:
        """In a colour that little else on the picture has: the end of a bar alone."""
        board, cells = np.full((400, 600, 3), 90, np.uint8), np.ones((100, 150), np.float32)
        doubt = Note("not reliable", ("score 0.90, without this 0.89",), is_warning=True)
        fine = Note("reliable", ("score 0.90, without this 0.02",))
        drawings = {
            "attention": lambda note: evidence_overlay.render_attention(board, cells, "16", note=note),
            "rollout": lambda note: evidence_overlay.render_rollout(board, cells / 15000, note=note),
            "relevance": lambda note: evidence_overlay.render_relevance(board, 0 * cells, note=note),
            "heads": lambda note: evidence_overlay.render_heads(board, cells[None], "16", note=note),
        }
        for name, draw in drawings.items():
            yellow = {
                note: int((np.abs(draw(note).astype(int) - WARNING).max(2) < 30).sum())
                for note in (doubt, fine, None)
            }
            assert yellow[doubt] > yellow[None] + 50, name
            assert yellow[fine] == yellow[None] < 100, name

    def test_the_warning_stays_where_the_legend_has_no_room(self) -> None:
        board, cells = np.full((120, 320, 3), 90, np.uint8), np.ones((30, 80), np.float32)
        doubt = Note("not reliable", ("score 0.90, without this 0.89",), is_warning=True)
        bare = evidence_overlay.render_attention(board, cells, "4", legend=False)
        drawn = evidence_overlay.render_attention(board, cells, "4", note=doubt)
        assert (np.abs(drawn.astype(int) - WARNING).max(2) < 30).sum() > 50
        fine = evidence_overlay.render_attention(board, cells, "4", note=Note("reliable", ("a", "b")))
        np.testing.assert_array_equal(fine, bare)


def test_rollout_scale_is_fixed_and_logarithmic() -> None:
    values = np.array([0, 1e-5, 1e-3, 1e-1, 1], np.float32)
    np.testing.assert_allclose(colours.rollout_scale(values), [0, 0, 0.5, 1, 1], atol=1e-6)
