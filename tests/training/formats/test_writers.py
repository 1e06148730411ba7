"""What each writer leaves on disk, and what it says that its format cannot hold."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from inspect_vit.shapes import Polygon, Shape
from training.formats.cvat import read_cvat, write_cvat
from training.formats.dataset import DataSet, Fault
from training.formats.labelme import read_labelme, write_labelme
from training.formats.voc import read_voc, write_voc
from training.formats.yolo import read_yolo, write_yolo

SQUARE = np.array([[10.0, 10], [20, 10], [20, 20], [10, 20]])


def draw(path: Path, size: tuple[int, int] = (60, 40)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", size).save(path)
    return path.resolve()


def test_what_yolo_cannot_hold_is_said(tmp_path: Path) -> None:
    board = draw(tmp_path / "a.png", (200, 100))
    triangle = Shape(polygons=(Polygon(np.array([[10.0, 10], [50, 10], [50, 50]])),))
    overlapping = Shape(polygons=tuple(Polygon(triangle.polygons[0].exterior + dx) for dx in (60.0, 70.0)))
    outside = Shape(polygons=(Polygon(np.array([[190.0, 90], [230, 90], [190, 130]])),))
    sample = Sample(
        board,
        np.array([[10, 10, 50, 50], [5, 5, 60, 60], [70, 70, 120, 100], [190, 90, 200, 100]], np.float32),
        ("open", "open", "open", "open"),
        reference=board,
        group="b7",
        masks=(None, triangle, overlapping, outside),
        ignored=(True, False, False, False),
    )
    lost: list[Fault] = []
    write_yolo(DataSet((sample,), ("open",), root=tmp_path), tmp_path / "out", lost=lost)
    assert [fault.kind for fault in lost] == [
        "no-split",
        "mixed-labels",
        "no-ignored",
        "no-box",
        "outline-as-pixels",
    ]
    (back,) = read_yolo(tmp_path / "out").samples
    assert (back.split, len(back.boxes)) == ("train", 3)
    assert back.masks is not None and back.masks[1] is not None and back.masks[2] is not None
    np.testing.assert_array_equal(back.masks[1].mask(100, 200), overlapping.mask(100, 200))
    np.testing.assert_allclose(back.masks[2].bounds(), (190, 90, 200, 100))


def test_written_files_are_the_devkits(tmp_path: Path) -> None:
    board = draw(tmp_path / "in" / "a.png")
    masks = (Shape(polygons=(Polygon(np.array([[2.0, 2], [12, 2], [12, 12], [2, 12]])),)), None)
    sample = Sample(
        board,
        np.array([[2, 2, 12, 12], [0, 0.5, 60, 40]], np.float32),
        ("open", "a & b"),
        masks=masks,
        ignored=(False, True),
        split="train",
    )
    write_voc(DataSet((sample,), ("open", "a & b"), root=tmp_path), tmp_path / "out")
    root = ElementTree.parse(tmp_path / "out" / "Annotations" / "a.xml").getroot()
    first, second = root.findall("object")
    assert [box.text for box in first.findall("bndbox/*")] == ["3", "3", "12", "12"]
    assert [box.text for box in second.findall("bndbox/*")] == ["1", "1.5", "60", "40"]
    assert [node.findtext("difficult") for node in (first, second)] == ["0", "1"]
    assert (root.findtext("filename"), root.findtext("segmented"), second.findtext("name")) == (
        "a.png",
        "1",
        "a & b",
    )
    assert (tmp_path / "out" / "ImageSets" / "Main" / "train.txt").read_text() == "a\n"
    with Image.open(tmp_path / "out" / "SegmentationObject" / "a.png") as image:
        np.testing.assert_array_equal(np.unique(image, return_counts=True), [[0, 1], [2300, 100]])
        palette = np.reshape(image.getpalette() or [], (-1, 3))
    assert palette[1:4].tolist() == [[128, 0, 0], [0, 128, 0], [128, 128, 0]]


def test_what_voc_cannot_hold_is_said(tmp_path: Path) -> None:
    board = draw(tmp_path / "a.png")
    square = Shape.from_mask(np.pad(np.ones((10, 10), np.bool_), ((5, 25), (5, 45))))
    sliver = Shape(polygons=(Polygon(np.array([[30.1, 30.1], [30.3, 30.1], [30.3, 30.4]])),))
    shapes = (square, square, sliver)
    boxes = np.array([shape.bounds() for shape in shapes], np.float32)
    sample = Sample(board, boxes, ("open",) * 3, reference=board, group="b7", masks=shapes)
    lost: list[Fault] = []
    write_voc(DataSet((sample,), ("open",), root=tmp_path), tmp_path / "out", copy_pictures=False, lost=lost)
    assert [fault.kind for fault in lost] == [
        "no-outline",
        "no-outline",
        "outlines-overlap",
        "outline-as-pixels",
    ]
    assert "100 pixels" in lost[-2].message
    (back,) = read_voc(tmp_path / "out").samples
    assert back.image == board
    np.testing.assert_array_equal(back.boxes, boxes)
    assert back.masks is not None and [shape is None for shape in back.masks] == [True, False, True]


def test_a_name_that_xml_cannot_hold_is_refused(tmp_path: Path) -> None:
    sample = Sample(draw(tmp_path / "a.png"), np.array([[0, 0, 5, 5]], np.float32), ("a\x07",))
    with pytest.raises(ConfigError, match="XML cannot hold"):
        write_voc(DataSet((sample,), (), root=tmp_path), tmp_path / "out")


def test_what_labelme_cannot_hold_is_said_and_what_it_can_comes_back(tmp_path: Path) -> None:
    board = draw(tmp_path / "a.png")
    ring = SQUARE
    leaving = Shape(polygons=(Polygon(ring, (ring / 4 + 17,)),))
    sample = Sample(
        board,
        np.array([[5, 5, 25, 25], [0, 0, 3, 3]], np.float32),
        ("open", "open"),
        reference=board,
        group="b7",
        masks=(leaving, None),
        ignored=(False, True),
    )
    lost: list[Fault] = []
    write_labelme(
        DataSet((sample,), ("open",), root=tmp_path), tmp_path / "out", copy_pictures=False, lost=lost
    )
    assert [fault.kind for fault in lost] == ["no-box", "outline-as-pixels"]
    data = read_labelme(tmp_path / "out")
    (back,) = data.samples
    assert (back.image, back.group, back.ignored) == (board, "b7", (False, True))
    assert back.masks is not None and back.masks[0] is not None
    np.testing.assert_array_equal(back.masks[0].mask(40, 60), leaving.mask(40, 60))


def test_written_masks_are_runs_along_rows(tmp_path: Path) -> None:
    pixels = np.zeros((40, 60), np.bool_)
    pixels[5, 7:9] = pixels[6, 8:10] = True
    shape = Shape.from_mask(pixels)
    sample = Sample(
        draw(tmp_path / "a.png"), np.array([shape.bounds()], np.float32), ("open",), masks=(shape,)
    )
    write_cvat(DataSet((sample,), ("open",), root=tmp_path), tmp_path / "out")
    root = ElementTree.parse(tmp_path / "out" / "annotations.xml").getroot()
    node = root.find("image/mask")
    assert node is not None
    assert {key: node.get(key) for key in ("rle", "left", "top", "width", "height")} == {
        "rle": "0, 2, 2, 2",
        "left": "7",
        "top": "5",
        "width": "3",
        "height": "2",
    }


def test_what_cvat_cannot_hold_is_said_and_what_it_can_comes_back(tmp_path: Path) -> None:
    board = draw(tmp_path / "a.png")
    ring = SQUARE
    parts = Shape(polygons=(Polygon(ring), Polygon(ring + 15)))
    leaving = Shape(polygons=(Polygon(ring + np.array([30, 0]), (ring / 4 + np.array([47, 15]),)),))
    sample = Sample(
        board,
        np.array([[10, 10, 35, 35], [5, 5, 55, 25], [0, 0, 3, 3]], np.float32),
        ("open", "open", 'a "b" <c>'),
        reference=board,
        group="b7",
        masks=(parts, leaving, None),
        ignored=(True, False, True),
    )
    lost: list[Fault] = []
    write_cvat(DataSet((sample,), (), root=tmp_path), tmp_path / "out", copy_pictures=False, lost=lost)
    assert [fault.kind for fault in lost] == ["no-box", "outline-as-pixels"]
    (back,) = read_cvat(tmp_path / "out").samples
    assert (back.image, back.ignored, back.labels) == (board, (True, False, True), sample.labels)
    assert back.masks is not None and back.masks[1] is not None
    np.testing.assert_array_equal(back.masks[1].mask(40, 60), leaving.mask(40, 60))
