"""Every page can be used by everybody: axe-core's rules, by keyboard, in each colour scheme and language."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

SCHEMES: dict[Any, dict[str, Any]] = {
    "light": {"resultTypes": ["violations"]},
    # Another scheme changes nothing but colours.
    "dark": {"resultTypes": ["violations"], "runOnly": ["color-contrast"]},
}
PAGES = [
    "queue",
    "board/{board}",
    "inspect",
    "recipes",
    "recipes/{recipe}",
    "figures?period=7d&recipe={recipe}",
    "lot?period=7d",
    "models",
    "models?tab=new",
]
TITLES = {"en-US": "QA station", "zh-CN": "\u8d28\u68c0\u5de5\u4f5c\u7ad9"}


@pytest.fixture(scope="module")
def stored(server: Any, board_png: bytes, reference_png: bytes) -> dict[str, str]:
    """A recipe with a golden reference, and a board that was inspected with it and has calls."""
    answer = server.client.put(
        "/v1/recipes/access", files={"reference": ("front.png", reference_png)}, data={"recipe": "{}"}
    )
    assert answer.status_code == 200, answer.text
    answer = server.client.post(
        "/v1/inspect",
        files={"image": board_png + b"access"},
        data={"recipe": "access", "serial": "ACCESS-1", "options": '{"min_score": 0.0}'},
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["defects"], "the board's page has calls to show"
    return {"board": answer.json()["id"], "recipe": "access"}


def serious(page: Page) -> list[str]:
    """What axe-core finds serious or critical, in both colour schemes."""
    found = []
    for scheme, options in SCHEMES.items():
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found += Axe().run(page, options=options).response["violations"]
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:160]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("route", PAGES)
def test_no_page_keeps_anybody_out(page: Page, station: Any, stored: dict[str, str], route: str) -> None:
    station(route.format(**stored))
    expect(page.get_by_text("Loading\u2026")).to_have_count(0, timeout=30_000)
    expect(page.locator("main [aria-busy=true]")).to_have_count(0, timeout=30_000)
    assert serious(page) == []


def test_the_login_keeps_nobody_out(open_page: Any, guarded: Any) -> None:
    page = open_page(guarded.server, None)
    page.goto(f"{guarded.server.client.base_url}/station")
    expect(page.get_by_label("Key")).to_be_focused(timeout=30_000)
    assert serious(page) == []


def test_the_keyboard_reaches_everything_in_order(page: Page, station: Any) -> None:
    station("figures")
    expect(page.get_by_text("Loading\u2026")).to_have_count(0, timeout=30_000)
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="To the page's content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    seen = []
    for _ in range(4):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.textContent"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", f"the focus is not seen on {seen[-1]}"
    assert seen == ["Today", "This shift", "7 days", "30 days"]


def test_the_station_speaks_the_language_of_the_browser_or_the_chosen_one(
    open_page: Any, server: Any
) -> None:
    page = open_page(server, "figures", locale="zh-CN")
    expect(page.locator("h1").first).to_have_text(TITLES["zh-CN"])
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    page.locator("header.shell select").first.select_option("en")
    expect(page.locator("h1").first).to_have_text(TITLES["en-US"])
    page.reload()
    expect(page.locator("h1").first).to_have_text(TITLES["en-US"])


def test_the_chosen_colours_stay(open_page: Any, server: Any) -> None:
    page = open_page(server, "figures", color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_label("Colours").select_option("dark")
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    expect(page.locator("header.shell")).to_be_visible()
    assert page.evaluate(ground) == dark


@pytest.mark.parametrize(
    "route", ["queue", "inspect", "recipes", "recipes/{recipe}?tab=settings", "figures", "lot"]
)
def test_nothing_is_cut_off_on_a_small_screen(
    page: Page, station: Any, stored: dict[str, str], route: str
) -> None:
    station(route.format(**stored))
    expect(page.get_by_text("Loading\u2026")).to_have_count(0, timeout=30_000)
    wider = page.evaluate("(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(content)")
    assert wider <= 0
    assert page.evaluate("document.documentElement.scrollHeight <= innerHeight")


@pytest.mark.parametrize("route", ["queue", "inspect", "recipes", "models", "models?tab=new"])
def test_on_a_telephone_every_button_lies_on_the_screen(
    open_page: Any, server: Any, stored: dict[str, str], route: str
) -> None:
    page = open_page(server, route, viewport={"width": 390, "height": 844})
    expect(page.get_by_text("Loading\u2026")).to_have_count(0, timeout=30_000)
    beyond = page.evaluate(
        """[...document.querySelectorAll("a, button, input, select")]
        .filter((one) => one.getBoundingClientRect().right > innerWidth)
        .map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert beyond == []
