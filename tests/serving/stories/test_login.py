"""Who is at the station: login and logout, a session that ends in the middle of work, another's turn."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.serving.stories.posting import post_blank


def log_in(page: Page, key: str) -> None:
    page.get_by_label("Key").fill(key)
    page.keyboard.press("Enter")


def test_the_station_asks_for_a_key_and_shows_whose_it_is(open_page: Any, guarded: Any) -> None:
    page = open_page(guarded.server, None)
    page.goto(f"{guarded.server.client.base_url}/station")
    login = page.get_by_role("dialog")
    expect(page.get_by_label("Key")).to_be_focused(timeout=30_000)
    for _ in range(3):
        page.keyboard.press("Escape")
    expect(login).to_be_visible()
    expect(page.locator("main")).to_have_count(0)

    log_in(page, "ivk_wrong")
    expect(login.get_by_role("alert")).to_contain_text("unknown or was revoked")
    log_in(page, guarded.keys["line"])
    expect(login).to_be_hidden(timeout=30_000)
    expect(page.locator("header.shell")).to_contain_text("line (line)")
    assert page.evaluate("document.cookie") == "", "scripts cannot read the token"


def test_a_line_sees_no_page_of_operators(open_page: Any, guarded: Any) -> None:
    page = open_page(guarded.server, None, key=guarded.keys["line"])
    page.goto(f"{guarded.server.client.base_url}/station")
    expect(page.locator("main[data-page=inspect]")).to_be_visible(timeout=30_000)
    tabs = page.get_by_role("navigation").get_by_role("link")
    expect(tabs).to_have_text(["Inspect", "Recipes"])
    page.goto(f"{guarded.server.client.base_url}/station#/figures")
    expect(page.locator("main")).to_have_text(
        "This page takes the role operator; your key has the role line."
    )


def test_a_session_that_ends_in_the_middle_of_work_loses_none_of_it(open_page: Any, guarded: Any) -> None:
    page = open_page(guarded.server, "lot", key=guarded.keys["operator"])
    field = page.get_by_label("Serial begins with")
    expect(page.locator("[aria-busy=false]")).to_be_visible(timeout=30_000)
    page.context.clear_cookies()
    page.evaluate("window.isTheSamePage = true")
    field.fill("F1C-00")
    field.press("Enter")
    login = page.get_by_role("dialog")
    expect(login).to_contain_text("Your session has ended. Log in again, operator")
    expect(page.get_by_label("Key")).to_be_focused()
    log_in(page, guarded.keys["operator"])
    expect(login).to_be_hidden(timeout=30_000)
    expect(field).to_have_value("F1C-00")
    expect(page.get_by_text("No boards in this lot")).to_be_visible(timeout=30_000)
    assert page.evaluate("window.isTheSamePage") is True


def test_a_page_that_was_refused_is_there_after_the_login(open_page: Any, guarded: Any) -> None:
    line = {"headers": {"x-api-key": guarded.keys["line"]}}
    board = post_blank(guarded.server.client, "L-again", **line)["id"]
    page = open_page(guarded.server, "inspect", key=guarded.keys["operator"])
    page.context.clear_cookies()
    page.evaluate(f"location.hash = '#/board/{board}'")
    login = page.get_by_role("dialog")
    expect(login).to_be_visible(timeout=30_000)
    log_in(page, guarded.keys["operator"])
    expect(login).to_be_hidden(timeout=30_000)
    expect(page.locator(".panel h2")).to_have_text("L-again", timeout=30_000)
    expect(page.locator(".panel .foot")).to_be_visible(timeout=30_000)


def test_nothing_of_ones_work_is_left_for_the_next(open_page: Any, guarded: Any) -> None:
    page = open_page(guarded.server, "recipes", key=guarded.keys["engineer"])
    page.evaluate("window.isTheSamePage = true")
    page.context.clear_cookies()
    page.evaluate("location.hash = '#/figures'")  # by hand: the login may be in front already
    login = page.get_by_role("dialog")
    expect(login).to_be_visible(timeout=30_000)
    log_in(page, guarded.keys["operator"])
    expect(page.locator("header.shell")).to_contain_text("operator (operator)", timeout=30_000)
    assert page.evaluate("window.isTheSamePage") is None

    page.get_by_role("button", name="Log out").click()
    expect(login).to_be_visible(timeout=30_000)
    expect(page.locator("main")).to_have_count(0)
    assert page.context.cookies() == []
