"""The queue of boards: what it shows, in which order, and how new ones arrive."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.serving.stories.posting import post_blank, post_failed

expect.set_options(timeout=30_000)  # a machine that builds and tests at once is slow

Station = Callable[..., Page]


@pytest.fixture
def since() -> str:
    """A moment before the boards of this test and after all others, as the queue's filter has it."""
    time.sleep(0.01)
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def names(page: Page) -> list[str]:
    return page.locator(".rows strong").all_text_contents()


def test_order_and_filter_stand_in_the_address_and_outlive_a_reload(
    station: Station, server: Any, since: str
) -> None:
    post_failed(server.client, "Q-1", min_score=0.0)
    post_blank(server.client, "Q-2")
    post_failed(server.client, "Q-3")
    page = station(f"queue?since={since}")
    expect(page.locator(".rows li")).to_have_count(3)
    assert names(page) == ["Q-3", "Q-2", "Q-1"]
    expect(page.get_by_role("button", name="Open 3")).to_have_attribute("aria-pressed", "true")

    page.get_by_role("button", name="Worst first").click()
    page.get_by_role("button", name="FAIL 2").click()
    expect(page.locator(".rows li")).to_have_count(2)
    told = server.client.get("/v1/queue", params={"since": since, "order": "worst", "verdict": "FAIL"}).json()
    assert names(page) == [item["serial"] for item in told["items"]]
    assert "order=worst" in page.url
    assert "verdict=FAIL" in page.url
    page.reload()
    expect(page.locator(".rows li")).to_have_count(2)
    expect(page.get_by_role("button", name="Worst first")).to_have_attribute("aria-pressed", "true")

    page.get_by_label("Serial").fill("Q-1")
    page.keyboard.press("Tab")
    expect(page.locator(".rows li")).to_have_count(1)
    assert names(page) == ["Q-1"]
    page.get_by_label("Serial").fill("no such board")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Clear the filter").last.click()
    expect(page).to_have_url(re.compile(r"#/queue[?]order=worst$"))


def test_boards_arrive_by_themselves_and_do_not_move_what_one_looks_at(
    station: Station, server: Any, since: str
) -> None:
    for n in (1, 2):
        post_blank(server.client, f"L-{n}")
    page = station(f"queue?since={since}")
    expect(page.locator(".live.on")).to_be_visible()
    expect(page.locator(".rows li")).to_have_count(2)
    post_blank(server.client, "L-3")
    expect(page.locator(".rows strong").first).to_have_text("L-3")

    page.keyboard.press("j")
    page.keyboard.press("j")
    chosen = page.locator(".rows a[aria-current]")
    expect(chosen).to_contain_text("L-2")
    place = chosen.bounding_box()
    post_blank(server.client, "L-4")
    expect(page.locator(".pill")).to_contain_text("1 new")
    assert chosen.bounding_box() == place
    assert names(page) == ["L-3", "L-2", "L-1"]
    expect(page.get_by_role("button", name="Open 4")).to_be_visible()
    page.keyboard.press("t")
    expect(page.locator(".pill")).to_have_count(0)
    assert names(page) == ["L-4", "L-3", "L-2", "L-1"]


def test_boards_are_opened_by_keyboard_and_the_order_goes_along(
    station: Station, server: Any, since: str
) -> None:
    reports = [post_blank(server.client, f"K-{n}") for n in range(4)]
    page = station(f"queue?since={since}")
    expect(page.locator(".rows li")).to_have_count(4)
    for key in ("j", "ArrowDown", "j", "k", "Enter"):
        page.keyboard.press(key, delay=70)  # faster, it would be a scan of "jk"
    expect(page).to_have_url(re.compile(reports[2]["id"]))
    expect(page.locator(".panel h2")).to_have_text("K-2")
    page.keyboard.press("n")
    expect(page.locator(".panel h2")).to_have_text("K-1")
    page.keyboard.press("q")
    expect(page.locator(".rows a[aria-current]")).to_contain_text("K-2")
    page.keyboard.press("n")
    expect(page.locator(".panel h2")).to_have_text("K-3")


def test_the_way_on_from_the_done_boards_leads_to_an_open_one(
    station: Station, server: Any, since: str
) -> None:
    waiting = post_blank(server.client, "D-1")
    done = post_blank(server.client, "D-2")
    said = {"expects": 0, "calls": [], "missed": [], "checked": True}
    assert server.client.post(f"/v1/inspections/{done['id']}/verifications", json=said).status_code == 200
    page = station(f"queue?state=done&since={since}")
    expect(page.locator(".rows strong")).to_have_text(["D-2"])
    page.keyboard.press("n")
    expect(page).to_have_url(re.compile(f"#/board/{waiting['id']}$"))


def test_keys_are_listed_by_a_question_mark(station: Station) -> None:
    page = station("queue")
    expect(page.locator(".queue")).to_be_visible()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog.locator("div", has_text="Open the next open board").locator("kbd")).to_have_text("N")
    page.keyboard.press("n")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_a_first_visitor_is_told_what_to_do_and_tries_the_sample_board(
    open_page: Callable[..., Page], start_server: Callable[..., Any], tmp_path: Path
) -> None:
    fresh = start_server(tmp_path)
    try:
        page = open_page(fresh, "queue")
        expect(page.get_by_role("heading", name="No board has been inspected yet")).to_be_visible()
        page.get_by_role("button", name="Inspect the sample board").click()
        expect(page).to_have_url(re.compile(r"#/board/[0-9a-f]{32}$"), timeout=60_000)
        expect(page.locator(".panel h2")).to_have_text("board_01")
        assert fresh.client.get("/v1/inspections").json()["inspections"][0]["reference"] is not None
        page.goto("about:blank")  # nothing asks the server that stops
    finally:
        fresh.stop()
