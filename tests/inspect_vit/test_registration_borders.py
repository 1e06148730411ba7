"""What only one of the two pictures shows beyond the other's edge is no structure of the board."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from inspect_vit.alignment import lay_under
from inspect_vit.registration import register

Picture = NDArray[np.uint8]
SIDE = 640


def post(picture: Picture, *, shift: tuple[float, float] = (0, 0), scale: float = 1.0) -> Picture:
    """A picture as a camera shows it so that posted pixel p is pixel scale * (p - middle) + middle + shift.

    White lies around the board.
    """
    move = np.array([[scale, 0, shift[0]], [0, scale, shift[1]]], np.float64)
    move[:, 2] += (1 - scale) * (SIDE - 1) / 2
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    return np.asarray(
        cv2.warpAffine(picture, move, (SIDE, SIDE), flags=flags, borderValue=(255,) * 3), np.uint8
    )


def true_places(
    points: NDArray[np.float64], *, shift: tuple[float, float] = (0, 0), scale: float = 1.0
) -> NDArray[np.float64]:
    middle = (SIDE - 1) / 2
    return np.asarray(scale * (points - middle) + middle + np.array(shift))


WARPS = [{"shift": (40, -33)}, {"shift": (-30, 36)}, {"scale": 1.01}, {"scale": 1.02}]


@pytest.mark.parametrize("warp", WARPS, ids=str)
def test_a_photograph_is_laid_right_down_to_its_lower_edge(project: Path, warp: dict[str, object]) -> None:
    """Its table ends in white there, or the reference goes on: neither is a slip of the last rows."""
    path = project / "data_samples" / "colour_01_temp.png"
    reference = np.asarray(cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB), np.uint8)
    found = register(post(reference, **warp), reference)  # type: ignore[arg-type]
    y, x = np.mgrid[SIDE - 60 : SIDE : 2, 5:SIDE:9]
    points = np.stack((x, y), -1).reshape(-1, 2).astype(np.float64)
    truth = true_places(points, **warp)  # type: ignore[arg-type]
    inside = ((truth >= 0) & (truth <= SIDE - 1)).all(1)
    assert inside.any()
    assert np.linalg.norm(found.to_reference(points) - truth, axis=1)[inside].max() < 0.5
    assert found.slips == ()


@pytest.fixture
def plane() -> Picture:
    """A plane of copper that runs out of the picture, and part of a pad: next to no structure."""
    picture = np.full((SIDE, SIDE, 3), 255, np.uint8)
    picture[:570, 520:] = 0
    cv2.circle(picture, (-20, 568), 30, (0, 0, 0), -1)
    return picture


def flawed(picture: Picture) -> Picture:
    board = picture.copy()
    board[370:380, 560:570] = 255
    board[265:280, 245:260] = 0
    board[145:158, 500:522] = 0
    board[218:226, 522:532] = 255
    return board


@pytest.mark.parametrize("warp", [WARPS[0], WARPS[2], {"shift": (0.4, 0.0)}], ids=str)
def test_white_beside_copper_that_runs_out_of_view_is_no_other_product(
    plane: Picture, warp: dict[str, object]
) -> None:
    found = register(post(flawed(plane), **warp), plane)  # type: ignore[arg-type]
    assert found.inliers > 0.8
    # the plane's left edge tells x, its lower edge y
    beside, below = np.array([[520.0, 320.0]]), np.array([[580.0, 570.0]])
    for place, axis in ((beside, 0), (below, 1)):
        where = found.to_board(place)
        assert abs(float((true_places(where, **warp) - place)[0, axis])) < 0.5  # type: ignore[arg-type]


def test_a_blank_line_along_a_cameras_edge_is_no_structure(plane: Picture) -> None:
    board = flawed(plane)
    clean = register(board, plane)
    board[:, -1] = 255
    assert register(board, plane).inliers == pytest.approx(clean.inliers, abs=1e-6)


def test_tracks_that_all_run_one_way_stay_where_they_are_along_their_way() -> None:
    reference = np.zeros((128, 128), np.uint8)
    reference[:, 30::24] = reference[:, 31::24] = 255
    board = reference.copy()
    board[60:70, 40:60] = 255 - board[60:70, 40:60]
    board, reference = (
        np.repeat(cv2.imdecode(cv2.imencode(".jpg", one)[1], cv2.IMREAD_GRAYSCALE)[..., None], 3, axis=2)
        for one in (board, reference)
    )
    laid = lay_under(board, reference)
    assert laid.faults == () and laid.alignment is not None
    assert laid.alignment.shift_px < 2.0, "nothing tells how far it is shifted along the tracks"
