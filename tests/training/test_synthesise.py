"""Synthetic folders: the same bytes however they are made, resumable, read back by the COCO reader."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from inspect_vit.errors import ConfigError, ImageError
from training.artwork import make_layers
from training.defect_kinds import DEFECT_KINDS
from training.formats.coco import read_coco
from training.pairs import DefectPlan
from training.render import ScanStyle, render_scan
from training.synthesise import synthesise

PLAN = DefectPlan(count=(3, 6), good_share=0.25)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("style", ["scan", "colour"])
def test_any_number_of_workers_writes_the_same(tmp_path: Path, style: str) -> None:
    for workers in (1, 2):
        made = synthesise(tmp_path / str(workers), count=4, size=160, style=style, plan=PLAN, workers=workers)  # type: ignore[arg-type]
        assert made.num_pairs == 4 and made.num_kept == 0
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    whole = synthesise(tmp_path / "whole", count=5, size=160, plan=PLAN, workers=1)
    synthesise(tmp_path / "parts", count=2, size=160, plan=PLAN, workers=1)
    kept = tmp_path / "parts" / "board_000001_test.png"
    before = kept.stat().st_mtime_ns
    (tmp_path / "parts" / "labels" / "board_000002.json").unlink()  # stopped before this pair was complete
    made = synthesise(tmp_path / "parts", count=5, size=160, plan=PLAN, workers=1)
    assert made.num_kept == 1 and made.defects == whole.defects
    assert kept.stat().st_mtime_ns == before
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_pairs_of_other_settings_are_not_mixed(tmp_path: Path) -> None:
    synthesise(tmp_path, count=1, size=128, workers=1)
    with pytest.raises(ConfigError, match="pairs of other settings"):
        synthesise(tmp_path, count=1, size=128, seed=1, workers=1)


def test_labels_read_back_as_they_were_drawn(tmp_path: Path) -> None:
    made = synthesise(tmp_path, count=4, size=200, plan=PLAN, workers=1, scan=ScanStyle(jpeg=None, dust=0.0))
    data = read_coco(tmp_path)
    assert not data.faults and data.class_names == tuple(DEFECT_KINDS)
    assert len(data.samples) == 4 and sum(not len(sample.boxes) for sample in data.samples) == made.num_good
    assert sum(len(sample.boxes) for sample in data.samples) == sum(made.defects.values())
    for sample in data.samples:
        assert sample.group and sample.reference is not None and sample.masks is not None
        board = cv2.imread(str(sample.image), cv2.IMREAD_GRAYSCALE)
        assert board is not None
        for box, label, shape in zip(sample.boxes, sample.labels, sample.masks, strict=True):
            assert shape is not None
            mask = shape.mask(200, 200)
            assert (board[mask] == (255 if DEFECT_KINDS[label].removes else 0)).all()
            left, top, right, bottom = shape.bounds()
            wide = np.array([left - 10, top - 10, right + 10, bottom + 10])
            assert np.array_equal(box, wide.clip(0, 200))


def test_a_customers_good_pictures_are_a_source(tmp_path: Path) -> None:
    good = tmp_path / "good"
    good.mkdir()
    layers = make_layers(14, 320)
    cv2.imwrite(str(good / "golden.png"), render_scan(layers, np.random.default_rng(0), ScanStyle(dust=0.0)))
    cv2.imwrite(str(good / "blank.png"), np.full((200, 200), 90, np.uint8))
    made = synthesise(
        tmp_path / "out",
        source=good,
        count=6,
        size=200,
        copper="dark",
        plan=DefectPlan(count=(3, 6), good_share=0.0),
        workers=1,
    )
    assert sum(made.defects.values()) >= 12
    assert len(made.refused) == 1 and made.refused[0].startswith("blank.png: ")
    tree = json.loads(made.labels.read_text(encoding="utf-8"))
    assert {entry["group"] for entry in tree["images"]} == {"golden"}
    (good / "golden.png").unlink()
    with pytest.raises(ImageError, match="none of 1 pictures"):
        synthesise(tmp_path / "none", source=good, count=1, size=200, workers=1)


def test_kicad_designs_are_a_source(tmp_path: Path) -> None:
    data = Path(os.environ.get("INSPECT_VIT_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not (data / "kicad_boards").is_dir():
        pytest.skip(f"INSPECT_VIT_DATA: no kicad_boards in {data}")
    made = synthesise(
        tmp_path, source=data / "kicad_boards", count=3, size=256, px_per_mm=(20, 48), plan=PLAN, workers=1
    )
    tree = json.loads(made.labels.read_text(encoding="utf-8"))
    names = {entry["id"]: entry["name"] for entry in tree["licenses"]}
    assert set(names.values()) <= {"mit", "apache-2.0", "bsd-2-clause", "bsd-3-clause"}
    for entry in tree["images"]:
        assert entry["license"] in names, "the terms of a design travel with its pictures"
        assert entry["width"] == entry["height"] == 256


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, "give 1 or more"),
        ({"size": 8}, "64 to 16384"),
        ({"style": "sketch"}, "'scan' or 'colour'"),
        ({"px_per_mm": (50, 20)}, "least <= most"),
        ({"source": "/nowhere"}, "no such folder"),
        ({"source": []}, "no source of boards"),
        ({"mask": "pink"}, "no mask is called"),
        ({"plan": DefectPlan(kinds={"scratch": 1.0})}, "'scratch'"),
        ({"plan": DefectPlan(size_px=(1, 4))}, "2 <= least"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    tmp_path: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        synthesise(tmp_path / "out", **({"count": 1, "size": 128, "workers": 1} | options))  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_a_pair_that_lost_a_picture_or_its_labels_is_drawn_again(tmp_path: Path) -> None:
    options: dict[str, Any] = {"count": 3, "size": 128, "workers": 1}
    synthesise(tmp_path, **options)
    whole = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    (tmp_path / "board_000001_test.png").unlink()
    (tmp_path / "labels" / "board_000003.json").write_bytes(b"")
    assert synthesise(tmp_path, **options).num_kept == 1
    assert {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == whole


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"plan": DefectPlan(size_px=(1000, 2000))}, "up to 2000 px on pictures of 128 px"),
        ({"px_per_mm": 0.001}, "give 1 <= least <= most <= 500"),
        ({"seed": -1}, "seed -1"),
        ({"plan": DefectPlan(count=(1, 10**20))}, "give 0 <= least <= most <= 10000"),
    ],
)
def test_settings_that_cannot_be_drawn_are_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        synthesise(tmp_path / "out", count=1, size=128, workers=1, **options)
    assert not (tmp_path / "out").exists()
