"""The board page: a call is first seen against its reference; then what one asks for, where it belongs."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page, expect

from tests.serving.conftest import draw_board, encode
from tests.serving.stories.conftest import OpenPage, Station

WIDTH, HEIGHT = 320, 256
FIT_SHARE = 0.96
"""Of the stage, that a whole board fills."""
SPOT = (250, 200)
"""(x, y) of what the board has and its reference has not, a dark disc of 9 px radius."""
DARK, BRIGHT = 90, 160
"""Grey levels that tell the disc from the ground, 210, and from what is laid over it."""


class Posted(NamedTuple):
    report: dict[str, Any]
    link: str


@pytest.fixture(scope="module")
def posted(server: Any) -> Posted:
    """A board with calls and a reference; of random weights, so calls lie anywhere."""
    reference = draw_board(seed=31, tracks=4)
    cv2.circle(reference, SPOT, 20, (210, 210, 210), -1)
    board = reference.copy()
    cv2.circle(board, SPOT, 9, (20, 20, 20), -1)
    return post(server, encode(".png", board), encode(".png", reference), serial="BOARD-1")


def post(server: Any, board: bytes, reference: bytes | None, *, serial: str) -> Posted:
    files = {"image": board} | ({"reference": reference} if reference else {})
    answer = server.client.post(
        "/v1/inspect", files=files, data={"options": '{"min_score": 0.0}', "serial": serial}
    )
    assert answer.status_code == 200, answer.text
    report = answer.json()
    assert report["defects"]
    return Posted(report, f"board/{report['id']}")


def press(page: Page, *keys: str) -> None:
    """As a person does, not a scanner."""
    for key in keys:
        page.keyboard.press(key)
        page.wait_for_timeout(90)


def look(stage: Locator) -> NDArray[np.uint8]:
    """The stage as it is on the screen, grey, (rows, columns)."""
    picture = cv2.imdecode(np.frombuffer(stage.screenshot(), np.uint8), cv2.IMREAD_GRAYSCALE)
    assert picture is not None
    return np.asarray(picture, np.uint8)


def grey_at(picture: NDArray[np.uint8], x: float, y: float) -> float:
    """Around a px of the board, shown whole on a stage or a pane of that size."""
    rows, columns = picture.shape
    scale = min(columns / WIDTH, rows / HEIGHT) * FIT_SHARE
    column = round(columns / 2 + (x - WIDTH / 2) * scale)
    row = round(rows / 2 + (y - HEIGHT / 2) * scale)
    return float(np.median(picture[row - 3 : row + 4, column - 3 : column + 4]))


def opened(station: Station, posted: Posted) -> Page:
    page = station(posted.link)
    expect(page.locator(".detail .facts")).to_be_visible(timeout=30_000)
    return page


def whole_board(page: Page, mode: str) -> Locator:
    """The whole board in one of the modes, at rest and without marks."""
    page.get_by_role("button", name=mode, exact=True).click()
    press(page, "0")
    if page.locator(".marks").count():
        press(page, "h")
    page.wait_for_timeout(900)
    return page.locator(".stage")


def test_a_call_is_first_seen_blinking_and_attention_waits_until_it_is_asked_for(
    page: Page, station: Station, posted: Posted
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    opened(station, posted)
    expect(page.locator(".stage")).to_have_attribute("data-mode", "blink")
    name = page.locator(".pane-name")
    for expected in ("Reference", "Board", "Reference"):
        page.wait_for_function(
            "name => document.querySelector('.pane-name').textContent.includes(name)", arg=expected
        )
    expect(page.locator(".detail .crops img")).to_have_count(3)
    assert not [url for url in asked if re.search(r"attention|evidence", url)]

    press(page, "b")
    expect(name).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".pane.second")).to_be_hidden()
    press(page, "a")
    expect(page.locator(".looked img[alt='16 px level']")).to_be_visible()
    levels = {url.split("crops/")[1].split("?")[0] for url in asked if "crops/attention" in url}
    assert levels == {"attention_4", "attention_16", "attention_32"}
    press(page, "j")
    expect(page.locator(".detail .facts .number")).to_have_text("2")
    expect(page.locator(".looked")).to_have_count(0)


def test_who_wants_no_motion_sees_both_side_by_side(open_page: OpenPage, server: Any, posted: Posted) -> None:
    page = open_page(server, posted.link, reduced_motion="reduce")
    expect(page.locator(".stage")).to_have_attribute("data-mode", "side", timeout=30_000)


def test_each_mode_shows_board_and_reference_where_they_belong(station: Station, posted: Posted) -> None:
    page = opened(station, posted)
    board = look(whole_board(page, "Board"))
    assert grey_at(board, *SPOT) < DARK
    assert grey_at(board, SPOT[0], SPOT[1] - 14) > BRIGHT

    halves = np.array_split(look(whole_board(page, "Side")), 2, axis=1)
    assert grey_at(halves[0], *SPOT) < DARK
    assert grey_at(halves[1], *SPOT) > BRIGHT

    stage = whole_board(page, "Swipe")
    assert grey_at(look(stage), *SPOT) > BRIGHT, "right of the divider lies the reference"
    box = stage.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.95 * box["width"], box["y"] + 60, steps=4)
    page.mouse.up()
    assert grey_at(look(stage), *SPOT) < DARK, "left of it the board"
    divider = page.get_by_role("separator")
    divider.focus()
    press(page, *["ArrowLeft"] * 10)
    expect(divider).to_have_attribute("aria-valuenow", "75")
    assert grey_at(look(stage), *SPOT) < DARK, "the arrows move the divider, not the board"

    difference = look(whole_board(page, "Difference"))
    assert abs(grey_at(difference, *SPOT) - grey_at(difference, SPOT[0], SPOT[1] - 14)) > 40


def test_two_views_side_by_side_move_together(station: Station, posted: Posted) -> None:
    page = opened(station, posted)
    page.get_by_role("button", name="Side", exact=True).click()
    page.wait_for_timeout(800)
    for half, other in ((0.25, 0.75), (0.75, 0.25)):
        box = page.locator(".stage").bounding_box()
        assert box
        page.mouse.move(box["x"] + half * box["width"], box["y"] + box["height"] / 2)
        page.mouse.down()
        page.mouse.move(box["x"] + (half + 0.06) * box["width"], box["y"] + 0.6 * box["height"], steps=6)
        page.mouse.up()
        page.mouse.wheel(0, -240)
        page.wait_for_timeout(1200)
        marks = (".marks:not(.second)", ".marks.second")
        first, second = (page.locator(f"{pane} .selected").first.bounding_box() for pane in marks)
        assert first and second, other
        assert second["x"] - first["x"] == pytest.approx(box["width"] / 2, abs=3)
        assert second["y"] == pytest.approx(first["y"], abs=1)
        press(page, "h")
        panes = [look(page.locator(f".pane.{name}")).astype(int) for name in ("first", "second")]
        # The same tracks in both, but for the disc and what lies on the edges of the stage.
        same = [np.abs(panes[0] - pane)[60:-150, 20:-150] < 40 for pane in (panes[1], panes[1][::-1])]
        assert same[0].mean() > max(0.85, same[1].mean()), other
        press(page, "h")


def test_a_mark_lies_on_its_call_and_going_to_it_brings_it_into_the_middle(
    station: Station, posted: Posted
) -> None:
    page = opened(station, posted)
    stage = page.locator(".stage").bounding_box()
    assert stage
    press(page, "b")
    chosen = page.locator(".marks .selected .line").bounding_box()
    assert chosen
    middle = (chosen["x"] + chosen["width"] / 2, chosen["y"] + chosen["height"] / 2)
    assert middle == pytest.approx((stage["x"] + stage["width"] / 2, stage["y"] + stage["height"] / 2), abs=4)
    press(page, "0")
    page.wait_for_timeout(900)
    scale = min(stage["width"] / WIDTH, stage["height"] / HEIGHT) * FIT_SHARE
    for defect in posted.report["defects"][1:6]:
        left, top, right, bottom = defect["box_xyxy"]
        mark = page.locator(f".marks [data-id='{defect['id']}'] .line").bounding_box()
        assert mark
        assert mark["x"] + mark["width"] / 2 - stage["x"] - stage["width"] / 2 == pytest.approx(
            ((left + right) / 2 - WIDTH / 2) * scale, abs=1.5
        )
        assert mark["y"] + mark["height"] / 2 - stage["y"] - stage["height"] / 2 == pytest.approx(
            ((top + bottom) / 2 - HEIGHT / 2) * scale, abs=1.5
        )
        assert mark["width"] >= 14, "small calls keep a size that can be seen"


def test_an_overlay_has_its_legend_and_space_shows_the_bare_board(
    station: Station, posted: Posted, server: Any
) -> None:
    page = opened(station, posted)
    press(page, "m")
    legend = page.locator(".legend")
    label = posted.report["defects"][0]["label"]
    page.get_by_label("Class of the defect map").select_option(label)
    told = server.client.get(
        f"/v1/inspections/{posted.report['id']}/legend/defect_map", params={"label": label}
    ).json()
    expect(legend.locator(".scale")).to_have_attribute(
        "aria-label", re.compile(f"threshold at {told['threshold']:.2f}")
    )
    press(page, "[", "[")
    assert float(page.get_by_label("Opacity of the overlay").input_value()) == pytest.approx(0.6)
    page.keyboard.down(" ")
    expect(legend).to_be_hidden()
    expect(page.locator(".marks")).to_have_count(0)
    page.keyboard.up(" ")
    expect(legend).to_be_visible()
    press(page, "v")
    expect(legend).to_have_count(0)


def test_attention_says_whether_it_can_be_believed(station: Station, posted: Posted, server: Any) -> None:
    page = opened(station, posted)
    press(page, "t", "t")
    line = page.locator(".evidence")
    expect(line).to_contain_text(re.compile("^(Reliable|Not reliable): "), timeout=60_000)
    told = server.client.get(
        posted.report["links"]["evidence"], params={"map": "attention_16", "defect": 1}
    ).json()["maps"][0]
    assert ("doubt" in (line.get_attribute("class") or "")) == (not told["reliable"])
    expect(line).to_contain_text(f"from {told['score']:.2f} to {told['score_without']:.2f}")
    box = page.locator(".stage").bounding_box()
    assert box
    press(page, "0", "h")
    page.wait_for_timeout(900)
    with page.expect_request(lambda request: "tiles/attention_16" in request.url) as asked:
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    point = dict(part.split("=") for part in asked.value.url.partition("?")[2].split("&"))
    assert (int(point["x"]), int(point["y"])) == pytest.approx((WIDTH / 2, HEIGHT / 2), abs=1)
    expect(line).to_contain_text("Not tested")
    press(page, "Escape")
    expect(page.locator(".detail .facts .number")).to_have_text("1")


def test_a_board_without_a_reference_is_shown_alone(station: Station, server: Any) -> None:
    posted = post(server, encode(".png", draw_board(seed=32)), None, serial="BOARD-2")
    page = opened(station, posted)
    expect(page.locator(".stage")).to_have_attribute("data-mode", "board")
    for name in ("Blink", "Side", "Swipe", "Difference"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
    expect(page.locator(".detail .crops img")).to_have_count(1)
    press(page, "v", "b")
    expect(page.locator(".stage")).to_have_attribute("data-mode", "board")


def test_a_reference_that_cannot_be_laid_under_the_board_is_no_reference(
    station: Station, server: Any
) -> None:
    picture = encode(".png", draw_board(seed=33))
    answer = server.client.post("/v1/inspect", files={"image": picture, "reference": picture}).json()
    assert answer["verdict"] == "ERROR"
    page = station(f"board/{answer['id']}")
    swipe = page.get_by_role("button", name="Swipe", exact=True)
    expect(swipe).to_have_attribute("title", re.compile("same picture"), timeout=30_000)
    expect(swipe).to_be_disabled()
    expect(page.locator(".detail")).to_contain_text("Nothing was called on this board")


def test_an_unknown_board_leads_back_to_the_queue(station: Station) -> None:
    page = station(f"board/{'0' * 32}")
    expect(page.get_by_role("alert")).to_contain_text("There is no such board.")
    page.get_by_role("link", name="To the queue").click()
    expect(page.locator("main[data-page='queue']")).to_be_attached()


def test_the_board_page_fits_the_screen_in_chinese_and_in_the_dark(
    open_page: OpenPage, server: Any, posted: Posted
) -> None:
    page = open_page(server, posted.link, locale="zh-CN", color_scheme="dark")
    expect(page.locator(".detail .facts")).to_be_visible(timeout=30_000)
    expect(page.get_by_role("toolbar")).to_contain_text("缺陷图")
    bar = page.get_by_role("toolbar").inner_text()
    assert not re.findall(r"[A-Za-z]{3,}", bar)
    for root in ("document.documentElement", "document.querySelector('main')"):
        assert page.evaluate(f"{root}.scrollHeight <= {root}.clientHeight"), root
    ground = page.evaluate("getComputedStyle(document.querySelector('.detail')).backgroundColor")
    assert max(map(int, re.findall(r"\d+", ground)[:3])) < 60
