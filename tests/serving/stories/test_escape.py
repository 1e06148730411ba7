"""A missed defect at the station: why it was missed, and what can be done about it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from inspect_vit.checkpoint import load_checkpoint, save_checkpoint
from serving.config import ServingConfig
from serving.promotion import promote
from serving.registry import add_version
from serving.roles import ANYONE
from serving.store import Store
from tests.serving.conftest import draw_board, encode
from tests.serving.stories.conftest import OpenPage, Station

RECIPE = "escapes"


@pytest.fixture(scope="module")
def recipe(server: Any, tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A recipe whose model scores 0.1 and more everywhere, under its threshold of 0.3."""
    reference = encode(".png", draw_board(seed=50))
    answer = server.client.put(f"/v1/recipes/{RECIPE}", files=[("reference", ("top.png", reference))])
    assert answer.status_code == 200, answer.text
    model, metadata = load_checkpoint(tiny_checkpoint)
    assert model.head.out.bias is not None
    model.head.out.bias.data[: model.head.num_classes] += 2.5
    path = tmp_path_factory.mktemp("eager") / "eager.safetensors"
    save_checkpoint(path, model, name="eager", thresholds=metadata.thresholds, training=metadata.training)
    with contextlib.closing(Store(ServingConfig(home=server.home))) as store:
        version = add_version(store.engine, server.home, path, actor=ANYONE).version
        asked: dict[str, Any] = {
            "recipe": RECIPE,
            "actor": ANYONE,
            "gate": None,
            "override_reason": "for the story",
        }
        promote(store.engine, server.home, version, **asked)
    yield RECIPE
    server.client.delete(f"/v1/recipes/{RECIPE}")


def missed_on(client: Any, label: str, serial: str, recipe: str | None = None) -> str:
    """A board without listed calls on which a defect was drawn; its id."""
    picture = encode(".png", draw_board(seed=50)) + serial.encode()
    data = {"serial": serial, "options": '{"min_score": 1.0}', **({"recipe": recipe} if recipe else {})}
    posted = client.post("/v1/inspect", files={"image": picture}, data=data)
    assert posted.status_code == 200, posted.text
    inspection = str(posted.json()["id"])
    missed = [{"label": label, "box_xyxy": [100, 60, 150, 100], "polygon": None}]
    said = {"expects": 0, "calls": [], "missed": missed, "checked": False}
    answer = client.post(f"/v1/inspections/{inspection}/verifications", json=said)
    assert answer.status_code == 200, answer.text
    return inspection


def ask_why(page: Page, label: str) -> Any:
    """The panel of the drawn defect, with its figures."""
    listed = page.locator(".missed").get_by_role("button", name=label, exact=True)
    listed.click(timeout=30_000)
    panel = page.get_by_role("region", name="Why it was missed")
    expect(panel.get_by_role("table").first).to_be_visible(timeout=30_000)
    return panel


def test_a_missed_defect_shows_how_near_each_class_came_and_leads_to_a_new_class(
    station: Station, server: Any
) -> None:
    board = missed_on(server.client, "solder ball", "escape 1")
    spot = server.client.get(f"/v1/inspections/{board}/spot", params={"box": "100,60,150,100"}).json()
    page = station(f"board/{board}")
    panel = ask_why(page, "solder ball")
    nearest = spot["classes"][0]
    row = panel.get_by_role("row", name=re.compile(f"^{nearest['label']}"))
    expect(row).to_contain_text(f"{nearest['score']:.2f} of {nearest['threshold']:.2f}")
    for level in ("4", "16", "32"):
        share = panel.get_by_role("row", name=re.compile(f"^{level} px"))
        expect(share).to_contain_text(f"{100 * spot['gate_share'][level]:.0f}%")
    expect(panel.locator(".why li")).to_have_count(len(spot["words"]))
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    ask_why(page, "solder ball").get_by_role("link", name="Teach the class solder ball").click()
    expect(page.get_by_role("checkbox", name="Add class solder ball")).to_be_checked()


def test_a_known_class_is_not_offered_as_a_new_one_and_without_a_recipe_no_threshold(
    station: Station, server: Any
) -> None:
    board = missed_on(server.client, "short", "escape 2")
    panel = ask_why(station(f"board/{board}"), "short")
    expect(panel.get_by_role("link", name="Teach the class")).to_have_count(0)
    expect(panel.get_by_role("button", name="Propose a threshold")).to_have_count(0)


def test_a_lower_threshold_is_refused_in_words_until_false_calls_are_accepted(
    station: Station, server: Any, recipe: str
) -> None:
    board = missed_on(server.client, "short", "escape 3", recipe)
    before = server.client.get(f"/v1/recipes/{recipe}").json()["revision"]
    page = station(f"board/{board}")
    ask_why(page, "short").get_by_role("button", name="Propose a threshold").click()
    dialog = page.get_by_role("dialog")
    spot = server.client.get(f"/v1/inspections/{board}/spot", params={"box": "100,60,150,100"}).json()
    chosen = dialog.get_by_role("combobox", name="Class").input_value()
    needed = next(one["needed"] for one in spot["classes"] if one["label"] == chosen)
    expect(dialog.get_by_role("spinbutton")).to_have_value(str(needed))
    expect(dialog.get_by_label("Reason")).to_have_value("missed on escape 3")
    dialog.get_by_role("button", name="Try it").click()
    expect(dialog.get_by_role("alert")).to_contain_text("nothing is known", timeout=30_000)
    assert server.client.get(f"/v1/recipes/{recipe}").json()["revision"] == before
    dialog.get_by_role("checkbox", name="Also if good boards would be called").check()
    dialog.get_by_role("button", name="Try it").click()
    stored = page.get_by_role("dialog", name=f"{chosen}: in force for {recipe}, revision {before + 1}")
    expect(stored).to_be_visible(timeout=30_000)
    calibration = server.client.get(f"/v1/recipes/{recipe}").json()["recipe"]["calibration"]
    assert calibration["thresholds"][chosen] == needed


def test_an_operator_is_told_but_changes_nothing(open_page: OpenPage, guarded: Any) -> None:
    client = guarded.server.client
    client.headers["x-api-key"] = guarded.keys["operator"]
    try:
        board = missed_on(client, "solder ball", "escape 4")
    finally:
        del client.headers["x-api-key"]
    page = open_page(guarded.server, f"board/{board}", key=guarded.keys["operator"])
    panel = ask_why(page, "solder ball")
    expect(panel).to_contain_text("an engineer can teach it")
    expect(panel.get_by_role("link")).to_have_count(0)
    expect(panel.get_by_role("button", name="Propose a threshold")).to_have_count(0)
