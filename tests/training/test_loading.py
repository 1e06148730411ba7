"""What a run trains on: every format, good boards alone, whole boards on one side of the split."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from inspect_vit.cli import main
from inspect_vit.config import validate
from inspect_vit.errors import ConfigError
from training.config import TrainConfig
from training.formats.dataset import DataSet
from training.formats.registry import read_dataset, write_dataset
from training.loading import PAIRS, draw_pairs, load_samples

LEVELS = [
    {"patch_size": 4, "embed_dim": 8, "depth": 1, "head_dim": 8, "window": 4},
    {"patch_size": 16, "embed_dim": 8, "depth": 1, "head_dim": 8, "window": 2},
    {"patch_size": 32, "embed_dim": 8, "depth": 1, "head_dim": 8, "window": 0},
]
CLASSES = ["open", "short", "mousebite", "spur", "copper", "pin-hole"]


def tree(**data: object) -> dict[str, object]:
    return {
        "name": "t",
        "model": {"class_names": CLASSES, "levels": LEVELS, "size_multiple": 32},
        "data": {"crop_size": 128, "crops_per_image": 2, "workers": 0, "mosaic_share": 0.0} | data,
        "optim": {"warmup_steps": 1},
        "epochs": 1,
        "batch_size": 4,
        "devices": 1,
        "precision": "32-true",
    }


def config(**data: object) -> TrainConfig:
    return validate(tree(**data), TrainConfig, source="test")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """Three good boards of 256 px: tracks, and a plane with a gap around them."""
    folder = tmp_path / "good"
    folder.mkdir()
    for number in range(3):
        picture = np.full((256, 256), 255, np.uint8)
        for x in range(12, 120, 24):
            picture[10:246, x + number : x + number + 10] = 0
        picture[20:236, 150:240] = 0
        cv2.imwrite(str(folder / f"lot{number}.png"), picture)
    return folder


def test_good_boards_become_pairs_that_keep_to_their_board(good: Path, tmp_path: Path) -> None:
    run = config(format="good", root=str(good), drawn_pairs=12, drawn_size=128, val_share=0.3)
    draw_pairs(run, tmp_path)
    training, validation = load_samples(run, out=tmp_path)
    assert len(training) + len(validation) == 12
    assert not {s.group for s in training} & {s.group for s in validation}
    assert {label for s in training for label in s.labels} <= set(CLASSES)
    drawn = [s for s in training if s.labels]
    assert drawn, "nine in ten boards get defects"
    for sample in drawn:
        assert sample.masks is not None
        board, reference = (
            cv2.imread(str(p), cv2.IMREAD_GRAYSCALE) for p in (sample.image, sample.reference)
        )
        assert board is not None
        assert reference is not None
        for shape in sample.masks:
            assert shape is not None
            inside = shape.mask(*board.shape)
            assert (np.abs(board.astype(int) - reference)[inside] > 64).mean() > 0.3

    before = {path: path.stat().st_mtime_ns for path in (tmp_path / PAIRS).glob("*.png")}
    draw_pairs(run, tmp_path)
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / PAIRS).glob("*.png")}


def test_one_command_trains_on_good_boards_alone(good: Path, tmp_path: Path) -> None:
    import yaml

    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(tree(format="good", drawn_pairs=9, drawn_size=128, val_share=0.3)))
    with pytest.raises(SystemExit) as stop:
        main(["train", "--config", str(path), "--data", str(good), "--out", str(tmp_path / "run")])
    assert stop.value.code in (0, None)
    assert (tmp_path / "run" / "t.safetensors").is_file()


def test_a_coco_set_is_parted_as_it_says_or_by_share(good: Path, tmp_path: Path) -> None:
    run = config(format="good", root=str(good), drawn_pairs=12, drawn_size=128, val_share=0.3)
    draw_pairs(run, tmp_path)
    coco = config(format="coco", root=str(tmp_path / PAIRS), val_share=0.3)
    training, validation = load_samples(coco, out=tmp_path)
    assert len(training) + len(validation) == 12
    with pytest.raises(ConfigError, match="a stated split needs pictures for train and val"):
        load_samples(config(format="coco", root=str(tmp_path / PAIRS)), out=tmp_path)

    data = read_dataset(tmp_path / PAIRS)
    parted = DataSet(tuple(s for s in data.samples), data.class_names, format=data.format, root=data.root)
    write_dataset(parted, tmp_path / "copy", "coco")
    again = config(format="auto", root=str(tmp_path / "copy"), val_share=0.3)
    assert len(load_samples(again, out=tmp_path)[0]) == len(training)


def test_a_class_that_the_model_lacks_is_named(good: Path, tmp_path: Path) -> None:
    draw_pairs(config(format="good", root=str(good), drawn_pairs=12, drawn_size=128, val_share=0.3), tmp_path)
    few = tree(format="coco", root=str(tmp_path / PAIRS), val_share=0.3)
    few["model"] = {"class_names": ["scratch"], "levels": LEVELS, "size_multiple": 32}
    with pytest.raises(ConfigError, match=r"is none of model\.class_names, scratch"):
        load_samples(validate(few, TrainConfig, source="test"), out=tmp_path)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"format": "coco"}, "data.root is not set"),
        ({"format": "yolo", "root": "/nowhere"}, "no data set at /nowhere"),
    ],
)
def test_a_set_that_is_not_there(data: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        load_samples(config(**data), out=tmp_path)


def test_more_sets_are_learnt_from_and_never_validated_on(good: Path, tmp_path: Path) -> None:
    drawn = {"format": "good", "root": str(good), "drawn_size": 128, "val_share": 0.3}
    for name, count in (("first", 12), ("second", 5)):
        draw_pairs(config(**drawn, drawn_pairs=count), tmp_path / name)
    first, second = (tmp_path / name / PAIRS for name in ("first", "second"))
    alone = config(format="coco", root=str(first), val_share=0.3, limit=2)
    training, validation = load_samples(alone, out=tmp_path)
    both, held_back = load_samples(
        alone.model_copy(update={"data": alone.data.model_copy(update={"also": (second,)})}), out=tmp_path
    )
    assert [sample.image for sample in held_back] == [sample.image for sample in validation]
    assert [sample.image for sample in both[:2]] == [sample.image for sample in training]
    assert {sample.image.parent for sample in both[2:]} == {second.resolve()}
    assert len(both) == 2 + 5, "a limit for trials is of the first set"
    with pytest.raises(ConfigError, match="there is no folder"):
        load_samples(config(format="coco", root=str(first), val_share=0.3, also=("gone",)), out=tmp_path)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"format": "good"}, "states no validation part"),
        ({"val_groups": ["a"], "val_share": 0.2}, "exclude each other"),
    ],
)
def test_a_split_that_cannot_be(data: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config(**data)
