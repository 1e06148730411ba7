"""The protocols on hand-made records, and one whole evaluation of a small checkpoint on a small set."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch

from inspect_vit.checkpoint import load_checkpoint, save_checkpoint
from inspect_vit.errors import ConfigError
from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from inspect_vit.matching import Detections, Truths, match_images
from training.evaluate import MIN_SCORE, RECORD_NAME, as_detections, evaluate_checkpoint, shift_picture
from training.formats.deeppcb import CLASS_NAMES
from training.protocols import build_report, threshold_at_recall
from training.record import Record, Run, load_record, save_record
from training.report import report_record

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
        split="test",
        split_size=500,
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
    assert [p["reached"] for p in aided["operating_points"]] == [True, False, False]


def test_recall_by_true_size_parts_the_defects_under_each_opening(record: Record) -> None:
    rows = build_report(record)["modes"]["with_reference"]["recall_by_true_size"]
    counts = {
        row["size"]: (row["recall"]["count"], row["found"]["count"], row["recall"]["n"])
        for row in rows["opening_2x2"]
    }
    assert counts == {
        "nothing left": (0, 0, 0), "<= 8 px": (2, 2, 2), "9-12 px": (1, 1, 1), "13-16 px": (0, 0, 0), "> 16 px": (0, 1, 1),
    }  # fmt: skip
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
    base, moved = report["reference_shifts"]
    assert (base["shift_px"], moved["shift_px"]) == (0, 2)
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


def test_a_shifted_picture_repeats_its_border() -> None:
    picture = np.arange(12, dtype=np.uint8).reshape(3, 4, 1)
    right, down, left, up = (shift_picture(picture, 1, turn)[..., 0].tolist() for turn in range(4))
    assert right == [[0, 0, 1, 2], [4, 4, 5, 6], [8, 8, 9, 10]]
    assert down == [[0, 1, 2, 3], [0, 1, 2, 3], [4, 5, 6, 7]]
    assert left == [[1, 2, 3, 3], [5, 6, 7, 7], [9, 10, 11, 11]]
    assert up == [[4, 5, 6, 7], [8, 9, 10, 11], [8, 9, 10, 11]]


@pytest.fixture(scope="module")
def small_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pairs of 128 px with one defect each, in DeepPCB's layout."""
    root = tmp_path_factory.mktemp("set")
    data = root / "PCBData"
    lines = []
    for number, group in enumerate(("00041", "12000", "12100")):
        folder, labels = data / f"group{group}" / group, data / f"group{group}" / f"{group}_not"
        folder.mkdir(parents=True)
        labels.mkdir()
        template = np.zeros((128, 128), np.uint8)
        template[:, 20 + 10 * number :: 24] = 255
        template[:, 21 + 10 * number :: 24] = 255
        board = template.copy()
        board[60:70, 40:60] = 255 - board[60:70, 40:60]
        cv2.imwrite(str(folder / "1_temp.jpg"), template)
        cv2.imwrite(str(folder / "1_test.jpg"), board)
        (labels / "1.txt").write_text(f"35 55 65 75 {number + 1}\n")
        lines.append(f"group{group}/{group}/1.jpg group{group}/{group}_not/1.txt\n")
    (data / "test.txt").write_text("".join(lines))
    return root


@pytest.fixture(scope="module")
def talkative_checkpoint(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights whose head calls something on every picture."""
    model, metadata = load_checkpoint(tiny_checkpoint)
    with torch.no_grad():
        model.head.out.weight.mul_(60.0)
        model.head.out.bias[: len(CLASS_NAMES)] = -3.0
    path = tmp_path_factory.mktemp("talkative") / "talkative.safetensors"
    save_checkpoint(path, model, name="talkative", thresholds=metadata.thresholds, training={})
    return path


def test_a_whole_evaluation_counts_what_the_inspector_says(
    talkative_checkpoint: Path, small_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = evaluate_checkpoint(talkative_checkpoint, small_set, out=tmp_path, shifts=[3], device="cpu")
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["detections.npz", "misses_false_calls.png", "precision_recall.png", "recall_by_size.png",
                       "report.json", "report.md"]  # fmt: skip
    record = load_record(tmp_path / RECORD_NAME)
    assert set(record.runs) == {
        "with_reference", "without_reference", "templates", "reimaged_templates", "reference_shifted_3px",
    }  # fmt: skip
    assert record.true_sizes_px.tolist()[0] == [20, 20]

    inspector = Inspector(talkative_checkpoint, device="cpu")
    folder = small_set / "PCBData" / "group12000" / "12000"
    image, template = (read_image(folder / f"1_{end}.jpg")[0] for end in ("test", "temp"))
    for name, pose in {
        "with_reference": (image, template),
        "without_reference": (image, None),
        "templates": (template, None),
        "reference_shifted_3px": (image, np.roll(template, 3, axis=0)),  # sample 1 moves down
    }.items():
        if name == "reference_shifted_3px":
            pose[1][:3] = template[0]
        expected = as_detections(inspector.inspect(pose[0], reference=pose[1], min_score=MIN_SCORE))
        found = record.runs[name].detections[1]
        assert len(expected)
        np.testing.assert_allclose(found.boxes, expected.boxes, atol=1e-3)
        np.testing.assert_allclose(found.scores, expected.scores, atol=1e-5)
        np.testing.assert_array_equal(found.labels, expected.labels)
    assert report["modes"]["with_reference"]["timings_ms"]["total"]["n"] == 3
    assert f"--data {small_set} --out {tmp_path} --split test --seed 0 --shift 3" in report["command"]
    assert "with reference: 3/3" in capsys.readouterr().err


def test_an_interrupted_evaluation_goes_on_with_the_next_pass(
    talkative_checkpoint: Path, small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = evaluate_checkpoint(talkative_checkpoint, small_set, out=tmp_path / "whole", device="cpu")

    inspect, shown = Inspector.inspect, []

    def interrupted(self: Inspector, *args: Any, **options: Any) -> Any:
        if len(shown) == 5:  # in the second pass
            shown.append(None)
            raise KeyboardInterrupt
        shown.append(None)
        return inspect(self, *args, **options)

    monkeypatch.setattr(Inspector, "inspect", interrupted)
    with pytest.raises(KeyboardInterrupt):
        evaluate_checkpoint(talkative_checkpoint, small_set, out=tmp_path / "cut", device="cpu")
    resumed = evaluate_checkpoint(talkative_checkpoint, small_set, out=tmp_path / "cut", device="cpu")
    assert len(shown) == 6 + 3 * 3  # the first pass was not inspected again
    assert not (tmp_path / "cut" / "detections.partial.npz").exists()
    measured = [list(figures(report["modes"])) for report in (whole, resumed)]
    assert measured[0] == pytest.approx(measured[1], nan_ok=True)


def figures(tree: Any) -> Iterator[float]:
    """Every number but the times."""
    for name, branch in tree.items() if isinstance(tree, dict) else enumerate(tree):
        if isinstance(branch, dict | list | tuple) and name != "timings_ms":
            yield from figures(branch)
        elif isinstance(branch, float) and math.isfinite(branch):
            yield branch


def test_limit_takes_pairs_evenly_and_says_so(
    talkative_checkpoint: Path, small_set: Path, tmp_path: Path
) -> None:
    report = evaluate_checkpoint(talkative_checkpoint, small_set, out=tmp_path, limit=2, device="cpu")
    assert load_record(tmp_path / RECORD_NAME).groups == ("00041", "12100")
    assert (report["data"]["images"], report["data"]["split_images"]) == (2, 3)


def test_impossible_options_are_refused(talkative_checkpoint: Path, small_set: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="limit 4: the split has 3 pairs"):
        evaluate_checkpoint(talkative_checkpoint, small_set, out=tmp_path, limit=4)
    with pytest.raises(ConfigError, match="shifts \\[0\\]"):
        evaluate_checkpoint(talkative_checkpoint, small_set, out=tmp_path, shifts=[0])
    assert not any(tmp_path.iterdir())


def test_a_class_that_the_checkpoint_does_not_know_is_named(
    talkative_checkpoint: Path, small_set: Path, tmp_path: Path
) -> None:
    model, metadata = load_checkpoint(talkative_checkpoint)
    names = ("gap", *CLASS_NAMES[1:])
    model.config = metadata.model.model_copy(update={"class_names": names})
    renamed = tmp_path / "renamed.safetensors"
    limits = dict.fromkeys(names, 0.5)
    save_checkpoint(
        renamed,
        model,
        name="renamed",
        training={},
        thresholds={"with_reference": limits, "without_reference": limits},
    )
    with pytest.raises(ConfigError, match="the labels hold classes open that the checkpoint does not know"):
        evaluate_checkpoint(renamed, small_set, out=tmp_path / "out", device="cpu")
