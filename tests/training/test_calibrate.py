"""`inspect-vit calibrate` on small sets, against what the inspector says of each picture."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from inspect_vit.calibration import Target, load_calibration
from inspect_vit.checkpoint import load_checkpoint, save_checkpoint
from inspect_vit.cli import main
from inspect_vit.errors import ConfigError
from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from training.calibrate import calibrate


@pytest.fixture(scope="module")
def talkative(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights whose head calls something on every picture."""
    model, metadata = load_checkpoint(tiny_checkpoint)
    with torch.no_grad():
        model.head.out.weight.mul_(60.0)
        model.head.out.bias[: len(metadata.model.class_names)] = -3.0
    path = tmp_path_factory.mktemp("talkative") / "talkative.safetensors"
    save_checkpoint(path, model, name="talkative", thresholds=metadata.thresholds, training={})
    return path


@pytest.fixture(scope="module")
def boards(talkative: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pictures of two boards, COCO labels; on each the defect is where the model's best call lies."""
    folder = tmp_path_factory.mktemp("boards")
    inspector = Inspector(talkative, device="cpu")
    names = list(inspector.metadata.model.class_names)
    images, annotations = [], []
    for number, name in enumerate(("a_1.png", "a_2.png", "b_1.png")):
        cells = np.random.default_rng(number).integers(0, 2, (10, 10)).astype(np.uint8) * 255
        cv2.imwrite(str(folder / name), np.kron(cells, np.ones((16, 16), np.uint8)))
        best = inspector.inspect(read_image(folder / name)[0], min_score=0.02).defects[0]
        left, top, right, bottom = best.box_xyxy
        images.append({"id": number, "file_name": name, "width": 160, "height": 160})
        annotations.append(
            {
                "id": number + 1,
                "image_id": number,
                "category_id": names.index(best.label),
                "bbox": [left, top, right - left, bottom - top],
                "area": (right - left) * (bottom - top),
                "iscrowd": 0,
            }
        )
    categories = [{"id": label, "name": name} for label, name in enumerate(names)]
    tree = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "labels.json").write_text(json.dumps(tree))
    return folder


def test_a_calibration_counts_boards_and_finds_what_the_inspector_finds(
    talkative: Path, boards: Path, tmp_path: Path
) -> None:
    from training.formats.references import parse_groups

    target = Target(max_miss_rate=0.6, confidence=0.8)
    made = calibrate(
        talkative,
        boards / "labels.json",
        targets=[target],
        out=tmp_path / "c.json",
        groups=parse_groups("name:([ab])_"),
        recipe="r",
        device="cpu",
    )
    calibration = load_calibration(tmp_path / "c.json")
    assert made.calibration == calibration
    assert [path.is_file() for path in made.written] == [True, True]
    assert (calibration.num_pictures, calibration.num_boards, calibration.recipe) == (3, 2, "r")
    assert calibration.reference_mode == "without_reference"
    (claim,) = calibration.claims
    assert (claim.kept, claim.num_boards, claim.num_defects, claim.boards_missed) == (True, 2, 3, 0)

    # At these thresholds the inspector lists every labelled defect, and as many calls beside them as stated.
    inspector = Inspector(talkative, device="cpu", calibration=calibration)
    labels = json.loads((boards / "labels.json").read_text())
    beside = 0
    for image, annotation in zip(labels["images"], labels["annotations"], strict=True):
        result = inspector.inspect(read_image(boards / image["file_name"])[0], recipe="r")
        assert result.calibration is not None and result.calibration.valid
        left, top, width, height = annotation["bbox"]
        assert any(np.allclose(d.box_xyxy[:2], (left, top), atol=0.1) for d in result.defects)
        for defect in result.defects:
            x1, y1, x2, y2 = defect.box_xyxy
            across = min(x2, left + width) - max(x1, left)
            down = min(y2, top + height) - max(y1, top)
            beside += across <= 0 or down <= 0
    assert calibration.false_calls.num_calls == beside
    assert calibration.false_calls.per_board == beside / 2


def test_pictures_of_one_board_are_boards_only_when_told(
    talkative: Path, boards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["calibrate", "--checkpoint", talkative, "--data", boards / "labels.json", "--device", "cpu"]
    arguments += ["--groups", "name:([ab])_", "--out", tmp_path / "c.json", "--target", "1% @ 95%"]

    def run(*more: str) -> int:
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in (*arguments, *more)])
        return int(caught.value.code or 0)

    assert run() == 1
    assert "needs 297 more boards" in " ".join(capsys.readouterr().out.replace("\u2502", " ").split())
    assert run("--unit", "picture", "--json") == 1
    assert json.loads(capsys.readouterr().out)["claims"][0]["more_boards"] == 296
    assert run("--target", "50% @ 50%", "--target", "2% @ 95%") == 2
    assert "not two of one class" in capsys.readouterr().err
    assert run("--target", "scratch: 2% @ 95%") == 2
    assert "scratch" in capsys.readouterr().err


def test_a_reference_that_is_not_there_is_missed(talkative: Path, boards: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="reference"):
        calibrate(
            talkative,
            boards / "labels.json",
            targets=[Target(max_miss_rate=0.1)],
            out=tmp_path / "c.json",
            with_reference=True,
            device="cpu",
        )
