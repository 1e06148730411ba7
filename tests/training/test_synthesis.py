"""Drawn defects are what their labels say, told from the picture by flood fill, net by net."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from training.artwork import STYLES, Mask, make_board
from training.formats.deeppcb import CLASS_NAMES
from training.samples import write_samples
from training.synthesis import BOX_MARGIN_PX, DEFECT_KINDS, draw_defects, scan

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
        return {0: "copper", 1: "spur", 2: "short"}[len(nets)]
    assert before[mask].all()
    if not pieces_touching(~before, mask, diagonal=False):
        return "pin-hole"
    return "open" if len(pieces_touching(before & ~mask, mask, diagonal=True)) > 1 else "mousebite"


@pytest.mark.parametrize("label", CLASS_NAMES)
def test_a_defect_is_what_its_label_says(label: str) -> None:
    for seed in (3, 6, 8):
        rng = np.random.default_rng(seed)
        good = scan(make_board(seed, SIZE).copper, rng)
        drawn = draw_defects(good, rng, 2, kinds=[label])
        assert drawn.labels == (label, label)
        before = good
        for mask in drawn.masks:
            assert true_class(before, mask) == label
            if label not in ("open", "short"):
                disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (7, 7))
                near = cv2.dilate(mask.astype(np.uint8), disc) > 0
                grown = near & (before == before[mask][0])
                assert true_class(before, grown) == label, "three pixels more do not change the class"
            before = before ^ mask
        assert np.array_equal(before, drawn.copper), "the masks are exactly what was changed"


def test_defects_are_sized_boxed_and_apart() -> None:
    rng = np.random.default_rng(5)
    drawn = draw_defects(scan(make_board(5).copper, rng), rng, 8, size_px=(8, 14))
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


def test_a_board_without_room_gets_fewer_defects() -> None:
    laminate = np.zeros((64, 64), bool)
    drawn = draw_defects(laminate, np.random.default_rng(0), 3, kinds=["open", "mousebite"])
    assert drawn.boxes.shape == (0, 4)
    assert drawn.labels == ()
    assert not drawn.copper.any()


def test_boards_follow_their_seed() -> None:
    assert np.array_equal(make_board(7, SIZE).copper, make_board(7, SIZE).copper)
    assert not np.array_equal(make_board(7, SIZE).copper, make_board(8, SIZE).copper)
    assert {make_board(seed, 128).style for seed in range(24)} == set(STYLES)


def test_nets_are_numbered_by_connection() -> None:
    board = make_board(9, SIZE)
    assert np.array_equal(board.nets > 0, board.copper)
    for net in range(1, int(board.nets.max()) + 1):
        row, column = np.argwhere(board.nets == net)[0].tolist()
        assert np.array_equal(flood(board.copper, (row, column), diagonal=True), board.nets == net)


def test_two_scans_differ_only_along_edges() -> None:
    copper = make_board(4, SIZE).copper
    rng = np.random.default_rng(4)
    difference = scan(copper, rng) ^ scan(copper, rng)
    assert difference.any()
    kernel = np.ones((7, 7), np.uint8)
    edges = cv2.morphologyEx(copper.astype(np.uint8), cv2.MORPH_GRADIENT, kernel) > 0
    assert not (difference & ~edges).any()


def decode_run_lengths(counts: list[int], shape: tuple[int, int]) -> Mask:
    values = np.arange(len(counts)) % 2 == 1
    return np.repeat(values, counts).reshape(shape, order="F")


def read_grey(path: Path) -> NDArray[np.uint8]:
    picture = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    assert picture is not None
    return np.asarray(picture, np.uint8)


def check_samples(folder: Path, size: int) -> None:
    """Labels and pictures of a sample folder agree: a defect's pixels differ between board and reference."""
    tree = json.loads((folder / "annotations.coco.json").read_text(encoding="utf-8"))
    names = {entry["id"]: entry["name"] for entry in tree["categories"]}
    assert list(names.values()) == list(CLASS_NAMES)
    for entry in tree["images"]:
        board, reference = read_grey(folder / entry["file_name"]), read_grey(folder / entry["reference"])
        assert board.shape == reference.shape == (size, size) == (entry["height"], entry["width"])
        assert set(np.unique(board)) == {0, 255}
        outside = board != reference
        for label in (a for a in tree["annotations"] if a["image_id"] == entry["id"]):
            mask = decode_run_lengths(label["segmentation"]["counts"], (size, size))
            assert mask.sum() == label["area"]
            # Removed copper turned white, added copper black; the reference differs but for its edges.
            removes = DEFECT_KINDS[names[label["category_id"]]].removes
            assert (board[mask] == (255 if removes else 0)).all()
            assert (board != reference)[mask].mean() > 0.5
            left, top, width, height = (int(value) for value in label["bbox"])
            rows, columns = np.nonzero(mask)
            assert left <= columns.min() and columns.max() < left + width
            assert top <= rows.min() and rows.max() < top + height
            outside[mask] = False
        # What differs outside the masks is frayed edges: nothing of it survives a 3x3 opening.
        assert not cv2.morphologyEx(outside.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)).any()


def test_written_samples_hold_together(tmp_path: Path) -> None:
    written = write_samples(tmp_path / "samples", seeds=[1, 2], size=SIZE)
    assert sorted(written) == sorted((tmp_path / "samples").iterdir())
    check_samples(tmp_path / "samples", SIZE)
    tree = json.loads(written[-1].read_text(encoding="utf-8"))
    assert {label["image_id"] for label in tree["annotations"]} == {1}, "the last board is good"


def test_shipped_samples_hold_together(project: Path) -> None:
    folder = project / "data_samples"
    check_samples(folder, 640)
    tree = json.loads((folder / "annotations.coco.json").read_text(encoding="utf-8"))
    assert {label["category_id"] for label in tree["annotations"]} == set(range(1, 7)), "every class is shown"
    labelled = {label["image_id"] for label in tree["annotations"]}
    assert {entry["id"] for entry in tree["images"]} - labelled, "one board is good"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1_000_000
