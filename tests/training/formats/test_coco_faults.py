"""What the COCO reader must not pass over in silence: ids, moved pictures, splits, flags, odd texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from training.formats.coco import read_coco
from training.formats.dataset import DataSet
from training.formats.registry import read_dataset

CATEGORIES = [{"id": 3, "name": "open"}]


def draw(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (64, 48), sum(path.as_posix().encode()) % 256).save(path)
    return path.resolve()


def annotation(**keys: Any) -> dict[str, Any]:
    return {"image_id": 1, "category_id": 3, "bbox": [10, 10, 5, 5], **keys}


def read(
    root: Path, images: list[Any], annotations: list[Any], categories: list[Any] = CATEGORIES
) -> DataSet:
    tree = {"images": images, "annotations": annotations, "categories": categories}
    (root / "annotations.coco.json").write_text(json.dumps(tree), encoding="utf-8")
    return read_coco(root)


def said(data: DataSet) -> list[tuple[str, str]]:
    return [(fault.kind, fault.where.rpartition(":")[2]) for fault in data.faults]


@pytest.mark.parametrize("number", [1, 1.0, "1", " 1"])
@pytest.mark.parametrize("meant", [1, 1.0, "1"])
def test_ids_are_the_same_whatever_their_type(tmp_path: Path, number: Any, meant: Any) -> None:
    draw(tmp_path / "a.png")
    data = read(tmp_path, [{"id": number, "file_name": "a.png"}], [annotation(image_id=meant)])
    assert (len(data.samples[0].boxes), data.faults) == (1, ())
    data = read(
        tmp_path,
        [{"id": 1, "file_name": "a.png"}],
        [annotation(category_id=meant)],
        [{"id": number, "name": "open"}],
    )
    assert (data.samples[0].labels, data.faults) == (("open",), ())


@pytest.mark.parametrize("meant", ["01", True, None, [1], "b", 2])
def test_an_id_of_no_image_is_said(tmp_path: Path, meant: Any) -> None:
    draw(tmp_path / "a.png")
    data = read(tmp_path, [{"id": 1, "file_name": "a.png"}], [annotation(image_id=meant)])
    assert said(data) == [("unknown-image-id", "annotations[0]")]


def test_a_picture_in_another_folder_is_said_and_two_that_become_one_are_refused(tmp_path: Path) -> None:
    board, golden, other = (draw(tmp_path / name) for name in ("images/b.png", "g.png", "o.png"))
    moved = read(tmp_path, [{"id": 1, "file_name": "lotA/b.png", "reference": "gold/g.png"}], [])
    assert [(s.image, s.reference) for s in moved.samples] == [(board, golden)]
    assert said(moved) == [("image-moved", "images[0]")] * 2
    images = [
        {"id": 1, "file_name": "lotA/b.png"},
        {"id": 2, "file_name": "lotB/b.png"},
        {"id": 3, "file_name": "o.png", "reference": "x/g.png"},
        {"id": 4, "file_name": "images/b.png", "reference": "y/g.png"},
    ]
    data = read(tmp_path, images, [annotation(image_id=1), annotation(image_id=4)])
    assert [(s.image, s.reference, len(s.boxes)) for s in data.samples] == [
        (other, None, 0),
        (board, None, 1),
    ]
    assert said(data) == [
        ("unclear-image", "images[0]"),
        ("unclear-image", "images[1]"),
        ("unclear-reference", "images[2]"),
        ("unclear-reference", "images[3]"),
    ]


def test_splits_and_flags_that_cannot_be_told_are_said(tmp_path: Path) -> None:
    names = {"train2017": "train", " Valid ": "val", "holdout": "", 5: "", None: "", "": ""}
    images = [{"id": i, "file_name": f"{i}.png", "split": split} for i, split in enumerate(names)]
    for entry in images:
        draw(tmp_path / str(entry["file_name"]))
    flags = {
        "0": False,
        "false": False,
        "": False,
        0.0: False,
        "1": True,
        "True": True,
        "maybe": False,
        2: False,
    }
    annotations = [annotation(iscrowd=flag) for flag in flags]
    data = read(tmp_path, images, annotations)
    assert [sample.split for sample in data.samples] == list(names.values())
    assert data.samples[1].ignored == tuple(flags.values())
    assert said(data) == [
        ("bad-flag", "annotations[6]"),
        ("bad-flag", "annotations[7]"),
        ("unknown-split", "images[2]"),
        ("unknown-split", "images[3]"),
    ]


def test_depth_and_texts_that_are_no_unicode_are_faults_of_their_entry(tmp_path: Path) -> None:
    draw(tmp_path / "a.png")
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    data = read(
        tmp_path,
        [{"id": 1, "file_name": "a.png", "group": deep}, {"id": 2, "file_name": deep}],
        [
            annotation(foo=deep),
            annotation(bbox=deep),
            annotation(category_id=4),
            annotation(bbox=[1, 1, 10**400, 1]),
        ],
        [*CATEGORIES, {"id": 4, "name": "op\ud800en"}],
    )
    assert len(data.samples[0].boxes) == 1
    assert ("not-unicode", "categories[1]") in said(data)
    assert ("unknown-class", "annotations[2]") in said(data)
    assert ("bad-box", "annotations[1]") in said(data)
    assert all(fault.message.encode() for fault in data.faults)


def test_a_file_name_that_is_not_utf8_is_said_with_escapes(tmp_path: Path) -> None:
    draw(tmp_path / "good.png")
    odd = tmp_path / "b\udcff.png"
    try:
        draw(tmp_path / "b.png").rename(odd)
    except OSError:
        pytest.skip("this disk holds names in UTF-8 only")
    data = read_dataset(tmp_path)
    assert [sample.image.name for sample in data.samples] == ["good.png"]
    (fault,) = data.faults
    assert fault.kind == "not-unicode" and "b\\udcff.png" in fault.message
    assert all(text.encode() for text in (fault.where, fault.message)) and fault.image is None


def test_a_board_is_not_its_own_reference(tmp_path: Path) -> None:
    draw(tmp_path / "a.png")
    read(tmp_path, [{"id": 1, "file_name": "a.png", "reference": "a.png"}], [annotation()])
    data = read_dataset(tmp_path)
    assert data.samples[0].reference is None
    assert said(data) == [("own-reference", "images[0]")]
