"""The LabelMe reader on hand-written files."""

from __future__ import annotations

import base64
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from inspect_vit.errors import ConfigError
from inspect_vit.shapes import Shape
from training.formats.dataset import DataSet
from training.formats.labelme import looks_like_labelme, read_labelme

SQUARE = [[10, 10], [20, 10], [20, 20], [10, 20]]


def draw(path: Path, size: tuple[int, int] = (60, 40)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", size, sum(path.name.encode()) % 256).save(path)
    return path.resolve()


def png(pixels: NDArray[Any], kind: str = "PNG") -> str:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return base64.b64encode(file.getvalue()).decode()


def shape(kind: str, points: Any, label: str = "open", **keys: Any) -> dict[str, Any]:
    return {"label": label, "points": points, "shape_type": kind, "group_id": None, "flags": {}} | keys


def write(path: Path, *shapes: Any, encoding: str = "utf-8", **keys: Any) -> Path:
    tree = {"version": "5.4.1", "flags": {}, "shapes": list(shapes), "imagePath": f"{path.stem}.png"} | keys
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(tree, ensure_ascii=False, indent=2)
    path.write_bytes(text.replace("\n", "\r\n").encode(encoding))
    return path


def one_board(root: Path, *shapes: Any, **keys: Any) -> Path:
    draw(root / "a.png")
    return write(root / "a.json", *shapes, **keys)


def found(data: DataSet) -> list[tuple[str, str]]:
    return [(fault.kind, fault.where) for fault in data.faults]


def outlines(data: DataSet) -> list[Shape]:
    """Those of the first picture, where each defect has one."""
    masks = data.samples[0].masks or ()
    assert masks and all(mask is not None for mask in masks)
    return [mask for mask in masks if mask is not None]


def test_each_kind_of_shape_is_what_it_says(tmp_path: Path) -> None:
    pixels = np.array([[1, 0, 1], [1, 1, 0]], np.uint8) * 255
    path = one_board(
        tmp_path,
        shape("rectangle", [[30.5, 20.25], [10, 5]]),
        shape("polygon", [*SQUARE, SQUARE[0]], "short"),
        shape("mask", [[40, 30], [42, 31]], mask=png(pixels)),
        shape("circle", [[30, 20], [33, 24]]),
        shape("oriented_rectangle", [[10, 5], [15, 10], [10, 15], [5, 10]]),
        imageHeight=40,
        imageWidth=60,
    )
    data = read_labelme(tmp_path)
    assert data.faults == ()
    (sample,) = data.samples
    assert sample.labels == ("open", "short", "open", "open", "open")
    wanted = [[10, 5, 30.5, 20.25], [10, 10, 20, 20], [40, 30, 43, 32], [25, 15, 35, 25], [5, 5, 15, 15]]
    np.testing.assert_allclose(sample.boxes, wanted, atol=1e-6)
    assert sample.masks is not None
    box, square, mask, circle, turned = sample.masks
    assert (
        box is None and square is not None and mask is not None and circle is not None and turned is not None
    )
    assert square.polygons[0].exterior.tolist() == SQUARE, (
        "the last point, which repeats the first, is dropped"
    )
    np.testing.assert_array_equal(mask.mask(40, 60)[30:32, 40:43], pixels > 0)
    assert mask.mask(40, 60).sum() == 4
    ring = circle.polygons[0].exterior
    chords = np.hypot(*((ring + np.roll(ring, 1, 0)) / 2 - (30, 20)).T)
    assert chords.min() >= 5 - 0.02 and np.hypot(*(ring - (30, 20)).T).max() == pytest.approx(5)
    assert turned.mask(40, 60).sum() == pytest.approx(50, abs=10)
    assert sample.origin == str(path)


def test_a_group_of_one_label_is_one_defect_in_parts(tmp_path: Path) -> None:
    pixels = np.ones((2, 3), np.uint8)
    one_board(
        tmp_path,
        shape("polygon", SQUARE, group_id=1),
        shape("polygon", [[1, 1], [4, 1], [4, 4]], "short", group_id=1),
        shape("polygon", [[30, 30], [35, 30], [35, 35]], group_id=1),
        shape("mask", [[40, 30], [42, 31]], "short", group_id=2, mask=png(pixels)),
        shape("mask", [[50, 30], [52, 31]], "short", group_id=2, mask=png(pixels)),
        shape("rectangle", [[0, 30], [4, 40]], group_id=3, flags={"difficult": True}),
        shape("rectangle", [[6, 30], [8, 40]], group_id=3),
    )
    data = read_labelme(tmp_path)
    assert data.faults == ()
    assert data.samples[0].labels == ("open", "short", "short", "open")
    first, second, third, fourth = outlines(data)
    assert [len(part.exterior) for part in first.polygons] == [4, 3]
    assert len(second.polygons) == 1
    assert third.runs is not None and third.bounds() == (40, 30, 53, 32) and third.mask(40, 60).sum() == 12
    assert fourth.mask(40, 60).sum() == 60
    assert data.samples[0].ignored == (False, False, False, True)


def test_pixels_and_polygons_in_one_group_become_pixels_and_that_is_said(tmp_path: Path) -> None:
    path = one_board(
        tmp_path,
        shape("polygon", SQUARE, group_id=1),
        shape("mask", [[15, 15], [24, 24]], group_id=1, mask=png(np.ones((10, 10), np.uint8))),
    )
    data = read_labelme(tmp_path)
    assert outlines(data)[0].mask(40, 60).sum() == 100 + 100 - 25
    assert found(data) == [("outline-as-pixels", f"{path}:shapes[0]")]


@pytest.mark.parametrize(
    ("entry", "kind", "said"),
    [
        ("text", "not-an-object", "wanted an object"),
        (shape("polygon", SQUARE, ""), "unknown-class", "label ''"),
        (shape("polygon", SQUARE, None), "unknown-class", "label None"),  # type: ignore[arg-type]
        (shape("line", SQUARE[:2]), "not-an-area", "a 'line' named 'open' has no area"),
        (shape("points", SQUARE), "not-an-area", "a 'points'"),
        (shape("polygon", SQUARE[:2]), "bad-outline", "wanted three or more finite points"),
        (
            shape("polygon", [[1, 1], [2, 2], [math.nan, 3]]),
            "bad-outline",
            "wanted three or more finite points",
        ),
        (shape("polygon", [[1, 1], [2, "x"], [3, 3]]), "bad-outline", "finite points"),
        (shape("rectangle", SQUARE), "bad-outline", "of a rectangle; wanted 2"),
        (shape("polygon", [[1, 1], [2, 2], [3, 3]]), "empty-outline", "on one line"),
        (shape("rectangle", [[5, 5], [5, 9]]), "empty-box", "has no area"),
        (shape("circle", [[5, 5], [5, 5]]), "empty-outline", "on one line"),
        (shape("rectangle", [[70, 5], [80, 9]]), "box-outside", "outside the picture"),
        (shape("mask", [[1, 1], [2, 2]]), "bad-outline", "embedded data is None"),
        (shape("mask", [[1, 1], [2, 2]], mask="AAAA"), "bad-outline", "cannot be read"),
        (shape("mask", [[1, 1], [2, 2]], mask="A"), "bad-outline", "not base64"),
        (shape("mask", [[59, 1], [60, 1]], mask=png(np.ones((1, 2), np.uint8))), "bad-outline", "leaves its"),
        (shape("mask", [[0, 0], [60, 1]], mask=png(np.ones((2, 61), np.uint8))), "bad-outline", "(61, 2) px"),
        (shape("mask", [[1, 1], [2, 2]], mask=png(np.zeros((2, 2), np.uint8))), "empty-box", "no area"),
    ],
)
def test_a_shape_that_is_left_out_is_named_with_its_place(
    tmp_path: Path, entry: Any, kind: str, said: str
) -> None:
    path = one_board(tmp_path, shape("rectangle", [[1, 1], [5, 5]]), entry, shape("polygon", SQUARE))
    data = read_labelme(tmp_path)
    assert len(data.samples[0].boxes) == 2
    (fault,) = data.faults
    assert (fault.kind, fault.where, fault.image) == (kind, f"{path}:shapes[1]", data.samples[0].image)
    assert said in fault.message


def test_an_outline_that_reaches_out_stays_as_drawn_and_its_box_is_clipped(tmp_path: Path) -> None:
    path = one_board(tmp_path, shape("polygon", [[50, 30], [70, 30], [50, 50]]))
    data = read_labelme(tmp_path)
    assert outlines(data)[0].bounds() == (50, 30, 70, 50)
    np.testing.assert_array_equal(data.samples[0].boxes, [[50, 30, 60, 40]])
    assert found(data) == [("box-clipped", f"{path}:shapes[0]")]


def test_flags_and_keys_that_are_not_read_are_said_once(tmp_path: Path) -> None:
    path = one_board(
        tmp_path,
        shape("rectangle", [[1, 1], [5, 5]], flags={"ignored": True, "repaired": True, "old": False}),
        shape("rectangle", [[2, 1], [5, 5]], flags={"repaired": True}, description="see lot 7"),
        shape("rectangle", [[3, 1], [5, 5]], difficult=True),
        flags={"checked": True},
        imageHeight=60,
        imageWidth=40,
        split="val",
        group="b7",
    )
    data = read_labelme(tmp_path)
    (sample,) = data.samples
    assert (sample.ignored, sample.split, sample.group) == ((True, False, True), "val", "b7")
    assert found(data) == [
        ("size-mismatch", str(path)),
        ("unread-key", f"{path}:shapes[0]"),
        ("unread-key", f"{path}:shapes[1]"),
        ("unread-key", str(path)),
    ]
    assert data.faults[1].message == "the flag 'repaired' of a shape is not read; 2 times, first here"


@pytest.mark.parametrize(
    ("image_path", "kind"),
    [
        ("..\\images\\板.png", None),
        ("../images/板.png", None),
        ("板.png", None),
        ("D:\\lab\\2024\\板.png", "image-moved"),
        ("/home/bob/板.png", "image-moved"),
        ("板.jpg", "image-by-stem"),
        ("", "image-by-stem"),
        (None, "image-by-stem"),
    ],
)
def test_pictures_are_found_by_the_paths_of_other_machines(
    tmp_path: Path, image_path: str | None, kind: str | None
) -> None:
    picture = draw(tmp_path / "images" / "板.png")
    write(
        tmp_path / "labels" / "板.json",
        shape("polygon", SQUARE, "虚焊"),
        imagePath=image_path,
        encoding="utf-8-sig",
    )
    data = read_labelme(tmp_path)
    assert [(sample.image, sample.labels) for sample in data.samples] == [(picture, ("虚焊",))]
    assert [fault.kind for fault in data.faults] == ([kind] if kind else [])


def test_an_embedded_picture_is_written_out_when_there_is_no_other(tmp_path: Path) -> None:
    pixels = np.arange(60 * 40, dtype=np.uint8).reshape(40, 60)
    path = write(
        tmp_path / "a.json", shape("polygon", SQUARE), imagePath="C:\\x\\b.jpg", imageData=png(pixels)
    )
    data = read_labelme(tmp_path)
    assert found(data) == [("embedded-picture", str(path))]
    assert data.samples[0].image == tmp_path.resolve() / "b.png", "a PNG, whatever imagePath says"
    np.testing.assert_array_equal(Image.open(tmp_path / "b.png"), pixels)
    before = (tmp_path / "b.png").read_bytes()
    again = read_labelme(tmp_path)
    assert [fault.kind for fault in again.faults] == ["image-by-stem"]
    assert (tmp_path / "b.png").read_bytes() == before


def test_a_picture_that_is_there_is_taken_before_the_embedded_one(tmp_path: Path) -> None:
    one_board(tmp_path, shape("polygon", SQUARE), imageData=png(np.zeros((9, 9), np.uint8)))
    before = sorted(tmp_path.iterdir())
    data = read_labelme(tmp_path)
    assert data.faults == () and sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("packed", ["", "AAAA", "R0lGODlhAQABAAAAACw=", None])
def test_a_picture_that_is_nowhere_is_named(tmp_path: Path, packed: str | None) -> None:
    path = write(tmp_path / "a.json", shape("polygon", SQUARE), imageData=packed)
    data = read_labelme(tmp_path)
    assert (data.samples, found(data)) == ((), [("missing-image", str(path))])


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        (b'{"shapes": [\n1,,2]}', "corrupt-labels", "not JSON"),
        (b'{"shapes": "\xe9"}', "corrupt-labels", "byte 12 is not utf-8"),
        (b"[" * 100_000, "corrupt-labels", "not JSON"),
        (b'{"shapes": {}}', "not-labelme", "no list of shapes"),
        (b"[]", "not-labelme", "no list of shapes"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_the_others_are(
    tmp_path: Path, text: bytes, kind: str, said: str
) -> None:
    one_board(tmp_path, shape("polygon", SQUARE))
    bad = tmp_path / "z.json"
    bad.write_bytes(text)
    data = read_labelme(tmp_path)
    assert len(data.samples) == 1
    (fault,) = data.faults
    assert fault.kind == kind and fault.where.startswith(str(bad)) and said in fault.message


def test_folders_name_splits_and_pictures_without_labels_are_named(tmp_path: Path) -> None:
    for split in ("train", "val"):
        one_board(tmp_path / split)
    more = draw(tmp_path / "val" / "more.png")
    data = read_labelme(tmp_path)
    assert [(sample.split, len(sample.boxes)) for sample in data.samples] == [("train", 0), ("val", 0)]
    assert [(fault.kind, fault.image) for fault in data.faults] == [("no-label-file", more)]


def test_what_is_no_labelme_set_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"images": [], "annotations": [], "categories": []}')
    assert not looks_like_labelme(tmp_path)
    with pytest.raises(ConfigError, match="no JSON file holds LabelMe's shapes"):
        read_labelme(tmp_path)
    one_board(tmp_path / "deep" / "er")
    assert looks_like_labelme(tmp_path)
