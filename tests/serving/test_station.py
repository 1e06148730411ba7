"""The QA station in a browser: a board is chosen, inspected, looked at and found again."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

PAGES = Path(__file__).parents[2] / "serving" / "station"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on this machine; on Debian: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, server: Any) -> Iterator[Page]:
    """The station, loaded. Whatever it says on the console or asks of another host fails the test."""
    complaints: list[str] = []
    here = str(server.client.base_url).rstrip("/")

    def stay_here(route: Route) -> None:
        if route.request.url.startswith((here, "blob:")):
            route.continue_()
        else:
            complaints.append(f"asked for {route.request.url}")
            route.abort()

    context = browser.new_context(viewport={"width": 1360, "height": 860})
    context.route("**/*", stay_here)
    page = context.new_page()
    # A 4xx that the page answers in words is logged by the browser all the same.
    page.on("console", lambda message: "status of 4" in message.text or complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{here}/station")
    expect(page.locator("body[data-ready]")).to_be_attached(timeout=30_000)
    yield page
    context.close()
    assert complaints == []


def inspect(page: Page, board: bytes, reference: bytes | None = None, *, serial: str) -> None:
    # Bytes after the end of a PNG make it another picture file: no two boards have the same.
    board += serial.encode()
    page.set_input_files("#image", {"name": "board.png", "mimeType": "image/png", "buffer": board})
    if reference is not None:
        page.set_input_files("#reference", {"name": "ref.png", "mimeType": "image/png", "buffer": reference})
    page.fill("#serial", serial)
    page.click("#inspect")
    expect(page.locator("#status")).to_contain_text(f"{serial}: ", timeout=30_000)
    expect(page.locator("#board")).to_have_js_property("naturalWidth", 320)


def test_a_board_is_inspected_looked_at_and_found_again(
    page: Page, server: Any, board_png: bytes, reference_png: bytes
) -> None:
    inspect(page, board_png, reference_png, serial="ST-1")
    expect(page.locator("#verdict")).to_contain_text(re.compile("PASS|FAIL"))
    latest = page.locator("#latest button").first
    expect(latest).to_contain_text("ST-1")
    expect(latest).to_have_attribute("aria-current", "true")

    layer = page.locator("#layer")
    seen = set()
    for key in "2345678":
        page.keyboard.press("1")
        expect(layer).to_be_hidden()
        page.keyboard.press(key)
        expect(layer).to_be_visible(timeout=30_000)
        expect(layer).to_have_js_property("naturalWidth", 320)
        expect(page.locator("#stage-note")).to_be_hidden()
        expect(page.locator("#layers button").nth(int(key) - 1)).to_have_attribute("aria-pressed", "true")
        seen.add(layer.get_attribute("src"))
    assert len(seen) == 7, "each key shows a picture of its own"

    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator("#status")).to_contain_text("ST-1: ", timeout=30_000)


def test_a_defect_is_zoomed_to_and_stepped_through(page: Page, server: Any, board_png: bytes) -> None:
    report = server.client.post(
        "/v1/inspect",
        files={"image": board_png + b"ST-2"},
        data={"options": '{"min_score": 0.0}', "serial": "ST-2"},
    ).json()
    page.goto(f"{page.url}#{report['id']}")
    page.reload()
    defects = page.locator("#defects button")
    expect(defects).to_have_count(len(report["defects"]), timeout=30_000)

    def shown_centre() -> tuple[float, float]:
        box = page.locator("#marks g.selected rect").last.bounding_box()
        stage = page.locator("#stage").bounding_box()
        assert box and stage
        return (
            box["x"] + box["width"] / 2 - stage["x"] - stage["width"] / 2,
            box["y"] + box["height"] / 2 - stage["y"] - stage["height"] / 2,
        )

    defects.nth(1).click()
    assert shown_centre() == pytest.approx((0, 0), abs=3)
    page.keyboard.press("j")
    expect(defects.nth(2)).to_have_attribute("aria-pressed", "true")
    assert shown_centre() == pytest.approx((0, 0), abs=3)
    page.keyboard.press("k")
    expect(defects.nth(1)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("b")
    expect(page.locator("#marks")).to_be_hidden()


def test_a_layer_says_whether_it_can_be_believed(
    page: Page, server: Any, board_png: bytes, reference_png: bytes
) -> None:
    report = server.client.post(
        "/v1/inspect",
        files={"image": board_png + b"ST-3", "reference": reference_png},
        data={"options": '{"min_score": 0.0}', "serial": "ST-3"},
    ).json()
    page.goto(f"{page.url}#{report['id']}")
    page.reload()
    line = page.locator("#evidence")
    expect(line).to_contain_text("Tested on defect 1, ", timeout=30_000)
    page.keyboard.press("0")
    page.locator("#defects button").nth(1).click()
    told = server.client.get(report["links"]["evidence"], params={"map": "relevance", "defect": 2}).json()
    expect(line).to_contain_text(f"Tested on defect 2, {told['label']}: {told['maps'][0]['words']}.")
    expect(line).to_have_class("" if told["maps"][0]["reliable"] else "doubt")
    page.keyboard.press("1")
    expect(line).to_be_hidden()


def test_what_is_wrong_is_said_in_words(browser: Browser, server: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{server.client.base_url}/station")
    expect(page.locator("body[data-ready]")).to_be_attached(timeout=30_000)
    page.set_input_files("#image", {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"no board"})
    page.click("#inspect")
    expect(page.locator("#alert")).to_contain_text("the upload is text", timeout=30_000)
    expect(page.locator("#inspect")).to_be_enabled()
    context.close()


def test_the_sample_board_is_one_click_away(page: Page) -> None:
    page.click("#sample")
    expect(page.locator("#verdict")).to_contain_text(re.compile("PASS|FAIL"), timeout=60_000)
    expect(page.locator("#board")).to_have_js_property("naturalWidth", 640)


def test_the_pages_name_no_other_host_and_run_nothing_inline(server: Any) -> None:
    for path in PAGES.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"(https?:)?//[a-z0-9]", text.replace("// ", "")), path
        assert not re.search(r"<style|\sstyle=|\son\w+=", text if path.suffix == ".html" else ""), path
    answer = server.client.get("/station")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert server.client.get("/").headers["location"] == "/station"
    for name in re.findall(r'(?:href|src)="(/station/[^"]+)"', answer.text):
        assert server.client.get(name).status_code == 200


def test_no_verdict_of_another_board_stays_on_the_screen(page: Page, board_png: bytes, server: Any) -> None:
    inspect(page, board_png, serial="ST-OLD")
    expect(page.locator("#verdict")).to_contain_text(re.compile("PASS|FAIL|ERROR"))
    page.set_input_files("#image", {"name": "x.png", "mimeType": "image/png", "buffer": b"not a picture"})
    expect(page.locator("#verdict")).to_have_text("Not inspected yet")
    expect(page.locator("#serial")).to_have_value("")
    expect(page.locator("#board")).not_to_be_visible()
    with page.expect_response("**/v1/inspect") as answered:
        page.click("#inspect")
    assert answered.value.status == 415
    expect(page.locator("#verdict")).to_have_text("NOT INSPECTED")
    expect(page.locator("#alert")).to_contain_text("The board was not inspected.")
