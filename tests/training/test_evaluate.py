"""Whole evaluations of a small checkpoint on a small set."""

from __future__ import annotations

import math
from collections.abc import Iterator
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
from inspect_vit.matching import as_detections
from training.evaluate import MIN_SCORE, RECORD_NAME, evaluate_checkpoint, shift_picture
from training.formats.deeppcb import CLASS_NAMES
from training.record import load_record


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


@pytest.fixture(scope="module")
def evaluation(
    talkative_checkpoint: Path, small_set: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path]:
    """The report of an evaluation that was not interrupted, and its folder."""
    out = tmp_path_factory.mktemp("evaluation")
    return evaluate_checkpoint(talkative_checkpoint, small_set, out=out, shifts=[3], device="cpu"), out


def test_a_whole_evaluation_counts_what_the_inspector_says(
    talkative_checkpoint: Path, small_set: Path, evaluation: tuple[dict[str, Any], Path]
) -> None:
    report, out = evaluation
    plots = {"misses_false_calls.png", "precision_recall.png", "recall_by_size.png"}
    assert {path.name for path in out.iterdir()} == {RECORD_NAME, "report.json", "report.md"} | plots
    record = load_record(out / RECORD_NAME)
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
    assert f"--data {small_set} --out {out} --split test --seed 0 --shift 3" in report["command"]


def test_an_interrupted_evaluation_goes_on_with_the_next_pass(
    talkative_checkpoint: Path,
    small_set: Path,
    evaluation: tuple[dict[str, Any], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inspect, shown = Inspector.inspect, []

    def interrupted(self: Inspector, *args: Any, **options: Any) -> Any:
        if len(shown) == 5:  # in the second pass
            shown.append(None)
            raise KeyboardInterrupt
        shown.append(None)
        return inspect(self, *args, **options)

    monkeypatch.setattr(Inspector, "inspect", interrupted)
    with pytest.raises(KeyboardInterrupt):
        evaluate_checkpoint(talkative_checkpoint, small_set, out=tmp_path, shifts=[3], device="cpu")
    resumed = evaluate_checkpoint(talkative_checkpoint, small_set, out=tmp_path, shifts=[3], device="cpu")
    assert len(shown) == 6 + 4 * 3  # the first pass was not inspected again
    assert not (tmp_path / "detections.partial.npz").exists()
    measured = [list(figures(report["modes"])) for report in (evaluation[0], resumed)]
    assert measured[0] == pytest.approx(measured[1], nan_ok=True)


def figures(tree: Any) -> Iterator[float]:
    """Every number but the times."""
    for name, branch in tree.items() if isinstance(tree, dict) else enumerate(tree):
        if isinstance(branch, dict | list | tuple) and name != "timings_ms":
            yield from figures(branch)
        elif isinstance(branch, float) and math.isfinite(branch):
            yield branch


def test_limit_takes_pairs_evenly_and_progress_is_told_in_plain_lines(
    talkative_checkpoint: Path, small_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = evaluate_checkpoint(talkative_checkpoint, small_set, out=tmp_path, limit=2, device="cpu")
    assert load_record(tmp_path / RECORD_NAME).groups == ("00041", "12100")
    assert (report["data"]["images"], report["data"]["split_images"]) == (2, 3)
    assert "--limit 2" in report["command"]
    printed = capsys.readouterr()
    assert "with reference: 2/2" in printed.err
    assert printed.out == ""


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
