"""A board of 6400 x 6400 px: there at once, sharp where one looks, and it follows the hand."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from inspect_vit.results import Defect
from serving.archive import pack_maps
from serving.config import ServingConfig
from serving.store import Store
from tests.serving.boards import Boards
from tests.serving.conftest import StartServer, encode
from tests.serving.stories.conftest import OpenPage

SIDE = 6400
CALL = (4760.0, 1560.0, 4840.0, 1640.0)
"""A red disc, alone."""
FIT_SHARE = 0.96
FEWEST_FRAMES = 10
"""In a second of panning: far below what a quiet machine draws, far above a page that stalls."""
COUNT_FRAMES = """() => {
    window.seen = { frames: 0, since: performance.now() };
    const count = () => { window.seen.frames += 1; requestAnimationFrame(count); };
    requestAnimationFrame(count);
}"""


@pytest.fixture
def large(start_server: StartServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    """A server that finds the board in its store, since a network would take long over 41 Mpx; and its id."""
    home = tmp_path_factory.mktemp("large")
    board = np.full((SIDE, SIDE, 3), 210, np.uint8)
    for at in range(200, SIDE, 400):
        cv2.line(board, (at, 0), (at, SIDE), (40, 70, 45), 24)
    cv2.circle(board, (4800, 1600), 40, (20, 20, 200), -1)
    boards = Boards()
    call = Defect("short", 0.91, CALL, 5000, {"4": 0.5, "16": 0.25, "32": 0.25})
    boards.result = dataclasses.replace(
        boards.result, defects=(call,), width=SIDE, height=SIDE, with_reference=False
    )
    report = boards.report(serial="LARGE-1")
    with contextlib.closing(Store(ServingConfig(home=home, min_free_mb=0.0))) as store:
        boards.add(store, report, image=encode(".png", board), reference=None, maps=pack_maps(boards.result))
    running = start_server(home, MAX_MEGAPIXELS="50")
    yield running, report.id
    running.stop()


def expect_red(stage: Locator, column: float, row: float) -> None:
    """Tiles come when they come."""
    for _ in range(60):
        picture = cv2.imdecode(np.frombuffer(stage.screenshot(), np.uint8), cv2.IMREAD_COLOR)
        assert picture is not None
        blue, green, red = (int(value) for value in picture[round(row), round(column)])
        if red > 150 and max(blue, green) < 80:
            return
        stage.page.wait_for_timeout(400)
    raise AssertionError(f"at ({column:.0f}, {row:.0f}) lies {(red, green, blue)}, no red")


def test_a_large_board_opens_at_its_call_and_follows_the_hand(
    large: tuple[Any, str], open_page: OpenPage
) -> None:
    server, board = large
    page = open_page(server, None)
    tiles: list[str] = []

    def note(url: str) -> None:
        if "/tiles/image/" in url:
            tiles.append(url.split("/tiles/image/")[1])

    page.on("request", lambda request: note(request.url))
    page.goto(f"{server.client.base_url}/station#/board/{board}")
    stage = page.locator(".stage")
    expect(page.locator(".detail .crops img")).to_be_visible(timeout=60_000)
    box = stage.bounding_box()
    assert box
    columns, rows = box["width"], box["height"]
    expect_red(stage, columns / 2, rows / 2)  # the call is in the middle
    assert len(tiles) < 30, "of 169 tiles of full size, those around the call"

    page.keyboard.press("0")
    page.wait_for_timeout(2000)
    scale = min(columns, rows) * FIT_SHARE / SIDE
    column, row = columns / 2 + (4800 - SIDE / 2) * scale, rows / 2 + (1600 - SIDE / 2) * scale
    page.keyboard.press("h")
    page.wait_for_timeout(300)
    expect_red(stage, column, row)

    page.mouse.move(box["x"] + column, box["y"] + row)
    for _ in range(12):
        page.mouse.wheel(0, -100)
        page.wait_for_timeout(80)
    page.wait_for_timeout(2000)
    expect_red(stage, column, row)  # what is under the pointer stays there

    page.mouse.down()
    page.evaluate(COUNT_FRAMES)
    for step in range(1, 41):
        page.mouse.move(box["x"] + column - 2 * step, box["y"] + row + 3 * step)
        page.wait_for_timeout(8)
    frames, spent_ms = page.evaluate("[window.seen.frames, performance.now() - window.seen.since]")
    page.wait_for_timeout(1500)
    expect_red(stage, column - 80, row + 120)  # the board went where the hand went
    page.mouse.up()
    assert frames / spent_ms * 1000 > FEWEST_FRAMES
