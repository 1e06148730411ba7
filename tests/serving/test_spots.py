"""A spot of a stored board over HTTP, and in words."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from inspect_vit.spot import LevelAtSpot, Spot
from serving.spots import spot_report
from tests.serving.boards import Boards

SEEN = Spot(
    scores={"open": 0.1, "short": 0.21},
    peaks={"open": 0.015, "short": 0.20996},
    label="short",
    score=0.21,
    gate_share={"4": 0.8, "16": 0.15, "32": 0.05},
    levels={
        "4": LevelAtSpot(1.4, 0.05),
        "16": LevelAtSpot(0.9, 0.44),
        "32": LevelAtSpot(1.0, 0.205),
    },
    difference=0.314,
)


def report(boards: Boards, seen: Spot = SEEN, **more: Any) -> Any:
    stored = boards.report().model_copy(update={"recipe": "panel", **more})
    return spot_report(stored, boards.result, (2, 2, 10, 14), seen)


def test_words_say_what_the_numbers_say(boards: Boards) -> None:
    found = report(boards)
    assert found.words == (
        "class short reached 0.21 here, its threshold is 0.4",
        "the 4 px level speaks most for it: without it the score is 0.05",
        "the 16 px level speaks against it: without it the score is 0.44",
        "the fusion takes 80 % from the 4 px level here",
        "the spot differs from the reference in 31 % of its pixels",
    )
    short, other = found.classes
    # A threshold of exactly 0.2099 lies under the peak, 0.2100 would not.
    assert (short.label, short.score, short.threshold, short.needed) == ("short", 0.21, 0.4, 0.2099)
    assert (other.label, other.needed) == ("open", None)
    assert [(one.level, one.attention, one.removed) for one in found.levels] == [
        ("4", 1.4, 0.05),
        ("16", 0.9, 0.44),
        ("32", 1.0, 0.205),
    ]


def test_a_threshold_is_offered_where_one_would_help(boards: Boards) -> None:
    assert report(boards).offers == ("example", "class", "threshold")
    assert report(boards, recipe=None).offers == ("example", "class"), "thresholds belong to recipes"
    called = dataclasses.replace(SEEN, scores={**SEEN.scores, "short": 0.9}, peaks=SEEN.scores, score=0.9)
    called = dataclasses.replace(called, peaks={"open": 0.01, "short": 0.9})
    assert report(boards, called).offers == ("example", "class")
    assert "it was called, or an ignore zone" in report(boards, called).words[0]
    nothing = dataclasses.replace(SEEN, peaks={"open": 0.01, "short": 0.01})
    assert report(boards, nothing).offers == ("example", "class")
    assert "no threshold that is of use" in report(boards, nothing).words[0]


def test_a_spot_is_looked_at_again_by_the_model(guarded: Any, board_png: bytes, reference_png: bytes) -> None:
    files = {"image": ("board.png", board_png), "reference": ("top.png", reference_png)}
    posted = guarded.call("POST", "/v1/inspect", "line", files=files, data={"options": '{"min_score": 0}'})
    made = posted.raise_for_status().json()
    call = made["defects"][0]
    left, top, right, bottom = call["box_xyxy"]
    box = f"{int(left)},{int(top)},{int(right) + 1},{int(bottom) + 1}"
    path = f"/v1/inspections/{made['id']}/spot"
    found = guarded.call("GET", f"{path}?box={box}", "operator").raise_for_status().json()
    score = {one["label"]: one for one in found["classes"]}[call["label"]]
    assert score["score"] >= call["score"] - 1e-4
    assert score["needed"] is None or score["needed"] <= score["score"]
    assert sum(found["gate_share"].values()) == pytest.approx(1.0, abs=1e-3)
    assert found["difference"] is not None
    assert found["offers"] == ["example", "class"]
    assert guarded.call("GET", f"{path}?box={box}", "line").status_code == 403


@pytest.mark.parametrize(
    "query",
    ["", "box=1,2,3", "box=5,5,5,9", "box=0,0,321,10", "box=-1,0,9,9", "box=0,0,nan,9", "box=0,0,9,9&size=3"],
)
def test_a_box_that_is_not_on_the_board_is_refused(guarded: Any, board_png: bytes, query: str) -> None:
    made = guarded.call("POST", "/v1/inspect", "line", files={"image": board_png}).json()
    answer = guarded.call("GET", f"/v1/inspections/{made['id']}/spot?{query}", "operator")
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_field"), answer.text
