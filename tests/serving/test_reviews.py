"""Reviews over HTTP: who may speak, what is answered, and what metrics and the audit trail say."""

from __future__ import annotations

import re
from typing import Any

import pytest

from serving.review_schemas import Review


@pytest.fixture(scope="module")
def report(guarded: Any, board_png: bytes) -> Any:
    """An inspection that lists calls, as every score counts."""
    data = {"serial": "reviewed", "options": '{"min_score": 0.0}'}
    answer = guarded.call("POST", "/v1/inspect", "line", files={"image": board_png + b"reviewed"}, data=data)
    assert answer.json()["defects"], answer.text
    return answer.json()


def metric(guarded: Any, line: str) -> float:
    found = re.search(
        rf"^{re.escape(line)} (\S+)$", guarded.call("GET", "/metrics", "line").text, re.MULTILINE
    )
    return float(found[1]) if found else 0.0


def test_an_operator_reviews_a_board_from_end_to_end(guarded: Any, report: Any) -> None:
    base = f"/v1/inspections/{report['id']}"
    false_calls = metric(guarded, 'inspect_vit_review_words_total{word="false_call"}')
    missed = metric(guarded, 'inspect_vit_review_words_total{word="missed"}')
    reworks = metric(guarded, 'inspect_vit_dispositions_total{disposition="rework"}')
    calls = [{"defect": one["id"], "word": "false_call", "label": one["label"]} for one in report["defects"]]
    body = {"expects": 0, "calls": calls, "missed": [], "checked": True}
    body["missed"] = [{"label": "scratch", "polygon": [[1, 1], [20, 1], [20.5, 9]]}]
    for method, path, more in (
        ("GET", f"{base}/review", {}),
        ("POST", f"{base}/verifications", {"json": body}),
        ("POST", f"{base}/disposition", {"json": {"expects": 0, "disposition": "scrap"}}),
    ):
        assert guarded.call(method, path, "line", **more).status_code == 403, "not even of its own board"
    answers = [guarded.call("POST", f"{base}/verifications", "operator", json=body) for _ in range(2)]
    review = Review.model_validate_json(answers[0].text)
    assert answers[1].json() == answers[0].json(), "sent again as after a lost answer"
    assert (review.revision, review.state, review.final, review.actor) == (1, "open", "bad", "operator")
    refused = guarded.call("POST", f"{base}/verifications", "engineer", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "conflict")
    assert "verification by operator at 20" in refused.json()["error"]["hint"]
    disposition = {"expects": 1, "disposition": "rework", "note": "line 1\nline 2"}
    done = guarded.call("POST", f"{base}/disposition", "engineer", json=disposition).json()
    assert (done["revision"], done["state"], done["note"]) == (2, "done", "line 1\nline 2")
    assert guarded.call("GET", f"{base}/review", "operator").json() == done
    earlier = [guarded.call("GET", f"{base}/review?revision={n}", "operator").json() for n in range(3)]
    assert (earlier[0]["calls"], earlier[0]["history"], earlier[0]["state"]) == ([], [], "open")
    # So many false calls at once were asked back; what was said then is told without the question.
    assert earlier[1] == {**answers[0].json(), "hasty": False, "question": ""}
    assert earlier[2] == done
    assert guarded.call("GET", f"{base}/review?revision=3", "operator").status_code == 404
    assert guarded.call("GET", f"{base}/review?revision=-1", "operator").status_code == 422
    counted = 'inspect_vit_review_words_total{word="false_call"}'
    assert metric(guarded, counted) == false_calls + len(calls), "counted once"
    assert metric(guarded, 'inspect_vit_review_words_total{word="missed"}') == missed + 1
    assert metric(guarded, 'inspect_vit_dispositions_total{disposition="rework"}') == reworks + 1
    trail = guarded.call("GET", "/v1/audit?limit=200", "admin").json()["entries"]
    mine = [one for one in trail if one["object"] == f"inspection {report['id']}"]
    assert [(one["action"], one["actor"]) for one in mine] == [
        ("disposition_set", "engineer"),
        ("inspection_verified", "operator"),
    ]
    assert mine[1]["details"]["words"] == {"false_call": len(calls), "missed": 1}
    assert mine[0]["model_version"] == report["model"]["version"]


@pytest.mark.parametrize(
    ("path", "sent", "status", "words"),
    [
        ("verifications", {}, 422, "expects: Field required"),
        (
            "verifications",
            {"json": {"expects": "0", "calls": [], "missed": [], "checked": True}},
            422,
            "expects",
        ),
        ("verifications", {"json": {"expects": 0, "calls": [], "missed": [], "checked": 1}}, 422, "checked"),
        (
            "verifications",
            {"json": {"expects": -1, "calls": [], "missed": [], "checked": True}},
            422,
            "expects",
        ),
        ("verifications", {"content": b"[" * 100_000}, 422, "content-type"),
        ("verifications", {"content": b" " * 1_000_001}, 422, "more than 1000000 bytes"),
        ("disposition", {"json": {"expects": 0, "disposition": "sell"}}, 422, "disposition"),
        ("disposition", {"json": {"expects": 0, "disposition": None, "note": "x" * 2001}}, 422, "note"),
        ("disposition", {"json": {"expects": 0, "disposition": None, "who": "me"}}, 422, "who"),
        ("disposition?expects=0", {}, 422, "'expects' is not a query parameter"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    guarded: Any, report: Any, path: str, sent: dict[str, Any], status: int, words: str
) -> None:
    answer = guarded.call("POST", f"/v1/inspections/{report['id']}/{path}", "operator", **sent)
    assert (answer.status_code, words in answer.json()["error"]["message"]) == (status, True), answer.text


def test_an_inspection_that_is_not_there_is_said_to_be(guarded: Any) -> None:
    for method, path in (("GET", "review"), ("POST", "verifications"), ("POST", "disposition")):
        answer = guarded.call(method, f"/v1/inspections/{'0' * 32}/{path}", "operator")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
