"""Alarms over HTTP: who sees them, who closes them, what the metrics and the document say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from inspect_vit.image_io import read_image
from inspect_vit.intake import check_quality
from serving import alarm_routes
from serving.metrics import KINDS, OTHER, kind_of
from serving.openapi import openapi_document
from tests.serving.conftest import encode

RECIPE = "panel with a scratched mask"


@pytest.fixture(scope="module")
def reports(
    guarded: Any, strict_calibration: Callable[..., dict[str, Any]], project: Path
) -> list[dict[str, Any]]:
    """Three boards of a recipe whose thresholds are so low that random weights call all of them bad."""
    calibration = strict_calibration(RECIPE, "without_reference")
    settings = {"px_per_mm": 48.0, "calibration": calibration}
    made = guarded.call("PUT", f"/v1/recipes/{RECIPE}", "engineer", json=settings)
    assert made.status_code == 200, made.text
    board = read_image(project / "data_samples" / "board_01_test.png")[0][:160, :160]
    rng = np.random.default_rng(0)
    answers = []
    for number in range(3):
        noisy = (board + rng.normal(0, 2, board.shape)).clip(0, 255).astype(np.uint8)
        answer = guarded.call(
            "POST",
            "/v1/inspect",
            "line",
            files={"image": encode(".png", noisy)},
            data={"recipe": RECIPE, "serial": f"repeats {number}"},
        )
        assert answer.status_code == 200, answer.text
        answers.append(answer.json())
    return answers


def test_the_third_board_warns_and_an_operator_sees_the_alarm(guarded: Any, reports: list[Any]) -> None:
    assert [bool(report["warnings"]) for report in reports] == [False, False, True]
    assert all(warning.startswith("repeater: ") for warning in reports[2]["warnings"])
    stored = guarded.call("GET", f"/v1/inspections/{reports[2]['id']}", "line").json()
    assert stored["warnings"] == reports[2]["warnings"]
    page = guarded.call("GET", "/v1/alarms", "operator", params={"recipe": RECIPE, "limit": 1}).json()
    (alarm,) = page["alarms"]
    assert alarm["message"] in reports[2]["warnings"]
    assert alarm["repeater"]["inspections"] == [report["id"] for report in reports]
    assert (alarm["recipe_revision"], alarm["reference"], alarm["acknowledged"]) == (1, "", None)
    following = guarded.call("GET", page["next"], "operator").json()
    assert following["alarms"][0]["id"] < alarm["id"]
    assert guarded.call("GET", "/v1/alarms", "line").status_code == 403


def test_an_engineer_closes_an_alarm_and_the_trail_says_so(guarded: Any, reports: list[Any]) -> None:
    assert reports
    alarm = guarded.call("GET", "/v1/alarms", "operator", params={"recipe": RECIPE}).json()["alarms"][0]
    path = f"/v1/alarms/{alarm['id']}/acknowledge"
    assert guarded.call("POST", path, "operator").status_code == 403
    closed = guarded.call("POST", path, "engineer", json={"note": "mask changed"}).json()
    assert (closed["acknowledged_by"], closed["note"]) == ("engineer", "mask changed")
    assert guarded.call("POST", path, "engineer").json() == closed
    still = guarded.call("GET", "/v1/alarms", "operator", params={"recipe": RECIPE, "limit": 200}).json()
    assert alarm["id"] not in {one["id"] for one in still["alarms"]}
    every = guarded.call("GET", "/v1/alarms", "operator", params={"state": "all", "limit": 200}).json()
    assert closed in every["alarms"]
    trail = guarded.call("GET", "/v1/audit", "admin", params={"action": "alarm_acknowledged"}).json()
    assert (trail["entries"][0]["actor"], trail["entries"][0]["object"]) == (
        "engineer",
        f"alarm {alarm['id']}",
    )


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/v1/alarms/999999/acknowledge", {}, 404, "no alarm 999999"),
        ("/v1/alarms/-1/acknowledge", {}, 404, "no alarm '-1'"),
        ("/v1/alarms/1/acknowledge", {"json": {"note": 7}}, 422, "note: "),
        ("/v1/alarms/1/acknowledge", {"json": {"note": "x" * 2001}}, 422, "note: "),
        ("/v1/alarms/1/acknowledge", {"json": {"notes": "x"}}, 422, "notes: "),
        ("/v1/alarms/1/acknowledge", {"content": b"x" * 20_000}, 422, "more than 16384 bytes"),
        ("/v1/alarms/1/acknowledge", {"content": b"{}"}, 422, "content-type"),
        ("/v1/alarms/1/acknowledge?note=x", {}, 422, "'note' is not a query parameter"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    guarded: Any, path: str, body: dict[str, Any], status: int, words: str
) -> None:
    answer = guarded.call("POST", path, "engineer", **body)
    assert (answer.status_code, words in answer.json()["error"]["message"]) == (status, True), answer.text


@pytest.mark.parametrize("query", ["state=closed", "before=x", "limit=0", "since=1"])
def test_a_query_that_cannot_be_meant_is_refused(guarded: Any, query: str) -> None:
    assert guarded.call("GET", f"/v1/alarms?{query}", "operator").status_code == 422


def test_the_metrics_name_recipes_of_the_store_models_and_alarms(guarded: Any, reports: list[Any]) -> None:
    refused = guarded.call(
        "POST",
        "/v1/inspect",
        "line",
        files={"image": encode(".png", np.zeros((64, 64, 3), np.uint8))},
        data={"recipe": "made up by a client"},
    )
    assert refused.status_code == 422
    text = guarded.call("GET", "/metrics", "line").text
    version = reports[0]["model"]["version"]
    counted = f'inspect_vit_inspections_total{{model="{version}",recipe="{RECIPE}",verdict="FAIL"}} 3.0'
    assert counted in text
    assert f'inspect_vit_model_info{{device="cpu",name="tiny",version="{version}"}} 1.0' in text
    assert "inspect_vit_build_info{" in text
    label = reports[2]["defects"][0]["label"]
    assert f'inspect_vit_open_alarms{{kind="repeater",recipe="{RECIPE}",subject="{label}"}}' in text
    assert f'inspect_vit_baseline_boards{{recipe="{RECIPE}",reference="",statistic="mean_grey"}} 3.0' in text
    assert "made up by a client" not in text


def test_each_intake_fault_is_counted_under_its_own_kind() -> None:
    rng = np.random.default_rng(0)
    tracks = np.kron(rng.integers(0, 2, (20, 20)), np.ones((16, 16))) * 200
    pictures = {
        "black frame": np.zeros_like(tracks),
        "almost blank": tracks * 0 + 90,
        "too dark": tracks / 200 * 25,
        "low contrast": 100 + tracks / 4,
        "under-exposed": np.where(np.indices(tracks.shape).max(0) < 32, 200, tracks / 4),
        "over-exposed": np.where(tracks > 0, 252, 40 + np.indices(tracks.shape)[0] / 2),
        "out of focus": cv2.GaussianBlur(tracks, (0, 0), 4.0),
    }
    for kind, picture in pictures.items():
        warnings, errors = check_quality(picture.round().astype(np.uint8))
        found = {kind_of(fault, "warning") for fault in warnings} | {
            kind_of(f"reference: {fault}", "error") for fault in errors
        }
        assert kind in found, (kind, warnings, errors)
    assert kind_of("never heard of: x", "warning") == OTHER
    assert (OTHER, "error") in KINDS


def test_the_alarm_routes_are_described() -> None:
    document = openapi_document()
    for route in alarm_routes.ROUTES:
        (method,) = {name.lower() for name in route.methods or ()} - {"head"}
        operation = document["paths"][route.path][method]
        assert operation["description"].startswith("Takes the role ")
        assert {"200", "401", "403", "422"} <= operation["responses"].keys()
    assert "#/components/schemas/AlarmReport" in json.dumps(document["paths"])
    assert "AcknowledgeRequest" in document["components"]["schemas"]
