"""What the YOLO reader must not guess: whose labels a file holds, odd numbers, pictures that moved."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from training.formats.yolo import read_yolo


def draw(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (200, 100), sum(path.as_posix().encode()) % 256).save(path)
    return path.resolve()


def make(root: Path, yaml: str, **labels: str) -> None:
    """A data.yaml, and label files of `images` by stem."""
    (root / "labels").mkdir(parents=True)
    (root / "data.yaml").write_text(yaml, encoding="utf-8")
    for stem, text in labels.items():
        (root / "labels" / f"{stem}.txt").write_text(text, encoding="utf-8")


def test_labels_that_two_pictures_share_go_to_neither(tmp_path: Path) -> None:
    first, second, other = (draw(tmp_path / "images" / name) for name in ("a.jpg", "a.png", "b.png"))
    line = "0 0.5 0.5 0.1 0.1\n"
    make(tmp_path, "train: images\nval: images\nnames: [open]\n", a=line, b=line)
    data = read_yolo(tmp_path)
    assert [(sample.image, len(sample.boxes)) for sample in data.samples] == [(other, 1)] * 2
    (fault,) = data.faults
    assert (fault.kind, fault.where) == ("shared-labels", str(tmp_path / "labels" / "a.txt"))
    assert str(first) in fault.message and str(second) in fault.message


@pytest.mark.parametrize("number", ["1_0", "\u0660.2", "\uff10", "0x1"])
def test_only_plain_numbers_are_numbers(tmp_path: Path, number: str) -> None:
    draw(tmp_path / "images" / "a.png")
    make(tmp_path, "train: images\nnames: [open]\n", a=f"0 {number} 0.2 0.1 0.1\n0 0.5 0.5 0.1 0.1\n")
    data = read_yolo(tmp_path)
    assert [len(sample.boxes) for sample in data.samples] == [1]
    assert [fault.kind for fault in data.faults] == ["bad-line"]


def test_a_class_name_that_is_no_unicode_is_left_out(tmp_path: Path) -> None:
    draw(tmp_path / "images" / "a.png")
    names = 'train: images\nnames: ["op\\ud800en", short]\n'
    make(tmp_path, names, a="0 0.5 0.5 0.1 0.1\n1 0.5 0.5 0.1 0.1\n")
    data = read_yolo(tmp_path)
    assert data.class_names == ("short",)
    assert [sample.labels for sample in data.samples] == [("short",)]
    assert [fault.kind for fault in data.faults] == ["not-unicode", "unknown-class"]
    assert all(fault.message.encode() for fault in data.faults)


def test_a_list_says_what_moved_and_refuses_what_is_not_clear(tmp_path: Path) -> None:
    board, other = draw(tmp_path / "images" / "a.png"), draw(tmp_path / "images" / "b.png")
    line = "0 0.5 0.5 0.1 0.1\n"
    make(tmp_path, "train: train.txt\nnames: [open]\n", a=line, b=line)
    (tmp_path / "images" / "train.txt").write_text("lotA/a.png\nlotB/b.png\nlotC/b.png\n")
    (tmp_path / "data.yaml").write_text("train: images/train.txt\nnames: [open]\n")
    data = read_yolo(tmp_path)
    assert [sample.image for sample in data.samples] == [board] != [other]
    assert sorted(fault.kind for fault in data.faults) == ["image-moved", "unclear-image", "unclear-image"]
