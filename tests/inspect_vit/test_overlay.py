"""Overlays say what the result says: colours by threshold, boxes that hide nothing, one scale for all."""

from __future__ import annotations

import colorsys
from dataclasses import replace

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from inspect_vit import colours, evidence_overlay, overlay
from inspect_vit.annotation import draw_defects
from inspect_vit.drawing import upsample
from inspect_vit.results import Defect, InspectionResult, Verdict

CLASSES = ("open", "short")
THRESHOLDS = {"open": 0.2, "short": 0.6}
SHARE = {"4": 0.6, "16": 0.3, "32": 0.1}


def board(height: int, width: int, *, colour: bool = False) -> NDArray[np.uint8]:
    """Vertical tracks, 12 px wide: (height, width, 3)."""
    tracks = np.where((np.arange(width) // 12) % 2, 255, 0).astype(np.uint8)
    picture = np.broadcast_to(tracks[None, :, None], (height, width, 3)).copy()
    if colour:
        picture[..., 1] //= 2
    return picture


def result_for(
    image: NDArray[np.uint8], defects: tuple[Defect, ...] = (), *, probability: float = 0.0
) -> InspectionResult:
    height, width = image.shape[:2]
    cells = (-(-height // 4), -(-width // 4))
    return InspectionResult(
        verdict=Verdict.FAIL if defects else Verdict.PASS,
        reasons=(),
        score=max((defect.score for defect in defects), default=0.0),
        defects=defects,
        defect_map=np.full((2, *cells), probability, np.float32),
        gate_maps={level: np.full(cells, share, np.float32) for level, share in SHARE.items()},
        class_names=CLASSES,
        thresholds=THRESHOLDS,
        width=width,
        height=height,
        with_reference=True,
        model_name="tiny",
        model_version="0123456789ab",
        num_defects=0,
    )


def call(
    left: float, top: float, right: float, bottom: float, *, label: str = "short", score: float = 0.9
) -> Defect:
    return Defect(label, score, (left, top, right, bottom), 16, SHARE)


class TestScales:
    def test_a_class_reaches_the_middle_at_its_own_threshold(self) -> None:
        """0.4 is far above the threshold of `open` and below that of `short`."""
        cells = np.array([[[0.0, 0.1, 0.2, 0.6, 1.0]], [[0.0, 0.3, 0.6, 0.8, 1.0]]], np.float32)
        for index, name in enumerate(CLASSES):
            scale = colours.defect_scale(cells[[index]], [name], THRESHOLDS)
            np.testing.assert_allclose(scale[0], [0, 0.25, 0.5, 0.75, 1], atol=1e-6)

    def test_the_class_nearest_to_a_call_sets_the_colour(self) -> None:
        cells = np.array([[[0.1, 0.3]], [[0.5, 0.1]]], np.float32)
        scale = colours.defect_scale(cells, CLASSES, THRESHOLDS)
        np.testing.assert_allclose(scale, [[0.5 * 0.5 / 0.6, 0.5 + 0.5 * 0.1 / 0.8]], atol=1e-6)

    def test_uniform_attention_is_the_same_colour_on_every_board(self) -> None:
        values = np.array([0.0, 0.25, 1.0, 4.0, 16.0, 64.0, 99.0], np.float32)
        np.testing.assert_allclose(colours.attention_scale(values), [0, 0, 0.25, 0.5, 0.75, 1, 1], atol=1e-6)

    @pytest.mark.parametrize("table", [colours.DEFECT_TABLE, colours.ATTENTION_TABLE])
    def test_lightness_rises_all_along_a_scale(self, table: NDArray[np.uint8]) -> None:
        """Readable in print and by the colour-blind: CIE lightness alone orders the values."""
        lightness = cv2.cvtColor((table[None] / 255).astype(np.float32), cv2.COLOR_RGB2LAB)[0, :, 0]
        assert (np.diff(lightness) > -0.15).all()
        assert lightness[-1] - lightness[0] > 60

    def test_a_level_alone_shows_its_pure_colour_and_equal_shares_their_mean(self) -> None:
        one = {level: np.full((1, 1), float(level == "16"), np.float32) for level in SHARE}
        np.testing.assert_allclose(colours.gate_colour(one)[0, 0], colours.LEVEL_COLOURS["16"], atol=0.01)
        equal = {level: np.full((1, 1), 1 / 3, np.float32) for level in SHARE}
        mean = np.mean(list(colours.LEVEL_COLOURS.values()), axis=0)
        np.testing.assert_allclose(colours.gate_colour(equal)[0, 0], mean, atol=0.01)

    def test_cells_land_on_their_pixels(self) -> None:
        cells = np.zeros((5, 6), np.float32)
        cells[2, 3] = 1
        full = upsample(cells, 18, 23)
        assert full.shape == (18, 23)
        rows, columns = np.nonzero(full >= full.max() * 0.99)
        assert (rows.mean(), columns.mean()) == (4 * 2 + 1.5, 4 * 3 + 1.5)


class TestOverlay:
    def test_a_good_board_is_cold_everywhere(self) -> None:
        """Just under half of every threshold: no pixel is warm, and nothing is drawn on the board."""
        image = board(320, 320)
        result = result_for(image, probability=0.49 * 0.2)
        picture = overlay.render_overlay(image, result, legend=False).astype(int)
        assert (picture[..., 2] >= picture[..., 0]).all()
        assert (picture.std(axis=0) == 0).all(), "tracks run from top to bottom, so every row is alike"

    @pytest.mark.parametrize(("probability", "warm"), [(0.5, False), (0.75, True)])
    def test_colour_turns_warm_at_the_threshold(self, probability: float, warm: bool) -> None:
        image = board(160, 160)
        result = result_for(image)
        result.defect_map[1, 15:25, 15:25] = probability  # threshold of `short`: 0.6
        picture = overlay.render_overlay(image, result, legend=False).astype(int)
        red, _, blue = picture[80, 80]
        assert (red > 1.5 * blue) == warm

    def test_boxes_hide_no_pixel_of_the_defect(self) -> None:
        """Inside every box the overlay is the same with and without boxes, labels included."""
        image = board(400, 400, colour=True)
        boxes = [
            (50, 60, 80, 90),
            (70, 95, 100, 110),
            (5, 5, 30, 30),
            (370, 380, 395, 395),
            (200, 200, 204, 204),
        ]
        defects = tuple(call(*box) for box in boxes)
        result = result_for(image, defects)
        bare = overlay.render_overlay(image, replace(result, defects=()), legend=False)
        drawn = overlay.render_overlay(image, result)
        for left, top, right, bottom in boxes:
            np.testing.assert_array_equal(drawn[top:bottom, left:right], bare[top:bottom, left:right])
        assert (drawn != bare).any(axis=2).sum() > 2000, "frames and labels are there"

    def test_every_frame_and_label_stays_apart_and_inside(self) -> None:
        picture = board(300, 300)
        rng = np.random.default_rng(0)
        corners = [(x, y) for x in range(0, 300, 50) for y in range(0, 300, 50)]
        defects = [call(x, y, x + rng.integers(4, 20), y + rng.integers(4, 20)) for x, y in corners]
        taken = draw_defects(picture, defects, THRESHOLDS)
        assert len(taken) > len(defects), "labels were placed"
        for index, (left, top, right, bottom) in enumerate(taken):
            assert 0 <= left < right <= 300
            assert 0 <= top < bottom <= 300
            for other in taken[max(index + 1, len(defects)) :]:
                assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top

    def test_calls_listed_below_their_threshold_are_dim(self) -> None:
        def brightest(score: float) -> int:
            picture = np.zeros((200, 200, 3), np.uint8)
            draw_defects(picture, [call(80, 80, 120, 120, score=score)], THRESHOLDS)
            return int(picture.max())

        assert brightest(0.59) < brightest(0.61)

    def test_the_legend_goes_where_no_defect_is(self) -> None:
        image = board(640, 640)
        defects = tuple(call(x, y, x + 150, y + 60) for x, y in ((5, 5), (480, 5), (5, 570)))
        result = result_for(image, defects)
        with_legend = overlay.render_overlay(image, result)
        without = overlay.render_overlay(image, result, legend=False)
        rows, columns = np.nonzero((with_legend != without).any(axis=2))
        assert rows.min() > 320
        assert columns.min() > 320

    def test_no_legend_covers_a_defect_when_all_corners_hold_one(self) -> None:
        image = board(640, 640)
        corners = ((5, 5), (480, 5), (5, 570), (480, 570))
        result = result_for(image, tuple(call(x, y, x + 150, y + 60) for x, y in corners))
        np.testing.assert_array_equal(
            overlay.render_overlay(image, result), overlay.render_overlay(image, result, legend=False)
        )

    @pytest.mark.parametrize("size", [(20, 20), (17, 133), (64, 1200), (333, 255)])
    @pytest.mark.parametrize("count", [0, 1, 40])
    def test_any_size_and_number_of_defects(self, size: tuple[int, int], count: int) -> None:
        image = board(*size)
        rng = np.random.default_rng(count)
        corners = rng.uniform(0, (size[1] - 2, size[0] - 2), (count, 2))
        defects = tuple(call(x, y, min(x + 9, size[1]), min(y + 9, size[0])) for x, y in corners)
        result = result_for(image, defects, probability=0.3)
        attention = np.ones(result.defect_map.shape[1:], np.float32)
        for picture in (
            overlay.render_overlay(image, result),
            overlay.render_defect_map_colour(image, result),
            overlay.render_gate(image, result),
            evidence_overlay.render_attention(image, attention, "16"),
        ):
            assert picture.shape == image.shape
            assert picture.dtype == np.uint8

    def test_a_large_board_takes_little_more_than_its_pixels(self) -> None:
        """3000 x 3000 px in one go, lines and letters grown with it."""
        image = board(3000, 3000)
        result = result_for(image, (call(1500, 1500, 1530, 1530),))
        drawn = overlay.render_overlay(image, result, legend=False)
        bare = overlay.render_overlay(image, replace(result, defects=()), legend=False)
        rows, _ = np.nonzero((drawn != bare).any(axis=2))
        assert np.ptp(rows) > 60, "label of a 3000 px board is read at a third of its size"


class TestMaps:
    def test_defect_map_is_the_largest_probability(self) -> None:
        image = board(64, 96)
        result = result_for(image)
        result.defect_map[0], result.defect_map[1] = 0.2, 0.6
        picture = overlay.render_defect_map(result)
        assert picture.shape == (64, 96)
        assert (picture == round(0.6 * 255)).all()

    def test_gate_picture_shows_the_mix_of_its_shares(self) -> None:
        image = np.full((80, 80, 3), 90, np.uint8)
        picture = overlay.render_gate(image, result_for(image), legend=False)
        squares = {level: share**2 / 0.46 for level, share in SHARE.items()}  # 0.36 + 0.09 + 0.01
        want = sum(part * np.array(colours.LEVEL_COLOURS[level]) for level, part in squares.items())
        np.testing.assert_allclose(picture[40, 40], want, atol=1)

    def test_attention_picture_follows_its_scale_whatever_else_is_on_the_board(self) -> None:
        image = np.full((80, 160, 3), 90, np.uint8)
        cells = np.ones((20, 40), np.float32)
        cells[:, :20] = 4.0
        picture = evidence_overlay.render_attention(image, cells, "4", legend=False)
        np.testing.assert_array_equal(picture[40, 8], colours.ATTENTION_TABLE[128])
        np.testing.assert_array_equal(picture[40, 150], colours.ATTENTION_TABLE[64])

    def test_pictures_survive_png(self) -> None:
        for picture in (board(40, 60, colour=True), board(40, 60)[..., 0]):
            back = cv2.imdecode(np.frombuffer(overlay.encode_png(picture), np.uint8), cv2.IMREAD_UNCHANGED)
            np.testing.assert_array_equal(back[..., ::-1] if picture.ndim == 3 else back, picture)


class TestSheet:
    def test_verdicts_have_their_colours(self) -> None:
        image = board(120, 160)
        hues = {}
        for verdict in Verdict:
            result = replace(result_for(image), verdict=verdict, reasons=("black frame",))
            badge = overlay.render_sheet(image, None, result)[34, 34] / 255
            hues[verdict] = colorsys.rgb_to_hsv(*badge)[0] * 360
        assert 130 < hues[Verdict.PASS] < 180
        assert 10 < hues[Verdict.FAIL] < 40
        assert 45 < hues[Verdict.ERROR] < 65

    def test_all_panels_and_close_looks_are_there(self) -> None:
        """The sheet grows by a row of panels for attention and a row of crops for defects."""
        image = board(640, 640)
        result = result_for(image)
        attention = {level: np.ones((160, 160), np.float32) for level in SHARE}
        plain = overlay.render_sheet(image, image, replace(result, defects=()))
        full = overlay.render_sheet(image, image, result_for(image, (call(300, 300, 320, 320),)), attention)
        assert full.shape[1] == plain.shape[1]
        assert full.shape[0] - plain.shape[0] > overlay.CLOSE_LOOK_PX

    def test_a_shrunk_defect_keeps_its_peak(self) -> None:
        """One hot cell of a 2560 px board is still seen on the sheet's 640 px panel."""
        image = np.full((2560, 2560, 3), 128, np.uint8)
        result = result_for(image)
        quiet = overlay.render_sheet(image, None, result)
        result.defect_map[1, 301, 422] = 1.0
        hot = overlay.render_sheet(image, None, result)
        changed = (hot != quiet).any(axis=2)
        assert changed.sum() > 20
        assert hot[changed].max() > 200
