"""A browser at the QA station of a real server; whatever the page complains of fails the story."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    expect,
    sync_playwright,
)

# No name but this machine's is looked up, so that a page that asks for another host cannot get an answer.
LAUNCH = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
VIEWPORT = {"width": 1366, "height": 768}

OpenPage = Callable[..., Page]
Station = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on this machine; on Debian: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(LAUNCH))
        yield browser
        browser.close()


@pytest.fixture
def tolerated() -> list[str]:
    """Parts of console messages that a story brings about: "net::ERR_FAILED" where it cuts the line.

    What the browser logs by itself is always tolerated: a 4xx, though the page answers it in words, and what
    the end of a session clears.
    """
    return ["the server responded with a status of 4", "Clear-Site-Data"]


@pytest.fixture
def open_page(browser: Browser, tolerated: list[str]) -> Iterator[OpenPage]:
    """open_page(server, route="queue", key=None, **context): a page in a browser profile of its own.

    key: logs in with it first. The rest goes to `Browser.new_context`: viewport, locale, color_scheme,
    has_touch. A console message, an error of a script, a breach of the content security policy (the browser
    logs it) or a request to another host fails the test when it ends.
    """
    complaints: list[str] = []
    contexts: list[BrowserContext] = []

    def open_one(server: Any, route: str | None = "queue", *, key: str | None = None, **options: Any) -> Page:
        here = str(server.client.base_url).rstrip("/")
        context = browser.new_context(**{"viewport": VIEWPORT, "locale": "en-US", **options})
        contexts.append(context)
        if key is not None:
            answer = context.request.post(f"{here}/v1/session", data={"key": key}, headers={"origin": here})
            assert answer.ok, answer.text()

        def hear(message: ConsoleMessage) -> None:
            if not any(part in message.text for part in tolerated):
                complaints.append(f"{message.type}: {message.text}")

        def watch(request: Request) -> None:
            if not request.url.startswith((f"{here}/", f"blob:{here}/", "data:", "about:")):
                complaints.append(f"asked for {request.url}")

        context.on("request", watch)
        page = context.new_page()
        page.on("console", hear)
        page.on("pageerror", lambda error: complaints.append(f"{error.name}: {error.message}"))
        if route is not None:
            go(page, here, route)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def page(open_page: OpenPage, server: Any) -> Page:
    """A page at 1366 x 768 that has opened nothing yet."""
    return open_page(server, None)


@pytest.fixture
def station(page: Page, server: Any) -> Station:
    """station("board/0123...") opens that route of the shared server in `page`; waits until it is there."""
    here = str(server.client.base_url).rstrip("/")

    def open_route(route: str = "queue") -> Page:
        return go(page, here, route)

    return open_route


def go(page: Page, here: str, route: str) -> Page:
    """Load #/route afresh; returns when the page is drawn."""
    if page.url.startswith(f"{here}/station"):
        page.goto("about:blank")  # a change of the hash alone would not load anything
    page.goto(f"{here}/station#/{route}")
    name = route.partition("?")[0].partition("/")[0]
    expect(page.locator(f"main[data-page='{name}'] > *").first).to_be_attached(timeout=30_000)
    return page
