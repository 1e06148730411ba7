"""Tiles: whole cover, no slivers, weights without seams, one row of tiles in memory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from inspect_vit.errors import ConfigError
from inspect_vit.tiling import Plan, Tile, blend_rows, plan_tiles, tile_around, tile_side, weights


@pytest.mark.parametrize("width", [20, 1280, 1281, 1600, 1601, 2880, 3034, 6400, 16384])
def test_tiles_cover_the_board_alike_and_overlap(width: int) -> None:
    plan = plan_tiles(1000, width, step=320, tile_px=1280)
    assert len(plan.rows) == 1
    spans = plan.columns
    assert (spans[0][0], spans[-1][1]) == (0, -(-width // 320) * 320)
    assert {end - start for start, end in spans} == {spans[0][1]}
    assert spans[0][1] <= 1280
    assert all(start % 320 == 0 for start, _ in spans)
    assert all(end - later >= 320 for (_, end), (later, _) in pairwise(spans))
    assert (len(spans) == 1) == (width <= 1280)


@pytest.mark.parametrize("width", [1600, 2560, 3034, 16384])
def test_weights_sum_to_one_and_fall_to_the_borders_inside_the_board_only(width: int) -> None:
    spans = plan_tiles(320, width, step=320, tile_px=1280).columns
    total = np.zeros(spans[-1][1] // 4)
    for i, ((start, end), part) in enumerate(zip(spans, weights(spans, 320, 4), strict=True)):
        total[start // 4 : end // 4] += part
        assert (part[:16] == 0).all() == (i > 0)
        assert (part[-16:] == 0).all() == (i + 1 < len(spans))
        assert np.abs(np.diff(part)).max() <= 4 / 192 + 1e-6
    np.testing.assert_allclose(total, 1, atol=1e-6)


def test_a_gap_between_tiles_is_refused() -> None:
    with pytest.raises(ConfigError, match="leave the stretch at 1216 px without an answer"):
        weights(((0, 1280), (1280, 2560)), 320, 4)


def test_sides_that_no_tile_can_have_are_named() -> None:
    assert (tile_side(320), tile_side(320, 640), tile_side(960), tile_side(2000)) == (1280, 640, 1920, 4000)
    with pytest.raises(ConfigError, match="tile_px: 1000, wanted a multiple of 320 from 640, as 960"):
        tile_side(320, 1000)
    with pytest.raises(ConfigError, match="tile_px: 320, wanted a multiple of 320 from 640, as 640"):
        tile_side(320, 320)


def landscape(tile: Tile, cell_px: int) -> torch.Tensor:
    """A smooth value of the place on the board, (2, rows, columns)."""
    y = torch.arange(tile.top, tile.bottom, cell_px)[:, None].double()
    x = torch.arange(tile.left, tile.right, cell_px).double()
    return torch.stack([torch.sin(y / 70) + torch.cos(x / 90), y + 2 * x])


def test_maps_that_agree_are_blended_into_the_same_map() -> None:
    plan = plan_tiles(900, 1100, step=32, tile_px=320)
    assert plan.num_tiles > 9
    rows, bands = 0, []
    for top, (band, halves) in blend_rows(
        plan, lambda tile: (landscape(tile, 4), landscape(tile, 4) / 2), cell_px=4
    ):
        assert top == rows
        assert band.shape[1] <= 320 // 4
        rows += band.shape[1]
        bands.append(band)
        torch.testing.assert_close(halves, band / 2)
    whole = landscape(Tile(0, 0, plan.rows[-1][1], plan.columns[-1][1]), 4)
    torch.testing.assert_close(torch.cat(bands, 1), whole, atol=1e-3, rtol=1e-6)


def test_tiles_that_disagree_pass_into_each_other_without_a_step() -> None:
    plan = plan_tiles(640, 3200, step=320, tile_px=1280)
    ((_, (band,)),) = blend_rows(plan, lambda tile: (torch.full((1, 160, 320), tile.left / 960),), cell_px=4)
    assert (band[0, 0, 0], band[0, 0, -1]) == (0, 2)
    assert 0 < band.diff(dim=2).max() <= 4 / 192 + 1e-5
    assert band.diff(dim=2).min() >= -1e-5


def test_what_is_equal_within_a_token_stays_equal() -> None:
    plan = plan_tiles(960, 960, step=32, tile_px=320)

    def run(tile: Tile) -> tuple[torch.Tensor]:
        generator = torch.Generator().manual_seed(tile.top + 7 * tile.left)
        rows, columns = (tile.bottom - tile.top) // 32, (tile.right - tile.left) // 32
        tokens = torch.rand(1, rows, columns, generator=generator)
        return (tokens.repeat_interleave(8, 1).repeat_interleave(8, 2),)

    whole = torch.cat([band for _, (band,) in blend_rows(plan, run, cell_px=4, weight_px=32)], 1)
    tokens = whole[:, ::8, ::8]
    torch.testing.assert_close(whole, tokens.repeat_interleave(8, 1).repeat_interleave(8, 2))


def test_the_tile_around_a_place_holds_it_in_its_middle_or_at_the_boards_end() -> None:
    tile = tile_around((2000, 1500, 2040, 1520), 3000, 4000, step=320, tile_px=1280)
    assert (tile.bottom - tile.top, tile.right - tile.left) == (1280, 1280)
    assert abs((tile.left + tile.right) / 2 - 2020) <= 160
    assert abs((tile.top + tile.bottom) / 2 - 1510) <= 160
    assert tile_around((0, 0, 9, 9), 3000, 4000, step=320, tile_px=1280) == (0, 0, 1280, 1280)
    assert tile_around((3990, 2990, 4000, 3000), 3000, 4000, step=320, tile_px=1280)[2:] == (3200, 4160)
    assert tile_around((5, 5, 9, 9), 600, 4000, step=320, tile_px=1280) == (0, 0, 640, 1280)


def test_a_board_of_one_tile_is_handed_on_as_it_is() -> None:
    plan = Plan(((0, 64),), ((0, 96),), 32)
    answer = torch.rand(3, 16, 24)
    ((top, (same,)),) = blend_rows(plan, lambda tile: (answer,), cell_px=4)
    assert top == 0
    assert same is answer
