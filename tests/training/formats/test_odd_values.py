"""Values in VOC, CVAT and LabelMe files that are no plain numbers, flags, sizes or texts: each a fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from training.formats.cvat import read_cvat
from training.formats.labelme import read_labelme
from training.formats.voc import read_voc


def draw(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (60, 40), sum(path.name.encode()) % 256).save(path)
    return path.resolve()


def voc_object(box: str, extra: str = "") -> str:
    left, top, right, bottom = box.split()
    return (
        f"<object><name>open</name>{extra}<bndbox><xmin>{left}</xmin><ymin>{top}</ymin>"
        f"<xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox></object>"
    )


def voc_set(root: Path, *objects: str, extra: str = "") -> Path:
    """The first object stands on line 3."""
    draw(root / "JPEGImages" / "a.png")
    path = root / "Annotations" / "a.xml"
    path.parent.mkdir(parents=True)
    lines = ["<annotation><filename>a.png</filename>", extra, *objects, "</annotation>"]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def cvat_box(sides: str = "1 2 30.5 20.25", inside: str = "") -> str:
    left, top, right, bottom = sides.split()
    return f'<box label="open" xtl="{left}" ytl="{top}" xbr="{right}" ybr="{bottom}">{inside}</box>'


def cvat_image(*shapes: str, name: str = "a.png", keys: str = "") -> str:
    return "\n".join([f'<image id="0" name="{name}" {keys}>', *shapes, "</image>"])


def write_cvat_file(path: Path, *images: str) -> Path:
    """The first picture stands on line 4, its first shape on line 5."""
    path.write_text("\n".join(["<annotations>", "", "", *images, "</annotations>"]), encoding="utf-8")
    return path


def rectangle(points: object, label: str = "open", flags: object = None) -> dict[str, object]:
    return {"label": label, "points": points, "shape_type": "rectangle", "group_id": None, "flags": flags}


@pytest.mark.parametrize("text", ["2", "yes", "-1"])
def test_a_flag_that_is_neither_0_nor_1_is_said(tmp_path: Path, text: str) -> None:
    path = voc_set(
        tmp_path, voc_object("5 5 9 9", extra=f"<difficult>{text}</difficult>"), voc_object("2 2 3 3")
    )
    data = read_voc(tmp_path)
    assert data.samples[0].ignored == ()
    assert [(fault.kind, fault.where) for fault in data.faults] == [("bad-flag", f"{path}:3")]


@pytest.mark.parametrize("number", ["1_0", "\u0661\u0660", "1 0", "0x10"])
def test_only_plain_numbers_are_numbers(tmp_path: Path, number: str) -> None:
    box = voc_object("5 5 9 9").replace("<ymax>9<", f"<ymax>{number}<")
    voc_set(tmp_path, box, voc_object("2 2 3 3"))
    data = read_voc(tmp_path)
    assert (len(data.samples[0].boxes), data.faults[0].kind) == (1, "bad-box")


@pytest.mark.parametrize("width", ["9" * 5000, "\u0661\u0662\u0668", "60.5"])
def test_a_size_that_is_no_number_of_pixels_is_a_fault_of_its_file(tmp_path: Path, width: str) -> None:
    size = f"<size><width>{width}</width><height>40</height></size>"
    path = voc_set(tmp_path, voc_object("2 2 3 3"), extra=size)
    data = read_voc(tmp_path)
    assert [(fault.kind, fault.where) for fault in data.faults] == [("bad-size", str(path))]
    assert len(data.samples[0].boxes) == 1 and len(data.faults[0].message) < 300


def test_sizes_flags_and_runs_that_cannot_be_told_are_said(tmp_path: Path) -> None:
    draw(tmp_path / "images" / "a.png")
    flag = '<attribute name="Ignored">{}</attribute>'
    shapes = [
        cvat_box(inside=flag.format("false")),
        cvat_box(inside=flag.format("perhaps")),
        cvat_box("1_0 5 20 9"),
        '<mask label="open" rle="\u0660,4" left="0" top="0" width="2" height="2"/>',
    ]
    path = write_cvat_file(tmp_path / "a.xml", cvat_image(*shapes, keys=f'width="{"9" * 5000}" height="40"'))
    data = read_cvat(tmp_path)
    assert (len(data.samples[0].boxes), data.samples[0].ignored) == (2, ())
    assert sorted((fault.kind, fault.where) for fault in data.faults) == [
        ("bad-flag", f"{path}:6"),
        ("bad-outline", f"{path}:7"),
        ("bad-outline", f"{path}:8"),
        ("bad-size", f"{path}:4"),
    ]


def test_two_names_that_lead_to_one_picture_are_refused(tmp_path: Path) -> None:
    board = draw(tmp_path / "images" / "a.png")
    names = ("lotA/a.png", "lotB/a.png")
    write_cvat_file(tmp_path / "a.xml", *(cvat_image(cvat_box(), name=name) for name in names))
    with_both = read_cvat(tmp_path)
    assert with_both.samples == ()
    assert [fault.kind for fault in with_both.faults] == ["unclear-image", "unclear-image", "no-label-file"]
    write_cvat_file(tmp_path / "a.xml", cvat_image(cvat_box(), name=names[0]))
    alone = read_cvat(tmp_path)
    assert [sample.image for sample in alone.samples] == [board]
    assert [fault.kind for fault in alone.faults] == ["image-moved"]


def test_splits_flags_and_texts_that_cannot_be_told_are_said(tmp_path: Path) -> None:
    corners = [[1, 1], [9, 9]]
    flags = ({"ignored": "false"}, {"ignored": "0"}, {"crowd": "true"}, {"difficult": "perhaps"})
    shapes = [rectangle(corners, flags=flag) for flag in flags]
    deep: object = 1
    for _ in range(700):
        deep = [deep]
    shapes += [rectangle(deep), rectangle(corners, "op\udcffen")]
    draw(tmp_path / "a.png")
    keys = {"split": "holdout", "group": "lot \ud800"}
    tree = {"version": "5", "flags": {}, "shapes": shapes, "imagePath": "a.png"} | keys
    path = tmp_path / "a.json"
    path.write_text(json.dumps(tree))
    data = read_labelme(tmp_path)
    (sample,) = data.samples
    assert (sample.ignored, sample.split, sample.group) == ((False, False, True, False), "", "")
    assert [(fault.kind, fault.where) for fault in data.faults] == [
        ("bad-flag", f"{path}:shapes[3]"),
        ("bad-outline", f"{path}:shapes[4]"),
        ("not-unicode", f"{path}:shapes[5]"),
        ("unknown-split", str(path)),
        ("not-unicode", str(path)),
    ]
    assert all(fault.message.encode() for fault in data.faults)
