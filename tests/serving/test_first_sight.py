"""Large boards are there at once: what is kept of them is what their pyramid shows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from serving.archive import pack_maps, unpack_result
from serving.crops import crop_window, tile_window
from serving.first_sight import LARGE_PIXELS, FirstSight, add_to_maps, first_sight, read_from_maps
from serving.tiles_pyramid import Grid, Pyramid
from tests.serving.boards import Boards
from tests.serving.conftest import StartServer

WIDTH, HEIGHT = 3001, 2203
CALL = (2490.0, 1600.0, 2530.0, 1660.0)


def picture(seed: int) -> np.ndarray:
    small = np.random.default_rng(seed).integers(0, 256, (HEIGHT // 16, WIDTH // 16, 3)).astype(np.uint8)
    return np.asarray(cv2.resize(small, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC))


def error(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(found.astype(int) - wanted).mean())


@pytest.fixture(scope="module")
def pictures() -> tuple[np.ndarray, np.ndarray]:
    return picture(0), picture(1)


@pytest.fixture(scope="module")
def sight(pictures: tuple[np.ndarray, np.ndarray]) -> FirstSight:
    boards = Boards()
    found = first_sight(*pictures, CALL)
    assert found is not None
    read = read_from_maps(add_to_maps(pack_maps(boards.result), found))
    assert read is not None
    return read


def test_a_usual_board_keeps_none(pictures: tuple[np.ndarray, np.ndarray]) -> None:
    assert LARGE_PIXELS > 2000 * 1999
    assert first_sight(pictures[0][:1999, :2000], None, CALL) is None


def test_the_maps_are_read_as_before(pictures: tuple[np.ndarray, np.ndarray], sight: FirstSight) -> None:
    boards = Boards()
    plain = pack_maps(boards.result)
    report = boards.report(serial="S")
    assert read_from_maps(plain) is None
    both = unpack_result(report, plain), unpack_result(report, add_to_maps(plain, sight))
    np.testing.assert_array_equal(both[0].defect_map, both[1].defect_map)


@pytest.mark.parametrize(("layer", "number"), [("image", 0), ("reference", 1)])
def test_what_is_kept_is_what_the_pyramid_shows(
    pictures: tuple[np.ndarray, np.ndarray], sight: FirstSight, layer: str, number: int
) -> None:
    pyramid, grid = Pyramid(pictures[number]), Grid(WIDTH, HEIGHT)
    answered = set()
    for level in range(grid.max_level + 1):
        width, height = grid.size(level)
        for column in range(-(-width // 512)):
            for row in range(-(-height // 512)):
                window = tile_window(grid, level, column, row)
                kept = sight.cut(layer, window)  # type: ignore[arg-type]
                if kept is not None:
                    answered.add((level, column, row))
                    wanted = pyramid.part(window.step, window.rect)
                    assert kept.shape == wanted.shape
                    assert error(kept, wanted) < 0.3 * error(kept, np.roll(wanted, 1, axis=1))
    column, row = (2510 // 512), (1630 // 512)
    around = {(grid.max_level, c, r) for c in (column - 1, column, column + 1) for r in (row - 1, row)}
    assert around <= answered, "the tiles around the call, at full size"
    assert {(0, 0, 0), (1, 0, 0), (1, 1, 1)} <= answered, "the whole board, small"
    assert (grid.max_level, 0, 0) not in answered, "far from the call"


def test_a_close_up_is_exact_or_not_kept(pictures: tuple[np.ndarray, np.ndarray], sight: FirstSight) -> None:
    grid, pyramid = Grid(WIDTH, HEIGHT), Pyramid(pictures[0])
    close = crop_window(grid, (2460, 1580, 2556, 1676), 150)
    assert close.is_lossless
    kept = sight.cut("image", close)
    assert kept is not None
    np.testing.assert_array_equal(kept, pyramid.part(close.step, close.rect))
    assert sight.cut("image", crop_window(grid, (2000, 1300, 2100, 1400), 150)) is None


def test_calls_in_corners_and_none_at_all(pictures: tuple[np.ndarray, np.ndarray]) -> None:
    board = pictures[0]
    grid = Grid(WIDTH, HEIGHT)
    for call, box in (
        ((-4.0, -4.0, 9.0, 9.0), (0, 0, 64, 64)),
        ((2990.0, 2190.0, 3010.0, 2210.0), (2937, 2139, 3001, 2203)),
    ):
        sight = first_sight(board, None, call)
        assert sight is not None and not sight.has_reference
        window = crop_window(grid, box, 150)
        kept = sight.cut("image", window)
        assert kept is not None
        np.testing.assert_array_equal(kept, Pyramid(board).part(window.step, window.rect))
        assert sight.cut("reference", window) is None
    nothing = first_sight(board, None, None)
    assert nothing is not None
    assert nothing.smallest().shape == (-(-HEIGHT // 2), -(-WIDTH // 2), 3)


@pytest.fixture
def server(start_server: StartServer, tmp_path: Path) -> Iterator[Any]:
    running = start_server(tmp_path, MAX_MEGAPIXELS="8")
    yield running
    running.stop()


def test_the_first_sight_needs_neither_the_posted_picture_nor_its_reference(server: Any) -> None:
    golden = np.kron(np.random.default_rng(3).integers(0, 2, (70, 70)), np.ones((30, 30))).astype(np.uint8)
    golden = np.repeat((golden * 200 + 20)[..., None], 3, axis=2)
    board = golden.copy()
    board[1000:1040, 1200:1240] = 255
    files = {
        "image": ("b.png", cv2.imencode(".png", board)[1].tobytes()),
        "reference": ("g.png", cv2.imencode(".png", golden)[1].tobytes()),
    }
    report = server.client.post("/v1/inspect", files=files, timeout=120).raise_for_status().json()
    assert report["reference"]["covered"] == 1.0
    for name in ("image", "reference"):
        sha256 = hashlib.sha256(files[name][1]).hexdigest()
        (found,) = server.home.glob(f"pictures/*/{sha256}")
        found.unlink()
    one = f"/v1/inspections/{report['id']}"
    for path in ("thumbnail", "tiles/image/0/0_0", "tiles/reference/0/0_0", "tiles/difference/0/0_0"):
        answer = server.client.get(f"{one}/{path}")
        assert answer.status_code == 200, (path, answer.text)
    shown = cv2.imdecode(np.frombuffer(answer.content, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert shown is not None
    at = np.unravel_index(shown.argmax(), shown.shape)
    side = 2100 / shown.shape[0]
    assert 1000 - side <= at[0] * side <= 1040 + side and 1200 - side <= at[1] * side <= 1240 + side
    assert server.client.get(f"{one}/tiles/reference").status_code == 200


@pytest.mark.parametrize("shape", [(2000, 2000), (2048, 1954), (2001, 2047), (1, 4_000_001), (4097, 2049)])
def test_the_smallest_picture_is_of_all_of_the_board(shape: tuple[int, int]) -> None:
    """Also where nothing had to be halved, and the close-up has the same step."""
    board = np.zeros((*shape, 3), np.uint8)
    board[: (shape[0] + 1) // 2, : (shape[1] + 1) // 2] = 200
    kept = first_sight(board, board, (0, 0, 9, 9))
    assert kept is not None
    small = kept.smallest()
    assert small.shape[0] / small.shape[1] == pytest.approx(shape[0] / shape[1], rel=0.01, abs=0.001)
    assert small.mean() == pytest.approx(board.mean(), rel=0.02)
