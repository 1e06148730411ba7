"""`inspect-vit data synthesise` draws what its options ask for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from inspect_vit.cli import main
from inspect_vit.cli_data import KINDS
from training.defect_kinds import DEFECT_KINDS


def test_options_decide_class_count_size_and_margin(tmp_path: Path) -> None:
    assert tuple(DEFECT_KINDS) == KINDS
    options = "--count 3 --size 320 --kind mousebite --kind spur --defects 2 3 --defect-px 4 7 --even-sizes"
    command = f"data synthesise {tmp_path} {options} --good-share 0 --margin 3 --workers 1"
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    assert ended.value.code == 0
    tree = json.loads((tmp_path / "annotations.coco.json").read_text(encoding="utf-8"))
    names = {entry["id"]: entry["name"] for entry in tree["categories"]}
    assert set(names.values()) == {"mousebite", "spur"}
    for image in tree["images"]:
        labels = [label for label in tree["annotations"] if label["image_id"] == image["id"]]
        assert 2 <= len(labels) <= 3
        for label in labels:
            runs = label["segmentation"]["counts"]
            mask = np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(320, 320, order="F")
            rows, columns = np.nonzero(mask)
            assert 2 <= max(np.ptp(rows), np.ptp(columns)) + 1 <= 9  # 4 to 7 px along a slanted stroke
            left, top, width, height = label["bbox"]
            assert (left, top) == (max(columns.min() - 3, 0), max(rows.min() - 3, 0))
            assert (left + width, top + height) == (
                min(columns.max() + 4, 320), min(rows.max() + 4, 320),
            )  # fmt: skip


def test_an_unknown_class_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["data", "synthesise", str(tmp_path / "out"), "--kind", "scratch", "--workers", "1"])
    assert ended.value.code == 2
    assert "cannot draw defects of class 'scratch'; take some of open, short" in capsys.readouterr().err
