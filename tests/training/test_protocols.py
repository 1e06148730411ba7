"""The protocols on a record made by hand, the record on disk, and the written report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from inspect_vit.errors import ConfigError
from inspect_vit.matching import Detections, Truths, match_images
from training.protocols import build_report, threshold_at_recall
from training.record import Record, Run, load_record, save_record
from training.report import report_record

RECORD_NAME = "detections.npz"
A, B = 0, 1
LEFT, RIGHT, FAR = (0, 0, 10, 10), (20, 0, 30, 10), (80, 80, 90, 90)


def detections(*rows: tuple[tuple[float, ...], float, int]) -> Detections:
    boxes, scores, labels = zip(*rows, strict=True) if rows else ((), (), ())
    return Detections(
        np.array(boxes, np.float32).reshape(-1, 4), np.array(scores, np.float32), np.array(labels, np.int64)
    )


def truths(*rows: tuple[tuple[float, ...], int]) -> Truths:
    boxes, labels = zip(*rows, strict=True) if rows else ((), ())
    return Truths(np.array(boxes, np.float32).reshape(-1, 4), np.array(labels, np.int64))


def run(*calls: Detections) -> Run:
    number = np.arange(1.0, len(calls) + 1)
    return Run(list(calls), np.zeros(len(calls), np.bool_), {"model": 30 * number, "decode": 10 * number})


@pytest.fixture
def record() -> Record:
    """Two boards with two defects each. With the reference three of the four are found, without it one."""
    reliable = (
        detections((LEFT, 0.9, A), (RIGHT, 0.8, B), (FAR, 0.3, A)),
        detections((LEFT, 0.7, A), (RIGHT, 0.6, A), (FAR, 0.55, B)),
    )
    return Record(
        model={"name": "m", "version": "v1", "created": "2025", "git_revision": "", "data_fingerprint": ""},
        class_names=("a", "b", "c"),
        thresholds={
            "with_reference": {"a": 0.5, "b": 0.5, "c": 0.5},
            "without_reference": {"a": 0.5, "b": 0.95, "c": 0.5},
        },
        data_set="DeepPCB",
        px_per_mm=48.0,
        split="test",
        split_size=500,
        fingerprint="0123456789ab",
        as_posted=False,
        seed=0,
        command="inspect-vit evaluate --checkpoint m",
        images=("1.jpg", "2.jpg"),
        groups=("00041", "12000"),
        truths=[truths((LEFT, A), (RIGHT, B)), truths((LEFT, A), (RIGHT, B))],
        sizes_px=np.array([[640, 640], [640, 640]]),
        true_sizes_px=np.array([[5, 0], [8, 7], [12, 9], [30, 29]]),
        runs={
            "with_reference": run(*reliable),
            "without_reference": run(detections((LEFT, 0.9, A), (RIGHT, 0.9, B)), detections()),
            "templates": run(detections((FAR, 0.94, B)), detections((FAR, 0.6, A))),
            "reimaged_templates": run(detections((FAR, 0.2, A)), detections((FAR, 0.4, A))),
            "reference_shifted_2px": run(detections((LEFT, 0.9, A)), detections()),
        },
    )


def test_report_of_the_hand_made_record(record: Record) -> None:
    report = build_report(record)
    assert report["data"]["defects"] == 4
    aided, alone = report["modes"]["with_reference"], report["modes"]["without_reference"]

    # By score: hit, hit, hit, wrong class, call on nothing, another on nothing; four defects.
    assert aided["quality"]["shipped"]["ap"] == pytest.approx(3 / 4)
    assert aided["quality"]["shipped"]["deployed"]["f_score"] == pytest.approx(2 * 3 / (5 + 4))
    assert aided["misses"]["miss_rate"]["count"] == 1
    assert aided["misses"]["escape_rate"]["count"] == 0
    # Without a reference only the first call reaches its threshold: b needs 0.95.
    assert alone["quality"]["shipped"]["deployed"]["true_positives"] == 1
    assert (alone["misses"]["escape_rate"]["count"], alone["misses"]["boards_passed"]["count"]) == (3, 1)

    point = aided["operating_points"][0]
    assert (point["outside"]["count"], point["outside_per_class"]) == (1, {"a": 0, "b": 1, "c": 0})
    assert point["clean_boards_flagged"]["count"] == 0
    assert alone["operating_points"][0]["clean_boards_flagged"]["count"] == 1
    assert [p["reached"] for p in aided["operating_points"]] == [True, False, False, True, True]
    # Two pictures: two calls outside are one per picture, one is more than a tenth.
    bearable, strict = aided["operating_points"][3:]
    assert (bearable["outside"]["count"], bearable["threshold"]) == (2, pytest.approx(0.3))
    assert (bearable["found"]["count"], bearable["true_positives"]) == (4, 3)
    assert (strict["outside"]["count"], strict["threshold"]) == (0, pytest.approx(0.6))


def test_recall_by_true_size_parts_the_defects_under_each_opening(record: Record) -> None:
    rows = build_report(record)["modes"]["with_reference"]["recall_by_true_size"]
    counts = [
        (row["recall"]["count"], row["found"]["count"], row["recall"]["n"]) for row in rows["opening_2x2"]
    ]
    names = [row["size"] for row in rows["opening_2x2"]]
    assert names == ["nothing left", "<= 8 px", "9-12 px", "13-16 px", "> 16 px"]
    # The defect of 30 px was called under the wrong class.
    assert counts == [(0, 0, 0), (2, 2, 2), (1, 1, 1), (0, 0, 0), (0, 1, 1)]
    small = rows["opening_3x3"][1]
    assert (small["recall"]["count"], small["recall"]["n"]) == (1, 1)
    assert small["recall_per_class"]["b"]["n"] == 1
    assert sum(row["recall"]["n"] for row in rows["opening_3x3"]) == 4


def test_seen_and_unseen_boards_and_shifts_are_reported_apart(record: Record) -> None:
    report = build_report(record)
    boards = report["modes"]["with_reference"]["boards"]
    assert (boards["seen"]["images"], boards["seen"]["ap"]) == (1, 1.0)
    # Board 2: hit, wrong class, call on nothing; two defects.
    assert (boards["unseen"]["images"], boards["unseen"]["ap"]) == (1, 0.5)
    assert boards["unseen"]["outside"]["count"] == 1
    base, moved = report["reference_moves"]
    assert (base["moved"], moved["moved"]) == ("0", "2 px")
    assert (moved["ap"], moved["ap_loss"]) == pytest.approx((1 / 4, 3 / 4 - 1 / 4))
    assert build_report(replace(record, split="trainval"))["modes"]["with_reference"]["boards"] == {}


def test_time_is_reported_per_stage(record: Record) -> None:
    timings = build_report(record)["modes"]["with_reference"]["timings_ms"]
    assert timings["model"] == pytest.approx({"mean": 45, "median": 45, "p95": 58.5, "share": 0.75, "n": 2})
    assert timings["total"]["mean"] == pytest.approx(60)


def test_threshold_at_recall(record: Record) -> None:
    matches = match_images(record.runs["with_reference"].detections, record.truths)
    assert threshold_at_recall(matches, 0.5) == pytest.approx(0.8)
    assert threshold_at_recall(matches, 0.51) == pytest.approx(0.7)
    assert threshold_at_recall(matches, 0.76) is None


def test_recall_target_lowers_the_threshold_on_clean_boards_too(record: Record) -> None:
    calls = record.runs["without_reference"].detections
    found = run(calls[0], detections((LEFT, 0.62, A), (RIGHT, 0.59, B)))
    report = build_report(replace(record, runs=record.runs | {"without_reference": found}))
    point = report["modes"]["without_reference"]["operating_points"][2]
    assert (point["name"], point["recall"]) == ("recall >= 0.98", 1.0)
    assert point["threshold"] == pytest.approx(0.59)
    assert point["clean_boards_flagged"]["count"] == 2


def test_record_survives_the_disk(record: Record, tmp_path: Path) -> None:
    save_record(tmp_path / RECORD_NAME, record)
    assert [path.name for path in tmp_path.iterdir()] == [RECORD_NAME]
    loaded = load_record(tmp_path / RECORD_NAME)
    assert loaded.describes_same_work(record)
    assert not loaded.describes_same_work(replace(record, model=record.model | {"version": "v2"}))
    assert flat(build_report(loaded)) == pytest.approx(flat(build_report(record)), nan_ok=True)


def flat(tree: Any, path: str = "") -> dict[str, Any]:
    if isinstance(tree, dict | list | tuple):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        return {key: value for name, branch in items for key, value in flat(branch, f"{path}/{name}").items()}
    return {path: tree}


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"no archive at all"])
def test_a_damaged_record_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / RECORD_NAME
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="detections"):
        load_record(path)
    with pytest.raises(ConfigError, match="cannot read the detections"):
        load_record(tmp_path / "absent.npz")


def test_written_report_has_finite_numbers_every_n_and_the_command(record: Record, tmp_path: Path) -> None:
    save_record(tmp_path / RECORD_NAME, record)
    report_record(tmp_path / RECORD_NAME, out=tmp_path)
    text = (tmp_path / "report.json").read_text()
    report = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert report["modes"]["with_reference"]["quality"]["shipped"]["ap_per_class"]["c"] is None
    page = (tmp_path / "report.md").read_text()
    assert record.command in page
    assert "2 images (of 500) with 4 defects" in page
    assert "No defect of class c" in page
    assert "| AP, pooled, shipped matching | 0.7500 | 0.5000 |" in page
    assert "1 in 2 images" in page
    assert "0.250 (0.006 to 0.806); 1 of 4" in page  # exact interval of 1 in 4
    for line in page.splitlines():
        if line.startswith("!["):
            plot = cv2.imread(str(tmp_path / line.split("(")[1].rstrip(")")))
            assert plot is not None
            assert (plot < 200).any()
