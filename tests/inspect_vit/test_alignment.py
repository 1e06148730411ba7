"""A reference is laid under the board to a fraction of a pixel; what cannot be seen is no PASS."""

from __future__ import annotations

import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from inspect_vit import Inspector, Verdict
from inspect_vit.alignment import as_posted, lay_under
from inspect_vit.errors import ImageError
from inspect_vit.image_io import read_image

Picture = NDArray[np.uint8]
MARGIN = 60


@pytest.fixture(scope="module")
def sheet(project: Path) -> Picture:
    """A good board with room around it, so that views of it can be cut out anywhere."""
    return read_image(project / "data_samples" / "board_01_temp.png")[0]


def view(sheet: Picture, *, shift: tuple[float, float] = (0, 0), degrees: float = 0) -> Picture:
    """What a camera sees of a board that is moved and turned: (H - 2 MARGIN, W - 2 MARGIN, 3)."""
    height, width = (side - 2 * MARGIN for side in sheet.shape[:2])
    turn = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), degrees, 1.0)
    turn[:, 2] += shift
    to_view = np.vstack((turn, (0, 0, 1))) @ np.array([[1, 0, -MARGIN], [0, 1, -MARGIN], [0, 0, 1]])
    return np.asarray(cv2.warpPerspective(sheet, to_view, (width, height)), np.uint8)


@pytest.mark.parametrize(("shift", "degrees"), [((6.3, -3.7), 0.0), ((-2.0, 5.0), 0.7), ((11.0, 9.0), -0.3)])
def test_a_moved_board_finds_its_reference_under_it(
    sheet: Picture, shift: tuple[float, float], degrees: float
) -> None:
    board, golden = view(sheet, shift=shift, degrees=degrees), view(sheet)
    laid = lay_under(board, golden)
    assert laid.picture is not None
    assert laid.alignment is not None
    assert laid.faults == ()
    assert laid.alignment.shift_px == pytest.approx(np.hypot(*shift), abs=0.15)
    assert abs(laid.alignment.turn_degrees) == pytest.approx(abs(degrees), abs=0.02)
    inner = slice(40, -40), slice(40, -40)
    left = np.abs(laid.picture[inner].astype(float) - board[inner])
    before = np.abs(golden[inner].astype(float) - board[inner])
    # what is left is the softness of a picture that was resampled once more
    assert left.mean() < max(0.15 * before.mean(), 3.0)


def test_where_the_reference_shows_nothing_the_board_is_compared_with_itself(sheet: Picture) -> None:
    board, golden = view(sheet, shift=(10, 0)), view(sheet)
    laid = lay_under(board, golden)
    assert laid.picture is not None
    assert laid.alignment is not None
    assert np.array_equal(laid.picture[:, :9], board[:, :9])
    assert laid.alignment.covered == pytest.approx(1 - 10 / board.shape[1], abs=0.002)


def test_a_reference_of_another_resolution_is_scaled(sheet: Picture) -> None:
    board, golden = view(sheet), view(sheet)
    large = np.asarray(cv2.resize(golden, None, fx=1.5, fy=1.5, interpolation=cv2.INTER_CUBIC), np.uint8)
    laid = lay_under(board, large)
    assert laid.picture is not None
    assert laid.picture.shape == board.shape
    assert np.abs(laid.picture.astype(float) - board)[20:-20, 20:-20].mean() < 8


def test_a_board_that_is_partly_out_of_sight_does_not_pass(sheet: Picture) -> None:
    laid = lay_under(view(sheet, shift=(30, 0)), view(sheet))
    assert laid.picture is not None
    assert len(laid.faults) == 2
    assert "of the picture: a strip of 30 px has nothing to be compared with" in laid.faults[0]
    assert "a strip of 30 px is out of sight (limit 16 px)" in laid.faults[1]


def test_a_reference_that_shows_a_part_of_the_board_is_not_enough(sheet: Picture) -> None:
    laid = lay_under(view(sheet), np.ascontiguousarray(view(sheet)[60:-60, 60:-60]))
    assert laid.alignment is not None
    assert laid.alignment.covered == pytest.approx(400**2 / 520**2, abs=0.01)
    assert laid.faults[0].startswith("the reference shows 5")
    assert "a strip of 60 px has nothing to be compared with" in laid.faults[0]


def test_noise_is_not_compared_as_posted(sheet: Picture) -> None:
    golden = view(sheet)
    rng = np.random.default_rng(0)
    board = golden.copy()
    salted = rng.random(board.shape[:2]) < 0.2
    board[salted] = rng.integers(0, 2, (int(salted.sum()), 1), np.uint8) * 255
    laid = lay_under(board, golden)
    assert laid.picture is None or laid.registration is not None


def test_lost_rows_do_not_pass_and_repeated_rows_do(sheet: Picture) -> None:
    golden = view(sheet)
    lost = np.concatenate((golden[:250], golden[258:], golden[-8:]))
    repeated = np.concatenate((golden[:250], golden[242:-8]))
    (fault,) = lay_under(lost, golden).faults
    assert fault.startswith("the scan lost 8 rows at row 25")
    assert lay_under(repeated, golden).faults == ()


@pytest.mark.parametrize(("lost", "above_the_edge"), [(6, 20), (8, 30), (12, 40)])
def test_rows_lost_near_the_lower_edge_do_not_pass(sheet: Picture, lost: int, above_the_edge: int) -> None:
    golden = view(sheet)
    row = len(golden) - above_the_edge
    board = np.concatenate((golden[:row], golden[row + lost :], np.repeat(golden[-1:], lost, 0)))
    (fault,) = lay_under(board, golden).faults
    assert fault.startswith("the scan lost ")
    assert abs(int(fault.split(" at row ")[1].split()[0]) - row) <= 8


def test_rows_repeated_near_the_lower_edge_are_followed(sheet: Picture) -> None:
    golden = view(sheet)
    row = len(golden) - 30
    board = np.concatenate((golden[:row], golden[row - 8 : -8]))
    laid = lay_under(board, golden)
    assert laid.picture is not None
    assert laid.faults == ()
    assert np.abs(laid.picture[-22:].astype(float) - board[-22:]).mean() < 3


@pytest.mark.parametrize("gone", ["left", "top"])
def test_a_board_that_lacks_half_of_its_copper_fails_and_is_no_other_product(
    small_inspector: Inspector, sheet: Picture, gone: str
) -> None:
    board = sheet.copy()
    half = (slice(None), slice(0, 320)) if gone == "left" else (slice(0, 320), slice(None))
    board[half] = int(np.median(sheet))
    laid = lay_under(board, sheet)
    assert laid.faults == ()
    assert laid.alignment is not None
    assert laid.alignment.shift_px < 1
    result = small_inspector.inspect(board, reference=laid)
    assert result.verdict == Verdict.FAIL
    missing = float(re.match(r"process failure: (\d+)% of what the reference shows", result.reasons[0])[1])  # type: ignore[index]
    assert 35 < missing < 65


def test_another_product_on_the_same_fixture_is_an_error_by_name(project: Path) -> None:
    """Rim and holes match; a quarter of the picture and more shows other copper."""
    names = ("board_05_temp.png", "board_03_temp.png")
    other, golden = (read_image(project / "data_samples" / name)[0] for name in names)
    board = golden.copy()
    board[130:-130, 130:-130] = other[130:-130, 130:-130]
    laid = lay_under(board, golden)
    assert laid.picture is None
    assert laid.faults[0].startswith("another product")


@pytest.mark.parametrize("degrees", [8, -14, 25])
def test_a_board_that_is_turned_too_far_is_told_by_how_much(sheet: Picture, degrees: int) -> None:
    turn = cv2.getRotationMatrix2D((319.5, 319.5), -degrees, 1.0)
    board = np.asarray(cv2.warpAffine(sheet, turn, (640, 640), borderMode=cv2.BORDER_REPLICATE), np.uint8)
    (fault,) = lay_under(board, sheet).faults
    told = float(re.search(r"turned by (?:about )?(-?[0-9.]+) degrees", fault)[1])  # type: ignore[index]
    assert abs(abs(told) - abs(degrees)) <= 1
    assert "(limit 5)" in fault


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda p: p[::-1, ::-1], "upside down"),
        (lambda p: p[:, ::-1], "mirrored"),
        (lambda p: np.rot90(p), "turned by 90 degrees"),
    ],
)
def test_a_board_that_lies_otherwise_is_an_error_by_name(
    small_inspector: Inspector, sheet: Picture, change: object, cause: str
) -> None:
    assert callable(change)
    result = small_inspector.inspect(np.ascontiguousarray(change(view(sheet))), reference=view(sheet))
    assert result.verdict == Verdict.ERROR
    assert result.reasons[0].startswith(cause)
    assert result.defects == ()
    assert result.alignment is None


def test_the_inspector_aligns_as_lay_under_does(small_inspector: Inspector, sheet: Picture) -> None:
    board, golden = view(sheet, shift=(4, 2), degrees=0.4), view(sheet)
    laid = lay_under(board, golden)
    result, again = (small_inspector.inspect(board, reference=reference) for reference in (golden, laid))
    unaligned = small_inspector.inspect(board, reference=as_posted(board, golden))
    assert np.array_equal(result.defect_map, again.defect_map)
    assert result.alignment == laid.alignment
    assert not np.array_equal(result.defect_map, unaligned.defect_map)


def test_pictures_taken_as_aligned_have_one_size(sheet: Picture) -> None:
    with pytest.raises(ImageError, match="reference has 500x520 px, the image 520x520"):
        as_posted(sheet[:520, :520], sheet[:520, :500])


def test_a_reference_in_register_is_not_softened(sheet: Picture) -> None:
    golden = view(sheet)
    board = golden.copy()
    cv2.circle(board, (200, 200), 8, (128, 128, 128), -1)
    laid = lay_under(board, golden)
    assert laid.picture is golden
    assert laid.alignment is not None
    assert laid.alignment.covered == 1.0
