"""Boards are laid onto their references: known warps are undone, defects survive, wrong boards are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from inspect_vit.errors import ImageError, RegistrationError
from inspect_vit.registration import Registration, register

Picture = NDArray[np.uint8]
Floats = NDArray[np.float64]
WHITE = (255, 255, 255)
RICH = 3
"""Number of a sample with structure all over."""


def read(path: Path) -> Picture:
    return np.asarray(cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB), np.uint8)


@pytest.fixture(scope="module")
def samples(project: Path) -> list[tuple[Picture, Picture]]:
    """(reference with defects drawn into it, reference), 640x640: the true map is the identity."""
    references = [read(path) for path in sorted((project / "data_samples").glob("*_temp.png"))]
    return [(damaged(reference), reference) for reference in references]


def damaged(reference: Picture) -> Picture:
    """Twelve blots of 3 to 30 px, black or white."""
    rng = np.random.default_rng(7)
    board = reference.copy()
    for _ in range(12):
        x, y = (int(v) for v in rng.integers(30, 610, 2))
        axes = (int(rng.integers(2, 15)), int(rng.integers(2, 15)))
        cv2.ellipse(
            board, (x, y), axes, float(rng.integers(180)), 0, 360, (int(255 * rng.integers(2)),) * 3, -1
        )
    return board


@pytest.fixture(scope="module")
def colour_reference(deeppcb_root: Path) -> Picture:
    """A photograph at half size, 1517x793, to be quick."""
    path = deeppcb_root.parent / "hripcb_3boards" / "templates" / "01.JPG"
    if not path.exists():
        pytest.skip("INSPECT_VIT_DATA: no hripcb_3boards")
    return np.asarray(cv2.resize(read(path), None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA), np.uint8)


def about_middle(
    picture: Picture,
    *,
    shift: tuple[float, float] = (0, 0),
    turn: float = 0,
    scale: tuple[float, float] = (1, 1),
    tilt: tuple[float, float] = (0, 0),
) -> Floats:
    """(3, 3): posted pixels to reference pixels. `tilt` is a share of depth from the middle to the edge."""
    height, width = picture.shape[:2]
    middle = np.array([[1, 0, -(width - 1) / 2], [0, 1, -(height - 1) / 2], [0, 0, 1]])
    cos, sin = np.cos(np.deg2rad(turn)), np.sin(np.deg2rad(turn))
    about = [
        [cos * scale[0], -sin * scale[1], shift[0]],
        [sin * scale[0], cos * scale[1], shift[1]],
        [2 * tilt[0] / width, 2 * tilt[1] / height, 1],
    ]
    result: Floats = np.linalg.inv(middle) @ np.array(about) @ middle
    return result


def post(picture: Picture, matrix: Floats) -> Picture:
    size = (picture.shape[1], picture.shape[0])
    seen = cv2.warpPerspective(picture, np.linalg.inv(matrix), size, flags=cv2.INTER_CUBIC, borderValue=WHITE)
    return np.asarray(seen, np.uint8)


def lose_rows(picture: Picture, row: int, count: int) -> Picture:
    """Drop `count` rows at a row, or repeat that many when it is negative; the height stays."""
    blank = np.full((max(count, 0), *picture.shape[1:]), 255, np.uint8)
    return np.concatenate((picture[:row], picture[row + count :], blank))[: len(picture)]


def grid(picture: Picture) -> Floats:
    height, width = picture.shape[:2]
    y, x = np.meshgrid(np.linspace(10, height - 11, 15), np.linspace(10, width - 11, 15), indexing="ij")
    return np.stack((x, y), -1).reshape(-1, 2)


def errors(found: Registration, matrix: Floats, points: Floats, *, offset: Floats | float = 0.0) -> Floats:
    """Distances, px, between where points of the posted picture go and where they belong."""
    truth = cv2.perspectiveTransform((points + offset)[None], matrix)[0]
    height, width = found.reference_shape
    inside = ((truth >= 0) & (truth < [width, height])).all(1)
    distance: Floats = np.linalg.norm(found.to_reference(points) - truth, axis=1)[inside]
    return distance


WARPS: list[dict[str, object]] = [
    {"shift": (40, -33)},
    {"turn": 2.0},
    {"scale": (1.01, 1.01)},
    {"scale": (1.001, 1.0)},
    {"tilt": (0.003, -0.002)},
    {"shift": (-20, 25), "turn": -1.5, "scale": (0.995, 0.994), "tilt": (0.001, 0.001)},
]


@pytest.mark.parametrize("warp", WARPS, ids=str)
def test_known_warps_are_undone(samples: list[tuple[Picture, Picture]], warp: dict[str, object]) -> None:
    for board, reference in samples[:2]:
        matrix = about_middle(board, **warp)  # type: ignore[arg-type]
        distance = errors(register(post(board, matrix), reference), matrix, grid(board))
        assert distance.mean() < 0.25
        assert np.percentile(distance, 95) < 0.5


@pytest.mark.parametrize("warp", [WARPS[0], WARPS[-1]], ids=str)
def test_a_photograph_is_laid_onto_its_reference(colour_reference: Picture, warp: dict[str, object]) -> None:
    matrix = about_middle(colour_reference, **warp)  # type: ignore[arg-type]
    found = register(post(colour_reference, matrix), colour_reference, px_per_mm=20)
    assert errors(found, matrix, grid(colour_reference)).mean() < 0.25
    assert found.residual_mm == found.residual_px / 20


@pytest.mark.parametrize("count", [12, -12])
@pytest.mark.parametrize("turn", [0.0, 0.8])
def test_a_slipped_row_is_found(samples: list[tuple[Picture, Picture]], count: int, turn: float) -> None:
    board, reference = samples[0]
    matrix = about_middle(board, turn=turn, shift=(6, 3))
    found = register(lose_rows(post(board, matrix), 290, count), reference)
    assert [round(slip.offset[1]) for slip in found.slips] == [count]
    assert abs(found.slips[0].row - 290) <= 12
    points = grid(board)
    points = points[np.abs(points[:, 1] - 290) > 15]
    slipped = np.stack((np.zeros(len(points)), count * (points[:, 1] >= 290)), -1)
    distance = errors(found, matrix, points, offset=slipped)
    assert distance.mean() < 0.25
    assert np.percentile(distance, 95) < 0.5


def test_an_even_board_has_no_slip_and_no_field(samples: list[tuple[Picture, Picture]]) -> None:
    for board, reference in samples:
        found = register(post(board, about_middle(board, turn=1, scale=(1.003, 1.001))), reference)
        assert found.slips == ()
        assert found.field is None


def test_figures_say_what_was_done(samples: list[tuple[Picture, Picture]]) -> None:
    board, reference = samples[1]
    matrix = about_middle(board, shift=(12.5, -7), turn=1.2, scale=(1.006, 1.004))
    found = register(post(board, matrix), reference)
    assert found.shift_px == pytest.approx((12.5, -7), abs=0.1)
    assert found.turn_degrees == pytest.approx(1.2, abs=0.02)
    assert found.scale == pytest.approx((1.006, 1.004), abs=3e-4)
    _, covered = found.warp(board)
    assert found.coverage == pytest.approx(covered.mean(), abs=0.01)
    assert found.residual_px < 0.2


LIGHTS: dict[str, Callable[[Picture], NDArray[np.floating]]] = {
    "lamp -30 %": lambda p: p * 0.7,
    "lamp +30 %": lambda p: p * 1.3,
    "gradient": lambda p: p * np.linspace(0.7, 1.3, p.shape[1])[None, :, None],
    "gamma": lambda p: 255 * (p / 255.0) ** 1.8,
    "noise": lambda p: p + np.random.default_rng(0).normal(0, 12, p.shape),
    "blur": lambda p: cv2.GaussianBlur(p, (0, 0), 1.5).astype(np.float64),
}


@pytest.mark.parametrize("light", LIGHTS)
def test_light_noise_blur_and_defects_do_not_pull_it_off(
    samples: list[tuple[Picture, Picture]], light: str
) -> None:
    board, reference = samples[2]
    matrix = about_middle(board, shift=(-9, 14), turn=0.7)
    seen = LIGHTS[light](post(board, matrix)).clip(0, 255).astype(np.uint8)
    distance = errors(register(seen, reference), matrix, grid(board))
    assert distance.mean() < 0.25


def test_a_local_stretch_is_followed(samples: list[tuple[Picture, Picture]]) -> None:
    board, reference = samples[RICH]
    height, width = reference.shape[:2]
    y, x = np.mgrid[:height, :width].astype(np.float32)
    bulge = 2.5 * np.exp(-((x - 350) ** 2 + (y - 300) ** 2) / (2 * 120**2))
    posted = np.asarray(cv2.remap(board, x + bulge, y - bulge, cv2.INTER_CUBIC, borderValue=WHITE), np.uint8)
    found = register(posted, reference)
    points = grid(reference)
    at = points.round().astype(int)
    truth = points + bulge[at[:, 1], at[:, 0], None] * np.array([1, -1])
    assert found.field is not None
    assert np.linalg.norm(found.to_reference(points) - truth, axis=1).mean() < 0.3


def test_defects_are_not_warped_away(deeppcb_root: Path) -> None:
    """Real pairs differ locally by 1 to 3 px and need a field; what differs inside the boxes must stay."""
    ahead = behind = num = bent = 0.0
    for group in ("12000", "12100", "12300"):
        folder = deeppcb_root / "PCBData" / f"group{group}"
        image = sorted((folder / group).glob("*_test.jpg"))[10]
        board, reference = read(image), read(Path(str(image).replace("_test", "_temp")))
        labels = folder / f"{group}_not" / image.name.replace("_test.jpg", ".txt")
        found = register(board, reference)
        bent += found.field is not None
        plain = Registration(found.matrix, found.board_shape, found.reference_shape, found.slips)
        for left, top, right, bottom in np.loadtxt(labels, ndmin=2)[:, :4].astype(int):
            num += 1
            ahead += energy(found.warp(board)[0], reference, (left, top, right, bottom))
            behind += energy(plain.warp(board)[0], reference, (left, top, right, bottom))
    assert bent
    assert num >= 6
    assert ahead > 0.9 * behind


def energy(board: Picture, reference: Picture, box: tuple[int, int, int, int]) -> float:
    """Pixels of a box that differ by more than an edge's width: the difference, opened by 3x3."""
    left, top, right, bottom = box
    differs = cv2.absdiff(board, reference)[top:bottom, left:right].max(-1) > 100
    opened = cv2.morphologyEx(differs.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    return float(opened.sum())


@pytest.mark.parametrize(
    ("lay", "words"),
    [
        (lambda p: np.rot90(p, 2), "upside down"),
        (np.rot90, "turned by 90 degrees"),
        (lambda p: p[:, ::-1], "mirrored"),
        (lambda p: p[::-1], "mirrored"),
    ],
)
def test_a_board_laid_wrongly_is_named(
    samples: list[tuple[Picture, Picture]], lay: Callable[[Picture], Picture], words: str
) -> None:
    board, reference = samples[3]
    with pytest.raises(RegistrationError, match=words):
        register(np.ascontiguousarray(lay(board)), reference)


def test_a_board_that_looks_alike_both_ways_is_accepted(samples: list[tuple[Picture, Picture]]) -> None:
    _, reference = samples[4]
    twofold = reference.copy()
    twofold[320:] = np.rot90(reference, 2)[320:]
    assert register(np.ascontiguousarray(np.rot90(twofold, 2)), twofold).inliers > 0.95


def test_another_product_is_refused(samples: list[tuple[Picture, Picture]]) -> None:
    for k in (1, 2):
        with pytest.raises(RegistrationError, match="another product"):
            register(samples[0][0], samples[k][1])


def test_what_cannot_be_aligned_says_why(samples: list[tuple[Picture, Picture]]) -> None:
    blank = np.full((640, 640, 3), 255, np.uint8)
    board, reference = samples[0]
    with pytest.raises(RegistrationError, match="shows structure"):
        register(blank, blank)
    with pytest.raises(RegistrationError, match="at least 64 px"):
        register(board[:40], reference)
    with pytest.raises(RegistrationError, match="longer one way"):
        register(post(board, about_middle(board, scale=(1.0, 1.04))), reference)
    with pytest.raises(ImageError, match="wanted uint8"):
        register(board[..., 0], reference)


def test_a_picture_of_another_size_or_resolution_is_laid_on(samples: list[tuple[Picture, Picture]]) -> None:
    board, reference = samples[1]
    wide = np.asarray(cv2.copyMakeBorder(board, 10, 50, 30, 20, cv2.BORDER_CONSTANT, value=WHITE), np.uint8)
    found = register(wide, reference)
    distance = np.linalg.norm(found.to_reference(grid(board) + np.array([30, 10])) - grid(board), axis=1)
    assert distance.mean() < 0.25
    small = np.asarray(cv2.resize(board, (512, 512), interpolation=cv2.INTER_AREA), np.uint8)
    found = register(small, reference)
    assert found.scale == pytest.approx((1.25, 1.25), abs=2e-3)
