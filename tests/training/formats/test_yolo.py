"""The YOLO reader on hand-written sets in every spelling of data.yaml."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from inspect_vit.errors import ConfigError
from training.formats.dataset import DataSet
from training.formats.yolo import looks_like_yolo, read_yolo

NAMES = "names: [open, short]\n"
BOMB = "n0: &n0 [a]\n" + "".join(f"n{i}: &n{i} [{', '.join([f'*n{i - 1}'] * 10)}]\n" for i in range(1, 10))
"""A list of a thousand million names, when it is unfolded."""


def draw(path: Path, size: tuple[int, int] = (200, 100), *, orientation: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    exif[274] = orientation
    Image.new("L", size, sum(path.name.encode()) % 256).save(path, exif=exif)
    return path.resolve()


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def one_board(
    root: Path, labels: str | bytes, *, size: tuple[int, int] = (200, 100), names: str = NAMES
) -> Path:
    """A set of one picture, images/train/a.png, and the path of its labels."""
    draw(root / "images" / "train" / "a.png", size)
    write(root / "data.yaml", "train: images/train\n" + names)
    path = write(root / "labels" / "train" / "a.txt", "")
    path.write_bytes(labels if isinstance(labels, bytes) else labels.encode())
    return path


def kinds(data: DataSet) -> list[str]:
    return [fault.kind for fault in data.faults]


def test_boxes_and_outlines_are_shares_of_the_upright_picture(tmp_path: Path) -> None:
    one_board(
        tmp_path, b"\xef\xbb\xbf0 0.5 0.5 0.25 0.5\r\n\r\n1 0.1 0.2 0.3 0.2 0.3 0.6\r\n1 0 0 1 0 1 1 0 1\r\n"
    )
    data = read_yolo(tmp_path)
    assert data.faults == ()
    assert data.class_names == ("open", "short")
    (sample,) = data.samples
    assert sample.labels == ("open", "short", "short")
    np.testing.assert_allclose(
        sample.boxes, [[75, 25, 125, 75], [20, 20, 60, 60], [0, 0, 200, 100]], atol=1e-5
    )
    assert sample.masks is not None
    box, triangle, _ = sample.masks
    assert box is None and triangle is not None
    np.testing.assert_allclose(triangle.polygons[0].exterior, [[20, 20], [60, 20], [60, 60]])
    assert (sample.split, sample.origin) == ("train", str(tmp_path / "labels/train/a.txt"))


def test_a_turned_picture_is_measured_upright(tmp_path: Path) -> None:
    one_board(tmp_path, "0 0.5 0.5 0.5 0.5")
    draw(tmp_path / "images/train/a.png", (200, 100), orientation=6)
    np.testing.assert_array_equal(read_yolo(tmp_path).samples[0].boxes, [[25, 50, 75, 150]])


@pytest.mark.parametrize(
    ("names", "wanted", "faults"),
    [
        ("names: [open, 'short']", ("open", "short"), []),
        ("names:\r\n  - open\r\n  - short\r\n", ("open", "short"), []),
        ("names: {0: open, 1: short}", ("open", "short"), []),
        ("names:\n  '1': short\n  '0': open\nnc: 2", ("open", "short"), []),
        ("nc: 2\nnames: [no, 1e3]", ("no", "1e3"), []),
        ("names: ['Loch ß', 假焊]", ("Loch ß", "假焊"), []),
        ("nc: 3\nnames: [open, short]", ("open", "short"), ["class-count"]),
        ("nc: 2", ("class_0", "class_1"), ["no-class-names"]),
        ("names: [short, short]", ("short",), ["duplicate-class"]),
        ("names: [open, short]\nroboflow: {version: 2}", ("open", "short"), ["unread-key"]),
    ],
)
def test_spellings_of_names(tmp_path: Path, names: str, wanted: tuple[str, ...], faults: list[str]) -> None:
    one_board(tmp_path, "1 0.5 0.5 0.1 0.1", names=names)
    data = read_yolo(tmp_path)
    assert data.class_names == wanted
    assert kinds(data) == faults
    assert data.samples[0].labels == (wanted[-1],)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("train: images/train\nval: images/val\n", []),
        ("path: .\ntrain: images/train\nvalidation: images/val\n", []),
        ("path: {root}\ntrain: images/train/\nval: ['images/val']\n", []),
        ("path: ../{name}\ntrain: [images/train]\nval: ./images/val\n", []),
        ("train: {root}/images/train\nval: {root}/images/val\n", []),
        ("path: /home/bob/datasets/{name}\ntrain: images/train\nval: images/val\n", ["path-moved"]),
        ("path: C:\\data\\pcb\ntrain: images\\train\nval: images\\val\n", ["path-moved"]),
        ("train: ../images/train\nval: ../images/val\ntest: ~\n", ["path-moved", "path-moved"]),
        ("train: /mnt/x/images/train\nval: D:\\sets\\images\\val\n", ["path-moved", "path-moved"]),
        ("train: train.txt\nval: lists/val.txt\n", []),
    ],
)
def test_spellings_of_where_the_pictures_are(tmp_path: Path, text: str, faults: list[str]) -> None:
    root = tmp_path / "set ä"
    pictures = [draw(root / "images" / "train" / f"{name}.png") for name in "abc"] + [
        draw(root / "images/val/d.png")
    ]
    for picture in pictures:
        write(root / "labels" / picture.parent.name / f"{picture.stem}.txt", "0 0.5 0.5 0.1 0.1\n")
    train = f"images/train/a.png\n./images/train/b.png\r\n\n{root}/images/train/c.png\n"
    write(root / "train.txt", train)
    write(root / "lists" / "val.txt", "\ufeffD:\\old\\pcb\\images\\val\\d.png\r\n")
    write(root / "data.yaml", text.format(root=root.as_posix(), name=root.name) + NAMES)
    data = read_yolo(root / "data.yaml")
    assert kinds(data) == faults
    assert [(s.image, s.split, s.labels) for s in data.samples] == [
        (picture, picture.parent.name, ("open",)) for picture in pictures
    ]


def test_a_split_that_is_nowhere_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    one_board(tmp_path, "")
    write(tmp_path / "data.yaml", "train: images/train\nval: images/valid\ntest:\n" + NAMES)
    write(tmp_path / "more.txt", "images/train/gone.png\n")
    data = read_yolo(tmp_path)
    assert [s.split for s in data.samples] == ["train"]
    assert [(fault.kind, fault.where) for fault in data.faults] == [
        ("missing-split", f"{tmp_path}/data.yaml:val")
    ]
    write(tmp_path / "data.yaml", "train: more.txt\n" + NAMES)
    (fault,) = read_yolo(tmp_path).faults
    assert (fault.kind, fault.where) == ("missing-image", f"{tmp_path}/more.txt:1")


@pytest.mark.parametrize("listed", ["classes.txt", "labels/classes.txt", ""])
def test_folders_without_a_data_yaml_are_read_whole(tmp_path: Path, listed: str) -> None:
    draw(tmp_path / "images" / "val" / "a.png")
    write(tmp_path / "labels" / "val" / "a.txt", "1 0.5 0.5 0.1 0.1")
    if listed:
        write(tmp_path / listed, "open\r\nshort\r\n")
    assert looks_like_yolo(tmp_path)
    data = read_yolo(tmp_path)
    assert kinds(data) == ["no-data-yaml"]
    assert data.samples[0].labels == (("short",) if listed else ("class_1",))
    assert data.samples[0].split == "val"


def test_labels_lie_in_the_last_images_folder_or_beside_the_picture(tmp_path: Path) -> None:
    root = tmp_path / "images" / "set"
    first, second = draw(root / "images" / "a.png"), draw(root / "flat" / "b.png")
    write(root / "labels" / "a.txt", "0 0.5 0.5 0.1 0.1")
    write(tmp_path / "labels" / "set" / "images" / "a.txt", "1 0.5 0.5 0.1 0.1")
    write(root / "flat" / "b.txt", "1 0.5 0.5 0.1 0.1")
    write(root / "flat" / "notes.txt", "taken on Monday")
    write(root / "data.yaml", "train: [images, flat]\n" + NAMES)
    data = read_yolo(root)
    assert data.faults == ()
    assert [(s.image, s.labels) for s in data.samples] == [(first, ("open",)), (second, ("short",))]


def test_an_empty_label_file_is_a_good_board_and_a_missing_one_is_said(tmp_path: Path) -> None:
    one_board(tmp_path, "\n")
    lonely = draw(tmp_path / "images" / "train" / "b.png")
    stray = write(tmp_path / "labels" / "train" / "c.txt", "0 0.5 0.5 0.1 0.1")
    data = read_yolo(tmp_path)
    assert [len(sample.boxes) for sample in data.samples] == [0, 0]
    assert [(fault.kind, fault.image) for fault in data.faults] == [
        ("no-label-file", lonely),
        ("missing-image", None),
    ]
    assert data.faults[1].where == str(stray)


@pytest.mark.parametrize(
    ("line", "kind", "said"),
    [
        ("0 0.5 0.5 0.1", "bad-line", "4 numbers; wanted 'class cx cy w h'"),
        ("0 0.5 0.5 0.1 0.1 0.93", "bad-line", "perhaps a prediction with its score"),
        ("0 0.1 0.1 0.2 0.1 0.2 0.2 0.3", "bad-line", "8 numbers"),
        ("open 0.5 0.5 0.1 0.1", "bad-line", "'open 0.5 0.5 0.1 0.1' holds what is no number"),
        ("0,0.5,0.5,0.1,0.1", "bad-line", "holds what is no number"),
        ("0 0.5 nan 0.1 0.1", "not-finite", "wanted finite numbers"),
        ("2 0.5 0.5 0.1 0.1", "unknown-class", "class 2 is not named; known are 0 to 1"),
        ("-1 0.5 0.5 0.1 0.1", "unknown-class", "class -1"),
        ("0.5 0.5 0.5 0.1 0.1", "unknown-class", "class 0.5"),
        ("0 100 50 20 20", "not-normalised", "is not in shares of the picture"),
        ("0 0.5 0.5 0 0.1", "empty-box", "has no area"),
        ("0 0.5 0.5 -0.1 0.1", "empty-box", "has no area"),
        ("0 1.5 0.5 0.1 0.1", "box-outside", "lies outside the picture of 200 x 100 px"),
        ("0 0.1 0.1 0.2 0.2 0.3 0.3", "empty-outline", "on one line"),
    ],
)
def test_a_line_that_is_left_out_is_named_with_its_number(
    tmp_path: Path, line: str, kind: str, said: str
) -> None:
    path = one_board(tmp_path, f"1 0.5 0.5 0.1 0.1\n\n{line}\n0 0.2 0.2 0.1 0.1\n")
    data = read_yolo(tmp_path)
    assert data.samples[0].labels == ("short", "open")
    (fault,) = data.faults
    assert (fault.kind, fault.where) == (kind, f"{path}:3")
    assert said in fault.message


def test_a_box_that_reaches_out_is_clipped_and_said_unless_by_rounding(tmp_path: Path) -> None:
    path = one_board(tmp_path, "0 0.05 0.5 0.2 0.2\n0 0.95000002 0.5 0.1 0.2\n")
    data = read_yolo(tmp_path)
    np.testing.assert_allclose(data.samples[0].boxes, [[0, 40, 30, 60], [180, 40, 200, 60]], atol=1e-5)
    assert [(fault.kind, fault.where) for fault in data.faults] == [("box-clipped", f"{path}:1")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("train: [images\nnames: x", r"data\.yaml:2 is not YAML"),
        ("- a\n- b", "wanted the keys train, val and names"),
        ("train: images\nnames: {a: b}", "wanted numbers before the names"),
        ("train: images\nnames: [[a], b]", "wanted a plain list"),
        ("train: images\nnames: [a]\nkpt_shape: [17, 3]", "key points"),
        (BOMB + "names: *n9", "wanted a plain list"),
        (BOMB + "names: {x: *n9}", "wanted numbers before the names"),
    ],
)
def test_a_data_yaml_that_cannot_be_read_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_yolo(write(tmp_path / "data.yaml", text))


def test_what_is_no_yolo_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="neither a folder nor"):
        read_yolo(tmp_path / "nowhere")
    assert not looks_like_yolo(tmp_path)
    write(tmp_path / "config.yaml", "device: cpu\n")
    draw(tmp_path / "images" / "a.png")
    write(tmp_path / "labels" / "a.json", "{}")
    write(tmp_path / "broken.yaml", "a: [\n")
    assert not looks_like_yolo(tmp_path)
    one_board(tmp_path / "set", "")
    assert looks_like_yolo(tmp_path / "set") and looks_like_yolo(tmp_path / "set" / "data.yaml")


def test_files_that_are_no_text_or_no_picture_are_named_and_left_out(tmp_path: Path) -> None:
    path = one_board(tmp_path, b"0 0.5 0.5 0.1 0.1 \xe9")
    broken = write(tmp_path / "images" / "train" / "b.png", "no picture")
    data = read_yolo(tmp_path)
    assert data.samples == ()
    assert {(fault.kind, fault.image) for fault in data.faults} == {
        ("corrupt-labels", tmp_path.resolve() / "images/train/a.png"),
        ("corrupt-image", broken.resolve()),
    }
    assert f"{path}: byte 18 is not utf-8" in data.faults[0].message


def test_cuts_of_no_width_are_taken_out(tmp_path: Path) -> None:
    """A square with a square hole, and two triangles tied together, as converters write them."""
    hole = "0 .1 .1 .9 .1 .9 .9 .1 .9 .1 .1 .3 .3 .3 .7 .7 .7 .7 .3 .3 .3 .1 .1"
    tied = "0 .1 .1 .3 .1 .1 .3 .1 .1 .6 .6 .9 .6 .6 .9 .6 .6 .1 .1"
    one_board(tmp_path, f"{hole}\n{tied}\n", size=(100, 100))
    (sample,) = read_yolo(tmp_path).samples
    assert sample.masks is not None
    first, second = sample.masks
    assert first is not None and second is not None
    assert [len(polygon.holes) for polygon in first.polygons] == [1]
    assert first.mask(100, 100).sum() == 80 * 80 - 40 * 40
    assert len(second.polygons) == 2
    np.testing.assert_allclose(np.sort(second.polygons[1].exterior.ravel()), [60, 60, 60, 60, 90, 90])
