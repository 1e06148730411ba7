"""Boards are dropped, paired with references, sent and answered; a lost answer repeats no inspection."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Dialog, FilePayload, Locator, Page, Route, expect

Station = Callable[..., Page]
OpenPage = Callable[..., Page]
ANSWERED = re.compile("PASS|FAIL|ERROR")


def file(name: str, picture: bytes) -> FilePayload:
    # Bytes after the end of a PNG make it another picture file: no two boards have the same.
    return {"name": name, "mimeType": "image/png", "buffer": picture + name.encode()}


def choose(page: Page, *files: FilePayload) -> None:
    page.set_input_files("input[type=file]", list(files))


def row(page: Page, name: str) -> Locator:
    return page.locator("table.batch tbody tr", has_text=name)


def inspections(server: Any, serial: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.client.get("/v1/inspections", params={"serial": serial}).json()[
        "inspections"
    ]
    return found


def test_a_batch_is_paired_by_name_and_each_board_ends_in_its_verdict(
    station: Station, server: Any, board_png: bytes, reference_png: bytes
) -> None:
    page = station("inspect")
    expect(page.get_by_text("No board chosen yet")).to_be_visible()
    choose(
        page,
        file("IN-1_test.png", board_png),
        file("IN-1_temp.png", reference_png),
        file("IN-2.png", board_png),
        file("other_ref.png", reference_png),
        {"name": "IN-3.txt", "mimeType": "text/plain", "buffer": b"no board"},
    )
    paired = page.get_by_label("Golden reference of IN-1_test.png")
    expect(paired.locator("option:checked")).to_have_text("IN-1_temp.png")
    by_hand = page.get_by_label("Golden reference of IN-2.png")
    expect(by_hand.locator("option:checked")).to_have_text("none")
    by_hand.select_option("other_ref.png")
    page.get_by_label("Serial number of IN-2.png").fill("IN-2B")
    page.locator("main").click(position={"x": 5, "y": 400})
    page.keyboard.press("i")

    expect(row(page, "IN-1_test.png").locator(".verdict")).to_have_text(ANSWERED, timeout=60_000)
    expect(row(page, "IN-2.png").locator(".verdict")).to_have_text(ANSWERED, timeout=60_000)
    expect(row(page, "IN-3.txt")).to_contain_text("the upload is text")
    expect(page.locator(".batch-summary")).to_contain_text("2 of 3 inspected")
    (first,), (second,) = inspections(server, "IN-1"), inspections(server, "IN-2B")
    assert server.client.get(first["links"]["reference"]).content == reference_png + b"IN-1_temp.png"
    assert server.client.get(second["links"]["reference"]).content == reference_png + b"other_ref.png"
    link = row(page, "IN-1_test.png").get_by_role("link")
    assert link.get_attribute("href") == f"#/board/{first['id']}"


def test_the_references_of_a_recipe_take_the_place_of_those_that_were_dropped(
    station: Station, server: Any, board_png: bytes, reference_png: bytes
) -> None:
    files = [("reference", ("good.png", reference_png))]
    assert server.client.put("/v1/recipes/drop-test", files=files).status_code == 200
    page = station("inspect")
    page.get_by_label("Recipe", exact=True).select_option("drop-test")
    expect(page.get_by_text("has its own golden references (good)")).to_be_visible()
    choose(page, file("IN-R_test.png", board_png), file("IN-R_temp.png", reference_png))
    page.get_by_role("button", name="Inspect 1 board").click()
    expect(row(page, "IN-R_test.png").locator(".verdict")).to_have_text(ANSWERED, timeout=60_000)
    (report,) = inspections(server, "IN-R")
    assert (report["recipe"], report["reference"]["name"]) == ("drop-test", "good")
    server.client.delete("/v1/recipes/drop-test")


class TestLostLine:
    @pytest.fixture
    def tolerated(self, tolerated: list[str]) -> list[str]:
        return [*tolerated, "net::ERR_FAILED", "status of 503"]

    def test_a_lost_answer_and_a_busy_server_are_tried_again_and_inspect_once(
        self, station: Station, server: Any, board_png: bytes
    ) -> None:
        page = station("inspect")
        keys: list[str] = []

        def lose(route: Route) -> None:
            keys.append(route.request.headers["idempotency-key"])
            if len(keys) == 1:
                route.fetch()  # the server inspects, the answer is lost
                route.abort()
            elif len(keys) == 2:
                route.fulfill(status=503, headers={"retry-after": "1"}, json={"error": {"message": "full"}})
            else:
                route.continue_()

        page.route("**/v1/inspect", lose)
        choose(page, file("IN-LOST.png", board_png))
        page.get_by_role("button", name="Inspect 1 board").click()
        expect(row(page, "IN-LOST.png")).to_contain_text("nothing is inspected twice", timeout=60_000)
        expect(row(page, "IN-LOST.png").locator(".verdict")).to_have_text(ANSWERED, timeout=60_000)
        assert len(keys) == 3
        assert len(set(keys)) == 1
        assert len(inspections(server, "IN-LOST")) == 1

    def test_leaving_while_a_board_is_on_its_way_is_asked_about(
        self, station: Station, board_png: bytes
    ) -> None:
        page = station("inspect")
        page.route("**/v1/inspect", lambda route: None)  # never arrives
        choose(page, file("IN-LEAVE.png", board_png))
        page.get_by_role("button", name="Inspect 1 board").click()
        expect(row(page, "IN-LEAVE.png").locator(".going")).to_be_visible()
        asked: list[str] = []

        def stay(dialog: Dialog) -> None:
            asked.append(dialog.type)
            dialog.dismiss()

        page.on("dialog", stay)
        page.close(run_before_unload=True)
        page.wait_for_timeout(300)
        assert asked == ["beforeunload"]
        page.get_by_role("button", name="Stop").click()
        expect(row(page, "IN-LEAVE.png")).to_contain_text("ready")


def test_a_line_sees_the_answers_of_its_own_boards_and_of_no_others(
    guarded: Any, open_page: OpenPage, board_png: bytes
) -> None:
    def post(key: str, serial: str) -> None:
        files = {"image": board_png + serial.encode()}
        assert guarded.call("POST", "/v1/inspect", key, files=files, data={"serial": serial}).is_success

    post("line", "IN-MINE")
    post("line 2", "IN-THEIRS")
    page = open_page(guarded.server, "inspect", key=guarded.keys["line"])
    own = page.get_by_role("region", name="Your latest inspections")
    own.get_by_role("button", name="IN-MINE").click()
    overlay = own.get_by_alt_text("The board with its calls")
    expect(overlay).to_have_js_property("naturalWidth", 320, timeout=30_000)
    expect(own).not_to_contain_text("IN-THEIRS")
    choose(page, file("IN-MINE-2.png", board_png))
    page.get_by_role("button", name="Inspect 1 board").click()
    expect(row(page, "IN-MINE-2.png").locator(".verdict")).to_have_text(ANSWERED, timeout=60_000)
    expect(own).to_contain_text("IN-MINE-2")
    expect(page.get_by_role("link", name="Open board")).to_have_count(0)
