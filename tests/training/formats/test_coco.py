"""The COCO reader on hand-written files and real sets."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from inspect_vit.errors import ConfigError
from training.formats.coco import looks_like_coco, read_coco
from training.formats.dataset import DataSet

CATEGORIES = [{"id": 7, "name": "short"}, {"id": 3, "name": "open"}, {"id": 4, "name": "spur"}]


def draw(path: Path, size: tuple[int, int] = (64, 48), *, orientation: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    exif[274] = orientation
    Image.new("L", size, sum(path.name.encode()) % 256).save(path, exif=exif)
    return path.resolve()


def annotation(image_id: int = 1, category_id: int = 3, **keys: Any) -> dict[str, Any]:
    return {"image_id": image_id, "category_id": category_id, "bbox": [10, 10, 5, 5], **keys}


def write_labels(
    path: Path, images: list[Any], annotations: list[Any], categories: list[Any] = CATEGORIES
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    tree = {"images": images, "annotations": annotations, "categories": categories}
    path.write_text(json.dumps(tree), encoding="utf-8")
    return path


def kinds(data: DataSet) -> list[str]:
    return [fault.kind for fault in data.faults]


def test_boxes_outlines_flags_and_pairs_are_read(tmp_path: Path) -> None:
    board, golden = draw(tmp_path / "pictures" / "a.png"), draw(tmp_path / "golden" / "a.png")
    clean = draw(tmp_path / "pictures" / "clean.png")
    labels = write_labels(
        tmp_path / "annotations.coco.json",
        [
            {
                "id": 1,
                "file_name": "pictures/a.png",
                "width": 64,
                "height": 48,
                "template": "golden/a.png",
                "board": 12,
            },
            {"id": 2, "file_name": "pictures/clean.png", "split": "valid"},
        ],
        [
            annotation(bbox=[1.25, 2.5, 10.5, 4.125]),
            annotation(category_id=7, segmentation=[[20, 20, 30.5, 20, 30.5, 31]], iscrowd=1),
            annotation(
                category_id=7,
                bbox=None,
                segmentation={"size": [48, 64], "counts": [5 * 48 + 2, 3, 48 * 59 - 5]},
            ),
        ],
    )
    data = read_coco(tmp_path)
    assert data.faults == ()
    assert data.class_names == ("short", "open", "spur"), "in the order of the file, unused ones too"
    first, second = data.samples
    assert (first.image, first.reference, first.group) == (board, golden, "12")
    np.testing.assert_array_equal(first.boxes, [[1.25, 2.5, 11.75, 6.625], [10, 10, 15, 15], [5, 2, 6, 5]])
    assert first.labels == ("open", "short", "short")
    assert first.ignored == (False, True, False)
    assert first.masks is not None and first.masks[0] is None
    assert first.masks[1] is not None and first.masks[1].bounds() == (20, 20, 30.5, 31)
    assert first.origin == f"{labels}:images[0]"
    assert (second.image, len(second.boxes), second.masks, second.split) == (clean, 0, None, "val")
    assert read_coco(labels).samples[0].image == board, "the file may be named itself"


@pytest.mark.parametrize(
    ("labels", "picture", "split"),
    [
        ("_annotations.coco.json", "1.png", ""),
        ("train/_annotations.coco.json", "train/1.png", "train"),
        ("valid/_annotations.coco.json", "valid/1.png", "val"),
        ("annotations/instances_val2017.json", "val2017/1.png", "val"),
        ("annotations/instances_train.json", "images/train/1.png", "train"),
        ("annotations/instances_default.json", "images/1.png", ""),
        ("latest_result.json", "images/1.png", ""),
    ],
)
def test_places_where_tools_put_labels_and_pictures(
    tmp_path: Path, labels: str, picture: str, split: str
) -> None:
    expected = draw(tmp_path / picture)
    write_labels(tmp_path / labels, [{"id": 1, "file_name": "1.png"}], [annotation()])
    assert looks_like_coco(tmp_path)
    data = read_coco(tmp_path)
    assert (data.samples[0].image, data.samples[0].split, data.faults) == (expected, split, ())


def test_splits_are_joined_by_class_name(tmp_path: Path) -> None:
    for split, name in (("train", "open"), ("test", "short")):
        draw(tmp_path / split / "1.png")
        categories = [{"id": 0, "name": "defects"}, {"id": 1, "name": name, "supercategory": "defects"}]
        write_labels(
            tmp_path / split / "_annotations.coco.json",
            [{"id": 0, "file_name": "1.png"}],
            [annotation(0, 1)],
            categories,
        )
    data = read_coco(tmp_path)
    assert data.class_names == ("short", "open")
    assert [(s.split, s.labels, s.image.parent.name) for s in data.samples] == [
        ("test", ("short",), "test"),
        ("train", ("open",), "train"),
    ]
    assert kinds(data) == ["empty-supercategory"] * 2, "the heading that some tools add is left out, and said"


def test_names_written_by_other_systems_are_found(tmp_path: Path) -> None:
    umlaut = draw(tmp_path / "images" / unicodedata.normalize("NFC", "Pr\u00fcfling \u57fa\u677f.png"))
    upper, foreign = draw(tmp_path / "images" / "B.PNG"), draw(tmp_path / "images" / "c.png")
    names = [unicodedata.normalize("NFD", umlaut.name), "images\\b.png", "C:\\Users\\me\\boards\\c.png"]
    path = write_labels(
        tmp_path / "annotations.coco.json", [{"id": i, "file_name": name} for i, name in enumerate(names)], []
    )
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b", ", b",\r\n"))
    data = read_coco(tmp_path)
    assert [sample.image for sample in data.samples] == [umlaut, upper, foreign]
    assert [(fault.kind, fault.where) for fault in data.faults] == [("image-moved", f"{path}:images[2]")]


def test_bad_entries_are_named_and_left_out_and_the_rest_is_read(tmp_path: Path) -> None:
    draw(tmp_path / "1.png"), draw(tmp_path / "3.png")
    (tmp_path / "corrupt.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    path = write_labels(
        tmp_path / "annotations.coco.json",
        [
            {"id": 1, "file_name": "1.png", "reference": "nowhere.png"},
            {"id": 2, "file_name": "gone.png"},
            {"id": 1, "file_name": "3.png"},
            {"id": 3, "file_name": "3.png", "width": 48, "height": 64},
            {"file_name": "3.png"},
            {"id": 4, "file_name": "corrupt.png"},
            "3.png",
        ],
        [
            annotation(),
            annotation(bbox=[5, 5, 0, 9]),
            annotation(bbox=[60, 40, 10, 10]),
            annotation(bbox=[90, 5, 10, 10]),
            annotation(bbox=[5, 5, 9]),
            annotation(category_id=99),
            annotation(9),
            annotation(2),
            annotation(segmentation=[[1, 2]]),
            annotation(segmentation={"size": [10, 10], "counts": [100]}),
            annotation(bbox=[float("nan"), 1, 2, 3]),
            annotation(score=0.5),
        ],
        [*CATEGORIES, {"id": 3, "name": "again"}, {"id": 5}],
    )
    data = read_coco(tmp_path)
    assert {(fault.kind, fault.where.removeprefix(f"{path}:")) for fault in data.faults} == {
        ("duplicate-category", "categories[3]"),
        ("bad-category", "categories[4]"),
        ("missing-reference", "images[0]"),
        ("missing-image", "images[1]"),
        ("duplicate-image-id", "images[2]"),
        ("size-mismatch", "images[3]"),
        ("bad-image", "images[4]"),
        ("corrupt-image", "images[5]"),
        ("not-an-object", "images[6]"),
        ("empty-box", "annotations[1]"),
        ("box-clipped", "annotations[2]"),
        ("box-outside", "annotations[3]"),
        ("bad-box", "annotations[4]"),
        ("unknown-class", "annotations[5]"),
        ("unknown-image-id", "annotations[6]"),
        ("bad-outline", "annotations[8]"),
        ("bad-outline", "annotations[9]"),
        ("not-finite", "annotations[10]"),
        ("unread-key", "annotations[].score"),
    }
    assert [sample.image.name for sample in data.samples] == ["1.png", "3.png"]
    whole, clipped = [10, 10, 15, 15], [60, 40, 64, 48]
    np.testing.assert_array_equal(data.samples[0].boxes, [whole, clipped, whole, whole, whole])
    assert data.samples[0].masks is None and data.samples[0].reference is None
    corrupt = next(fault for fault in data.faults if fault.kind == "corrupt-image")
    assert corrupt.image == (tmp_path / "corrupt.png").resolve()


def test_the_size_is_that_of_the_upright_picture(tmp_path: Path) -> None:
    draw(tmp_path / "turned.jpg", (64, 48), orientation=6)
    write_labels(
        tmp_path / "annotations.coco.json",
        [{"id": 1, "file_name": "turned.jpg", "width": 48, "height": 64}],
        [annotation(bbox=[2, 50, 40, 14])],
    )
    assert read_coco(tmp_path).faults == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"images": [', r"annotations\.coco\.json is not JSON: .*column 13"),
        ("[" * 100_000, "is not JSON"),
        ('{"images": [], "annotations": {}}', "wanted the lists images, annotations and categories"),
        ("[]", "wanted the lists"),
    ],
)
def test_files_that_are_not_coco_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "annotations.coco.json").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_coco(tmp_path)


def test_folders_without_coco_are_refused_and_not_taken_for_it(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"shapes": [], "imagePath": "a.png"}', encoding="utf-8")
    assert not looks_like_coco(tmp_path)
    with pytest.raises(ConfigError, match="no COCO labels; wanted"):
        read_coco(tmp_path)
    with pytest.raises(ConfigError, match="no COCO labels"):
        read_coco(tmp_path / "nowhere")


def test_the_samples_that_ship_with_the_project(project: Path) -> None:
    data = read_coco(project / "data_samples")
    assert set(kinds(data)) <= {"unread-key"}
    assert all(sample.reference is not None for sample in data.samples)
    assert sum(not len(sample.boxes) for sample in data.samples) == 2
    for sample in data.samples:
        for box, shape in zip(sample.boxes, sample.masks or (), strict=True):
            assert shape is not None
            left, top, right, bottom = shape.bounds()
            assert box[0] <= left < right <= box[2] and box[1] <= top < bottom <= box[3]


def test_three_real_boards(deeppcb_root: Path) -> None:
    root = deeppcb_root.parent / "hripcb_3boards"
    if not root.is_dir():
        pytest.skip(f"INSPECT_VIT_DATA: no {root}")
    data = read_coco(root)
    assert (len(data.samples), sum(len(sample.boxes) for sample in data.samples)) == (56, 226)
    assert {sample.group for sample in data.samples} == {"01", "05", "08"}
    assert all(s.reference is not None and s.reference.stem == s.group for s in data.samples)
    assert [fault.message for fault in data.faults] == ["'derived' of 226 annotations is not read"]
