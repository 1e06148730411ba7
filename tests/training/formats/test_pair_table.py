"""References and groups come back from every format that is written, and from a table beside any set."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from training.checks.check import check_dataset
from training.formats.convert import import_dataset
from training.formats.dataset import DataSet, Fault
from training.formats.references import GroupByName, ReferenceByFolder
from training.formats.registry import WRITTEN, detect_format, read_dataset, write_dataset

NO_BOXES = np.zeros((0, 4), np.float32)
every_format = pytest.mark.parametrize("name", WRITTEN)
copied_or_not = pytest.mark.parametrize("copy_pictures", [True, False], ids=["copied", "in place"])


def draw(path: Path, seed: int, size: tuple[int, int] = (60, 40)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, size[::-1], np.uint8)
    Image.fromarray(pixels).save(path)
    return path.resolve()


def paired_set(root: Path) -> DataSet:
    """Two boards of one reference, one of another of the same name, three without a box."""
    golden, other = draw(root / "gold, 1" / "b\u00f6ard.png", 1), draw(root / "gold 2" / "b\u00f6ard.png", 2)
    images = [draw(root / "boards" / f"\u677f {n}.png", 10 + n) for n in range(5)]
    box = np.array([[4, 5, 20, 15]], np.float32)
    facts = (
        (golden, 'lot "A", 1', "train", False),
        (golden, "lot; 2", "test", True),
        (other, "", "test", True),
        (images[0], "\u6279\u6b21", "train", False),
        (None, "", "train", False),
    )
    # The first is the reference of the fourth as well as a board of its own; the last has none.
    samples = [
        Sample(
            image,
            box if has_box else NO_BOXES,
            ("open",) if has_box else (),
            reference=reference,
            group=group,
            split=split,
        )
        for image, (reference, group, split, has_box) in zip(images, facts, strict=True)
    ]
    return DataSet(tuple(samples), ("open",), root=root.resolve())


def seen(data: DataSet) -> dict[bytes, tuple[bytes | None, str, str, int]]:
    """Picture -> its reference, group, split and number of boxes, by content and not by name."""
    assert len({sample.image for sample in data.samples}) == len(data.samples)
    return {
        s.image.read_bytes(): (s.reference and s.reference.read_bytes(), s.group, s.split, len(s.boxes))
        for s in data.samples
    }


@every_format
@copied_or_not
def test_references_and_groups_come_back_the_same(tmp_path: Path, name: str, copy_pictures: bool) -> None:
    """Written, read, written again elsewhere and read again: nothing is lost, nothing is said to be."""
    data = paired_set(tmp_path / "in")
    lost: list[Fault] = []
    write_dataset(data, tmp_path / "one", name, copy_pictures=copy_pictures, lost=lost)
    first = read_dataset(tmp_path / "one")
    assert (first.format, first.faults) == (name, ())
    assert seen(first) == seen(data)
    assert {fault.kind for fault in lost} <= {"renamed"}
    summary = import_dataset(tmp_path / "one", tmp_path / "two", to_format=name, copy_pictures=copy_pictures)
    assert (summary["faults"], summary["not_held"], summary["references"], summary["groups"]) == (
        [],
        [],
        4,
        3,
    )
    assert seen(read_dataset(tmp_path / "two")) == seen(data)


@every_format
def test_copies_stand_alone_and_each_picture_is_copied_once(tmp_path: Path, name: str) -> None:
    """The set can be moved: with its source gone it reads the same, and no reference lies in it twice."""
    data = paired_set(tmp_path / "in")
    wanted = seen(data)
    write_dataset(data, tmp_path / "out", name)
    (tmp_path / "in").rename(tmp_path / "gone")
    (tmp_path / "out").rename(tmp_path / "moved")
    back = read_dataset(tmp_path / "moved")
    assert seen(back) == wanted
    assert all((s.reference or s.image).is_relative_to(tmp_path / "moved") for s in back.samples)
    assert len(list((tmp_path / "moved").rglob("*.png"))) == 7, "five boards, two references"


@pytest.mark.parametrize("name", [name for name in WRITTEN if name != "coco"])
def test_the_table_is_plain_csv(tmp_path: Path, name: str) -> None:
    """By another reader, in UTF-8: one row a picture, paths with forward slashes from the set's folder."""
    data = paired_set(tmp_path / "in")
    written = write_dataset(data, tmp_path / "out", name)
    assert tmp_path / "out" / "pairs.csv" in written
    with (tmp_path / "out" / "pairs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == ({"image", "reference"} if name == "labelme" else {"image", "reference", "group"})
    assert len(rows) == 5
    for row in rows:
        for cell in filter(None, (row["image"], row["reference"])):
            assert (tmp_path / "out" / cell).is_file() and "\\" not in cell
    assert [row["reference"] for row in rows].count("") == 1


@every_format
def test_a_set_without_references_and_groups_gets_no_table(tmp_path: Path, name: str) -> None:
    data = paired_set(tmp_path / "in")
    bare = replace(data, samples=tuple(replace(s, reference=None, group="") for s in data.samples))
    write_dataset(bare, tmp_path / "out", name)
    assert not (tmp_path / "out" / "pairs.csv").exists()
    assert not (tmp_path / "out" / "references").exists()


Saved = Callable[[str], bytes]


@pytest.mark.parametrize(
    ("separator", "saved"),
    [
        (",", lambda text: text.encode()),
        (";", lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()),
        ("\t", lambda text: text.replace("\n", "\r\n").encode("utf-16")),
    ],
    ids=["plain", "spreadsheet", "unicode text"],
)
def test_a_table_in_any_set_is_read_unless_a_rule_is_given(
    tmp_path: Path, separator: str, saved: Saved
) -> None:
    """A folder of good boards with one reference, named by bare names and Windows paths."""
    root = tmp_path / "set"
    boards = [draw(root / "lot" / f"pl\u00e4tine {n}.png", n) for n in range(3)]
    golden = draw(root / "golden" / "g.png", 9)
    rows = [
        ["Image", "Reference", "Group"],
        ["lot\\pl\u00e4tine 0.png", "golden\\g.png", "a"],
        ["pl\u00e4tine 1.png", "golden/g.png", ""],
        ["lot/pl\u00e4tine 2.png", "", "c"],
    ]
    text = "\n".join(separator.join(row) for row in rows) + "\n"
    (root / "pairs.csv").write_bytes(saved(text))
    assert detect_format(root) == "good"
    data = read_dataset(root)
    assert [(s.image, s.reference, s.group) for s in data.samples] == [
        (boards[0], golden, "a"),
        (boards[1], golden, "lot"),
        (boards[2], None, "c"),
    ]
    assert [fault.kind for fault in data.faults] == ["used-as-reference"]
    assert data.remarks == ("references and groups as pairs.csv has them",)
    ruled = read_dataset(root, references=ReferenceByFolder(root / "lot"), groups=GroupByName(r"\d"))
    assert golden not in {sample.reference for sample in ruled.samples}
    assert [s.group for s in ruled.samples if s.image != golden] == ["0", "1", "2"]
    assert ruled.remarks == ()
    half = read_dataset(root, groups=GroupByName(r"\d"))
    assert [(s.reference, s.group) for s in half.samples] == [(golden, "0"), (golden, "1"), (None, "2")]
    assert half.remarks == ("references as pairs.csv has them",)


def test_what_a_table_says_wrongly_is_named(tmp_path: Path) -> None:
    root = tmp_path / "set"
    image, golden = draw(root / "a.png", 0), draw(root / "g.png", 1)
    draw(root / "h.png", 2, (40, 60))
    lines = ["image,reference,group", "gone.png,g.png,", "a.png,gone.png,", "a.png,g.png,x", "g.png,h.png,"]
    (root / "pairs.csv").write_text("\n".join(lines), encoding="utf-8")
    data = read_dataset(root)
    assert [(s.image, s.reference, s.group) for s in data.samples] == [
        (image, golden, "x"),
        (golden, None, ""),
    ]
    assert [(f.kind, Path(f.where).name) for f in data.faults] == [
        ("missing-image", "pairs.csv:2"),
        ("listed-twice", "pairs.csv:4"),
        ("used-as-reference", "set"),
        ("reference-size", "g.png"),
    ]
    (root / "pairs.csv").write_text("image,reference\na.png,gone.png\n", encoding="utf-8")
    (fault,) = read_dataset(root).faults
    assert (fault.kind, fault.image) == ("missing-reference", image)
    (root / "pairs.csv").write_text('image,group\n"a.png,' + "x" * 200_000, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"pairs\.csv:\d+ is not CSV"):
        read_dataset(root)


@pytest.mark.parametrize("name", ["yolo", "voc", "labelme", "cvat"])
def test_a_reference_among_the_pictures_is_neither_board_nor_unlabelled(tmp_path: Path, name: str) -> None:
    """A golden board that somebody put beside the labelled ones, and named in a table of their own."""
    data = paired_set(tmp_path / "in")
    root = tmp_path / "set"
    write_dataset(replace(data, samples=data.samples[1:2]), root, name)
    (board,) = (sample.image for sample in read_dataset(root).samples)
    (root / "pairs.csv").unlink()
    shutil.rmtree(root / "references")
    golden = draw(board.with_name("golden.png"), 1)
    assert "no-label-file" in {fault.kind for fault in read_dataset(root).faults}
    row = f"{board.name},{golden.relative_to(root).as_posix()}"
    (root / "pairs.csv").write_text(f"image,reference\n{row}\n", encoding="utf-8")
    back = read_dataset(root)
    assert [(sample.image, sample.reference) for sample in back.samples] == [(board, golden)]
    assert {fault.kind for fault in back.faults} <= {"used-as-reference"}
    kinds = {finding.kind for finding in check_dataset(back, workers=1).findings}
    assert not kinds & {"unlabelled-image", "no-label-file", "missing-image", "missing-reference"}
