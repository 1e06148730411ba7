"""The CVAT XML reader on hand-written files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from inspect_vit.errors import ConfigError
from inspect_vit.shapes import Shape
from training.formats.cvat import looks_like_cvat, read_cvat
from training.formats.dataset import DataSet

META = """<meta><task><labels>
<label><name>short</name><attributes/></label><label><name>open</name></label>
<label><name>joint</name><parent>open</parent></label></labels></task></meta>"""
"""Three lines; with the root before it, the first picture stands on line 4."""


def draw(path: Path, size: tuple[int, int] = (60, 40)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", size, sum(path.name.encode()) % 256).save(path)
    return path.resolve()


def write(path: Path, *images: str, meta: str = META) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([f"<annotations>{meta}", *images, "</annotations>"]), encoding="utf-8")
    return path


def image(*shapes: str, name: str = "a.png", keys: str = 'width="60" height="40"') -> str:
    """One shape a line."""
    return "\n".join([f'<image id="0" name="{name}" {keys}>', *shapes, "</image>"])


def one_board(root: Path, *shapes: str) -> Path:
    """The first shape stands on line 5."""
    draw(root / "images" / "a.png")
    return write(root / "annotations.xml", image(*shapes))


def box(sides: str = "1 2 30.5 20.25", label: str = "open", keys: str = "", inside: str = "") -> str:
    left, top, right, bottom = sides.split()
    corners = f'xtl="{left}" ytl="{top}" xbr="{right}" ybr="{bottom}"'
    return f'<box label="{label}" occluded="0" {corners} {keys}>{inside}</box>'


def polygon(points: str = "10,10;20,10;20,20;10,20", label: str = "open", keys: str = "") -> str:
    return f'<polygon label="{label}" points="{points}" {keys}/>'


def mask(rle: str, left: int, top: int, width: int, height: int, keys: str = "") -> str:
    return (
        f'<mask label="open" rle="{rle}" left="{left}" top="{top}" width="{width}" height="{height}" {keys}/>'
    )


def found(data: DataSet) -> list[tuple[str, str]]:
    return [(fault.kind, fault.where) for fault in data.faults]


def outlines(data: DataSet) -> list[Shape]:
    """Those of the first picture, where each defect has one."""
    masks = data.samples[0].masks or ()
    assert masks and all(shape is not None for shape in masks)
    return [shape for shape in masks if shape is not None]


def test_each_kind_of_shape_is_what_it_says(tmp_path: Path) -> None:
    path = one_board(
        tmp_path,
        box(),
        polygon("10.5,10;20,10;20,20.25;10.5,10", "short"),
        mask("0, 1, 1, 3, 1", 40, 30, 3, 2),
        '<ellipse label="open" cx="30" cy="20" rx="10" ry="4"/>',
    )
    data = read_cvat(tmp_path)
    assert data.faults == ()
    assert data.class_names == ("short", "open"), "in the order of the task, without the parts of skeletons"
    (sample,) = data.samples
    assert sample.labels == ("open", "short", "open", "open")
    wanted = [[1, 2, 30.5, 20.25], [10.5, 10, 20, 20.25], [40, 30, 43, 32], [20, 16, 40, 24]]
    np.testing.assert_allclose(sample.boxes, wanted, atol=1e-6)
    assert sample.masks is not None
    none, triangle, pixels, ellipse = sample.masks
    assert none is None and triangle is not None and pixels is not None and ellipse is not None
    assert triangle.polygons[0].exterior.tolist() == [[10.5, 10], [20, 10], [20, 20.25]]
    np.testing.assert_array_equal(pixels.mask(40, 60)[30:32, 40:43], [[1, 0, 1], [1, 1, 0]])
    x, y = (ellipse.polygons[0].exterior - (30, 20)).T
    np.testing.assert_allclose((x / 10) ** 2 + (y / 4) ** 2, 1)
    assert sample.origin == f"{path}:4"


@pytest.mark.parametrize(
    ("degrees", "corners"),
    [
        ("90", [[27, 13], [27, 27], [23, 27], [23, 13]]),
        (
            "30",
            [
                [19.93782217, 14.76794919],
                [32.0621778, 21.7679491],
                [30.062178, 25.232051],
                [17.937822, 18.232051],
            ],
        ),
        (
            "330.0",
            [[17.937822, 21.767949], [30.062178, 14.767949], [32.062178, 18.232051], [19.937822, 25.232051]],
        ),
    ],
)
def test_a_turned_box_is_the_outline_of_its_corners(
    tmp_path: Path, degrees: str, corners: list[list[float]]
) -> None:
    """Clockwise on the screen: by a quarter, the left end of the top edge goes to the right end of it."""
    one_board(tmp_path, box("18 18 32 22", keys=f'rotation="{degrees}"'))
    data = read_cvat(tmp_path)
    np.testing.assert_allclose(outlines(data)[0].polygons[0].exterior, corners, atol=1e-6)
    assert read_cvat(tmp_path).samples[0].labels == ("open",)


def test_a_group_of_one_label_is_one_defect_in_parts(tmp_path: Path) -> None:
    path = one_board(
        tmp_path,
        polygon(keys='group_id="1"'),
        polygon("1,1;4,1;4,4", "short", keys='group_id="1"'),
        polygon("30,30;35,30;35,35", keys='group_id="1"'),
        mask("0,6", 40, 30, 3, 2, 'group_id="2"'),
        mask("0,6", 50, 30, 3, 2, 'group_id="2"'),
        polygon("40,5;50,5;50,15;40,15", keys='group_id="3"'),
        mask("0, 100", 45, 10, 10, 10, 'group_id="3"'),
        polygon("1,30;4,30;4,34", keys='group_id="0"'),
        polygon("6,30;9,30;9,34", keys='group_id="0"'),
    )
    data = read_cvat(tmp_path)
    assert data.samples[0].labels == ("open", "short", "open", "open", "open", "open")
    first, second, third, fourth, *_ = outlines(data)
    assert [len(part.exterior) for part in first.polygons] == [4, 3]
    assert len(second.polygons) == 1
    assert third.bounds() == (40, 30, 53, 32) and third.mask(40, 60).sum() == 12
    assert fourth.mask(40, 60).sum() == 100 + 100 - 25
    assert found(data) == [("outline-as-pixels", f"{path}:10")]


def test_boxes_of_a_group_stay_apart(tmp_path: Path) -> None:
    one_board(tmp_path, box("1 1 5 5", keys='group_id="1"'), box("7 1 9 5", keys='group_id="1"'))
    np.testing.assert_array_equal(read_cvat(tmp_path).samples[0].boxes, [[1, 1, 5, 5], [7, 1, 9, 5]])


@pytest.mark.parametrize(
    ("shape", "kind", "said"),
    [
        ('<tag label="good"/>', "not-an-area", "a <tag> named 'good' has no area"),
        ('<points label="open" points="1,1"/>', "not-an-area", "a <points>"),
        ('<polyline label="open" points="1,1;2,2"/>', "not-an-area", "a <polyline>"),
        ('<skeleton label="open"><points label="x" points="1,1"/></skeleton>', "not-an-area", "a <skeleton>"),
        (polygon(label=""), "unknown-class", "has no label"),
        (polygon("1,1;2,2"), "bad-outline", "wanted three or more 'x,y;x,y'"),
        (polygon("1,1;2,2;3"), "bad-outline", "wanted three or more"),
        (polygon("1,1;2,2;3,nan"), "bad-outline", "not finite"),
        (polygon("1,1;2,2;3,x"), "bad-outline", "could not convert"),
        (polygon("1,1;2,2;3,3"), "empty-outline", "on one line"),
        (box("5 5 5 9"), "empty-box", "has no area"),
        (box("9 5 5 9"), "empty-box", "has no area"),
        (box("70 5 80 9"), "box-outside", "outside the picture of 60 x 40 px"),
        (box("x 5 80 9"), "bad-outline", "could not convert"),
        (mask("1, 4", 0, 0, 3, 2), "bad-outline", "runs sum to 5 pixels; wanted 3 x 2"),
        (mask("7, -1", 0, 0, 3, 2), "bad-outline", "none negative"),
        (mask("0, 6", 58, 0, 3, 2), "bad-outline", "leave the picture"),
        (mask("", 0, 0, 3, 2), "bad-outline", "no whole number"),
        (mask("6", 0, 0, 3, 2), "empty-box", "no area"),
    ],
)
def test_a_shape_that_is_left_out_is_named_with_its_line(
    tmp_path: Path, shape: str, kind: str, said: str
) -> None:
    path = one_board(tmp_path, box(), shape, polygon())
    data = read_cvat(tmp_path)
    assert len(data.samples[0].boxes) == 2
    (fault,) = data.faults
    assert (fault.kind, fault.where, fault.image) == (kind, f"{path}:6", data.samples[0].image)
    assert said in fault.message


def test_attributes_that_are_not_read_are_said_once(tmp_path: Path) -> None:
    hidden = '<attribute name="ignored">true</attribute><attribute name="lot">7</attribute>'
    path = one_board(
        tmp_path,
        box(inside=hidden),
        box(inside='<attribute name="is_crowd">false</attribute>').replace('occluded="0"', 'occluded="1"'),
        box(keys='z_order="2"').replace('occluded="0"', 'occluded="1"'),
        box(label="new"),
    )
    data = read_cvat(tmp_path)
    assert data.samples[0].ignored == (True, False, False, False)
    assert data.class_names == ("short", "open", "new")
    assert found(data) == [
        ("unread-key", f"{path}:5"),
        ("unread-key", f"{path}:6"),
        ("unread-key", f"{path}:7"),
        ("unlisted-class", str(path)),
    ]
    assert data.faults[1].message == "occluded of a shape is not read; 2 times, first here"


def test_subsets_are_splits_and_name_the_folders_of_pictures(tmp_path: Path) -> None:
    names = {"Train": "train", "Validation": "val", "test": "test", "default": "", "night shift": "", "": ""}
    images = []
    for subset in names:
        picture = draw(tmp_path / "images" / subset / f"p {subset}ß.png", (60 + len(subset), 40))
        keys = f'subset="{subset}" width="{60 + len(subset)}" height="40"' if subset else ""
        images.append(image(name=picture.name, keys=keys))
    path = write(tmp_path / "annotations.xml", *images)
    draw(tmp_path / "images" / "Train" / "unlisted.png")
    data = read_cvat(tmp_path)
    assert [sample.split for sample in data.samples] == list(names.values())
    assert [sample.image.parent.name or "images" for sample in data.samples][:2] == ["Train", "Validation"]
    assert [fault.kind for fault in data.faults] == ["no-label-file", "unread-key"]
    assert data.faults[1].where.startswith(str(path)) and "'night shift'" in data.faults[1].message


@pytest.mark.parametrize("place", ["images/sub/a.png", "sub/a.png", "a.png", "images/a.png"])
def test_pictures_are_found_in_images_or_beside_the_file(tmp_path: Path, place: str) -> None:
    picture = draw(tmp_path / place)
    write(tmp_path / "annotations.xml", image(box(), name="sub\\a.png", keys=""))
    data = read_cvat(tmp_path / "annotations.xml")
    assert [sample.image for sample in data.samples] == [picture]
    assert [fault.kind for fault in data.faults] == ([] if "sub" in place else ["image-moved"])


def test_a_missing_picture_and_another_size_are_named(tmp_path: Path) -> None:
    draw(tmp_path / "a.png")
    path = write(tmp_path / "x.xml", image(box(), keys='width="40" height="60"'), image(name="gone.png"))
    data = read_cvat(tmp_path)
    assert len(data.samples) == 1
    assert found(data) == [("size-mismatch", f"{path}:4"), ("missing-image", f"{path}:7")]


def test_tracks_are_refused(tmp_path: Path) -> None:
    draw(tmp_path / "images" / "a.png")
    track = '<track id="0" label="open">\n<box frame="0" xtl="1" ytl="1" xbr="5" ybr="5"/>\n</track>'
    path = write(tmp_path / "annotations.xml", track)
    with pytest.raises(
        ConfigError, match=r"annotations\.xml:4 holds tracks.*export it as 'CVAT for images 1\.1'"
    ):
        read_cvat(tmp_path)
    write(path, image(box()), track)
    data = read_cvat(tmp_path)
    assert (len(data.samples), found(data)) == (1, [("track", f"{path}:7")])


def test_what_is_no_cvat_set_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<annotation/>")
    assert not looks_like_cvat(tmp_path)
    with pytest.raises(
        ConfigError, match="no XML file is <annotations> of CVAT for images; the root is <annotation>"
    ):
        read_cvat(tmp_path)
    hostile = tmp_path / "b.xml"
    hostile.write_text('<!DOCTYPE a [<!ENTITY x "y">]>\n<annotations/>')
    with pytest.raises(ConfigError, match=r"b\.xml:1: the file has a DOCTYPE"):
        read_cvat(hostile)
    one_board(tmp_path / "task")
    assert looks_like_cvat(tmp_path / "task") and looks_like_cvat(tmp_path / "task" / "annotations.xml")


def test_tasks_in_folders_are_one_set(tmp_path: Path) -> None:
    for name in ("task 1", "task 2"):
        one_board(tmp_path / name, box())
    data = read_cvat(tmp_path)
    assert [sample.image.parents[1].name for sample in data.samples] == ["task 1", "task 2"]
    assert data.class_names == ("short", "open")
