"""What labels say reaches the tensors: exact outlines, and boxes that are neither defect nor background."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from inspect_vit.results import Sample
from inspect_vit.shapes import Polygon, Shape
from training.config import TrainConfig
from training.data import DefectDataset, fingerprint

SIDE = 128
BOXES = np.array([[16, 16, 40, 40], [64, 72, 104, 112]], np.float32)


def square(left: float, top: float, right: float, bottom: float) -> np.ndarray:
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float64)


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    """A blank picture as large as a crop: a crop is all of it, turned or mirrored."""
    Image.new("L", (SIDE, SIDE), 128).save(tmp_path / "board.png")
    return Sample(tmp_path / "board.png", BOXES, ("speck", "hole"), group="g")


def dataset(sample: Sample) -> DefectDataset:
    levels = [
        {"patch_size": 4, "embed_dim": 8, "depth": 1, "head_dim": 8, "window": 4},
        {"patch_size": 16, "embed_dim": 8, "depth": 1, "head_dim": 8, "window": 2},
        {"patch_size": 32, "embed_dim": 8, "depth": 1, "head_dim": 8, "window": 0},
    ]
    config = TrainConfig.model_validate(
        {
            "name": "t",
            "model": {"class_names": ["speck", "hole"], "levels": levels, "size_multiple": 32},
            "data": {
                "val_groups": ["v"],
                "crop_size": SIDE,
                "workers": 0,
                "mosaic_share": 0.0,
                "defect_share": 0.0,
            },
            "augment": {"photometric_share": 0.0, "misalign_share": 0.0},
            "epochs": 1,
        }
    )
    return DefectDataset([sample], config, total_crops=4)


def test_outlines_are_drawn_where_there_are_and_boxes_elsewhere(sample: Sample) -> None:
    with_hole = Shape(polygons=(Polygon(square(16, 16, 40, 40), (square(20, 20, 36, 36),)),))
    outlined = dataset(replace(sample, masks=(with_hole, None)))
    for index in range(4):
        shares = outlined[index]["masks"].sum((1, 2)) * 16  # a cell is 4 x 4 px
        assert shares.tolist() == [24 * 24 - 16 * 16, 40 * 40]


def test_run_lengths_are_drawn_pixel_by_pixel(sample: Sample) -> None:
    pixels = np.zeros((SIDE, SIDE), bool)
    pixels[80:100, 70:90] = np.random.default_rng(0).random((20, 20)) < 0.5
    outlined = dataset(replace(sample, masks=(None, Shape.from_mask(pixels))))
    assert float(outlined[0]["masks"][1].sum() * 16) == pixels.sum()


@pytest.mark.parametrize("label", ["hole", "a class that the model does not know"])
def test_ignored_boxes_are_neither_defect_nor_background(sample: Sample, label: str) -> None:
    ignoring = dataset(replace(sample, labels=("speck", label), ignored=(False, True)))
    learning = dataset(sample)
    for index in range(4):
        item, twin = ignoring[index], learning[index]
        where = twin["masks"][1] > 0
        assert where.sum() == 100, "40 x 40 px"
        assert item["counted"][0][where].max() == 0
        assert item["centres"][1].max() == item["masks"][1].max() == 0
        assert item["counted"].mean() > 0.8
        assert twin["counted"].min() == 1
        for name in ("centres", "masks"):
            assert bool((item[name][0] == twin[name][0]).all()), "the other defect is learned as before"


def test_a_board_with_ignored_boxes_alone_has_nothing_to_learn_there(sample: Sample) -> None:
    item = dataset(replace(sample, ignored=(True, True)))[0]
    assert item["centres"].max() == item["masks"].max() == item["box_weights"].max() == 0
    assert 0.05 < float((item["counted"] == 0).float().mean()) < 0.2


def test_the_fingerprint_follows_outlines_and_flags(sample: Sample) -> None:
    ring = square(16, 16, 40, 40)
    versions = [
        sample,
        replace(sample, ignored=(False, True)),
        replace(sample, masks=(Shape(polygons=(Polygon(ring),)), None)),
        replace(sample, masks=(Shape(polygons=(Polygon(ring + 0.1),)), None)),
        replace(sample, masks=(Shape.from_mask(np.zeros((SIDE, SIDE), bool)), None)),
    ]
    assert len({fingerprint([version]) for version in versions}) == len(versions)
    assert fingerprint([replace(sample)]) == fingerprint([sample])
