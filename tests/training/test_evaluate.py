"""Whole evaluations of a small checkpoint on small sets.

Over 300 lines: the promises of one command, which share their sets and their checkpoint.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch

from inspect_vit.checkpoint import load_checkpoint, save_checkpoint
from inspect_vit.errors import ConfigError, ImageError
from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from inspect_vit.matching import as_detections
from inspect_vit.results import Sample
from training.evaluate import MIN_SCORE, RECORD_NAME, evaluate_checkpoint
from training.formats.deeppcb import CLASS_NAMES
from training.locking import held
from training.measured_set import known_classes, parse_renames
from training.poses import shift_picture
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
    command = ["inspect-vit", "evaluate", "--data", "my set", "--shift", "3"]
    report = evaluate_checkpoint(
        talkative_checkpoint, small_set, out=out, shifts=[3], device="cpu", command=command
    )
    return report, out


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
    assert report["command"] == "inspect-vit evaluate --data 'my set' --shift 3"
    assert report["command"] in (out / "report.md").read_text()


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
    printed = capsys.readouterr()
    assert "with reference: 2/2" in printed.err
    assert printed.out == ""


def test_impossible_options_are_refused(talkative_checkpoint: Path, small_set: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="limit 4: the split has 3 pictures"):
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


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """A COCO set: two boards share a golden reference, classes are spelt in the set's own way."""
    root = tmp_path / "photos"
    root.mkdir()
    ramp = np.linspace(40, 200, 128).astype(np.uint8)
    template = np.repeat(np.tile(ramp, (128, 1))[..., None], 3, axis=2)
    template[:, ::16] = 20
    cv2.imwrite(str(root / "golden.png"), template)
    images, annotations = [], []
    for number in (1, 2):
        board = template.copy()
        board[40 * number : 40 * number + 12, 50:62] = 255
        cv2.imwrite(str(root / f"{number}.png"), board)
        image = {
            "id": number,
            "file_name": f"{number}.png",
            "width": 128,
            "height": 128,
            "group": f"lot {number}",
        }
        images.append(image | {"reference": "golden.png"})
        box = [48, 40 * number - 2, 16, 16]
        annotations.append(
            {"id": number, "image_id": number, "category_id": number, "bbox": box, "area": 256}
        )
    annotations.append(annotations[0] | {"id": 3, "bbox": [0, 0, 40, 128], "iscrowd": 1})
    categories = [{"id": 1, "name": "Open_Circuit"}, {"id": 2, "name": "Pin hole"}]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (root / "annotations.coco.json").write_text(json.dumps(content))
    return root


def test_a_set_in_another_format_is_measured_under_the_checkpoints_names(
    talkative_checkpoint: Path, photographs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    rename = {"Open_Circuit": "open"}
    report = evaluate_checkpoint(talkative_checkpoint, photographs, out=out, rename=rename, device="cpu")
    record = load_record(out / RECORD_NAME)
    assert [truths.labels.tolist() for truths in record.truths] == [
        [CLASS_NAMES.index("open")], [CLASS_NAMES.index("pin-hole")],
    ]  # fmt: skip
    # One golden reference is one good board, and an ignored area neither truth nor false call.
    assert len(record.runs["templates"].detections) == len(record.runs["reimaged_templates"].detections) == 1
    inside = [box[2] <= 40 for box in record.runs["with_reference"].detections[0].boxes]
    assert not any(inside)
    assert set(report["modes"]["with_reference"]["boards"]) == {"lot 1", "lot 2"}
    assert math.isnan(report["modes"]["with_reference"]["operating_points"][0]["outside"]["per_m2"])
    page = (out / "report.md").read_text()
    assert "photos (coco), split all: 2 images" in page
    assert "DeepPCB" not in page.split("## How it is measured")[0]
    assert "nan" not in page


def test_a_set_without_references_is_measured_without_them(
    talkative_checkpoint: Path, photographs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = photographs / "annotations.coco.json"
    content = json.loads(labels.read_text())
    for image in content["images"]:
        del image["reference"]
    labels.write_text(json.dumps(content))
    rename = {"Open_Circuit": "open"}
    report = evaluate_checkpoint(
        talkative_checkpoint, photographs, out=tmp_path / "out", rename=rename, device="cpu"
    )
    assert list(report["modes"]) == ["without_reference"]
    assert "2 of 2 pictures have no reference" in capsys.readouterr().err
    assert "Recall by true size" not in (tmp_path / "out" / "report.md").read_text()
    with pytest.raises(ConfigError, match="need a reference for every picture"):
        evaluate_checkpoint(
            talkative_checkpoint, photographs, out=tmp_path / "no", rename=rename, shifts=[1], device="cpu"
        )


def test_class_names_that_do_not_fit_are_answered_with_the_way_out(
    talkative_checkpoint: Path, photographs: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="--rename Open_Circuit=CLASS says which one is meant"):
        evaluate_checkpoint(talkative_checkpoint, photographs, out=tmp_path / "out", device="cpu")
    with pytest.raises(ConfigError, match="no defect of the set is of class gap, which --rename names"):
        evaluate_checkpoint(
            talkative_checkpoint, photographs, out=tmp_path / "out", rename={"gap": "open"}, device="cpu"
        )
    with pytest.raises(ConfigError, match="rename 'open'; wanted CLASS_OF_THE_SET=CLASS_OF_THE_CHECKPOINT"):
        parse_renames(["open"])


def test_a_model_that_needs_references_is_measured_with_them_alone(
    talkative_checkpoint: Path,
    small_set: Path,
    photographs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model, metadata = load_checkpoint(talkative_checkpoint)
    needy = tmp_path / "needy.safetensors"
    save_checkpoint(
        needy, model, name="needy", thresholds=metadata.thresholds, training={}, needs_reference=True
    )
    report = evaluate_checkpoint(needy, small_set, out=tmp_path / "out", device="cpu")
    assert list(report["modes"]) == ["with_reference"]
    assert set(load_record(tmp_path / "out" / RECORD_NAME).runs) == {"with_reference", "reimaged_templates"}
    assert report["modes"]["with_reference"]["quality"]["detections"] > 0
    labels = photographs / "annotations.coco.json"
    content = json.loads(labels.read_text())
    del content["images"][0]["reference"]
    labels.write_text(json.dumps(content))
    evaluate_checkpoint(
        needy, photographs, out=tmp_path / "half", rename={"Open_Circuit": "open"}, device="cpu"
    )
    assert load_record(tmp_path / "half" / RECORD_NAME).images == ("2.png",)
    assert "1 of 2 pictures have no reference and are left out: 1.png" in capsys.readouterr().err
    labels.write_text(labels.read_text().replace('"reference"', '"unknown"'))
    with pytest.raises(ConfigError, match="none of the 2 pictures has one; name them with --references"):
        evaluate_checkpoint(
            needy, photographs, out=tmp_path / "no", rename={"Open_Circuit": "open"}, device="cpu"
        )


@pytest.mark.parametrize("change", ["reference", "ignored"])
def test_passes_over_other_references_or_labels_are_not_reused(
    talkative_checkpoint: Path,
    photographs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
) -> None:
    options: dict[str, Any] = {"rename": {"Open_Circuit": "open"}, "device": "cpu"}
    inspect = Inspector.inspect

    def interrupted(self: Inspector, *args: Any, **given: Any) -> Any:
        if given["reference"] is None:  # in the pass after the first two
            raise KeyboardInterrupt
        return inspect(self, *args, **given)

    with monkeypatch.context() as patch:
        patch.setattr(Inspector, "inspect", interrupted)
        with pytest.raises(KeyboardInterrupt):
            evaluate_checkpoint(talkative_checkpoint, photographs, out=tmp_path / "a", **options)
    assert (tmp_path / "a" / "detections.partial.npz").is_file()
    labels = photographs / "annotations.coco.json"
    if change == "reference":
        other = cv2.imread(str(photographs / "golden.png"))
        assert other is not None
        cv2.imwrite(str(photographs / "other.png"), 255 - other)
        labels.write_text(labels.read_text().replace("golden.png", "other.png"))
    else:
        labels.write_text(labels.read_text().replace('"iscrowd": 1', '"iscrowd": 0'))
    resumed, fresh = (
        evaluate_checkpoint(talkative_checkpoint, photographs, out=tmp_path / name, **options)["modes"]
        for name in ("a", "b")
    )
    assert list(figures(resumed)) == pytest.approx(list(figures(fresh)), nan_ok=True)


def test_two_evaluations_do_not_share_a_folder(
    talkative_checkpoint: Path, small_set: Path, tmp_path: Path
) -> None:
    with held(tmp_path), pytest.raises(ConfigError, match="another run is writing into"):
        evaluate_checkpoint(talkative_checkpoint, small_set, out=tmp_path, device="cpu")
    assert not any(tmp_path.iterdir())


def test_an_unreadable_picture_is_named(
    talkative_checkpoint: Path, photographs: Path, tmp_path: Path
) -> None:
    picture = photographs / "2.png"
    picture.write_bytes(picture.read_bytes()[:-200])
    with pytest.raises(ImageError, match=r"2\.png: the picture is damaged"):
        evaluate_checkpoint(
            talkative_checkpoint, photographs, out=tmp_path, rename={"Open_Circuit": "open"}, device="cpu"
        )


def test_class_names_that_differ_in_spelling_alone_are_not_mixed_up(tmp_path: Path) -> None:
    sample = Sample(tmp_path / "a.png", np.zeros((2, 4), np.float32), ("open", "pinhole"))
    assert known_classes([sample], ("open", "Open", "pinhole", "pin-hole"), {}) == {
        "open": "open", "pinhole": "pinhole",
    }  # fmt: skip
    with pytest.raises(ConfigError, match="class 'pinhole' may be 'Pin-Hole' or 'pin_hole'"):
        known_classes([sample], ("open", "Pin-Hole", "pin_hole"), {})
    with pytest.raises(ConfigError, match="rename 'a' is given twice"):
        parse_renames(["a=open", "a=short"])
