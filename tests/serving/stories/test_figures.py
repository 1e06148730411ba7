"""The figures of a line and the report of a lot, from boards that were inspected, reviewed and tested."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

RECIPE = "figures"
NUM_CALLS = 4
SERIALS = ["FIG-0", "FIG-1", "FIG-2"]


@dataclass
class Line:
    """What was posted: three failed boards, one found good, one bad, one that nobody looked at."""

    reports: list[dict[str, Any]]

    @property
    def num_calls(self) -> int:
        return sum(len(report["defects"]) for report in self.reports)


@pytest.fixture(scope="module")
def line(
    server: Any,
    board_png: bytes,
    reference_png: bytes,
    strict_calibration: Callable[..., dict[str, Any]],
) -> Line:
    """Thresholds so low that random weights call something on every board."""
    calibration = strict_calibration(RECIPE, "with_reference")
    recipe = {"calibration": calibration}
    files = [("reference", ("front.png", reference_png)), ("recipe", (None, json.dumps(recipe)))]
    answer = server.client.put(f"/v1/recipes/{RECIPE}", files=files)
    assert answer.status_code == 200, answer.text
    # Few calls: with hundreds, no person could have given a word to each so quickly.
    probe = server.client.post(
        "/v1/inspect",
        files={"image": board_png + b"probe", "reference": reference_png},
        data={"options": '{"min_score": 0.0}'},
    )
    scores = [defect["score"] for defect in probe.json()["defects"]]
    reports = [_inspect(server, board_png + one.encode(), one, scores[NUM_CALLS - 1]) for one in SERIALS]
    assert [report["verdict"] for report in reports] == ["FAIL"] * 3
    _review(server, reports[0], word_of_first="false_call")
    _review(server, reports[1], word_of_first="real", disposition="rework")
    return Line(reports)


def _inspect(server: Any, picture: bytes, serial: str, min_score: float) -> dict[str, Any]:
    """The picture of a golden reference's board; calls from min_score on are listed."""
    options = json.dumps({"min_score": min_score})
    fields = {"recipe": RECIPE, "serial": serial, "options": options}
    answer = server.client.post("/v1/inspect", files={"image": picture}, data=fields)
    assert answer.status_code == 200, answer.text
    report: dict[str, Any] = answer.json()
    return report


def _review(server: Any, report: dict[str, Any], word_of_first: str, disposition: str | None = None) -> None:
    """The first call gets that word, all others are false calls."""
    calls = [
        {
            "defect": defect["id"],
            "word": word_of_first if defect["id"] == 1 else "false_call",
            "label": defect["label"],
        }
        for defect in report["defects"]
    ]
    base = f"/v1/inspections/{report['id']}"
    answer = server.client.post(
        f"{base}/verifications", json={"expects": 0, "calls": calls, "missed": [], "checked": True}
    )
    assert answer.status_code == 200, answer.text
    if disposition is not None:
        document = {"expects": answer.json()["revision"], "disposition": disposition, "note": ""}
        answer = server.client.post(f"{base}/disposition", json=document)
        assert answer.status_code == 200, answer.text


def tile(page: Page, name: str) -> Any:
    return page.locator(".tile").filter(has=page.get_by_role("heading", name=name, exact=True))


def test_the_figures_are_those_of_the_boards(station: Any, line: Line) -> None:
    page = station(f"figures?period=today&recipe={RECIPE}")
    expect(tile(page, "Boards inspected")).to_contain_text("0 passed, 3 failed", timeout=30_000)
    expect(tile(page, "Boards inspected")).to_contain_text("Failed, not reviewed yet: 1")
    expect(tile(page, "First-pass yield")).to_contain_text("33.3%")
    expect(tile(page, "First-pass yield")).to_contain_text("0.0% before review")
    expect(tile(page, "First-pass yield")).to_contain_text("of 3 boards at their first attempt")
    false_calls = len(line.reports[0]["defects"]) + len(line.reports[1]["defects"]) - 1
    expect(tile(page, "False calls").locator(".value")).to_have_text(f"{false_calls:,}")
    expect(tile(page, "False calls")).to_contain_text("333,333 ppm of boards: 1 of 3 failed though good")

    by_class = page.get_by_role("table", name="By class")
    counts = [
        int(text.replace(",", "")) for text in by_class.locator("td.count:not(.muted)").all_inner_texts()
    ]
    assert sum(counts) == line.num_calls
    assert counts == sorted(counts, reverse=True)
    expect(page.get_by_role("img", name=f"Calls: {line.num_calls:,};")).to_be_visible()
    page.get_by_role("button", name="Real").click()
    expect(page.get_by_role("img", name="Calls: 1; places: 1")).to_be_visible()
    expect(page.locator(".heat [class^=shade]")).to_have_count(1)

    trend = page.locator(".panel.trend")
    trend.get_by_text("As a table").click()
    boards = [int(text) for text in trend.locator("tbody td:nth-child(2)").all_inner_texts()]
    assert sum(boards) == 3


def test_what_is_chosen_stays_in_the_address_and_goes_into_the_table(station: Any, line: Line) -> None:
    page = station("figures?period=30d")
    page.get_by_role("combobox").and_(page.get_by_label("Recipe")).select_option(RECIPE)
    page.get_by_role("button", name="Today").click()
    expect(tile(page, "Boards inspected").locator(".value")).to_have_text("3", timeout=30_000)
    page.reload()
    expect(tile(page, "Boards inspected").locator(".value")).to_have_text("3", timeout=30_000)
    expect(page.get_by_role("button", name="Today")).to_have_attribute("aria-pressed", "true")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert "boards,inspected,3," in text


def test_results_of_electrical_test_show_what_escaped(station: Any, line: Line) -> None:
    page = station(f"figures?period=today&recipe={RECIPE}")
    field = page.locator("input[type=file]")

    def send(text: str) -> None:
        field.set_input_files({"name": "ict.csv", "mimeType": "text/csv", "buffer": text.encode()})

    send(f"serial,result\n{SERIALS[0]},fail\nELSEWHERE,maybe\n")
    expect(page.get_by_role("alert")).to_contain_text("ict.csv was not imported. line 3", timeout=30_000)
    expect(tile(page, "Known escapes").locator(".value")).to_have_text("0")
    send(f"serial,result\n{SERIALS[0]},fail\n{SERIALS[1]},fail\nELSEWHERE,pass\n")
    told = page.locator(".panel.import")
    expect(told).to_contain_text("3 rows; 2 of boards inspected here, 1 of others.", timeout=30_000)
    expect(told.get_by_role("link")).to_have_text([SERIALS[0]])
    expect(told.get_by_role("link")).to_have_attribute("href", f"#/board/{line.reports[0]['id']}")
    expect(tile(page, "Known escapes")).to_contain_text("0 by review, 1 by test", timeout=30_000)


def test_a_period_without_boards_says_so(station: Any) -> None:
    page = station("figures?period=free&since=2020-01-01&until=2020-01-31")
    expect(page.get_by_role("heading", name="No boards in this period")).to_be_visible(timeout=30_000)
    page = station("figures?period=free&since=2020-01-01")
    expect(page.get_by_role("alert")).to_contain_text("wanted at most 400", timeout=30_000)


def test_a_lot_is_reported_for_paper(station: Any, line: Line) -> None:
    page = station(f"lot?period=today&recipe={RECIPE}&serial=FIG-")
    report = page.get_by_role("article")
    expect(report.get_by_role("heading", level=1)).to_contain_text("FIG-", timeout=30_000)
    rows = report.locator("table.boards tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("good")
    expect(rows.nth(1)).to_contain_text("rework")
    expect(rows.nth(2)).to_contain_text("not reviewed")
    expect(report).to_contain_text("1 good, 1 bad")
    crop = report.locator(".defects img")
    expect(crop).to_have_count(1)
    page.wait_for_function("document.querySelector('.defects img').naturalWidth > 0")

    page.get_by_label("Serial begins with").fill("FIG-2")
    page.keyboard.press("Enter")
    expect(rows).to_have_count(1, timeout=30_000)
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("header.shell")).to_be_hidden()
    expect(page.get_by_role("button", name="Print")).to_be_hidden()
    ground = "getComputedStyle(document.documentElement).colorScheme"
    assert page.evaluate(ground) == "light"
