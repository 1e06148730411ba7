"""Maps on tiles: at the same place as on a picture drawn at full size, and nothing hot lost on the way up."""

from __future__ import annotations

import numpy as np
import pytest

from inspect_vit.cells import cells_of
from inspect_vit.colours import look_up
from inspect_vit.drawing import upsample
from inspect_vit.map_tiles import (
    ATTENTION_RGBA,
    DEFECT_RGBA,
    MapLevels,
    attention_value,
    map_levels,
    paint_difference,
    paint_gate,
    table_colour,
)

HEIGHT, WIDTH, TILE = 403, 1090, 128
"""Neither a multiple of 4 nor of the tile."""


def stitched(levels: MapLevels, level: int) -> np.ndarray:
    """All of a level, put together from tiles."""
    side = 1 << level
    height, width = -(-HEIGHT // side), -(-WIDTH // side)
    rows = []
    for top in range(0, height, TILE):
        bottom = min(top + TILE, height)
        parts = [
            levels.part(level, (left, top, min(left + TILE, width), bottom)) for left in range(0, width, TILE)
        ]
        rows.append(np.concatenate(parts, axis=1))
    return np.concatenate(rows)


@pytest.fixture
def cells() -> np.ndarray:
    return np.random.default_rng(0).random(cells_of(HEIGHT, WIDTH), np.float32)


def test_tiles_of_full_size_are_the_map_drawn_at_full_size(cells: np.ndarray) -> None:
    levels = map_levels(cells, 5, keep="highest")
    np.testing.assert_allclose(stitched(levels, 0), upsample(cells, HEIGHT, WIDTH), atol=1e-3)


@pytest.mark.parametrize("level", range(6))
def test_every_pixel_of_every_level_lies_where_it_lies_on_the_board(level: int) -> None:
    rows, columns = cells_of(HEIGHT, WIDTH)
    y, x = np.mgrid[0:rows, 0:columns].astype(np.float32) * 4 + 2
    # A map whose values are the places themselves, in shares of the board.
    found = stitched(map_levels(np.stack((x / WIDTH, y / HEIGHT), -1), 6, keep="mean"), level)
    side = 1 << level
    down, across = (side * (np.arange(length) + 0.5) for length in found.shape[:2])
    # At the edges values are repeated, and the last row and column may reach beyond the board.
    inside = np.ix_((down > 4) & (down < HEIGHT - side - 4), (across > 4) & (across < WIDTH - side - 4))
    assert found[inside].size
    assert np.abs(found[..., 0] * WIDTH - across)[inside].max() < 0.5
    assert np.abs(found[..., 1] * HEIGHT - down[:, None])[inside].max() < 0.5


def test_one_hot_cell_is_seen_on_the_smallest_level_and_a_mean_is_kept_for_others() -> None:
    cells = np.zeros(cells_of(HEIGHT, WIDTH), np.float32)
    cells[37, 201] = 0.875
    assert stitched(map_levels(cells, 6, keep="highest"), 5).max() == 0.875
    mean = stitched(map_levels(cells, 6, keep="mean"), 5)
    assert mean.max() == pytest.approx(0.875 / 64, rel=1e-2)


def test_values_are_put_together_before_they_are_scaled() -> None:
    cells = np.array([[1.0, 4.0], [4.0, 7.0]], np.float32)
    levels = map_levels(cells, 4, keep="mean", scale=np.sqrt)
    assert levels.levels[1][0, 0] == 2.0


def test_what_is_below_the_threshold_is_nearly_transparent() -> None:
    scale = np.linspace(0, 1, 1001, dtype=np.float32)[None]
    alpha = look_up(DEFECT_RGBA, scale)[0, :, 3] / 255
    assert alpha[scale[0] < 0.25 - 0.01].max() == 0
    assert alpha[scale[0] < 0.5 - 0.003].max() < 0.15
    assert alpha[scale[0] >= 0.5].min() > 0.6
    assert (np.diff(alpha) >= 0).all()
    assert table_colour(ATTENTION_RGBA, 0.25)[3] < 0.15 * 255  # what uniform attention gets


@pytest.mark.parametrize("table", [DEFECT_RGBA, ATTENTION_RGBA])
def test_lightness_rises_in_even_steps(table: np.ndarray) -> None:
    """Perceptually uniform: equal steps of the scale are equal steps of lightness, CIE L* 1976."""
    linear = np.where(
        table[:, :3] / 255 <= 0.04045,
        table[:, :3] / 255 / 12.92,
        ((table[:, :3] / 255 + 0.055) / 1.055) ** 2.4,
    )
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    lightness = 116 * np.cbrt(luminance) - 16
    steps = np.diff(lightness[::16])
    assert steps.min() > 0
    assert steps.max() < 3 * np.median(steps)


def test_attention_is_read_off_its_scale() -> None:
    assert [attention_value(at) for at in (0.0, 0.25, 1.0)] == pytest.approx([0.25, 1.0, 64.0])


def test_a_level_that_decides_alone_is_plain_and_no_lead_is_faint() -> None:
    painted = paint_gate(np.array([[[1, 0, 0], [0, 0, 1], [1 / 3, 1 / 3, 1 / 3]]], np.float32))[0]
    assert painted[0, :3].tolist() == [230, 159, 0]
    assert painted[1, :3].tolist() == [0, 114, 178]
    assert painted[2, 3] < 20 < painted[0, 3]


def test_a_difference_says_which_of_the_two_is_brighter() -> None:
    board = np.full((1, 4, 3), 100, np.uint8)
    reference = board.copy()
    board[0, 1] += 100
    board[0, 2] -= 90
    board[0, 3, 1] += 80  # one channel alone
    same, brighter, darker, greener = paint_difference(board, reference)[0].astype(int)
    assert max(same) < 60
    assert brighter[0] - brighter[2] > 100
    assert darker[2] - darker[0] > 50
    assert greener[0] - greener[2] > 60
