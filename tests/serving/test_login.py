"""Logging in at the QA station, in a browser."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from playwright.sync_api import expect, sync_playwright


def test_the_station_asks_for_a_key_and_shows_whose_it_is(guarded: Any, board_png: bytes) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on this machine; on Debian: apt-get install chromium")
    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        context = browser.new_context(viewport={"width": 1360, "height": 860})
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        # The browser logs every 401 and that it cleared its cache.
        page.on(
            "console",
            lambda message: (
                any(words in message.text for words in ("status of 401", "Clear-Site-Data"))
                or complaints.append(message.text)
            ),
        )
        page.goto(f"{guarded.server.client.base_url}/station")
        login = page.locator("#login")
        expect(login).to_be_visible(timeout=30_000)
        expect(page.locator("#key")).to_be_focused()
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        expect(login).to_be_visible()

        page.fill("#key", "ivk_wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#login-alert")).to_contain_text("unknown or was revoked")
        page.fill("#key", guarded.keys["line"])
        page.click("#log-in")
        expect(login).to_be_hidden(timeout=30_000)
        expect(page.locator("body[data-ready]")).to_be_attached(timeout=30_000)
        expect(page.locator("#who")).to_have_text("line (line)")
        expect(page.locator("#key")).to_have_value("")
        assert page.evaluate("document.cookie") == "", "scripts cannot read the token"

        page.set_input_files("#image", {"name": "b.png", "mimeType": "image/png", "buffer": board_png})
        page.fill("#serial", "LOGIN-1")
        page.click("#inspect")
        expect(page.locator("#status")).to_contain_text("LOGIN-1: ", timeout=60_000)
        expect(page.locator("#board")).to_have_js_property("naturalWidth", 320)
        expect(page.locator("#latest button").first).to_contain_text("LOGIN-1", timeout=30_000)

        context.clear_cookies()
        page.locator("#latest button").first.click()
        expect(login).to_be_visible(timeout=30_000)
        page.fill("#key", guarded.keys["operator"])
        page.keyboard.press("Enter")
        expect(page.locator("#who")).to_have_text("operator (operator)", timeout=30_000)
        expect(page.locator("body[data-ready]")).to_be_attached(timeout=30_000)

        page.click("#log-out")
        expect(login).to_be_visible(timeout=30_000)
        expect(page.locator("#latest button")).to_have_count(0)
        assert context.cookies() == []
        browser.close()
    assert complaints == []
