"""KiCad artwork: hand-written boards, read and drawn, against arithmetic.

Over 300 lines: one file for all that is seen on a board, since one fixture writes every board.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

from inspect_vit.errors import ConfigError
from training.kicad import KicadBoard, draw_layers, list_boards, read_board, windows
from training.kicad_shapes import arc_by_angle, arc_by_middle, bezier
from training.layers import Layers

SCALE = 50.0
SQUARE = "(gr_rect (start 0 0) (end 20 20) (stroke (width 0.1)) (layer Edge.Cuts))"
LAYERS = "(0 F.Cu signal) (31 B.Cu signal) (38 B.Mask user) (39 F.Mask user) (44 Edge.Cuts user)"
Write = Callable[..., KicadBoard]


@pytest.fixture
def make(tmp_path: Path) -> Write:
    """Write a board of 20 x 20 mm with these entries and read it."""

    def write(
        body: str, *, version: int = 20171130, edge: str = SQUARE, layers: str = LAYERS, setup: str = ""
    ) -> KicadBoard:
        path = tmp_path / "board.kicad_pcb"
        nets = '(net 0 "") (net 1 GND) (net 2 "/A B")'
        path.write_text(
            f"(kicad_pcb (version {version}) (layers {layers}) (setup {setup}) {nets}\n{edge}\n{body}\n)",
            encoding="utf-8",
        )
        return read_board(path)

    return write


def front(board: KicadBoard, scale: float = SCALE) -> Layers:
    return draw_layers(board, side="front", px_per_mm=scale)


def area(mask: NDArray[np.bool_], scale: float = SCALE) -> float:
    """In mm2."""
    return float(mask.sum()) / scale**2


def centre(mask: NDArray[np.bool_], scale: float = SCALE) -> list[float]:
    """(x, y) in mm."""
    rows, columns = np.nonzero(mask)
    return [(columns.mean() + 0.5) / scale, (rows.mean() + 0.5) / scale]


def extent(mask: NDArray[np.bool_], scale: float = SCALE) -> list[float]:
    """Width and height in mm of the box about all that is set."""
    rows, columns = np.nonzero(mask)
    return [(np.ptp(columns) + 1) / scale, (np.ptp(rows) + 1) / scale]


def kinds(board: KicadBoard) -> set[str]:
    return {note.kind for note in board.notes}


def test_a_window_shows_what_the_whole_board_shows_there(make: Write) -> None:
    board = make(
        "(segment (start 1 1) (end 19 14) (width 1) (layer F.Cu) (net 1))"
        "(module P (layer F.Cu) (at 7 7) (pad 1 thru_hole circle (at 0 0) (size 3 3) (drill 1.3)"
        " (layers *.Cu *.Mask) (net 2 A)) (pad 2 smd rect (at 3.2 0) (size 3 3) (layers F.Mask)))",
        setup="(solder_mask_min_width 0.4)",
    )
    for side in ("front", "back"):
        whole = draw_layers(board, side=side, px_per_mm=32)
        part = draw_layers(board, side=side, px_per_mm=32, window_mm=(4, 5, 5, 4))
        # Seen from behind, 4 to 9 mm lie at 11 to 16 mm.
        crop = whole.crop(((4 if side == "front" else 11) * 32, 5 * 32, 5 * 32, 4 * 32))
        for name in ("copper", "nets", "holes", "mask_open", "silk", "board"):
            assert np.array_equal(getattr(part, name), getattr(crop, name)), name
        assert part.mask_open.any() and part.holes.any()


QUARTER = np.pi / 2


@pytest.mark.parametrize("degrees", [0, 30, 90, 250])
@pytest.mark.parametrize(
    ("pad", "wanted"),
    [
        ("circle (at 0 0 A) (size 3 3)", np.pi * 1.5**2),
        ("rect (at 0 0 A) (size 4 2)", 8.0),
        ("oval (at 0 0 A) (size 4 2)", 2 * 2 + np.pi),
        ("roundrect (at 0 0 A) (size 4 2) (roundrect_rratio 0.25)", 8 - (4 - np.pi) * 0.5**2),
        ("roundrect (at 0 0 A) (size 4 2) (roundrect_rratio 0) (chamfer_ratio 0.5) (chamfer top_left)", 7.5),
        ("trapezoid (at 0 0 A) (size 4 2) (rect_delta 0 1)", 8.0),
        ("custom (at 0 0 A) (size 1 1) (options (anchor rect)) (primitives (gr_poly (pts (xy 0.5 -0.5)"
         " (xy 2.5 0) (xy 0.5 0.5)) (width 0)))", 2.0),
        ("custom (at 0 0 A) (size 1 1) (options (anchor circle)) (primitives (gr_circle (center 3 0)"
         " (end 4 0) (width 0)))", np.pi * 1.25),
    ],
)  # fmt: skip
def test_pads_have_the_area_of_their_shape_at_any_angle(
    make: Write, pad: str, wanted: float, degrees: int
) -> None:
    body = f"(module P (layer F.Cu) (at 10 10) (pad 1 smd {pad.replace('A', str(degrees))} (layers F.Cu)))"
    assert area(front(make(body)).copper) == pytest.approx(wanted, rel=2e-3)


def test_angles_turn_counter_clockwise_and_a_pad_states_its_own_on_the_board(make: Write) -> None:
    pad = "(pad 1 smd rect (at 4 0 90) (size 3 1) (layers F.Cu))"
    copper = front(make(f"(module P (layer F.Cu) (at 10 10 90) {pad})")).copper
    # Part of the way right becomes up; the pad, 90 degrees on the board, stands.
    assert centre(copper) == pytest.approx([10, 6], abs=0.02)
    assert extent(copper) == pytest.approx([1, 3], abs=0.02)
    # A trapezoid of delta 1: left end longer by 1 and right end shorter; turned by 90 the left end is below.
    pad = "(pad 1 smd trapezoid (at 0 0 90) (size 4 2) (rect_delta 0 1) (layers F.Cu))"
    copper = front(make(f"(module P (layer F.Cu) (at 10 10 90) {pad})")).copper
    assert copper[int(8.1 * SCALE)].sum() / SCALE == pytest.approx(1.05, abs=0.06)
    assert copper[int(11.9 * SCALE)].sum() / SCALE == pytest.approx(2.95, abs=0.06)


def test_the_drill_stays_where_the_pad_is_and_the_offset_moves_the_copper(make: Write) -> None:
    pad = "(pad 1 thru_hole rect (at 0 0 90) (size 4 2) (drill 1 (offset 1 0)) (layers *.Cu))"
    layers = front(make(f"(module P (layer F.Cu) (at 10 10 90) {pad})"))
    assert centre(layers.holes) == pytest.approx([10, 10], abs=0.01)
    assert centre(layers.copper | layers.holes) == pytest.approx([10, 9], abs=0.02)
    assert area(layers.copper) == pytest.approx(8 - np.pi / 4, rel=2e-3)
    assert not (layers.copper & layers.holes).any()


def test_slots_turn_with_their_pad_and_bare_holes_have_no_copper(make: Write) -> None:
    body = (
        "(module P (layer F.Cu) (at 5 5)"
        " (pad 1 thru_hole oval (at 0 0 90) (size 4 2) (drill oval 3 1) (layers *.Cu *.Mask))"
        " (pad 2 np_thru_hole circle (at 8 8) (size 2 2) (drill 2) (layers *.Cu *.Mask)))"
    )
    board = make(body)
    holes = front(board).holes
    assert extent(holes[:500, :500]) == pytest.approx([1, 3], abs=0.02)
    assert area(holes[:500, :500]) == pytest.approx(2 + np.pi / 4, rel=2e-3)
    assert area(holes[500:, 500:]) == pytest.approx(np.pi, rel=2e-3)
    assert [drill.plated for drill in board.drills] == [True, False]
    assert board.counts() == {"pad": 2}


def test_a_quarter_arc_has_the_right_length_and_both_spellings_agree(make: Write) -> None:
    old = arc_by_angle(np.array([10.0, 10.0]), np.array([15.0, 10.0]), 90)
    half = 10 + 5 * np.sqrt(0.5)
    new = arc_by_middle(np.array([15.0, 10.0]), np.array([half, half]), np.array([10.0, 15.0]))
    for points in (old, new):
        assert np.linalg.norm(np.diff(points, axis=0), axis=1).sum() == pytest.approx(5 * QUARTER, rel=1e-4)
        assert points[0] == pytest.approx([15, 10]) and points[-1] == pytest.approx([10, 15])
        middles = (points[1:] + points[:-1]) / 2
        assert np.hypot(*(middles - 10).T).min() > 5 - 0.0005
    by_angle = "(gr_arc (start 10 10) (end 15 10) (angle 90) (layer F.Cu) (width 0.5))"
    by_middle = f"(gr_arc (start 15 10) (mid {half} {half}) (end 10 15) (stroke (width 0.5)) (layer F.Cu))"
    track = f"(arc (start 15 10) (mid {half} {half}) (end 10 15) (width 0.5) (layer F.Cu) (net 1))"
    drawn = [front(make(body)).copper for body in (by_angle, by_middle, track)]
    assert area(drawn[0]) == pytest.approx(5 * QUARTER * 0.5 + np.pi * 0.25**2, rel=2e-3)
    assert (drawn[0] ^ drawn[1]).sum() <= 4 and (drawn[0] ^ drawn[2]).sum() <= 4


def test_graphics_on_copper_are_filled_or_drawn_as_the_file_says(make: Write) -> None:
    pen = "(stroke (width 0.2) (type solid))"
    ring = f"(gr_circle (center 5 5) (end 8 5) {pen} (fill none) (layer F.Cu))"
    assert area(front(make(ring)).copper) == pytest.approx(2 * np.pi * 3 * 0.2, rel=4e-3)
    assert area(front(make(ring.replace("none", "solid"))).copper) == pytest.approx(np.pi * 3.1**2, rel=2e-3)
    frame = f"(gr_rect (start 2 2) (end 8 6) {pen} (fill none) (layer F.Cu))"
    rounded = np.pi * 0.1**2
    assert area(front(make(frame)).copper) == pytest.approx(20 * 0.2 + rounded - 4 * 0.1**2, rel=4e-3)
    points = "(pts (xy 2 2) (xy 8 2) (xy 8 6))"
    poly = f"(gr_poly {points} (layer F.Cu) (width 0))"
    assert area(front(make(poly)).copper) == pytest.approx(12, rel=2e-3)
    curve = bezier(np.array([[0.0, 0.0], [0.0, 4.0], [4.0, 4.0], [4.0, 0.0]]))
    t = np.linspace(0, 1, 20001)
    exact = np.column_stack([12 * (1 - t) * t**2 + 4 * t**3, 12 * (1 - t) ** 2 * t + 12 * (1 - t) * t**2])
    length = np.linalg.norm(np.diff(exact, axis=0), axis=1).sum()
    assert np.linalg.norm(np.diff(curve, axis=0), axis=1).sum() == pytest.approx(length, rel=1e-3)
    drawn = "(gr_curve (pts (xy 2 2) (xy 2 6) (xy 6 6) (xy 6 2)) (layer F.Cu) (width 0.3))"
    assert area(front(make(drawn)).copper) == pytest.approx(length * 0.3 + np.pi * 0.15**2, rel=5e-3)


FILL = "(xy 5 5) (xy 15 5) (xy 15 15) (xy 5 15)"


def zone(points: str, more: str = "", least: float = 0.4) -> str:
    return (
        f"(zone (net 1) (net_name GND) (layer F.Cu) (min_thickness {least}) {more}"
        f" (polygon (pts {FILL})) (filled_polygon (pts {points})))"
    )


def test_zones_until_2021_are_drawn_with_their_pen_and_later_ones_are_not(make: Write) -> None:
    with_pen = 100 + 40 * 0.2 + np.pi * 0.2**2
    for version, more, wanted in (
        (4, "", with_pen),
        (20171130, "", with_pen),
        (20221018, "(filled_areas_thickness no)", 100.0),
        (20221018, "", 100.0),
        (20210424, "(filled_areas_thickness no)", 100.0),
    ):
        layers = front(make(zone(FILL, more), version=version))
        assert area(layers.copper) == pytest.approx(wanted, rel=1e-3)
        assert set(np.unique(layers.nets)) == {0, 1}


def test_a_hole_that_is_cut_into_a_zone_by_a_slit_stays_open(make: Write) -> None:
    slit = "(xy 5 5) (xy 15 5) (xy 15 15) (xy 5 15) (xy 5 10) (xy 8 10) (xy 8 12) (xy 12 12) (xy 12 8)"
    points = f"{slit} (xy 8 8) (xy 8 10) (xy 5 10)"
    layers = front(make(zone(points, "(filled_areas_thickness no)")))
    assert area(layers.copper) == pytest.approx(100 - 16, rel=1e-3)
    assert not layers.copper[int(10 * SCALE), int(10 * SCALE)]


def test_zones_never_filled_are_left_out_and_said_and_keepouts_pass_in_silence(make: Write) -> None:
    bare = f"(zone (net 1) (net_name GND) (layer F.Cu) (min_thickness 0.2) (polygon (pts {FILL})))"
    board = make(bare)
    assert not front(board).copper.any()
    assert [note.message for note in board.notes if note.kind == "unfilled-zone"] == [
        "a zone of GND on F.Cu was never filled: left out"
    ]
    keepout = bare.replace("(min_thickness 0.2)", "(keepout (tracks not_allowed) (vias not_allowed))")
    assert "unfilled-zone" not in kinds(make(keepout))


TRACK = "(segment (start 2 3) (end 6 3) (width 1) (layer {}) (net 1))"


@pytest.mark.parametrize(
    ("layers", "version", "front_name", "back_name"),
    [
        (LAYERS, 20171130, "F.Cu", "B.Cu"),
        ("(15 F.Cu signal) (0 B.Cu signal) (28 Edge.Cuts user)", 3, "F.Cu", "B.Cu"),
        ("(15 Upper signal) (0 Lower signal) (28 Edge.Cuts user)", 3, "Upper", "Lower"),
        ('(0 Top signal) (1 "In (1).Cu" power) (31 Bottom mixed) (44 Edge.Cuts user)', 4, "Top", "Bottom"),
        (
            '(0 "F.Cu" signal "Top") (2 "B.Cu" signal "Bottom") (25 "Edge.Cuts" user)',
            20240108,
            "F.Cu",
            "B.Cu",
        ),
    ],
)
def test_copper_layers_are_found_under_any_name_and_number(
    make: Write, layers: str, version: int, front_name: str, back_name: str
) -> None:
    board = make(TRACK.format(front_name), version=version, layers=layers)
    assert front(board).copper.any()
    assert not draw_layers(board, side="back", px_per_mm=10).copper.any()
    board = make(TRACK.format(back_name), version=version, layers=layers)
    assert not front(board).copper.any()
    assert draw_layers(board, side="back", px_per_mm=10).copper.any()


def test_the_back_is_what_a_camera_sees_from_behind(make: Write) -> None:
    board = make(TRACK.format("B.Cu"))
    back = draw_layers(board, side="back", px_per_mm=SCALE)
    assert centre(back.copper) == pytest.approx([16, 3], abs=0.01)
    pads = (
        "(module P (layer F.Cu) (at 4 7) (pad 1 thru_hole circle (at 0 0) (size 3 3) (drill 1) (layers {})))"
    )
    for wild in ("*.Cu", "F&B.Cu", "F.Cu B.Cu"):
        board = make(pads.format(wild))
        back = draw_layers(board, side="back", px_per_mm=SCALE)
        assert np.array_equal(front(board).copper, back.copper[:, ::-1])
        assert np.array_equal(front(board).holes, back.holes[:, ::-1])


def test_blind_vias_are_seen_from_their_side_alone_and_take_the_drill_of_their_net_class(make: Write) -> None:
    layers = LAYERS.replace("(31", "(1 In1.Cu signal) (31")
    classes = (
        '(net_class Default "" (via_drill 0.5) (uvia_drill 0.2)) (net_class W "" (via_drill 1) (add_net GND))'
    )
    body = (
        "(via (at 4 4) (size 2) (layers F.Cu B.Cu) (net 1))"
        "(via (at 8 4) (size 2) (layers F.Cu B.Cu) (net 2))"
        "(via blind (at 12 4) (size 2) (drill 0.8) (layers F.Cu In1.Cu) (net 2))"
        "(via micro (at 16 4) (size 2) (layers F.Cu In1.Cu) (net 2))"
    )
    board = make(classes + body, layers=layers)
    assert [drill.piece.width for drill in board.drills] == [1.0, 0.5, 0.8, 0.2]
    _, on_front = ndimage.label(front(board).holes)
    _, on_back = ndimage.label(draw_layers(board, side="back", px_per_mm=SCALE).holes)
    assert (on_front, on_back) == (4, 2)
    assert "inner-layers" in kinds(board)


def test_the_mask_opening_takes_the_margin_of_the_pad_then_of_its_part_then_of_the_board(make: Write) -> None:
    pad = "(pad 1 smd rect (at 0 0) (size 2 1) (layers F.Cu F.Mask) {})"
    part = "(module P (layer F.Cu) (at 5 5) {} {})"
    setup = "(pad_to_mask_clearance 0.1)"
    for own, parts, margin in (("", "", 0.1), ("", 0.2, 0.2), (0.3, 0.2, 0.3), (-0.1, "", -0.1)):
        text = [f"(solder_mask_margin {value})" if value else "" for value in (own, parts)]
        layers = front(make(part.format(text[1], pad.format(text[0])), setup=setup))
        assert area(layers.mask_open) == pytest.approx((2 + 2 * margin) * (1 + 2 * margin), rel=0.01)
        assert area(layers.copper) == pytest.approx(2, rel=2e-3)


def test_narrow_bridges_of_mask_are_left_out_and_vias_are_covered_unless_the_plot_says_not(
    make: Write,
) -> None:
    pads = "".join(f"(pad {x} smd rect (at {x} 0) (size 0.8 2) (layers F.Cu F.Mask))" for x in range(3))
    via = "(via (at 12 12) (size 1) (drill 0.4) (layers F.Cu B.Cu) (net 1))"
    body = f"(module P (layer F.Cu) (at 5 5) {pads}) {via}"
    assert ndimage.label(front(make(body)).mask_open)[1] == 3
    merged = front(make(body, setup="(solder_mask_min_width 0.25)")).mask_open
    assert area(merged) == pytest.approx(2.8 * 2, rel=0.02)
    assert ndimage.label(merged)[1] == 1
    opened = front(make(body, setup="(pcbplotparams (viasonmask true))")).mask_open
    assert ndimage.label(opened)[1] == 4


def test_silk_is_drawn_but_not_on_bare_metal(make: Write) -> None:
    body = (
        "(gr_line (start 2 5) (end 12 5) (layer F.SilkS) (width 1))"
        "(module P (layer F.Cu) (at 7 5) (pad 1 smd rect (at 0 0) (size 2 2) (layers F.Cu F.Mask)))"
    )
    layers = front(make(body))
    assert area(layers.silk) == pytest.approx(10 + np.pi / 4 - 2, rel=2e-3)
    assert not (layers.silk & layers.mask_open).any()


def test_text_has_its_size_its_anchor_and_is_readable_on_the_back(make: Write) -> None:
    text = "(gr_text L (at 10 10{}) (layer {}) (effects (font (size 3 3) (thickness 0.31)) (justify {})))"
    silk = front(make(text.format("", "F.SilkS", "left bottom"))).silk
    assert extent(silk)[1] == pytest.approx(3.3, abs=0.03)
    rows, columns = np.nonzero(silk)
    assert [columns.min() / SCALE, rows.max() / SCALE] == pytest.approx([9.85, 10.15], abs=0.03)
    back = draw_layers(
        make(text.format("", "B.SilkS", "left bottom mirror")), side="back", px_per_mm=SCALE
    ).silk
    assert np.array_equal(back, silk)
    # Turned by 90 degrees it is read upwards: the foot of the L points up from its corner.
    turned = front(make(text.format(" 90", "F.SilkS", "left bottom"))).silk
    rows, columns = np.nonzero(turned)
    assert [columns.max() / SCALE, rows.max() / SCALE] == pytest.approx([10.15, 10.15], abs=0.03)
    assert np.array_equal(turned, np.rot90(silk))


def test_text_of_parts_is_kept_upright_and_hidden_text_is_left_out(make: Write) -> None:
    font = "(effects (font (size 3 3) (thickness 0.3)))"
    part = "(module P (layer F.Cu) (at 10 10 180) (fp_text reference L (at 0 0 {}) (layer F.SilkS) {} {}))"
    upright = front(make(part.format(0, "", font))).silk
    assert np.array_equal(front(make(part.format(180, "", font))).silk, upright)
    assert not front(make(part.format(0, "hide", font))).silk.any()
    board = make(part.format(0, "", font).replace(" L ", ' "\N{GREEK CAPITAL LETTER OMEGA}" '))
    assert front(board).silk.any()
    assert "text-letter" in kinds(board)


def test_copper_without_a_net_is_numbered_apart_or_takes_the_net_it_lies_on(make: Write) -> None:
    body = (
        "(segment (start 2 3) (end 18 3) (width 1) (layer F.Cu) (net 1))"
        "(gr_line (start 6 3) (end 6 6) (layer F.Cu) (width 0.5))"
        "(module P (layer F.Cu) (at 5 12) (pad 1 smd rect (at 0 0) (size 2 2) (layers F.Cu))"
        " (pad 2 smd rect (at 5 0) (size 2 2) (layers F.Cu)))"
    )
    board = make(body)
    nets = front(board).nets
    assert nets[int(5.5 * SCALE), int(6 * SCALE)] == 1
    apart = {int(nets[int(12 * SCALE), int(x * SCALE)]) for x in (5, 10)}
    assert len(apart) == 2 and min(apart) > max(board.nets)
    assert kinds(board) >= {"copper-without-net"}
    assert np.array_equal(front(board).copper, nets > 0)


def test_nets_that_overlap_are_named_with_their_place(make: Write) -> None:
    cross = (
        "(segment (start 2 5) (end 8 5) (width 1) (layer F.Cu) (net 1))"
        "(segment (start 5 2) (end 5 8) (width 1) (layer F.Cu) (net 2))"
    )
    board = make(cross)
    (note,) = [note for note in board.notes if note.kind == "net-overlap"]
    assert "front: copper of nets GND and /A B overlaps at (4.5" in note.message
    assert front(board).nets[int(5 * SCALE), int(5 * SCALE)] == 1
    tie = cross.replace("(start 5 2) (end 5 8)", "(start 2 7) (end 8 7)")
    tie += "(gr_line (start 5 5) (end 5 7) (layer F.Cu) (width 0.5))"
    assert "net-tie" in kinds(make(tie))
    assert "net-overlap" not in kinds(make(tie))


def line(x0: float, y0: float, x1: float, y1: float) -> str:
    return f"(gr_line (start {x0} {y0}) (end {x1} {y1}) (layer Edge.Cuts) (width 0.1))"


def test_edges_in_any_order_and_sense_become_one_outline_with_cutouts(make: Write) -> None:
    edge = (
        line(0, 0, 18, 0) + line(20, 20, 20, 2) + line(0, 20.01, 20, 20) + line(0, 0.01, 0, 20)
        + "(gr_arc (start 18 2) (end 18 0) (angle 90) (layer Edge.Cuts) (width 0.1))"
        + "(module H (layer F.Cu) (at 10 10)"
        + " (fp_circle (center -3 0) (end -1 0) (layer Edge.Cuts) (width 0.1)))"
    )  # fmt: skip
    body = "(segment (start 1 10) (end 19 10) (width 1) (layer F.Cu) (net 1))"
    board = make(body, edge=edge)
    assert board.outline_found and len(board.outline) == 2
    layers = front(board)
    assert area(layers.board) == pytest.approx(400 - (4 - np.pi) - np.pi * 4, rel=2e-3)
    # No copper is left in the cut-out, which is no drill.
    assert area(layers.copper) == pytest.approx(18 - 4 + np.pi / 4, rel=5e-3)
    assert not layers.holes.any()


def test_an_open_outline_becomes_the_bounding_box_and_says_so(make: Write) -> None:
    body = TRACK.format("F.Cu")
    board = make(body, edge=line(0, 0, 10, 0) + line(10, 0, 10, 8))
    assert not board.outline_found
    assert board.bounds == pytest.approx((-0.5, -0.5, 11, 9))
    assert any("bounding box" in note.message for note in board.notes)
    with pytest.raises(ConfigError, match="nothing can be drawn"):
        make("", edge="")


def test_overlapping_edges_and_stubs_are_mended(make: Write) -> None:
    edge = line(0, 0, 20, 0) + line(20, 0, 20, 15) + line(20, 20, 20, 12) + line(20, 20, 0, 20)
    board = make(TRACK.format("F.Cu"), edge=edge + line(0, 20, 0, 0) + line(0, 0, -3, 0))
    assert board.outline_found
    assert board.bounds == pytest.approx((0, 0, 20, 20))
    assert any("mended" in note.message for note in board.notes)


def test_pictures_without_end_are_refused(make: Write) -> None:
    board = make(TRACK.format("F.Cu"))
    for scale in (0.0, -1.0, float("nan"), 1e5):
        with pytest.raises(ConfigError, match="cannot draw"):
            front(board, scale)


def test_boards_are_listed_with_name_and_licence(tmp_path: Path) -> None:
    for folder, licence in (("b", "MIT"), ("a", None)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "raw.kicad_pcb").touch()
        if licence:
            (tmp_path / folder / "metadata.json").write_text(json.dumps({"license": licence}))
    found = list_boards(tmp_path)
    assert [(board.name, board.licence) for board in found] == [("a", ""), ("b", "mit")]
    with pytest.raises(ConfigError, match=r"no \.kicad_pcb file"):
        list_boards(tmp_path / "a" / "nothing")


def test_windows_lie_on_the_board_and_hold_copper(make: Write) -> None:
    body = "".join(
        f"(segment (start 1 {1 + 0.5 * i}) (end 19 {1 + 0.5 * i}) (width 0.25) (layer F.Cu) (net 1))"
        for i in range(12)
    )
    board = make(body)
    rng = np.random.default_rng(5)
    found = [windows(board, rng, 300, 60) for _ in range(40)]
    for window in found:
        x, y, w, h = window
        assert (w, h) == (5.0, 5.0)
        assert 0 <= x <= 15 and 0 <= y <= 15
        layers = draw_layers(board, side="front", px_per_mm=60, window_mm=window)
        assert layers.size == (300, 300)
        assert 0.07 < layers.copper.mean() < 0.9
    assert len(set(found)) == 40
    again = np.random.default_rng(5)
    assert [windows(board, again, 300, 60) for _ in range(40)] == found
    # A board smaller than the window is shown whole.
    assert windows(board, rng, 300, 10) == pytest.approx((-5, -5, 30, 30), abs=0.3)
