"""DeepPCB as a set: faults are named and left out where the strict reader stops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from inspect_vit.errors import ConfigError
from training.formats.deeppcb import looks_like_deeppcb, read_deeppcb, read_deeppcb_set

BOARD = "group{0}/{0}/{0}000.jpg group{0}/{0}_not/{0}000.txt"


def write_board(
    data: Path, group: str, labels: str | None, *, parts: tuple[str, ...] = ("test", "temp")
) -> str:
    """The files of one pair of 64 x 48 px, and its list line."""
    line = BOARD.format(group)
    picture, label = (data / part for part in line.split())
    picture.parent.mkdir(parents=True), label.parent.mkdir(parents=True)
    for part in parts:
        Image.new("L", (64, 48)).save(picture.with_name(f"{picture.stem}_{part}.jpg"))
    if labels is not None:
        label.write_text(labels, encoding="utf-8")
    return line


def test_both_splits_are_one_set_and_faults_are_named(tmp_path: Path) -> None:
    data = tmp_path / "PCBData"
    train = [
        write_board(data, "001", "1 2 30 40 1\n1 2 30\n60 40 70 50 6\n9 9 9 12 2\n5 5 9 9 7\n70 1 80 9 1"),
        "one field",
        "only-one",
    ]
    test = [
        write_board(data, "002", "", parts=("test",)),
        write_board(data, "003", None),
        write_board(data, "004", "", parts=("temp",)),
    ]
    (data / "trainval.txt").write_bytes("\r\n".join(train).encode())
    (data / "test.txt").write_text("\n".join(test), encoding="utf-8")
    assert looks_like_deeppcb(tmp_path) and looks_like_deeppcb(data)
    read = read_deeppcb_set(tmp_path)
    assert [(s.group, s.split, s.labels) for s in read.samples] == [
        ("001", "train", ("open", "pin-hole")),
        ("002", "test", ()),
    ]
    np.testing.assert_array_equal(read.samples[0].boxes, [[1.5, 2.5, 30.5, 40.5], [60.5, 40.5, 64, 48]])
    assert read.samples[1].reference is None
    assert [(fault.kind, fault.where.rpartition("/")[2]) for fault in read.faults] == [
        ("bad-line", "001000.txt:2"),
        ("box-clipped", "001000.txt:3"),
        ("empty-box", "001000.txt:4"),
        ("unknown-class", "001000.txt:5"),
        ("box-outside", "001000.txt:6"),
        ("missing-image", "trainval.txt:2"),
        ("bad-line", "trainval.txt:3"),
        ("missing-reference", "test.txt:1"),
        ("missing-labels", "test.txt:2"),
        ("missing-image", "test.txt:3"),
    ]


def test_the_set_holds_what_the_strict_reader_reads(deeppcb_root: Path) -> None:
    data = read_deeppcb_set(deeppcb_root)
    strict = [*read_deeppcb(deeppcb_root, "trainval"), *read_deeppcb(deeppcb_root, "test")]
    assert data.faults == ()
    assert [(s.image, s.reference, s.labels) for s in data.samples] == [
        (s.image, s.reference, s.labels) for s in strict
    ]
    np.testing.assert_array_equal(
        np.concatenate([s.boxes for s in data.samples]), np.concatenate([s.boxes for s in strict])
    )


def test_other_folders_are_refused(tmp_path: Path) -> None:
    assert not looks_like_deeppcb(tmp_path)
    with pytest.raises(ConfigError, match=r"no PCBData/trainval\.txt"):
        read_deeppcb_set(tmp_path)
