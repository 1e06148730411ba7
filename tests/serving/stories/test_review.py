"""Reviews: words on calls, what happens to boards, and that none of it is lost or overwrites another's."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.serving.stories.posting import post_blank, post_failed, review_of, score_of_few_calls

expect.set_options(timeout=30_000)  # a machine that builds and tests at once is slow

OpenPage = Callable[..., Page]
REVIEW, VERIFICATIONS = re.compile("/review$"), re.compile("/verifications$")


@pytest.fixture
def tolerated() -> list[str]:
    """The line is cut in some of these stories."""
    return ["the server responded with a status of 4", "net::ERR_FAILED"]


def ready(page: Page, serial: str) -> None:
    """The board is there, and what was said of it."""
    expect(page.locator(".panel h2")).to_have_text(serial)
    expect(page.locator(".panel .foot")).to_be_visible()


def words(review: Any) -> list[str]:
    return [call["word"] for call in review["calls"]]


def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within 10 s")


def test_ten_boards_are_reviewed_by_keyboard_alone(open_page: OpenPage, server: Any) -> None:
    few = score_of_few_calls(server.client, "R-few")
    since = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    reports = [
        post_failed(server.client, f"R-{n}", min_score=few)
        if n % 3 == 0
        else post_blank(server.client, f"R-{n}")
        for n in range(10)
    ]
    page = open_page(server, f"queue?since={since}")
    expect(page.locator(".rows li")).to_have_count(10)
    page.keyboard.press("n")
    for n in reversed(range(10)):
        ready(page, f"R-{n}")
        calls = len(reports[n]["defects"])
        for at in range(calls):
            page.keyboard.press("r" if n == 9 and at == 0 else "f")
            expect(page.locator(".callrow.said")).to_have_count(at + 1)
        if n == 9:
            page.keyboard.press("1")
        page.keyboard.press("Enter")
    expect(page.get_by_text("No open board is left").first).to_be_visible()

    def count(state: str) -> Any:
        return server.client.get("/v1/queue", params={"since": since}).json()["counts"][state]

    eventually(lambda: count("open") == 0)
    assert count("done") == 10
    for n, report in enumerate(reports):
        review = review_of(server.client, report["id"])
        wanted = ["false_call"] * len(report["defects"])
        assert words(review) == (["real", *wanted[1:]] if n == 9 else wanted)
        assert (review["state"], review["final"]) == ("done", "bad" if n == 9 else "good")
        assert review["disposition"] == ("rework" if n == 9 else None)


def test_what_is_open_is_asked_before_the_board_is_left(open_page: OpenPage, server: Any) -> None:
    report = post_failed(server.client, "R-ask", min_score=score_of_few_calls(server.client, "R-few"))
    page = open_page(server, f"board/{report['id']}")
    ready(page, "R-ask")
    page.keyboard.press("f")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_contain_text("not judged yet")
    page.keyboard.press("r")
    expect(dialog.get_by_role("heading")).to_have_text("What happens to this board?")
    page.keyboard.press("2")
    expect(page).not_to_have_url(re.compile(report["id"]))
    eventually(lambda: review_of(server.client, report["id"])["state"] == "done")
    review = review_of(server.client, report["id"])
    assert words(review) == ["false_call"] + ["real"] * (len(report["defects"]) - 1)
    assert review["disposition"] == "scrap"


def test_a_call_gets_another_class_and_undo_takes_it_back(open_page: OpenPage, server: Any) -> None:
    report = post_failed(server.client, "R-class", min_score=score_of_few_calls(server.client, "R-few"))
    page = open_page(server, f"board/{report['id']}")
    ready(page, "R-class")
    page.keyboard.press("l")
    field = page.get_by_role("combobox", name="Class instead of")
    expect(field).to_be_focused()
    page.keyboard.type("whisker", delay=70)
    expect(page.get_by_role("option", name="whisker (new class)")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.locator(".callrow").first).to_contain_text("whisker")
    eventually(lambda: review_of(server.client, report["id"])["revision"] == 1)
    said = review_of(server.client, report["id"])["calls"]
    assert said == [{"defect": 1, "word": "real", "label": "whisker"}]
    page.keyboard.press("u")
    expect(page.locator(".callrow.said")).to_have_count(0)
    eventually(lambda: review_of(server.client, report["id"])["calls"] == [])


def test_one_key_judges_a_board_with_hundreds_of_calls_and_the_pace_is_asked_about(
    open_page: OpenPage, server: Any
) -> None:
    report = post_failed(server.client, "R-many", min_score=0.0)
    assert len(report["defects"]) >= 200
    page = open_page(server, f"board/{report['id']}")
    ready(page, "R-many")
    page.keyboard.press("w")
    expect(page.locator(".callrow.false_call")).to_have_count(len(report["defects"]))
    dialog = page.get_by_role("dialog", name="Were they all looked at?")
    expect(dialog).to_be_visible()
    assert review_of(server.client, report["id"])["hasty"]
    page.keyboard.press("y")
    expect(dialog).to_have_count(0)
    eventually(lambda: not review_of(server.client, report["id"])["hasty"])


def test_work_outlives_a_network_loss_and_a_reload(open_page: OpenPage, server: Any) -> None:
    report = post_failed(server.client, "R-net", min_score=score_of_few_calls(server.client, "R-few"))
    page = open_page(server, f"board/{report['id']}")
    ready(page, "R-net")
    page.context.route(VERIFICATIONS, lambda route: route.abort())
    page.keyboard.press("f")
    page.keyboard.press("p")
    expect(page.locator(".unsent")).to_contain_text("Reviews not sent yet: 1")
    expect(page.locator(".unsent")).to_contain_text("your work is kept here")
    page.reload()
    ready(page, "R-net")
    expect(page.locator(".callrow.said")).to_have_count(2)
    assert review_of(server.client, report["id"])["revision"] == 0
    page.context.unroute(VERIFICATIONS)
    eventually(lambda: words(review_of(server.client, report["id"])) == ["false_call", "process_indicator"])
    expect(page.locator(".unsent")).to_be_empty()


def test_an_answer_that_is_cut_in_the_middle_is_asked_for_again(open_page: OpenPage, server: Any) -> None:
    report = post_failed(server.client, "R-cut", min_score=score_of_few_calls(server.client, "R-few"))
    page = open_page(server, f"board/{report['id']}")
    ready(page, "R-cut")
    half = {"status": 200, "content_type": "application/json", "body": '{"inspection": "01'}
    page.context.route(VERIFICATIONS, lambda route: route.fulfill(**half), times=1)
    page.keyboard.press("f")
    expect(page.locator(".unsent")).to_contain_text("Reviews not sent yet: 1")
    eventually(lambda: words(review_of(server.client, report["id"])) == ["false_call"])
    board = re.compile(f"/v1/inspections/{report['id']}$")
    page.context.route(board, lambda route: route.fulfill(**half), times=1)
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
    page.get_by_role("button", name="Try again").click()
    ready(page, "R-cut")


def test_undo_goes_back_over_a_reload_and_never_through_anothers_words(
    open_page: OpenPage, server: Any
) -> None:
    report = post_failed(server.client, "R-undo", min_score=score_of_few_calls(server.client, "R-few"))

    def said() -> list[str]:
        return words(review_of(server.client, report["id"]))

    page = open_page(server, f"board/{report['id']}")
    ready(page, "R-undo")
    page.keyboard.press("f")
    eventually(lambda: said() == ["false_call"])
    expect(page.locator(".foot .history summary")).to_contain_text("Saved")
    page.reload()
    ready(page, "R-undo")
    page.keyboard.press("u")
    eventually(lambda: said() == [])
    page.keyboard.press("r")
    eventually(lambda: said() == ["real"])

    (mine,) = review_of(server.client, report["id"])["calls"]
    other = next(defect for defect in report["defects"] if defect["id"] != mine["defect"])
    both = [mine, {"defect": other["id"], "word": "real", "label": other["label"]}]
    body = {"expects": 3, "calls": both, "missed": [], "checked": False}
    answer = server.client.post(f"/v1/inspections/{report['id']}/verifications", json=body)
    assert answer.status_code == 200, answer.text
    expect(page.locator(".callrow.said")).to_have_count(2)
    page.keyboard.press("u")
    expect(page.get_by_text("There is nothing to undo on this board.")).to_be_visible()
    assert said() == ["real", "real"]


def test_words_on_a_board_that_is_gone_can_be_let_go(open_page: OpenPage, server: Any) -> None:
    gone = "0" * 32
    entry = {"inspection": gone, "name": "R-gone", "expects": 0, "fate": None, "since": 0, "changed": 0}
    entry |= {"tried": [], "theirs": None, "refused": ""}
    entry |= {"verification": {"calls": [], "missed": [], "checked": True}}
    page = open_page(server, "inspect")
    page.evaluate(
        "([name, text]) => localStorage.setItem(name, text)", [f"station.outbox//{gone}", json.dumps(entry)]
    )
    page.reload()
    page.get_by_role("link", name="R-gone: not taken").click()
    expect(page.get_by_role("heading", name="There is no such board.")).to_be_visible()
    page.get_by_role("button", name="Discard it").click()
    expect(page.locator(".unsent")).to_be_empty()
    page.evaluate("location.hash = '#/board/%'")  # typed by hand: no encoding at all
    expect(page.get_by_role("heading", name="There is no such board.")).to_be_visible()


def test_the_second_of_two_operators_sees_both_versions_and_chooses(
    open_page: OpenPage, guarded: Any
) -> None:
    line, operator = ({"headers": {"x-api-key": guarded.keys[name]}} for name in ("line", "operator"))
    client = guarded.server.client
    report = post_failed(client, "R-two", min_score=score_of_few_calls(client, "R-few", **line), **line)
    path = f"/v1/inspections/{report['id']}/review"
    pages = {
        name: open_page(guarded.server, f"board/{report['id']}", key=guarded.keys[name])
        for name in ("operator", "engineer")
    }
    for page in pages.values():
        ready(page, "R-two")
    second = pages["engineer"]
    # The second does not hear of the first, as after a short network loss.
    second.route(REVIEW, lambda route: route.abort())
    pages["operator"].keyboard.press("r")
    eventually(lambda: client.get(path, **operator).json()["revision"] == 1)
    second.keyboard.press("f")
    expect(second.locator(".panel .callrow").first).to_have_class(re.compile("false_call"))
    second.unroute(REVIEW)
    dialog = second.get_by_role("dialog", name="R-two: somebody else reviewed it too")
    expect(dialog).to_be_visible()
    expect(dialog.locator("p")).to_contain_text("operator reviewed it")
    row = dialog.locator("tbody tr").first
    expect(row.locator("td").nth(0)).to_contain_text("False call")
    expect(row.locator("td").nth(1)).to_contain_text("Real")
    assert words(client.get(path, **operator).json()) == ["real"], "nothing is overwritten"
    second.keyboard.press("t")
    expect(dialog).to_have_count(0)
    expect(second.locator(".callrow").first).to_have_class(re.compile("real"))
    second.keyboard.press("u")
    expect(second.locator(".callrow").first).to_have_class(re.compile("false_call"))
    eventually(lambda: words(client.get(path, **operator).json()) == ["false_call"])
    review = client.get(path, **operator).json()
    assert [entry["actor"] for entry in review["history"]] == ["operator", "engineer"]
    expect(pages["operator"].locator(".callrow").first).to_have_class(re.compile("false_call"))
