"""The COCO writer: by reading back, and by COCO's own reader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from faster_coco_eval import COCO
from PIL import Image

from inspect_vit.results import Sample
from inspect_vit.shapes import Polygon, Shape
from training.formats.coco import read_coco, write_coco
from training.formats.dataset import DataSet, Fault


def draw(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (64, 48), sum(str(path).encode()) % 256).save(path)
    return path.resolve()


def rich_set(root: Path) -> DataSet:
    """Sub-pixel boxes, a polygon with a hole, two parts, pixels, a crowd, a pair, a group, odd names."""
    ring = np.array([[10.1, 10.2], [30.3, 10.4], [30.5, 29.6], [10.7, 29.8]])
    hole, apart = ring * 0.5 + 10.05, np.array([[40.5, 5.5], [44.5, 5.25], [44.125, 9.25]])
    mask = np.random.default_rng(0).random((48, 64)) < 0.1
    shapes = (
        Shape(polygons=(Polygon(ring, (hole,)), Polygon(apart))),
        Shape(polygons=(Polygon(ring), Polygon(apart))),
        Shape.from_mask(mask),
        None,
    )
    boxes = np.array(
        [[10.1, 5.25, 44.5, 29.8], [10.1, 5.25, 44.5, 29.8], [0, 0, 64, 48], [1.7, 2.9, 3.3, 4.1]]
    )
    labels = ("\u77ed\u8def", "open", "open", "spur")
    pictures = [draw(root / folder / "board \u00e9.png") for folder in ("one", "two")]
    return DataSet(
        (
            Sample(
                pictures[0],
                boxes.astype(np.float32),
                labels,
                reference=draw(root / "golden.png"),
                group="lot 5",
                masks=shapes,
                ignored=(False, True, False, False),
                split="train",
            ),
            Sample(pictures[1], np.zeros((0, 4), np.float32), ()),
        ),
        ("open", "\u77ed\u8def", "spur", "never seen"),
        root=root.resolve(),
    )


@pytest.mark.parametrize("copy_pictures", [True, False])
def test_what_is_written_comes_back_the_same(tmp_path: Path, copy_pictures: bool) -> None:
    data = rich_set(tmp_path / "in")
    written = write_coco(data, tmp_path / "out", copy_pictures=copy_pictures)
    assert all(path.is_file() for path in written)
    assert len(written) == (4 if copy_pictures else 1)
    back = read_coco(tmp_path / "out")
    assert back.faults == ()
    assert back.class_names == data.class_names
    for before, after in zip(data.samples, back.samples, strict=True):
        np.testing.assert_array_equal(before.boxes, after.boxes)
        for name in ("labels", "group", "split", "ignored"):
            assert getattr(before, name) == getattr(after, name)
        assert before.image.read_bytes() == after.image.read_bytes()
        assert (before.image == after.image) != copy_pictures
        assert (before.reference is None) == (after.reference is None)
    assert data.samples[0].masks is not None and back.samples[0].masks is not None
    for shape, other in zip(data.samples[0].masks, back.samples[0].masks, strict=True):
        assert (shape is None) == (other is None)
        if shape is None or other is None:
            continue
        assert (shape.runs, shape.size) == (other.runs, other.size)
        for polygon, same in zip(shape.polygons, other.polygons, strict=True):
            for a, b in zip((polygon.exterior, *polygon.holes), (same.exterior, *same.holes), strict=True):
                np.testing.assert_array_equal(a, b)


def test_coco_s_own_reader_gets_our_pixels_and_boxes(tmp_path: Path) -> None:
    data = rich_set(tmp_path / "in")
    write_coco(data, tmp_path / "out")
    theirs = COCO(str(tmp_path / "out" / "annotations.coco.json"))
    entries = theirs.loadAnns(theirs.getAnnIds(imgIds=[1]))
    assert [theirs.loadCats(entry["category_id"])[0]["name"] for entry in entries] == list(
        data.samples[0].labels
    )
    assert [entry["iscrowd"] for entry in entries] == [0, 1, 0, 0]
    boxes = np.array([entry["bbox"] for entry in entries])
    boxes[:, 2:] += boxes[:, :2]
    np.testing.assert_allclose(boxes, data.samples[0].boxes, atol=1e-5)
    assert data.samples[0].masks is not None
    for entry, shape in zip(entries, data.samples[0].masks, strict=True):
        if shape is not None and (shape.runs is not None or shape.polygons[0].holes):
            np.testing.assert_array_equal(theirs.annToMask(entry), shape.mask(48, 64))
            assert entry["area"] == shape.mask(48, 64).sum()


def test_renamed_pictures_are_said(tmp_path: Path) -> None:
    data = rich_set(tmp_path / "in")
    lost: list[Fault] = []
    write_coco(data, tmp_path / "out", lost=lost)
    assert [fault.kind for fault in lost] == ["renamed"]
    assert lost[0].image == data.samples[1].image
    assert (tmp_path / "out" / "images" / "two_board \u00e9.png").is_file()
