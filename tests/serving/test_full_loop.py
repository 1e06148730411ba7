"""The whole way of a new class through a real server and the real commands: people draw it on ten boards, a
model learns it, the gate judges, it goes live under load, finds the defect on fresh boards, is taken back.

The new class is a missing hole, which the model shipped for DeepPCB does not know: some it calls short, the
others it passes. The boards are drawn by the project's own generator.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from inspect_vit.results import Sample
from serving.config import ServingConfig
from serving.keys import create_key
from serving.roles import ANYONE, Role
from serving.store import Store
from tests.serving.conftest import Server, StartServer
from tests.serving.load import Line
from training.formats.coco import read_coco
from training.pairs import DefectPlan
from training.synthesise import synthesise

NEW = "missing-hole"
TAUGHT, FRESH, OLD = 10, 3, 14
"""Boards with the new class that people review, those nobody has seen, and reviewed boards without it."""
QUICK = {
    **{"part": "branch", "steps": 200, "new_crops": 80, "pasted_boards": 30, "pasted_crops": 100},
    **{"replay_crops": 80, "measured_boards": 4},
}
"""Of the job: with the encoder as it is, and few crops, so what the model knew stays as it was. Of 25 holes
on twelve fresh boards seeds 0, 1 and 2 found 24, 24 and 23 from deeppcb-nano fe2f605cefdc; the corner cuts
the one that all of them missed.
"""
MIN_IOU = 0.33
PATIENCE_S = 1200.0
Box = Sequence[float]


@dataclass
class Plant:
    """A server with a key of each role, and all reports that it answered: version by id."""

    server: Server
    keys: dict[str, str]
    told: dict[str, str] = field(default_factory=dict)

    def call(self, role: str, method: str, path: str, **more: Any) -> httpx.Response:
        answer = self.server.client.request(method, path, headers={"x-api-key": self.keys[role]}, **more)
        assert answer.status_code < 300, (method, path, answer.text)
        return answer

    def inspect(self, sample: Sample, serial: str) -> dict[str, Any]:
        assert sample.reference is not None
        files = {"image": sample.image.read_bytes(), "reference": sample.reference.read_bytes()}
        report: dict[str, Any] = self.call(
            "line", "POST", "/v1/inspect", files=files, data={"serial": serial}
        ).json()
        self.told[report["id"]] = report["model"]["version"]
        return report

    def review(self, report: dict[str, Any], sample: Sample) -> None:
        """Say what is true of each call, draw what was missed, and send a bad board to rework."""
        truth = list(zip(sample.labels, sample.boxes.tolist(), strict=True))
        calls = []
        for call in report["defects"]:
            found = [one for one in truth if iou(one[1], call["box_xyxy"]) > MIN_IOU]
            said = ("real", found[0][0]) if found else ("false_call", call["label"])
            calls.append({"defect": call["id"], "word": said[0], "label": said[1]})
            truth = [one for one in truth if one not in found]
        missed = [{"label": label, "box_xyxy": box, "polygon": None} for label, box in truth]
        path = f"/v1/inspections/{report['id']}"
        body = {"expects": 0, "calls": calls, "missed": missed, "checked": True}
        review = self.call("operator", "POST", f"{path}/verifications", json=body).json()
        if review["final"] == "bad":
            done = {"expects": review["revision"], "disposition": "rework", "note": ""}
            review = self.call("operator", "POST", f"{path}/disposition", json=done).json()
        assert (review["state"], review["hasty"]) == ("done", False), review

    def job(self, path: str, **asked: Any) -> tuple[dict[str, Any], list[str]]:
        """A job that the engineer starts, once it has ended, and the stages it was seen in."""
        job: dict[str, Any] = self.call("engineer", "POST", path, json=asked).json()
        stages, deadline = dict[str, float](), time.monotonic() + PATIENCE_S
        while job["state"] in ("waiting", "running"):
            assert time.monotonic() < deadline, job
            time.sleep(0.25)
            job = self.call("operator", "GET", f"/v1/jobs/{job['id']}").json()
            if progress := job["progress"]:
                assert progress["done"] >= stages.get(progress["stage"], 0), "it never goes back"
                stages[progress["stage"]] = progress["done"]
        return job, list(stages)

    def model(self, version: str) -> dict[str, Any]:
        found: dict[str, Any] = self.call("operator", "GET", f"/v1/models/{version}").json()
        return found

    def stored(self) -> dict[str, str]:
        """Version by id of every inspection that is kept."""
        found: dict[str, str] = {}
        link = "/v1/inspections?limit=200"
        while link:
            page = self.call("operator", "GET", link).json()
            found |= {each["id"]: each["model"]["version"] for each in page["inspections"]}
            link = page["next"]
        return found

    def audited(self, action: str) -> list[dict[str, Any]]:
        entries = self.call("admin", "GET", f"/v1/audit?action={action}").json()["entries"]
        return list(entries)


@pytest.fixture
def plant(start_server: StartServer, project: Path, tmp_path: Path) -> Iterator[Plant]:
    home = tmp_path / "home"
    with contextlib.closing(Store(ServingConfig(home=home))) as store:
        keys = {
            role.value: create_key(store.engine, role.value, role, by=ANYONE)
            for role in (Role.LINE, Role.OPERATOR, Role.ENGINEER, Role.ADMIN)
        }
    shipped = project / "inspect_vit" / "weights" / "deeppcb-nano.safetensors"
    running = start_server(home, shipped, KEYS="on", JOB_NICE="0")
    yield Plant(running, keys)
    running.stop()


def draw(folder: Path, kinds: Sequence[str], *, count: int, seed: int, good_share: float) -> list[Sample]:
    plan = DefectPlan(kinds=dict.fromkeys(kinds, 1.0), count=(2, 4), good_share=good_share)
    synthesise(folder, count=count, size=320, seed=seed, plan=plan, workers=1)
    return list(read_coco(folder).samples)


def iou(a: Box, b: Box) -> float:
    width, height = (min(a[k + 2], b[k + 2]) - max(a[k], b[k]) for k in (0, 1))
    shared = max(width, 0.0) * max(height, 0.0)
    return shared / (sum((c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)) - shared)


def found_holes(report: dict[str, Any], sample: Sample) -> int:
    """Holes of a board that are called by their name where they are."""
    called = [one["box_xyxy"] for one in report["defects"] if one["label"] == NEW]
    return sum(any(iou(box, one) > MIN_IOU for one in called) for box in sample.boxes.tolist())


@pytest.mark.timeout(2400)
def test_a_class_is_drawn_learnt_judged_promoted_found_and_taken_back(plant: Plant, tmp_path: Path) -> None:
    base = next(one for one in plant.call("operator", "GET", "/v1/models").json()["models"])["version"]
    holes = [one for one in draw(tmp_path / "new", (NEW,), count=40, seed=41, good_share=0) if one.labels]
    taught, fresh = holes[:TAUGHT], holes[TAUGHT : TAUGHT + FRESH]
    assert (len(taught), len(fresh)) == (TAUGHT, FRESH)
    old = draw(tmp_path / "old", tuple(plant.model(base)["classes"]), count=OLD, seed=42, good_share=0.25)

    # 1. The boards come by the line, and a person draws what the model cannot name.
    for prefix, samples in (("SN", taught), ("N", old)):
        for number, sample in enumerate(samples):
            report = plant.inspect(sample, f"{prefix}-{number}")
            assert NEW not in {one["label"] for one in report["defects"]}
            plant.review(report, sample)
    assert set(plant.told.values()) == {base}
    preview = plant.call("operator", "GET", "/v1/datasets/preview").json()
    parts = preview["pictures"]
    assert (sum(parts.values()), preview["left_out"]) == (TAUGHT + OLD, {})
    page = plant.call("operator", "GET", f"/v1/examples?label={NEW}").json()
    assert sum(page["counts"][NEW].values()) == sum(len(one.labels) for one in taught)
    assert {one["kind"] for one in page["examples"]} == {"missed", "reclassified"}
    assert len({one["serial"] for one in page["examples"]}) == TAUGHT

    # 2. A job learns it. One that was asked for with a slip of the pen says so.
    slip, _ = plant.job("/v1/retrain", add=[NEW], settings={"step": 80})
    assert (slip["state"], slip["result"]) == ("failed", None)
    assert "step: Extra inputs are not permitted" in slip["reason"]
    job, stages = plant.job("/v1/retrain", add=[NEW], settings=QUICK)
    assert job["state"] == "done", (job, plant.call("engineer", "GET", job["links"]["log"]).text)
    assert "learning" in stages
    assert (job["request"]["base"], job["request"]["settings"]) == (base, QUICK)
    candidate, table = job["result"]["version"], job["result"]["table"]
    rows = {row["label"]: row for row in table["classes"]}
    assert table["version"] == candidate
    assert table["examples"][NEW] + rows[NEW]["n"] == page["counts"][NEW]["train"]
    assert list(rows) == [*plant.model(base)["classes"], NEW]
    assert [label for label, row in rows.items() if row["is_new"]] == [NEW]
    made = plant.model(candidate)
    assert (made["parent"], made["stage"], made["is_default"]) == (base, "candidate", False)
    assert (made["classes"], made["report"]) == (list(rows), table)
    sets = plant.call("operator", "GET", "/v1/datasets").json()["datasets"]
    assert [(one["fingerprint"], one["pictures"]) for one in sets] == [(job["dataset"], parts)]

    # 3. The gate: so few boards show no loss, and prove nothing. Nobody goes live on that alone.
    path = f"/v1/models/{candidate}/promote"
    judged, _ = plant.job(path)
    check_gate(judged, base, candidate, preview)
    assert plant.model(base)["is_default"]
    assert plant.audited("model_promoted") == []

    # 4. to 6. Live, tried and taken back while the line posts.
    line = Line(plant.server, headers={"x-api-key": plant.keys["line"]})
    reason = f"{TAUGHT} boards with missing holes are found, and none is newly missed"
    with line.posting(old[0].image.read_bytes(), clients=2):
        line.wait_for(base, since=0.0)
        begun = time.monotonic()
        promoted, _ = plant.job(path, override=True, reason=reason)
        assert (promoted["state"], promoted["result"]["is_promoted"]) == ("done", True)
        line.wait_for(candidate, since=begun)
        live = [plant.inspect(sample, f"F-{number}") for number, sample in enumerate(fresh)]
        taking_back = time.monotonic()
        answer = plant.call(
            "engineer", "POST", f"/v1/models/{candidate}/rollback", json={"reason": "end of the trial"}
        )
        taken_back = time.monotonic()
        assert (answer.json()["version"], answer.json()["replaced"]) == (base, candidate)
        line.wait_for(base, since=taken_back)
        after = [plant.inspect(sample, f"F-{number}") for number, sample in enumerate(fresh)]
    found = [found_holes(report, sample) for report, sample in zip(live, fresh, strict=True)]
    assert min(found) > 0
    assert sum(found) >= 0.75 * sum(len(sample.labels) for sample in fresh), "the picture's edge cuts some"
    assert {report["model"]["version"] for report in live} == {candidate}
    assert {report["model"]["version"] for report in after} == {base}
    assert NEW not in {one["label"] for report in after for one in report["defects"]}

    assert {status for _, _, status, _ in line.answers} == {200}
    swapped = min(end for _, end, _, version in line.answers if version == candidate)
    assert {v for _, end, _, v in line.answers if end < begun} == {base}
    assert {v for start, end, _, v in line.answers if start > swapped and end < taking_back} == {candidate}
    assert {v for start, _, _, v in line.answers if start > taken_back} == {base}

    # What is kept names the version that made it, for good.
    stored = plant.stored()
    assert stored.items() >= plant.told.items()
    assert Counter(stored.values()) == Counter(plant.told.values()) + Counter(v for *_, v in line.answers)
    (entry,) = plant.audited("model_promoted")
    assert (entry["actor"], entry["object"]) == ("engineer", candidate)
    assert {key: entry["details"][key] for key in ("replaced", "reason", "override", "gate")} == {
        **{"replaced": base, "reason": reason, "override": True, "gate": "insufficient"},
    }
    (entry,) = plant.audited("model_rolled_back")
    assert (entry["actor"], entry["object"], entry["details"]["replaced"]) == ("engineer", base, candidate)
    (deed,) = (one for one in plant.model(candidate)["history"] if one["deed"] == "promoted")
    assert (deed["actor"], deed["override"], deed["reason"]) == ("engineer", True, reason)


def check_gate(job: dict[str, Any], base: str, candidate: str, preview: dict[str, Any]) -> None:
    """That a promotion was held off for want of boards, and says of how many: the reviewed ones tell."""
    result, gate = job["result"], job["result"]["gate"]
    assert (job["state"], result["is_promoted"], result["gate_result"]) == ("done", False, "insufficient")
    assert (gate["base"]["version"], gate["candidate"]["version"]) == (base, candidate)
    assert gate["data"]["boards"] == preview["pictures"]["acceptance"]
    # The smallest n for which none of n has a chance of 5 % where one in fifty is lost: 0.98^149 < 0.05.
    enough = 149
    assert 0.98**enough < 1 - gate["confidence"] < 0.98 ** (enough - 1)
    assert gate["margin"] == 0.02
    for one in gate["classes"]:
        assert one["num_defects"] == preview["classes"].get(one["label"], {"acceptance": 0})["acceptance"]
        assert (one["result"], one["boards_newly_missed"]) == ("insufficient", 0)
        assert one["needs"] == enough - one["num_boards"]
        if one["needs"] < enough:
            assert f"needs {one['needs']} more" in job["reason"]
    calls = gate["false_calls"]
    assert (calls["newly"], calls["needs"]) == (0, enough - gate["data"]["boards"])
    (new,) = gate["new_classes"]
    assert (new["label"], new["num_defects"]) == (NEW, preview["classes"][NEW]["acceptance"])
    assert 0.8 * new["num_defects"] <= new["found"] <= new["num_defects"]
    assert new["num_defects"] > 0
