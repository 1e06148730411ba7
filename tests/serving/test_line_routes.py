"""The line's figures, results of test, preview and challenge boards over HTTP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from inspect_vit.checkpoint import read_metadata
from inspect_vit.image_io import read_image
from tests.serving.conftest import encode

RECIPE = "challenged panel"
PATH = f"/v1/recipes/{RECIPE}/challenge"


@pytest.fixture(scope="module")
def inspect(
    guarded: Any, strict_calibration: Callable[..., dict[str, Any]], project: Path
) -> Iterator[Callable[[str], dict[str, Any]]]:
    """inspect(serial): another picture of the same board, by a recipe so strict that random weights call
    something on it."""
    calibration = strict_calibration(RECIPE, "without_reference")
    settings = {"board_mm": [180.0, 240.0], "calibration": calibration}
    made = guarded.call("PUT", f"/v1/recipes/{RECIPE}", "engineer", json=settings)
    assert made.status_code == 200, made.text
    board = read_image(project / "data_samples" / "board_01_test.png")[0][:160, :160]
    rng = np.random.default_rng(5)

    def post(serial: str) -> dict[str, Any]:
        noisy = (cv2.GaussianBlur(board, (0, 0), 0.5) + rng.normal(0, 2, board.shape)).clip(0, 255)
        answer = guarded.call(
            "POST",
            "/v1/inspect",
            "line",
            files={"image": encode(".png", noisy.astype(np.uint8))},
            data={"recipe": RECIPE, "serial": serial, "options": '{"min_score": 0.99}'},
        )
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    yield post
    guarded.call("DELETE", f"/v1/recipes/{RECIPE}", "engineer")


def put(guarded: Any, labels: list[str], **more: Any) -> Any:
    body = {"boards": [{"serial": "CHALLENGE", "labels": labels}], **more}
    return guarded.call("PUT", PATH, "engineer", json=body)


def test_a_challenge_board_that_is_not_called_stops_the_recipe(
    guarded: Any, inspect: Callable[[str], dict[str, Any]], tiny_checkpoint: Path
) -> None:
    assert guarded.call("GET", PATH, "operator").json() == {
        "recipe": RECIPE,
        "boards": [],
        "every_hours": None,
        "shown": None,
        "state": {"locked": False, "since": None, "why": "", "due": None},
    }
    assert put(guarded, ["short"]).status_code == 200
    seen = inspect("CHALLENGE")
    called = Counter(defect["label"] for defect in seen["defects"])
    assert called and called.total() == seen["num_defects"], "min_score hides no call of a challenge board"
    guarded.call("POST", f"{PATH}/clear", "engineer", json={"reason": "may be locked"})

    label = max(called)
    assert put(guarded, [label]).status_code == 200
    inspect("CHALLENGE")
    passed = guarded.call("GET", PATH, "operator").json()
    assert (passed["state"]["locked"], passed["shown"] is not None) == (False, True)
    assert inspect("plain 1")["verdict"] == "FAIL", "an open recipe inspects"

    rarest = min(read_metadata(tiny_checkpoint).model.class_names, key=lambda name: called[name])
    assert put(guarded, [rarest] * 50).status_code == 200
    shown = inspect("CHALLENGE")
    assert shown["verdict"] == "FAIL", "challenge boards are inspected, and this one is called too little"
    state = guarded.call("GET", PATH, "operator").json()["state"]
    assert state["locked"] and state["why"].startswith(f"challenge board 'CHALLENGE': {rarest}")
    stopped = inspect("plain 2")
    assert (stopped["verdict"], stopped["reasons"]) == ("ERROR", [f"recipe locked: {state['why']}"])
    assert (stopped["defects"], stopped["num_defects"]) == ([], 0)
    assert inspect("CHALLENGE")["verdict"] == "FAIL"

    clearing = {"json": {"reason": "lens cleaned"}}
    assert guarded.call("POST", f"{PATH}/clear", "operator", **clearing).status_code == 403
    assert guarded.call("POST", f"{PATH}/clear", "engineer", json={"reason": ""}).status_code == 422
    cleared = guarded.call("POST", f"{PATH}/clear", "engineer", **clearing).json()
    assert cleared["state"]["locked"] is False
    assert inspect("plain 3")["verdict"] == "FAIL"
    trail = guarded.call("GET", "/v1/audit", "admin", params={"action": "recipe_unlocked"}).json()
    assert trail["entries"][0]["details"]["reason"] == "lens cleaned"


def test_an_overdue_challenge_is_a_warning_of_every_board(
    guarded: Any, inspect: Callable[[str], dict[str, Any]]
) -> None:
    put(guarded, ["short"], every_hours=8)
    assert not [one for one in inspect("in time")["warnings"] if one.startswith("challenge")]
    put(guarded, ["short"], every_hours=1e-9)
    late = inspect("late")
    assert late["verdict"] == "FAIL", "a warning changes no verdict"
    assert [one for one in late["warnings"] if one.startswith("challenge overdue: ")]


def test_the_figures_count_the_line_and_no_challenge_boards(
    guarded: Any, inspect: Callable[[str], dict[str, Any]]
) -> None:
    def stats(**more: str) -> dict[str, Any]:
        answer = guarded.call("GET", "/v1/stats", "operator", params={"recipe": RECIPE, **more})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    before = stats()
    put(guarded, ["short"])
    inspect("CHALLENGE")
    guarded.call("POST", f"{PATH}/clear", "engineer", json={"reason": "a test"})
    inspect("counted")
    after = stats(bucket="hour")
    assert after["boards"]["inspected"] == before["boards"]["inspected"] + 1
    assert after["boards"]["challenge"] == before["boards"]["challenge"] + 1
    side = after["false_calls"]["rates"][1]
    assert side["of"] == pytest.approx(after["boards"]["inspected"] * 180 * 240 / 278_709.12)
    assert sum(point["boards"] for point in after["trend"]) == after["boards"]["first"]
    table = guarded.call("GET", "/v1/stats.csv", "operator", params={"recipe": RECIPE})
    assert table.headers["content-type"].startswith("text/csv")
    assert f"boards,inspected,{after['boards']['inspected']}," in table.text
    assert stats(until="2001-01-01")["boards"]["inspected"] == 0


def test_results_of_test_come_in_over_http(guarded: Any, inspect: Callable[[str], dict[str, Any]]) -> None:
    inspect("measured")

    def send(text: bytes, content_type: str = "text/csv; charset=utf-8") -> Any:
        headers = {"content-type": content_type}
        return guarded.call("POST", "/v1/test-results", "operator", content=text, headers=headers)

    assert send(b"serial,result\nmeasured,fail\nunknown to us,pass\n").json() == {
        "rows": 2,
        "matched": 1,
        "unmatched": 1,
        "unmatched_serials": ["unknown to us"],
        "escapes": [],
    }
    for text, words in [
        (b"serial,result\nmeasured,fail\nmeasured,fial\n", "line 3: result: 'fial'"),
        (b"serial,result\n\xff,fail\n", "byte 14 is not UTF-8"),
    ]:
        answer = send(text)
        assert (answer.status_code, words in answer.json()["error"]["message"]) == (422, True), answer.text
    assert send(b"serial,result\n", "application/json").status_code == 422


def test_the_preview_knows_the_thresholds_in_force(
    guarded: Any, inspect: Callable[[str], dict[str, Any]], tiny_checkpoint: Path
) -> None:
    found = guarded.call("GET", f"/v1/recipes/{RECIPE}/preview", "operator").json()
    assert [one["label"] for one in found["classes"]] == list(
        read_metadata(tiny_checkpoint).model.class_names
    )
    assert {one["threshold"] for one in found["classes"]} == {0.0101}, "those of the recipe's calibration"
    assert (found["boards"], found["reference_mode"]) == (0, "without_reference")
    one = guarded.call("GET", f"/v1/recipes/{RECIPE}/preview", "operator", params={"label": "short"}).json()
    assert [each["label"] for each in one["classes"]] == ["short"]
    assert guarded.call("GET", "/v1/recipes/not there/preview", "operator").status_code == 404


@pytest.mark.parametrize(
    "query",
    [
        "since=yesterday",
        "until=0001-01-01T00:00:00%2B14:00",
        "since=2026-01-02&until=2026-01-01",
        "since=2026-01-01&until=2026-03-01&bucket=hour",
        "since=2020-01-01&until=2026-01-01",
        "bucket=week",
        "model=x",
    ],
)
def test_a_span_that_cannot_be_meant_is_refused(guarded: Any, query: str) -> None:
    for path in ("/v1/stats", "/v1/stats.csv"):
        answer = guarded.call("GET", f"{path}?{query}", "operator")
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_field"), answer.text
