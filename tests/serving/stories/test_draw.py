"""What was missed is drawn, by mouse, keyboard or finger, its class is chosen or new, and it stays there."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.serving.conftest import draw_board, encode
from tests.serving.stories.conftest import OpenPage, Station

WIDTH, HEIGHT = 320, 256
FIT_SHARE = 0.96
KEYS_PX = 6
"""Of the screen, that an arrow key moves the cross-hair."""


@pytest.fixture
def board(server: Any) -> str:
    """Id of a board of its own, without calls in the way."""
    number = len(server.client.get("/v1/inspections").json()["inspections"])
    picture = encode(".png", draw_board(seed=40)) + str(number).encode()
    answer = server.client.post(
        "/v1/inspect", files={"image": picture}, data={"options": '{"min_score": 1.0}'}
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def opened(page: Page) -> tuple[float, float, float]:
    """The whole board on the stage: scale, and where px (0, 0) lies in the window."""
    expect(page.locator(".stage-controls")).to_be_visible(timeout=30_000)
    expect(page.get_by_text("nothing drawn")).to_be_visible(timeout=30_000)
    page.wait_for_timeout(600)
    press(page, "0")
    page.wait_for_timeout(900)
    box = page.locator(".stage").bounding_box()
    assert box
    scale = min(box["width"] / WIDTH, box["height"] / HEIGHT) * FIT_SHARE
    left = box["x"] + (box["width"] - WIDTH * scale) / 2
    top = box["y"] + (box["height"] - HEIGHT * scale) / 2
    return scale, left, top


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)
        page.wait_for_timeout(90)


def stored(server: Any, board: str) -> list[dict[str, Any]]:
    missed = server.client.get(f"/v1/inspections/{board}/review").json()["missed"]
    return list(missed)


def drawn_and_kept(page: Page, server: Any, board: str, number: int = 1) -> list[dict[str, Any]]:
    expect(page.locator(".marks .missed")).to_have_count(number)
    for _ in range(300):
        if len(found := stored(server, board)) == number:
            return found
        page.wait_for_timeout(100)
    raise AssertionError(f"the server has {stored(server, board)}")


def test_a_box_with_a_new_class_is_kept_where_it_was_drawn(station: Station, server: Any, board: str) -> None:
    page = station(f"board/{board}")
    scale, left, top = opened(page)
    press(page, "d")
    page.mouse.move(left + 100 * scale, top + 60 * scale)
    page.mouse.down()
    page.mouse.move(left + 150 * scale, top + 100 * scale, steps=5)
    page.mouse.up()
    form = page.get_by_role("form", name="Class of what was missed")
    expect(form.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("solder ball", delay=70)
    expect(form).to_contain_text("\u201csolder ball\u201d is a new class.")
    press(page, "Enter")
    (missed,) = drawn_and_kept(page, server, board)
    assert missed["label"] == "solder ball"
    assert missed["polygon"] is None
    assert missed["box_xyxy"] == pytest.approx([100, 60, 150, 100], abs=1)

    page.reload()
    opened_again = page.locator(".marks .missed")
    expect(opened_again).to_have_count(1, timeout=30_000)
    expect(opened_again).to_contain_text("solder ball")


def test_a_polygon_is_clicked_and_a_known_class_chosen(station: Station, server: Any, board: str) -> None:
    page = station(f"board/{board}")
    scale, left, top = opened(page)
    corners = [(40.0, 40.0), (120.0, 50.0), (110.0, 120.0), (50.0, 110.0)]
    press(page, "g")
    for x, y in corners[:-1]:
        page.mouse.click(left + x * scale, top + y * scale)
        page.wait_for_timeout(60)
    press(page, "Backspace")
    page.mouse.click(left + corners[2][0] * scale, top + corners[2][1] * scale)
    page.mouse.dblclick(left + corners[3][0] * scale, top + corners[3][1] * scale)
    field = page.get_by_role("combobox", name="Class of what was missed")
    field.press_sequentially("crack", delay=70)
    press(page, "Enter")
    (missed,) = drawn_and_kept(page, server, board)
    assert missed["box_xyxy"] is None
    assert len(missed["polygon"]) == 4
    for corner, wanted in zip(missed["polygon"], corners, strict=True):
        assert corner == pytest.approx(wanted, abs=1)

    press(page, "g")
    for x, y in ((200, 60), (260, 70), (230, 130)):
        page.mouse.click(left + x * scale, top + y * scale)
        page.wait_for_timeout(60)
    press(page, "Enter")
    field.press_sequentially("cra", delay=70)
    press(page, "ArrowDown", "Enter")
    assert [one["label"] for one in drawn_and_kept(page, server, board, 2)] == ["crack", "crack"]


def test_escape_forgets_what_was_begun(station: Station, server: Any, board: str) -> None:
    page = station(f"board/{board}")
    scale, left, top = opened(page)
    press(page, "g")
    page.mouse.click(left + 50 * scale, top + 50 * scale)
    press(page, "Escape")
    expect(page.locator(".draw")).to_have_count(0)
    press(page, "d")
    page.mouse.move(left + 50 * scale, top + 50 * scale)
    page.mouse.down()
    page.mouse.move(left + 90 * scale, top + 90 * scale, steps=3)
    page.mouse.up()
    expect(page.locator(".draw-label")).to_be_visible()
    press(page, "Escape")
    expect(page.locator(".draw-label")).to_have_count(0)
    expect(page.locator(".marks .missed")).to_have_count(0)
    assert stored(server, board) == []


def test_a_box_can_be_drawn_without_a_mouse(station: Station, server: Any, board: str) -> None:
    page = station(f"board/{board}")
    scale, _, _ = opened(page)
    press(page, "d")
    press(page, *["ArrowLeft"] * 4, *["ArrowUp"] * 3, "Enter")
    press(page, *["ArrowRight"] * 10, *["ArrowDown"] * 8, "Enter")
    expect(page.get_by_role("combobox", name="Class of what was missed")).to_be_focused()
    page.keyboard.type("burr", delay=70)
    press(page, "Enter")
    (missed,) = drawn_and_kept(page, server, board)
    step = KEYS_PX / scale
    left, top = WIDTH / 2 - 4 * step, HEIGHT / 2 - 3 * step
    assert missed["box_xyxy"] == pytest.approx([left, top, left + 10 * step, top + 8 * step], abs=2)


def test_a_box_can_be_drawn_with_a_finger(open_page: OpenPage, server: Any, board: str) -> None:
    page = open_page(server, f"board/{board}", has_touch=True)
    scale, left, top = opened(page)
    page.get_by_role("button", name="Box").tap()
    session = page.context.new_cdp_session(page)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        where = [{"x": left + x * scale, "y": top + y * scale} for x, y in points]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": where})

    touch("touchStart", (180, 90))
    touch("touchMove", (200, 110))
    touch("touchMove", (230, 140))
    touch("touchEnd")
    page.get_by_role("combobox", name="Class of what was missed").fill("lifted pad")
    page.wait_for_timeout(
        1000
    )  # a tap sooner after a drag is none to the browser; people type a class meanwhile
    page.get_by_role("button", name="Add", exact=True).tap()
    (missed,) = drawn_and_kept(page, server, board)
    assert missed["box_xyxy"] == pytest.approx([180, 90, 230, 140], abs=1.5)
