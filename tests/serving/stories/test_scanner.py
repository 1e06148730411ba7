"""A barcode scanner is no operator: what it types opens a board and says nothing of any."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import CDPSession, Page, expect

from tests.serving.stories.posting import post_blank, post_failed, review_of, score_of_few_calls

expect.set_options(timeout=30_000)  # a machine that builds and tests at once is slow

Station = Callable[..., Page]
# Each begins with the key of another order, digits and letters mixed as on real labels.
SERIALS = [
    "F1C-0042",
    "R77-f",
    "P3-1234",
    "U9u9",
    "N0-ENTER",
    "L2-8",
    "J5-j5",
    "K4K",
    "E12-99",
    "W8-ww",
    "Q6-1",
]
SERIALS += ["V1-V1", "B0-33", "M5-2f", "A7-7a", "1F-22r", "2R-0", "3-UNDO", "4P-14", "D6-D"]
CODES = {"-": "Minus", " ": "Space"}
GAPS_S = (0.004, 0.006)


@pytest.fixture
def report(server: Any) -> Any:
    """A board with a few calls."""
    return post_failed(server.client, "SC-open", min_score=score_of_few_calls(server.client, "SC-few"))


@pytest.fixture
def page(station: Station, report: Any) -> Page:
    page = station(f"board/{report['id']}")
    expect(page.locator(".panel .foot")).to_be_visible()
    return page


def press(cdp: CDPSession, at: float, key: str, code: str, *, shift: bool = False, text: str = "") -> None:
    modifiers = 8 if shift else 0
    down = {"type": "keyDown" if text else "rawKeyDown", **({"text": text} if text else {})}
    for event in (down, {"type": "keyUp"}):
        cdp.send(
            "Input.dispatchKeyEvent",
            {**event, "key": key, "code": code, "modifiers": modifiers, "timestamp": at},
        )


def scan(
    page: Page, serial: str, gap_s: float = 0.005, *, composing: bool = False, late_s: float = 0.0
) -> None:
    """Type like a scanner. The keyboard's own times are given: this machine may be too busy to keep them.

    late_s: how much later than it was pressed each key is delivered than the one before.
    """
    cdp = page.context.new_cdp_session(page)
    at = time.time()
    for char in serial:
        code = f"Key{char.upper()}" if char.isalpha() else f"Digit{char}" if char.isdigit() else CODES[char]
        if composing:
            press(cdp, at, "Process", code)
        else:
            press(cdp, at, char, code, shift=char.isupper(), text=char)
        at += gap_s
        time.sleep(late_s)
    if composing:
        press(cdp, at, "Process", "Enter")
    else:
        press(cdp, at, "Enter", "Enter", text="\r")
    cdp.detach()


def test_twenty_serials_open_their_boards_and_verify_nothing(page: Page, server: Any, report: Any) -> None:
    boards = {serial: post_blank(server.client, serial)["id"] for serial in SERIALS}
    for n, (serial, board) in enumerate(boards.items()):
        scan(page, serial, GAPS_S[n % 2])
        expect(page).to_have_url(re.compile(board))
    time.sleep(1.5)  # longer than words are held back before they are sent
    assert (
        page.evaluate("Object.keys(localStorage).filter((name) => name.startsWith('station.outbox'))") == []
    )
    for board in (report["id"], *boards.values()):
        assert review_of(server.client, board)["revision"] == 0


def test_what_a_scan_did_while_the_browser_was_held_up_is_taken_back(
    page: Page, server: Any, report: Any
) -> None:
    board = post_blank(server.client, "F1-7")["id"]
    scan(page, "F1-7", late_s=0.08)  # longer than a key waits for the next one
    expect(page).to_have_url(re.compile(board))
    time.sleep(3.0)  # a word that was sent by then is taken back by another document
    for inspection in (report["id"], board):
        review = review_of(server.client, inspection)
        assert (review["calls"], review["disposition"], review["checked"]) == ([], None, False)


@pytest.mark.parametrize("place", ["a field", "a list", "a dialog", "a button"])
def test_a_scan_leaves_no_trace_where_the_focus_is(page: Page, server: Any, report: Any, place: str) -> None:
    serial = f"F1C {place[2:4]}-1"  # a space presses a button
    board = post_blank(server.client, serial)["id"]
    language = page.get_by_role("combobox", name="Language")
    if place == "a field":
        page.get_by_label("Note").fill("first look")
    elif place == "a list":
        language.focus()
    elif place == "a dialog":
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
    else:
        page.get_by_role("button", name="Use as is").focus()
    scan(page, serial)
    expect(page).to_have_url(re.compile(board))
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(language).to_have_value("en")
    time.sleep(1.5)
    review = review_of(server.client, report["id"])
    assert (review["calls"], review["disposition"]) == ([], None)
    assert review["note"] == ("first look" if place == "a field" else "")


def test_a_scan_while_an_input_method_composes(page: Page, server: Any, report: Any) -> None:
    board = post_blank(server.client, "F1C-0077")["id"]
    note = page.get_by_label("Note")
    note.focus()
    cdp = page.context.new_cdp_session(page)
    composition = {"selectionStart": 1, "selectionEnd": 1, "text": "f"}
    cdp.send("Input.imeSetComposition", composition)
    expect(note).to_have_value("f")
    scan(page, "F1C-0077", composing=True)
    expect(page).to_have_url(re.compile(board))
    time.sleep(1.5)
    for inspection in (report["id"], board):
        assert review_of(server.client, inspection)["calls"] == []


def test_an_unknown_serial_is_said(page: Page, report: Any) -> None:
    scan(page, "F0-unheard-of")
    expect(page.get_by_role("alert")).to_contain_text("No board with the serial F0-unheard-of was inspected.")
    expect(page).to_have_url(re.compile(report["id"]))


def test_a_persons_keys_are_no_scan(page: Page, server: Any, report: Any) -> None:
    for key in "ff":
        page.keyboard.press(key)
        page.wait_for_timeout(120)
    expect(page.locator(".callrow.false_call")).to_have_count(2)
    expect(page).to_have_url(re.compile(report["id"]))
