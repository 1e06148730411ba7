"""Drawn defects are what their labels say, told from the picture by flood fill, net by net."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from inspect_vit.errors import ConfigError
from training.artwork import make_layers
from training.defect_kinds import BOX_MARGIN_PX, COPPER_KINDS, DEFECT_KINDS
from training.defects import DrawnDefects, draw_defects
from training.layers import Mask

SIZE = 320


def flood(area: Mask, start: tuple[int, int], *, diagonal: bool) -> Mask:
    """All pixels of `area` that can be walked to from (row, column)."""
    board = area.astype(np.uint8)
    row, column = start
    cv2.floodFill(board, None, (column, row), 2, flags=8 if diagonal else 4)
    return np.asarray(board == 2)


def pieces_touching(area: Mask, mask: Mask, *, diagonal: bool) -> list[Mask]:
    """The connected pieces of `area` next to `mask`; diagonal neighbours count where they connect."""
    kernel = np.ones((3, 3), np.uint8) if diagonal else cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))
    rim = (cv2.dilate(mask.astype(np.uint8), kernel) > 0) & ~mask & area
    pieces = []
    while rim.any():
        row, column = np.argwhere(rim)[0].tolist()
        pieces.append(flood(area, (row, column), diagonal=diagonal))
        rim &= ~pieces[-1]
    return pieces


def true_class(before: Mask, mask: Mask) -> str:
    """The class of one defect: what was changed and how many nets (or laminate areas) it met."""
    if not before[mask].any():
        nets = pieces_touching(before, mask, diagonal=True)
        if len(nets) == 1 and not pieces_touching(~before & ~mask, mask, diagonal=False):
            return "missing-hole"
        return {0: "copper", 1: "spur", 2: "short"}[len(nets)]
    assert before[mask].all()
    if not pieces_touching(~before, mask, diagonal=False):
        return "pin-hole"
    pieces = len(pieces_touching(before & ~mask, mask, diagonal=True))
    return {1: "mousebite", 2: "open"}[pieces]


def copper_of(seed: int, size: int = SIZE) -> Mask:
    return make_layers(seed, size).copper


def in_turn(before: Mask, drawn: DrawnDefects) -> list[tuple[str, Mask, Mask]]:
    """(label, copper before it, mask) of each defect; checks that the masks are all that was changed."""
    steps, copper = [], before
    for label, mask in zip(drawn.labels, drawn.masks, strict=True):
        steps.append((label, copper, mask))
        copper = copper ^ mask
    assert np.array_equal(copper, drawn.copper), "the masks are exactly what was changed"
    return steps


def fine_lines() -> Mask:
    """Tracks of 4 px with gaps of 4 px between them, and a plane."""
    copper = np.zeros((160, 160), bool)
    copper[:, 4:60:8], copper[:, 5:60:8], copper[:, 6:60:8], copper[:, 7:60:8] = True, True, True, True
    copper[:, 90:140] = True
    return copper


@pytest.mark.parametrize("label", COPPER_KINDS)
@pytest.mark.parametrize("size_px", [(4, 64), (2, 6)])
def test_a_defect_is_what_its_label_says(label: str, size_px: tuple[int, int]) -> None:
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (5, 5))
    found = 0
    for seed in (1, 6, 9, 14, 16, 19):
        good = fine_lines() if size_px == (2, 6) else copper_of(seed)
        drawn = draw_defects(good, np.random.default_rng(seed), 3, kinds=[label], size_px=size_px)
        for name, before, mask in in_turn(good, drawn):
            assert name == label == true_class(before, mask)
            if label not in ("open", "short"):
                near = cv2.dilate(mask.astype(np.uint8), disc) > 0
                grown = near & (before == before[mask][0])
                assert true_class(before, grown) == label, "two pixels more do not change the class"
            found += 1
    assert found >= 12


def test_an_open_that_a_loop_bridges_is_not_drawn() -> None:
    yy, xx = np.mgrid[:200, :200]
    away = np.hypot(yy - 100, xx - 100)
    ring = (away > 60) & (away < 72)
    options = {"kinds": ["open"], "size_px": (4, 20)}
    assert draw_defects(ring, np.random.default_rng(0), 1, **options).labels == ()  # type: ignore[arg-type]
    ring &= ~((abs(yy - 100) < 10) & (xx > 100))  # no longer a ring: one cut parts it
    assert draw_defects(ring, np.random.default_rng(0), 1, **options).labels == ("open",)  # type: ignore[arg-type]


def test_a_short_joins_two_nets_and_not_two_pieces_of_one() -> None:
    bars = np.zeros((120, 160), bool)
    bars[20:36], bars[50:66], bars[80:96] = True, True, True
    nets = np.zeros(bars.shape, np.int32)
    nets[20:36], nets[50:66], nets[80:96] = 7, 7, 9
    for seed in range(8):
        drawn = draw_defects(bars, np.random.default_rng(seed), 3, kinds=["short"], nets=nets)
        assert len(drawn.labels) == 1, "nets 7 and 9 are joined once; the two pieces of net 7 never"
        assert 66 <= drawn.patches[0].top < 80


def test_a_hole_goes_missing_only_where_copper_surrounds_it() -> None:
    copper, holes = np.zeros((128, 128), bool), np.zeros((128, 128), bool)
    yy, xx = np.mgrid[:128, :128]
    for x, has_ring in ((36, True), (92, False)):
        away = np.hypot(yy - 64, xx - x)
        holes |= away <= 8
        copper |= (away <= 16) & (away > 8) if has_ring else np.zeros_like(copper)
    drawn = draw_defects(copper, np.random.default_rng(0), 2, kinds=["missing-hole"], holes=holes)
    assert drawn.labels == ("missing-hole",)
    assert np.array_equal(drawn.masks[0], holes & (xx < 64))
    assert true_class(copper, drawn.masks[0]) == "missing-hole"


def test_defects_are_sized_boxed_and_apart() -> None:
    drawn = draw_defects(copper_of(5, 640), np.random.default_rng(5), 8, size_px=(8, 14))
    assert len(drawn.boxes) == len(drawn.masks) == len(drawn.labels) == 8
    for box, mask in zip(drawn.boxes, drawn.masks, strict=True):
        rows, columns = np.nonzero(mask)
        assert 8 <= max(np.ptp(rows), np.ptp(columns)) + 1 <= 14
        tight = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
        grown = tight + np.array([-1, -1, 1, 1]) * BOX_MARGIN_PX
        assert np.array_equal(box, np.clip(grown, 0, 640))
    covered = np.zeros((640, 640), int)
    for (left, top, right, bottom), mask in zip(drawn.boxes.astype(int), drawn.masks, strict=True):
        assert not (covered[mask] > 0).any(), "no defect lies in another's box"
        covered[top:bottom, left:right] += 1


def test_sizes_follow_the_measured_ones_or_spread_evenly() -> None:
    lengths: dict[bool, list[int]] = {True: [], False: []}
    for even in lengths:
        for seed in range(12):
            drawn = draw_defects(
                copper_of(seed, 640),
                np.random.default_rng(seed),
                8,
                kinds=["copper"],
                size_px=(3, 60),
                even_sizes=even,
            )
            lengths[even] += [max(patch.mask.shape) for patch in drawn.patches]
    usual, spread = (np.array(lengths[even]) for even in (False, True))
    assert 14 <= np.median(usual) <= 24, "half of DeepPCB's spurious copper is under 19 px"
    assert (usual < 6).mean() < 0.05 < 0.12 < (spread < 6).mean()


def test_class_weights_are_kept() -> None:
    counts = {"copper": 0, "pin-hole": 0}
    for seed in range(25):
        drawn = draw_defects(
            copper_of(3), np.random.default_rng(seed), 4, kinds={"copper": 3.0, "pin-hole": 1.0, "spur": 0.0}
        )
        for label in drawn.labels:
            counts[label] += 1
    share = counts["copper"] / sum(counts.values())
    assert sum(counts.values()) > 90 and 0.62 < share < 0.88


def test_defects_keep_to_the_area_that_is_free() -> None:
    free = np.zeros((SIZE, SIZE), bool)
    free[:, : SIZE // 2] = True
    drawn = draw_defects(copper_of(1), np.random.default_rng(2), 6, free=free)
    assert drawn.labels
    assert not any((mask & ~free).any() for mask in drawn.masks)


def test_a_board_without_room_gets_fewer_defects() -> None:
    laminate = np.zeros((64, 64), bool)
    drawn = draw_defects(laminate, np.random.default_rng(0), 3, kinds=["open", "mousebite"])
    assert drawn.boxes.shape == (0, 4)
    assert drawn.labels == ()
    assert not drawn.copper.any()


def test_the_given_copper_is_left_as_it_is_and_the_seed_decides() -> None:
    good = copper_of(6)
    kept = good.copy()
    first, second = (draw_defects(good, np.random.default_rng(3), 5) for _ in range(2))
    assert np.array_equal(good, kept)
    assert np.array_equal(first.copper, second.copper) and first.labels == second.labels
    assert not np.array_equal(first.copper, draw_defects(good, np.random.default_rng(4), 5).copper)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kinds": ["scratch"]}, "'scratch'"),
        ({"kinds": ["missing-hole"]}, "give `holes`"),
        ({"kinds": {"open": -1.0}}, "weight of 'open'"),
        ({"size_px": (1, 8)}, "2 <= least"),
        ({"size_px": (9, 8)}, "9 to 8 px"),
    ],
)
def test_settings_that_cannot_work_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        draw_defects(copper_of(1), np.random.default_rng(0), 1, **options)  # type: ignore[arg-type]


def test_every_class_has_its_table_entry() -> None:
    assert set(COPPER_KINDS) == set(DEFECT_KINDS) - {"missing-hole"}
