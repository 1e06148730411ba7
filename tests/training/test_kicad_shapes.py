"""KiCad geometry: pixels, arcs, outlines and the text of files, against arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspect_vit.errors import ConfigError
from training.kicad import read_board
from training.kicad_file import parse_tree
from training.kicad_outline import join_loops
from training.kicad_raster import Grid, draw_mask, draw_values, flatten
from training.kicad_shapes import Piece, arc_by_angle, arc_by_middle

LAYERS = "(0 F.Cu signal) (31 B.Cu signal) (44 Edge.Cuts user)"


def test_discs_and_tracks_hold_exactly_the_pixels_whose_centre_is_near_enough() -> None:
    rng = np.random.default_rng(1)
    pieces = [Piece(rng.uniform(-1, 7, (n, 2)), float(rng.uniform(0.2, 2))) for n in (1, 1, 2, 2, 3)]
    mask = draw_mask(flatten((piece, 1) for piece in pieces), Grid(0, 0, 13, 80, 70))
    x, y = np.meshgrid((np.arange(80) + 0.5) / 13, (np.arange(70) + 0.5) / 13)
    wanted = np.zeros((70, 80), bool)
    for piece in pieces:
        for a, b in zip(piece.points, [*piece.points[1:], piece.points[-1]], strict=True):
            share = ((x - a[0]) * (b - a)[0] + (y - a[1]) * (b - a)[1]) / max(1e-12, (b - a) @ (b - a))
            share = np.clip(share, 0, 1)
            wanted |= np.hypot(x - a[0] - share * (b - a)[0], y - a[1] - share * (b - a)[1]) < piece.width / 2
    assert 500 < wanted.sum() < 5000
    assert np.array_equal(mask, wanted)


def test_a_polygon_holds_exactly_the_pixels_on_the_inner_side_of_all_its_edges() -> None:
    turns = np.sort(np.random.default_rng(2).uniform(0, 2 * np.pi, 7))
    ring = np.column_stack([3 + 2.5 * np.cos(turns), 3 + 2.5 * np.sin(turns)])
    x, y = np.meshgrid((np.arange(90) + 0.5) / 15, (np.arange(90) + 0.5) / 15)
    wanted = np.ones((90, 90), bool)
    for a, b in zip(ring, np.roll(ring, -1, axis=0), strict=True):
        wanted &= (b - a)[0] * (y - a[1]) - (b - a)[1] * (x - a[0]) > 0
    for points in (ring, ring[::-1]):
        mask = draw_mask(flatten([(Piece(points, filled=True), 1)]), Grid(0, 0, 15, 90, 90))
        assert np.array_equal(mask, wanted)


def test_overlapping_values_are_named_and_the_lowest_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    pieces = [
        (Piece(rng.uniform(0, 8, (4, 2)), float(rng.uniform(0, 0.6)), filled=True), int(rng.integers(1, 5)))
        for _ in range(12)
    ]
    grid = Grid(0, 0, 10, 80, 80)
    wanted = np.zeros((80, 80), np.int32)
    alone = {value: np.zeros((80, 80), bool) for value in range(1, 5)}
    for piece, value in sorted(pieces, key=lambda entry: -entry[1]):
        mask = draw_mask(flatten([(piece, 1)]), grid)
        wanted[mask] = value
        alone[value] |= mask
    # Bands of a few rows give the same picture as one band.
    monkeypatch.setattr("training.kicad_raster._BAND_PX", 700)
    values, clashes = draw_values(flatten(pieces), grid)
    assert np.array_equal(values, wanted)
    met = {(a, b) for a in alone for b in alone if a < b and (alone[a] & alone[b]).any()}
    assert set(clashes) == met
    assert len(met) > 1
    assert all(alone[a][place] and alone[b][place] for (a, b), place in clashes.items())


def test_an_empty_plane_draws_nothing() -> None:
    flat = flatten([])
    assert not draw_mask(flat, Grid(0, 0, 10, 20, 30)).any()
    assert not draw_values(flat, Grid(0, 0, 10, 20, 30))[0].any()


@pytest.mark.parametrize("degrees", [-300.0, -90.0, 10.0, 180.0, 270.0, 355.0])
def test_arcs_through_three_points_run_the_way_of_their_middle(degrees: float) -> None:
    points = arc_by_angle(np.array([1.0, 2.0]), np.array([4.0, 6.0]), degrees)
    middle = arc_by_angle(np.array([1.0, 2.0]), np.array([4.0, 6.0]), degrees / 2)[-1]
    again = arc_by_middle(points[0], middle, points[-1])
    length = np.linalg.norm(np.diff(again, axis=0), axis=1).sum()
    assert length == pytest.approx(5 * np.deg2rad(abs(degrees)), rel=1e-3)
    assert np.linalg.norm(again - middle, axis=1).min() < 0.2


def test_loops_are_joined_through_doubled_lines() -> None:
    corners = [np.array(corner, float) for corner in ((0, 0), (4, 0), (4, 3), (0, 3))]
    lines = [np.array([corners[i], corners[(i + 1) % 4]]) for i in range(4)]
    loops, loose = join_loops([*lines, lines[1][::-1], lines[2]])
    assert len(loops) == 1 and not loose
    assert sorted(map(tuple, loops[0].tolist())) == sorted(map(tuple, np.array(corners).tolist()))


def test_values_are_read_as_written() -> None:
    tree = parse_tree('(a "b (c) \\"d\\"\\n" (e -1.5e-3 "") F&B.Cu)')
    assert tree == ["a", 'b (c) "d"\n', ["e", "-1.5e-3", ""], "F&B.Cu"]


def test_depth_is_no_limit() -> None:
    depth = 100_000
    node = parse_tree("(a " * depth + ")" * depth)
    for _ in range(depth - 1):
        (node,) = [entry for entry in node if isinstance(entry, list)]
    assert node == ["a"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("(kicad_pcb (version 4)", "not closed"),
        ("(kicad_pcb (version 4)))", "never opened"),
        ('(kicad_pcb (net 1 "GND))', "quote"),
        ("(footprint R)", "kicad_pcb"),
        ("", "0 entries"),
        (f"(kicad_pcb (version 4) (layers {LAYERS}) (segment (start 1 x) (end 2 2)))", "finite numbers"),
        (f"(kicad_pcb (version 4) (layers {LAYERS}) (segment (end 2 2)))", r"no \(start"),
        ("(kicad_pcb (version 4) (layers (44 Edge.Cuts user)))", "front and back copper"),
    ],
)
def test_damaged_files_are_refused_with_the_reason(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "x.kicad_pcb"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=says):
        read_board(path)
