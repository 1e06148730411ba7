"""Recipes: zones drawn on the golden reference, revisions, good boards, two engineers at once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.serving.conftest import draw_board, encode

Station = Callable[..., Page]
OpenPage = Callable[..., Page]
STORED = re.compile(r"Stored as revision \d+")


@pytest.fixture
def name(server: Any, request: pytest.FixtureRequest, reference_png: bytes) -> Iterator[str]:
    """A recipe of one reference, 320 x 256 px, taken out of use afterwards."""
    unique = f"story {abs(hash(request.node.nodeid)) % 10**8}"
    put(server, unique, {"px_per_mm": 20}, top=reference_png)
    yield unique
    server.client.delete(f"/v1/recipes/{unique}")


def put(server: Any, name: str, settings: dict[str, Any], **references: bytes) -> dict[str, Any]:
    if references:
        files: list[Any] = [("reference", (f"{one}.png", data)) for one, data in references.items()]
        answer = server.client.put(f"/v1/recipes/{name}", files=files, data={"recipe": json.dumps(settings)})
    else:
        answer = server.client.put(f"/v1/recipes/{name}", json=settings)
    assert answer.status_code == 200, answer.text
    stored: dict[str, Any] = answer.json()
    return stored


def stored(server: Any, name: str) -> dict[str, Any]:
    found: dict[str, Any] = server.client.get(f"/v1/recipes/{name}").json()
    return found


def store(page: Page) -> None:
    page.get_by_role("button", name="Store").click()
    expect(page.get_by_role("status").filter(has_text=STORED)).to_be_visible()


class Board:
    """The drawing, with px of the reference turned into places on the screen."""

    def __init__(self, page: Page) -> None:
        self.page = page
        picture = page.locator(".zone-stage image")
        expect(picture).to_be_visible()
        box = picture.bounding_box()
        assert box
        self.left, self.top, self.scale = box["x"], box["y"], box["width"] / 320

    def move(self, x: float, y: float) -> None:
        self.page.mouse.move(self.left + x * self.scale, self.top + y * self.scale, steps=3)

    def click(self, x: float, y: float) -> None:
        self.move(x, y)
        self.page.mouse.down()
        self.page.mouse.up()

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        self.move(*start)
        self.page.mouse.down()
        self.move(*end)
        self.page.mouse.up()


def test_zones_are_drawn_named_moved_undone_and_stored(station: Station, server: Any, name: str) -> None:
    page = station(f"recipes/{name}")
    board = Board(page)
    page.keyboard.press("d")
    expect(page.get_by_role("button", name="Rectangle")).to_have_attribute("aria-pressed", "true")
    board.drag((40, 30), (100, 90))
    page.get_by_label("Name", exact=True).fill("logo")

    page.get_by_role("button", name="Polygon").click()
    for x, y in [(150, 100), (250, 100), (150, 200), (250, 200)]:
        board.click(x, y)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("crosses itself")
    for x, y in [(150, 100), (250, 100), (250, 200)]:
        board.click(x, y)
    board.click(150, 100)
    expect(page.locator(".zone-list [role=alert]")).to_be_empty()
    board.drag((250, 200), (220, 220))  # its corner
    board.drag((60, 60), (70, 65))  # the other zone
    store(page)
    ignored = stored(server, name)["recipe"]["ignore"]
    assert [zone["name"] for zone in ignored] == ["logo", ""]
    expected = [
        [[50, 35], [110, 35], [110, 95], [50, 95]],
        [[150, 100], [250, 100], [220, 220]],
    ]
    for zone, corners in zip(ignored, expected, strict=True):
        assert np.abs(np.array(zone["polygon"]) - corners).max() < 1.5

    page.locator(".zone-stage svg").focus()
    page.keyboard.press("Delete")
    expect(page.get_by_role("button", name="logo")).to_have_count(0)
    page.keyboard.press("Control+z")
    expect(page.get_by_role("button", name="logo")).to_be_visible()
    expect(page.get_by_role("button", name="Store")).to_be_disabled()


def test_a_zone_is_made_without_a_pointer(station: Station, server: Any, name: str) -> None:
    page = station(f"recipes/{name}")
    expect(page.locator(".zone-stage image")).to_be_visible()
    page.locator(".zone-stage svg").focus()
    page.keyboard.press("d")
    expect(page.get_by_role("button", name="Rectangle")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+ArrowRight")
    for corner, (x, y) in enumerate([(10, 20), (60, 20), (60, 80), (10, 80)], start=1):
        for axis, value in (("x", x), ("y", y)):
            field = page.get_by_label(f"Corner {corner}, {axis} in px")
            field.fill(str(value))
            field.press("Tab")
    page.get_by_label("Kind of zone").last.select_option("regions")
    page.keyboard.press("Control+s")
    expect(page.get_by_role("status").filter(has_text=STORED)).to_be_visible()
    settings = stored(server, name)["recipe"]
    assert settings["ignore"] == []
    assert settings["regions"][0]["polygon"] == [[10, 20], [60, 20], [60, 80], [10, 80]]


def test_a_recipe_is_made_of_good_boards_and_one_that_is_none_stands_out(
    station: Station, server: Any
) -> None:
    rng = np.random.default_rng(0)
    picture = draw_board(seed=1)
    files: list[FilePayload] = []
    for number, noise in enumerate([3, 3, 12, 3], start=1):
        take = (picture + rng.normal(0, noise, picture.shape)).clip(0, 255).astype(np.uint8)
        files.append({"name": f"good {number}.png", "mimeType": "image/png", "buffer": encode(".png", take)})
    page = station("recipes")
    form = page.get_by_role("form", name="New recipe")
    form.get_by_label("Name", exact=True).fill("from good boards")
    form.get_by_label("Several good boards").check()
    form.locator("input[type=file]").set_input_files(files[:2])
    expect(form).to_contain_text("2 pictures chosen; wanted 3 to 20")
    form.locator("input[type=file]").set_input_files(files[2:])
    form.get_by_role("button", name="Make the recipe").click()
    rows = page.locator(".good-boards tbody tr")
    expect(rows).to_have_count(4, timeout=60_000)
    assert [" stands out" in f" {text}" for text in rows.locator("td:last-child").all_inner_texts()] == [
        False,
        False,
        True,
        False,
    ]
    (reference,) = stored(server, "from good boards")["references"]
    assert (reference["name"], len(reference["boards"])) == ("median", 4)
    server.client.delete("/v1/recipes/from good boards")


def test_two_engineers_lose_nothing(station: Station, server: Any, name: str) -> None:
    page = station(f"recipes/{name}?tab=settings")
    page.get_by_label("Camera and lighting").fill("line 3")
    settings = stored(server, name)["recipe"]
    put(server, name, {**settings, "px_per_mm": 25, "note": "measured anew"})
    page.get_by_role("button", name="Store").click()
    dialog = page.get_by_role("dialog", name="Somebody was faster")
    expect(dialog).to_contain_text("20 px per mm → 25 px per mm")
    expect(dialog).to_contain_text("none → line 3")
    dialog.get_by_role("button", name="Put mine on top").click()
    expect(page.get_by_role("status").filter(has_text=STORED)).to_be_visible()
    now = stored(server, name)
    assert now["revision"] == 3
    assert [now["recipe"][one] for one in ("px_per_mm", "note", "camera")] == [25, "measured anew", "line 3"]


def test_unsaved_changes_are_not_left_without_a_word(station: Station, server: Any, name: str) -> None:
    page = station(f"recipes/{name}?tab=settings")
    page.get_by_label("Note").fill("half a thought")
    page.get_by_role("link", name="Queue").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("half a thought")
    dialog.get_by_role("button", name="Stay here").click()
    expect(page.get_by_label("Note")).to_have_value("half a thought")
    page.get_by_role("link", name="Queue").click()
    dialog.get_by_role("button", name="Leave without them").click()
    expect(page.locator("main")).to_have_attribute("data-page", "queue")
    assert stored(server, name)["revision"] == 1


def test_an_older_revision_is_compared_and_taken_back_with_its_pictures(
    station: Station, server: Any, name: str, board_png: bytes
) -> None:
    first = stored(server, name)
    put(server, name, {"px_per_mm": 30, "min_defect_mm": {"short": 0.2}}, top=board_png)
    page = station(f"recipes/{name}?tab=revisions")
    told = page.get_by_role("region", name="Revision 2")
    expect(told).to_contain_text("20 px per mm → 30 px per mm")
    expect(told).to_contain_text("Least size of short")
    expect(told).to_contain_text("Golden reference “top”")
    page.get_by_role("button", name="Revision 1").click()
    page.get_by_role("button", name="Go back to revision 1").click()
    expect(page.get_by_role("status").filter(has_text="in force again, as revision 3")).to_be_visible()
    now = stored(server, name)
    assert now["revision"] == 3
    assert now["recipe"] == first["recipe"]
    assert [one["sha256"] for one in now["references"]] == [one["sha256"] for one in first["references"]]


def test_what_the_service_refuses_is_said_and_kept(station: Station, name: str) -> None:
    page = station(f"recipes/{name}?tab=settings")
    page.get_by_role("combobox", name="Class").fill("scratch")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="Store").click()
    expect(page.get_by_role("alert")).to_contain_text("class scratch is not known to the model")
    expect(page.get_by_role("spinbutton", name="scratch")).to_have_value("0.1")


def test_who_may_not_change_a_recipe_reads_it(
    guarded: Any, open_page: OpenPage, reference_png: bytes
) -> None:
    files = [("reference", ("top.png", reference_png))]
    assert guarded.call("PUT", "/v1/recipes/read only", "engineer", files=files).is_success
    page = open_page(guarded.server, "recipes/read only", key=guarded.keys["operator"])
    expect(page.get_by_text("revision 1, engineer")).to_be_visible()
    expect(page.locator(".zone-stage image")).to_be_visible()
    page.get_by_role("button", name="Settings").click()
    expect(page.get_by_label("Note")).to_be_disabled()
    for button in ("Store", "Polygon", "Take out of use", "Add a reference…"):
        expect(page.get_by_role("button", name=button)).to_have_count(0)
    guarded.call("DELETE", "/v1/recipes/read only", "engineer")


def test_a_missed_challenge_board_locks_the_recipe_until_it_is_cleared_with_a_reason(
    station: Station, server: Any, name: str
) -> None:
    page = station(f"recipes/{name}?tab=challenge")
    page.get_by_role("button", name="Add a board").click()
    page.get_by_label("Serial number").fill("known bad")
    page.get_by_label("Class to be called").fill("short")
    page.get_by_label("Class to be called").press("Enter")
    expect(page.get_by_role("button", name="Remove short")).to_be_visible()
    page.get_by_label("Show one every").fill("8")
    page.get_by_role("button", name="Store challenge boards").click()
    expect(page.get_by_text("Next one due")).to_be_visible()
    files = {
        "image": encode(".png", draw_board(seed=2))
    }  # another product: it is not inspected, so not called
    server.client.post("/v1/inspect", files=files, data={"recipe": name, "serial": "known bad"})
    page = station(f"recipes/{name}?tab=challenge")
    expect(page.locator(".recipe-head")).to_contain_text("locked")
    lock = page.get_by_role("region", name="Locked")
    expect(lock).to_contain_text("known bad")
    expect(lock.get_by_role("button", name="Clear the lock")).to_be_disabled()
    lock.get_by_label("What was found and done").fill("the wrong board was shown")
    lock.get_by_role("button", name="Clear the lock").click()
    expect(page.get_by_role("region", name="Not locked")).to_be_visible()
    assert not server.client.get(f"/v1/recipes/{name}/challenge").json()["state"]["locked"]


def test_the_preview_shows_what_reviewed_boards_say_of_the_targets(
    station: Station, server: Any, name: str, board_png: bytes, reference_png: bytes
) -> None:
    settings = {"targets": [{"label": "short", "max_miss_rate": 0.1}]}
    put(server, name, settings)
    posted = server.client.post(
        "/v1/inspect", files={"image": board_png + b"p"}, data={"recipe": name}
    ).json()
    calls = [{"defect": one["id"], "word": "false_call", "label": one["label"]} for one in posted["defects"]]
    missed = [{"label": "short", "box_xyxy": [10, 10, 30, 30], "polygon": None}]
    review = {"expects": 0, "calls": calls, "missed": missed, "checked": True}
    path = f"/v1/inspections/{posted['id']}"
    assert server.client.post(f"{path}/verifications", json=review).status_code == 200
    done = {"expects": 1, "disposition": "scrap", "note": ""}
    assert server.client.post(f"{path}/disposition", json=done).json()["state"] == "done"

    page = station(f"recipes/{name}?tab=targets")
    # One board with such a defect, and it was missed: 46 boards support 10 % with one miss.
    expect(page.locator(".target")).to_contain_text("needs 45 more boards")
    page.get_by_role("button", name=re.compile("^short")).click()
    in_force = page.get_by_role("row", name="In force")
    expect(in_force).to_contain_text("1 of 1")
    expect(in_force).to_contain_text("100.0 %")
    page.get_by_label("Most boards with a miss, percent").fill("1")
    expect(page.locator(".target")).to_contain_text("takes 299 or more boards")
    page.get_by_role("button", name="Discard").click()
    expect(page.locator(".target")).to_contain_text("needs 45 more boards")
