"""Versions of the model at the station: where each comes from, where it is used, and a new class."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session

from inspect_vit.checkpoint import load_checkpoint, save_checkpoint
from serving.audit import utc_now
from serving.config import ServingConfig
from serving.job_schemas import JobResult, Promotion
from serving.job_tables import JobRow
from serving.promotion import promote
from serving.registry import add_version, production
from serving.roles import ANYONE, Actor, Role
from serving.store import Store
from tests.serving.conftest import draw_board, encode
from tests.serving.stories.conftest import OpenPage, Station

TABLE = {
    "base": "0" * 12,
    "version": "1" * 12,
    "classes": [
        {"label": "open", "is_new": False, "before": 0.961, "after": 0.958, "n": 140},
        {"label": "short", "is_new": False, "before": 0.940, "after": 0.911, "n": 120},
        {"label": "scratch", "is_new": True, "before": None, "after": 0.873, "n": 30},
    ],
    "false_calls": {"before": 4, "after": 3, "boards": 200},
    "examples": {"scratch": 10},
    "minutes": 7.5,
    "measured_on": "boards that were held out",
}


def add_candidate(home: Path, tiny_checkpoint: Path, folder: Path) -> str:
    """A version in a server's store, made from the one in production as far as the store knows; its name."""
    model, metadata = load_checkpoint(tiny_checkpoint)
    path = folder / "taught.safetensors"
    assert model.head.out.bias is not None
    model.head.out.bias.data += 0.1  # other weights, so another version
    save_checkpoint(
        path, model, name="taught", thresholds=metadata.thresholds, training={**metadata.training, "seed": 1}
    )
    with contextlib.closing(Store(ServingConfig(home=home))) as store:
        added = add_version(store.engine, home, path, parent=metadata.version, actor=ANYONE, report=TABLE)
    return added.version


@pytest.fixture(scope="module")
def candidate(server: Any, tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return add_candidate(server.home, tiny_checkpoint, tmp_path_factory.mktemp("candidate"))


def review_with_missed(server: Any, serial: str, label: str) -> str:
    """A board whose review is done, on which a defect of a class was drawn; its id."""
    picture = encode(".png", draw_board(seed=60)) + serial.encode()
    posted = server.client.post("/v1/inspect", files={"image": picture}, data={"serial": serial}).json()
    path = f"/v1/inspections/{posted['id']}"
    calls = [{"defect": one["id"], "word": "false_call", "label": one["label"]} for one in posted["defects"]]
    missed = [{"label": label, "box_xyxy": [40, 40, 70, 60], "polygon": None}]
    said = {"expects": 0, "calls": calls, "missed": missed, "checked": True}
    assert server.client.post(f"{path}/verifications", json=said).status_code == 200
    done = {"expects": 1, "disposition": "scrap", "note": ""}
    assert server.client.post(f"{path}/disposition", json=done).json()["state"] == "done"
    return str(posted["id"])


def versions(page: Page) -> Any:
    return page.get_by_role("region", name="Versions, each under the one it was made from")


def test_a_version_shows_where_it_comes_from_and_what_it_gained_and_lost(
    station: Station, candidate: str
) -> None:
    page = station("models")
    expect(page.locator(".version-head")).to_contain_text("production")
    rows = versions(page).get_by_role("listitem")
    expect(rows.filter(has_text="production")).to_contain_text("tiny")
    taught = rows.filter(has_text=candidate)
    expect(taught).to_have_attribute("data-child", "true")
    taught.get_by_role("link").click()
    table = page.get_by_role("region", name="Before and after")
    expect(table.get_by_role("row", name=re.compile("^scratch"))).to_contain_text("87.3%")
    short = table.get_by_role("row", name=re.compile("^short")).get_by_role("cell")
    expect(short.nth(2)).to_have_attribute("data-move", "down")
    expect(table.get_by_role("row", name=re.compile("^open")).get_by_role("cell").nth(2)).to_have_attribute(
        "data-move", "same"
    )


def test_two_versions_stand_side_by_side(station: Station, server: Any, candidate: str) -> None:
    page = station(f"models/{candidate}")
    base = server.client.get("/v1/models").json()["models"]
    production = next(one["version"] for one in base if one["is_default"])
    page.get_by_role("combobox", name="Compare with").select_option(production)
    compared = page.get_by_role("region", name="Side by side")
    for version in (candidate, production):
        expect(compared.get_by_role("columnheader", name=version)).to_be_visible()
    asked = server.client.get(f"/v1/models/{candidate}/compare", params={"with": production}).json()
    expect(compared.locator("tbody tr")).to_have_count(len(asked["rows"]))
    page.reload()  # the address says what is compared
    expect(compared).to_be_visible()


def test_a_share_of_the_boards_runs_in_the_shadow_until_it_is_ended(
    station: Station, server: Any, candidate: str
) -> None:
    page = station(f"models/{candidate}")
    shadow = page.get_by_role("region", name="Shadow")
    shadow.get_by_role("slider", name="Share of the boards").fill("25")
    shadow.get_by_role("button", name="Set").click()
    expect(page.locator(".version-head .stage-chip")).to_have_text("shadow")
    assert server.client.get(f"/v1/models/{candidate}/shadow").json()["share"] == 0.25
    shadow.get_by_role("slider", name="Share of the boards").fill("0")
    shadow.get_by_role("button", name="End").click()
    expect(page.locator(".version-head .stage-chip")).to_have_text("candidate")
    assert server.client.get(f"/v1/models/{candidate}/shadow").json()["share"] == 0


def test_promotion_without_the_gate_takes_a_reason(station: Station, candidate: str) -> None:
    page = station(f"models/{candidate}")
    page.get_by_role("button", name="Promote").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Measure and promote")).to_be_enabled()
    expect(dialog).to_contain_text("It goes live only if it passes.")
    dialog.get_by_role("checkbox", name="Go live even if it does not pass").check()
    expect(dialog).not_to_contain_text("only if it passes")
    go = dialog.get_by_role("button", name="Promote without the gate")
    expect(go).to_be_disabled()
    dialog.get_by_label("Reason (needed)").fill("the line stands still")
    expect(go).to_be_enabled()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_an_override_is_told_as_one_by_whom_and_why(station: Station, server: Any, candidate: str) -> None:
    with contextlib.closing(Store(ServingConfig(home=server.home))) as store:
        old = production(store.engine)
        promote(
            store.engine,
            server.home,
            candidate,
            recipe=None,
            actor=Actor("eva", Role.ENGINEER),
            gate=None,
            unjudged="the boards are gone",
            override_reason="the line stands still",
        )
        add_ended_job(store, candidate)
    try:
        page = station(f"models/{candidate}")
        told = page.get_by_role("status").filter(has_text="In production by override, not by the gate")
        expect(told).to_contain_text("eva")
        expect(told).to_contain_text("The line stands still")
        page = station("models?tab=jobs")
        row = page.get_by_role("list", name="Jobs").get_by_role("link").first
        expect(row).to_contain_text("promoted by override")
        expect(row).to_contain_text("gate: not enough")
        expect(page.locator(".now")).to_contain_text("by override of eva: the line stands still")
        expect(row).not_to_contain_text("done")
    finally:
        back = server.client.post(f"/v1/models/{candidate}/rollback", json={"reason": "story over"})
        assert back.json()["version"] == old


def add_ended_job(store: Store, version: str) -> None:
    """A promotion by override of a version that the gate had too few boards for."""
    job, _ = store.new_id()
    asked = Promotion(version=version, override=True, reason="the line stands still")
    result = JobResult(
        version=version, is_promoted=True, is_override=True, gate_result="insufficient", gate=None, table=None
    )
    row = JobRow(
        id=job,
        kind="promote",
        state="done",
        created=utc_now(),
        started=utc_now(),
        ended=utc_now(),
        actor="eva",
        role="engineer",
        request=asked.model_dump_json(),
        reason="promoted by override of eva: the line stands still; the gate said 'insufficient'",
        cancel_asked=False,
        result=result.model_dump_json(),
    )
    with Session(store.engine) as session:
        session.add(row)
        session.commit()


def test_the_version_in_production_is_not_offered_for_retirement(station: Station, candidate: str) -> None:
    page = station("models")
    expect(page.get_by_role("button", name="Roll back")).to_be_visible()
    expect(page.get_by_role("button", name="Retire")).to_have_count(0)
    page = station(f"models/{candidate}")
    expect(page.get_by_role("button", name="Retire")).to_be_visible()


def test_what_reviewers_typed_can_be_taught_from_its_examples(station: Station, server: Any) -> None:
    label = "lifted pad"
    boards = [review_with_missed(server, f"teach {number}", label) for number in range(3)]
    counts = server.client.get("/v1/examples").json()["counts"][label]
    page = station("models?tab=new")
    page.get_by_role("button", name=label).click()
    for part, name in (("train", "To learn from"), ("acceptance", "To measure on")):
        crops = page.get_by_role("region", name=name).get_by_role("img")
        expect(crops).to_have_count(counts[part])
    links = page.locator(".crops-of a").evaluate_all("links => links.map(link => link.hash)")
    assert sorted(links) == sorted(f"#/board/{board}" for board in boards)
    start = page.get_by_role("button", name="Start retraining")
    expect(start).to_be_disabled()
    page.get_by_role("checkbox", name=f"Add class {label}").check()
    summary = page.locator(".plan .summary")
    if counts["train"]:
        expect(summary).to_contain_text(f"{counts['train']} of 10 examples")
        expect(start).to_be_enabled()
    page.get_by_role("textbox", name="Another class").fill("never drawn")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(summary).to_contain_text("never drawn: no example to learn from yet")
    expect(page.get_by_text("No example of never drawn yet")).to_be_visible()
    expect(start).to_be_disabled()


def test_a_retraining_is_started_from_the_page_and_can_be_cancelled(station: Station, server: Any) -> None:
    for number in range(2):
        review_with_missed(server, f"started {number}", "dent")
    page = station("models?tab=new")
    page.get_by_role("checkbox", name="Add class dent").check()
    page.get_by_role("button", name="Start retraining").click()
    cancel = page.get_by_role("button", name="Cancel the job")
    expect(cancel).to_be_enabled()
    (job,) = (
        one for one in server.client.get("/v1/jobs").json()["jobs"] if one["request"].get("add") == ["dent"]
    )
    assert f"job={job['id']}" in page.url
    cancel.click()
    expect(page.get_by_role("button", name="Go on where it stopped")).to_be_visible(timeout=60_000)
    expect(page.locator(".job-page .job-state")).to_have_text("cancelled")
    assert server.client.get(f"/v1/jobs/{job['id']}").json()["state"] == "cancelled"


def test_an_operator_looks_and_changes_nothing(
    open_page: OpenPage, guarded: Any, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    version = add_candidate(guarded.server.home, tiny_checkpoint, tmp_path)
    page = open_page(guarded.server, f"models/{version}", key=guarded.keys["operator"])
    expect(page.get_by_role("region", name="Before and after")).to_be_visible()
    expect(page.get_by_role("combobox", name="Compare with")).to_be_visible()
    for button in ("Promote", "Roll back", "Retire", "Set"):
        expect(page.get_by_role("button", name=button)).to_have_count(0)
    expect(page.get_by_role("link", name="New class")).to_have_count(0)
    expect(page.get_by_role("slider")).to_have_count(0)
