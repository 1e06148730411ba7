"""Data sets, examples and jobs over HTTP, with the real commands behind them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from serving.dataset_schemas import Dataset, DatasetPage, DatasetPreview, ExamplePage
from serving.job_schemas import CurvesReport, Job, JobPage

PATIENCE_S = 240.0


@pytest.fixture(scope="module")
def drawn(guarded: Any, board_png: bytes) -> list[str]:
    """Boards of a recipe on which an operator drew a scratch: some of either part of the split."""
    guarded.call("PUT", "/v1/recipes/learnt", "admin", files={"recipe": (None, "{}")}).raise_for_status()
    made = []
    for n in range(8):
        data = {"serial": f"learnt-{n}", "recipe": "learnt"}
        files = {"image": ("b.png", board_png + b"learnt %d" % n)}
        report = guarded.call("POST", "/v1/inspect", "line", files=files, data=data).raise_for_status().json()
        calls = [
            {"defect": one["id"], "word": "process_indicator", "label": one["label"]}
            for one in report["defects"]
        ]
        body = {"expects": 0, "calls": calls, "checked": True}
        body["missed"] = [{"label": "scratch", "box_xyxy": [10, 10, 60, 30]}]
        path = f"/v1/inspections/{report['id']}"
        guarded.call("POST", f"{path}/verifications", "operator", json=body).raise_for_status()
        done = {"expects": 1, "disposition": "scrap"}
        guarded.call("POST", f"{path}/disposition", "operator", json=done).raise_for_status()
        made.append(report["id"])
    return made


def test_drawn_boards_are_examples_and_a_data_set(guarded: Any, drawn: list[str]) -> None:
    answer = guarded.call("GET", "/v1/examples?label=scratch&recipe=learnt&limit=3", "operator")
    page = ExamplePage.model_validate_json(answer.text)
    assert [one.inspection for one in page.examples] == drawn[:-4:-1]
    assert guarded.call("GET", page.examples[0].crop, "operator").headers["content-type"] == "image/png"
    counts = page.counts["scratch"]
    assert counts.train + counts.acceptance == 8
    assert counts.train
    preview = DatasetPreview.model_validate_json(
        guarded.call("GET", "/v1/datasets/preview?recipe=learnt&labels=scratch", "operator").text
    )
    assert preview.classes["scratch"] == counts
    body = {"recipe": "learnt"}
    assert guarded.call("POST", "/v1/datasets", "operator", json=body).status_code == 403
    made = [
        Dataset.model_validate_json(guarded.call("POST", "/v1/datasets", "engineer", json=body).text)
        for _ in range(2)
    ]
    assert made[0] == made[1]
    assert made[0].folder == f"datasets/{made[0].fingerprint}"
    assert (guarded.server.home / made[0].folder / "train" / "annotations.coco.json").is_file()
    listed = DatasetPage.model_validate_json(guarded.call("GET", "/v1/datasets", "operator").text)
    assert made[0] in listed.datasets
    entries = guarded.call("GET", "/v1/audit?action=dataset_exported", "admin").json()["entries"]
    assert {e["actor"] for e in entries if e["object"] == made[0].fingerprint} == {"engineer"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"add": ["burr"], "data": {"recipe": "learnt"}}, "add.0: 0 examples of 'burr'"),
        ({"add": ["scratch"], "data": {"until": "2001-01-01"}}, "there are none of any class"),
        ({"add": ["scratch"], "data": {"since": "yesterday"}}, "data.since"),
        ({"add": [" "]}, "add.0"),
        ({"add": ["scratch"], "steps": 3}, "steps"),
        ({"add": ["scratch"], "settings": {"threads": 64}}, "settings.threads: 64, wanted none"),
        ({"add": ["scratch"], "settings": {"replay_crops": 10**9}}, "settings.replay_crops: wanted true or"),
        ({"add": ["scratch"], "settings": {"optim": {"lr": 1}}}, "settings.optim: wanted true or false, a"),
        ({"add": ["scratch"], "settings": {"data.root": "/etc"}}, "settings.data.root"),
        ({"add": ["scratch"], "settings": {"steps=3 --out": 1}}, "settings.steps=3 --out"),
        ({"retire": ["open"], "settings": {"steps": 3}}, "settings: nothing is learnt"),
        ({}, "add: nothing"),
    ],
)
def test_a_request_that_cannot_work_is_refused_with_its_field(
    guarded: Any, drawn: list[str], body: dict[str, Any], words: str
) -> None:
    answer = guarded.call("POST", "/v1/retrain", "engineer", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_field")
    assert words in answer.json()["error"]["message"]


def test_a_rename_becomes_a_candidate_through_the_real_command(guarded: Any) -> None:
    """The service starts it, shows how far it is, and has its log, without a folder of the machine."""
    models = guarded.call("GET", "/v1/models", "operator").json()["models"]
    base = next(one for one in models if one["is_default"])
    asked = {"rename": {base["classes"][0]: "whisker"}, "note": "as the others say"}
    assert guarded.call("POST", "/v1/retrain", "operator", json=asked).status_code == 403
    answer = guarded.call("POST", "/v1/retrain", "engineer", json=asked)
    assert answer.status_code == 202
    job = Job.model_validate_json(answer.text)
    assert (job.state, job.actor, job.request["base"]) == ("waiting", "engineer", base["version"])
    link, deadline = f"/v1/jobs/{job.id}", time.monotonic() + PATIENCE_S
    while job.state in ("waiting", "running") and time.monotonic() < deadline:
        time.sleep(0.1)
        job = Job.model_validate_json(guarded.call("GET", link, "operator").text)
    log = guarded.call("GET", job.links.log, "engineer")
    assert job.state == "done", (job, log.text)
    assert job.result is not None
    found = guarded.call("GET", f"/v1/models/{job.result.version}", "operator").json()
    assert (found["parent"], found["classes"][0], found["stage"]) == (base["version"], "whisker", "candidate")
    assert log.headers["content-type"].startswith("text/plain")
    assert str(guarded.server.home) not in log.text
    assert guarded.call("GET", job.links.log, "operator").status_code == 403
    curves = guarded.call("GET", job.links.curves, "operator")
    assert CurvesReport.model_validate_json(curves.text).points == ()
    page = JobPage.model_validate_json(guarded.call("GET", "/v1/jobs?state=done&limit=1", "operator").text)
    assert [one.id for one in page.jobs] == [job.id]
    for method, path in (("DELETE", link), ("POST", f"{link}/resume")):
        refused = guarded.call(method, path, "engineer")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "job_state")


def test_a_version_in_production_is_not_promoted_again(guarded: Any) -> None:
    models = guarded.call("GET", "/v1/models", "operator").json()["models"]
    version = next(one for one in models if one["is_default"])["version"]
    path = f"/v1/models/{version}/promote"
    refused = guarded.call("POST", path, "engineer", json={"reason": "again"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "model_refused")
    refused = guarded.call("POST", path, "engineer", json={"override": True})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "bad_field")
    unknown = guarded.call("POST", f"/v1/models/{'0' * 12}/promote", "engineer", json={})
    assert unknown.status_code == 404
    assert json.loads(unknown.text)["error"]["code"] == "not_found"
