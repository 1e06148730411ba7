"""Rendered boards show the layers they were given; what is no defect moves edges and no more."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from inspect_vit.errors import ConfigError
from training.artwork import make_layers
from training.colour_style import FINISHES, NO_MASK, SOLDER_MASKS, draw_style
from training.imaging import Etch, draw_etch, draw_warp, etch_copper
from training.layers import Layers, Mask
from training.pairs import DefectPlan, colour_pair, scan_pair
from training.render import ScanStyle, render_scan
from training.render_colour import render_colour

STILL = ScanStyle(shift_px=0.0, turn_degrees=0.0, stretch_px=0.0, etch=0.0, dust=0.0, jpeg=None)
GOOD = DefectPlan(good_share=1.0)


def opened(mask: Mask, size: int) -> Mask:
    square = np.ones((size, size), np.uint8)
    return cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, square) > 0


def band(mask: Mask, reach: int) -> Mask:
    """Within `reach` px of an edge of the mask."""
    kernel = np.ones((2 * reach + 1, 2 * reach + 1), np.uint8)
    return cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_GRADIENT, kernel) > 0


def test_a_warp_moves_by_what_it_says() -> None:
    mask = np.zeros((100, 120), bool)
    mask[40:60, 50:70] = True
    for seed in range(20):
        warp = draw_warp(np.random.default_rng(seed), mask.shape, shift_px=6.0, turn_degrees=0.0)
        rows, columns = np.nonzero(warp.mask(mask))
        moved = np.hypot(rows.mean() - 49.5, columns.mean() - 59.5)
        assert 0 <= moved <= 6.5
        assert abs(len(rows) - 400) <= 41, "a square of 20 px stays one, to a row"


def test_nets_move_with_their_copper() -> None:
    layers = make_layers(14, 256)
    warp = draw_warp(np.random.default_rng(1), layers.size, shift_px=3.0, turn_degrees=0.3, stretch_px=2.0)
    moved = warp.layers(layers)
    assert np.array_equal(moved.nets > 0, moved.copper)
    _, pieces = cv2.connectedComponents(moved.copper.astype(np.uint8), connectivity=8)
    for piece in range(1, int(pieces.max()) + 1):
        assert len(np.unique(moved.nets[pieces == piece])) == 1, "copper that was one net is one net"


def test_overetched_copper_is_narrower_by_as_much_on_each_side() -> None:
    track = np.zeros((60, 200), bool)
    track[20:40] = True
    for over_px in (-1.0, 0.0, 1.0):
        etch = Etch(over_px=over_px, corner_px=1.2, wave_px=0.0, fray_px=0.0)
        assert etch_copper(track, np.random.default_rng(0), etch).sum() / 200 == 20 - 2 * over_px


def test_etching_draws_no_speck_on_plain_ground() -> None:
    copper = make_layers(4, 320).copper
    for seed in range(6):
        rng = np.random.default_rng(seed)
        changed = etch_copper(copper, rng, draw_etch(rng, strength=1.5)) ^ copper
        assert not (changed & ~band(copper, 4)).any()


def test_two_scans_of_a_good_board_differ_only_along_edges() -> None:
    layers = make_layers(4, 320)
    style = replace(STILL, etch=1.0)
    pair = scan_pair(layers, np.random.default_rng(4), plan=GOOD, style=style)
    difference = pair.board != pair.reference
    assert pair.drawn.labels == () and difference.any()
    assert not (difference & ~band(layers.copper, 4)).any()
    assert not opened(difference, 5).any(), "nothing as broad as a defect"


def test_a_scan_at_rest_is_the_artwork_itself() -> None:
    layers = make_layers(5, 256)
    picture = render_scan(
        layers,
        np.random.default_rng(0),
        STILL,
        warp=draw_warp(np.random.default_rng(0), layers.size, shift_px=0.0, turn_degrees=0.0),
    )
    differs = (picture == 0) != layers.copper
    assert differs.mean() < 0.005 and not opened(differs, 3).any(), "corners are rounded, no more"


def test_jpeg_noise_keeps_a_scan_binary_at_half() -> None:
    layers = make_layers(5, 256)
    plain, noisy = (
        render_scan(layers, np.random.default_rng(3), replace(STILL, jpeg=jpeg)) for jpeg in (None, (80, 80))
    )
    assert set(np.unique(plain)) == {0, 255} and len(np.unique(noisy)) > 20
    assert np.array_equal(noisy > 127, plain > 127)


def test_scan_masks_are_what_the_defects_changed() -> None:
    pair = scan_pair(
        make_layers(9, 320), np.random.default_rng(1), plan=DefectPlan(good_share=0.0), style=STILL
    )
    assert len(pair.drawn.labels) >= 4
    changed = np.any(pair.drawn.masks, axis=0)
    assert np.array_equal(changed, pair.board != pair.reference)


def flat_layers() -> Layers:
    """A track, a bare pad with a drilled hole, silk."""
    shape = (160, 160)
    copper, holes, mask_open, silk = (np.zeros(shape, bool) for _ in range(4))
    copper[20:50] = True
    away = np.hypot(*(np.mgrid[:160, :160] - np.array([105, 50])[:, None, None]))
    copper |= (away < 34) & (away >= 14)
    holes |= away < 14
    mask_open |= away < 36
    silk[70:150, 120:140] = True
    nets = cv2.connectedComponents(copper.astype(np.uint8))[1].astype(np.int32)
    return Layers(copper, nets, holes, mask_open, silk, np.ones(shape, bool), 48.0, "flat")


@pytest.mark.parametrize("mask", [*SOLDER_MASKS, NO_MASK])
@pytest.mark.parametrize("finish", FINISHES)
def test_materials_can_be_told_apart_in_colour(mask: str, finish: str) -> None:
    layers = flat_layers()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        style = draw_style(rng, mask=mask, finish=finish)
        picture = render_colour(layers, rng, style, nuisance=0.0).astype(float)
        lab = cv2.cvtColor((picture / 255).astype(np.float32), cv2.COLOR_RGB2LAB)
        copper, laminate = lab[26:44, 60:100].reshape(-1, 3), lab[54:66, 60:100].reshape(-1, 3)
        apart = np.linalg.norm(np.median(copper, axis=0) - np.median(laminate, axis=0))
        assert apart > 4.0, "more than a just noticeable difference (2.3 in CIELAB)"
        if mask != NO_MASK:
            metal = np.median(lab[80:130, 22:30].reshape(-1, 3), axis=0)
            assert np.linalg.norm(metal - np.median(copper, axis=0)) > 4.0


def test_pictures_follow_their_seed_and_differ_otherwise() -> None:
    layers = flat_layers()
    style = draw_style(np.random.default_rng(1))
    first, again, other = (render_colour(layers, np.random.default_rng(s), style) for s in (2, 2, 3))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_colour_masks_lie_on_what_changed() -> None:
    """Averaged over pictures, so that noise and light drop out, board and reference differ on the mask."""
    layers = make_layers(21, 256)
    inside, outside = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        style = replace(draw_style(rng, mask="green", finish="enig"), exposure=1.0)
        pair = colour_pair(
            layers, rng, plan=DefectPlan(good_share=0.0), style=style, placing=STILL, nuisance=0.0
        )
        difference = np.abs(pair.board.astype(float) - pair.reference.astype(float)).max(axis=2)
        core = np.zeros(layers.size, bool)
        for mask in pair.drawn.masks:
            core |= cv2.erode(mask.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
        inside.append(difference[core].mean())
        outside.append(difference[~np.any(pair.drawn.masks, axis=0)].mean())
    assert np.mean(inside) > 3 * np.mean(outside)


def test_defects_keep_off_silk_that_would_hide_them() -> None:
    layers = flat_layers()
    style = draw_style(np.random.default_rng(0), mask="green")
    for seed in range(6):
        pair = colour_pair(
            layers, np.random.default_rng(seed), plan=DefectPlan(good_share=0.0), style=style, placing=STILL
        )
        assert pair.drawn.labels
        assert not any((mask & layers.silk).any() for mask in pair.drawn.masks)


def test_unknown_masks_and_finishes_are_refused() -> None:
    with pytest.raises(ConfigError, match="no mask is called 'pink'"):
        draw_style(np.random.default_rng(0), mask="pink")
    with pytest.raises(ConfigError, match="no finish is called 'chrome'"):
        draw_style(np.random.default_rng(0), finish="chrome")
