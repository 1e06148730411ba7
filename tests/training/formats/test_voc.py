"""The Pascal VOC reader on hand-written sets of the devkit and other tools."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from inspect_vit.errors import ConfigError
from training.formats.dataset import DataSet
from training.formats.voc import looks_like_voc, read_voc


def draw(path: Path, size: tuple[int, int] = (60, 40)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", size, sum(path.name.encode()) % 256).save(path)
    return path.resolve()


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    return path


def item(box: str, name: str = "open", extra: str = "") -> str:
    left, top, right, bottom = box.split()
    return (
        f"<object><name>{name}</name>{extra}<bndbox><xmin>{left}</xmin><ymin>{top}</ymin>"
        f"<xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox></object>"
    )


def annotation(*items: str, filename: str = "a.png", extra: str = "") -> str:
    """One element a line: the first object stands on line 3."""
    return "\n".join([f"<annotation><filename>{filename}</filename>", extra, *items, "</annotation>\n"])


def devkit(root: Path, *items: str, **keys: str) -> Path:
    draw(root / "JPEGImages" / "a.png")
    return write(root / "Annotations" / "a.xml", annotation(*items, **keys))


def kinds(data: DataSet) -> list[str]:
    return [fault.kind for fault in data.faults]


def test_pixels_of_the_devkit_begin_at_1_and_the_last_is_inside(tmp_path: Path) -> None:
    path = devkit(
        tmp_path,
        item("1 1 60 40"),
        item("3 4 3 4", "short", "<pose>Unspecified</pose><truncated>0</truncated><difficult>1</difficult>"),
        item("2.5 3.25 10 20.75", " Spur "),
        extra="<size><width>60</width><height>40</height><depth>3</depth></size><segmented>0</segmented>",
    )
    data = read_voc(tmp_path)
    assert data.faults == ()
    assert data.class_names == ("Spur", "open", "short")
    (sample,) = data.samples
    np.testing.assert_array_equal(sample.boxes, [[0, 0, 60, 40], [2, 3, 3, 4], [1.5, 2.25, 10, 20.75]])
    assert sample.labels == ("open", "short", "Spur")
    assert sample.ignored == (False, True, False)
    assert (sample.image, sample.origin) == (tmp_path.resolve() / "JPEGImages/a.png", str(path))


def test_a_set_with_a_0_is_read_from_0_and_said_once(tmp_path: Path) -> None:
    path = devkit(tmp_path, item("5 6 20 30"), item("0 7 60 40"), item("9 0.0 20 30"))
    data = read_voc(tmp_path)
    np.testing.assert_array_equal(data.samples[0].boxes, [[5, 6, 20, 30], [0, 7, 60, 40], [9, 0, 20, 30]])
    assert [(fault.kind, fault.where) for fault in data.faults] == [("counted-from-0", f"{path}:4")]
    assert data.faults[0].message.startswith("2 boxes begin before 1")


@pytest.mark.parametrize(
    ("box", "kind", "said"),
    [
        ("30 5 10 20", "empty-box", "has no area"),
        ("5 20 10 10", "empty-box", "has no area"),
        ("61 1 70 9", "box-outside", "outside the picture of 60 x 40 px"),
        ("x 1 20 9", "bad-box", "'xmin': 'x'"),
        ("nan 1 20 9", "bad-box", "wanted four numbers"),
    ],
)
def test_an_object_that_is_left_out_is_named_with_its_line(
    tmp_path: Path, box: str, kind: str, said: str
) -> None:
    path = devkit(tmp_path, item("1 1 9 9"), item(box), item("2 2 9 9", "short"))
    data = read_voc(tmp_path)
    assert data.samples[0].labels == ("open", "short")
    (fault,) = data.faults
    assert (fault.kind, fault.where, fault.image) == (kind, f"{path}:4", data.samples[0].image)
    assert said in fault.message


def test_other_faults_of_objects_are_named(tmp_path: Path) -> None:
    path = devkit(
        tmp_path,
        item("41 31 70 50"),
        "<object><name>open</name></object>",
        item("1 1 9 9", ""),
        item("2 2 9 9", extra="<truncated>1</truncated><polygon><x1>3</x1></polygon>"),
        item("3 3 9 9", extra="<truncated>1</truncated>"),
        extra="<size><width>40</width><height>60</height></size>",
    )
    data = read_voc(tmp_path)
    np.testing.assert_array_equal(data.samples[0].boxes, [[40, 30, 60, 40], [1, 1, 9, 9], [2, 2, 9, 9]])
    assert [(fault.kind, fault.where) for fault in data.faults] == [
        ("size-mismatch", str(path)),
        ("box-clipped", f"{path}:3"),
        ("bad-box", f"{path}:4"),
        ("unknown-class", f"{path}:5"),
        ("unread-key", f"{path}:6"),
        ("unread-key", f"{path}:6"),
    ]
    assert data.faults[-2].message == "<truncated> of an object is not read; 2 times, first here"


def test_image_sets_give_the_splits(tmp_path: Path) -> None:
    for stem in ("a", "b c", "d", "e"):
        draw(tmp_path / "JPEGImages" / f"{stem}.png")
        write(tmp_path / "Annotations" / f"{stem}.xml", annotation(filename=f"{stem}.png"))
    lists = tmp_path / "ImageSets" / "Main"
    write(lists / "train.txt", "a\r\n")
    write(lists / "val.txt", "b c -1\na 1\ngone\n")
    write(lists / "trainval.txt", "a\nb c\nd\n")
    write(lists / "open_train.txt", "a 1\n")
    data = read_voc(tmp_path)
    assert [(sample.image.stem, sample.split) for sample in data.samples] == [
        ("a", "train"),
        ("a", "val"),
        ("b c", "val"),
        ("d", "train"),
        ("e", ""),
    ]
    assert [(fault.kind, fault.where) for fault in data.faults] == [("no-label-file", f"{lists}/val.txt:3")]


def test_files_beside_their_pictures_in_folders_of_splits(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        draw(tmp_path / split / f"{split}.jpg")
        write(tmp_path / split / f"{split}.xml", annotation(item("2 2 9 9"), filename=f"{split}.jpg"))
    unlabelled = draw(tmp_path / "test" / "more.jpg")
    assert looks_like_voc(tmp_path)
    data = read_voc(tmp_path)
    assert sorted(sample.split for sample in data.samples) == ["test", "train", "val"]
    assert [(fault.kind, fault.image) for fault in data.faults] == [("no-label-file", unlabelled)]


@pytest.mark.parametrize(
    ("filename", "extra", "kind"),
    [
        ("a.png", "", None),
        ("a.jpg", "", "image-by-stem"),
        ("a", "", "image-by-stem"),
        ("IMG_0001.JPG", "", "image-by-stem"),
        ("", "", "image-by-stem"),
        ("A.PNG", "", "image-name"),
        ("C:\\pictures\\a.png", "", "image-moved"),
        ("photo.png", "<path>C:\\Users\\Jörg\\a.png</path>", "image-moved"),
    ],
)
def test_a_picture_is_found_under_a_wrong_name_and_said(
    tmp_path: Path, filename: str, extra: str, kind: str | None
) -> None:
    devkit(tmp_path, item("2 2 9 9"), filename=filename, extra=extra)
    data = read_voc(tmp_path)
    assert [sample.image.name for sample in data.samples] == ["a.png"]
    assert kinds(data) == ([kind] if kind else [])


def test_a_picture_that_is_nowhere_is_named(tmp_path: Path) -> None:
    path = devkit(tmp_path, item("2 2 9 9"))
    (tmp_path / "JPEGImages" / "a.png").unlink()
    data = read_voc(tmp_path)
    assert data.samples == ()
    assert [(fault.kind, fault.where) for fault in data.faults] == [("missing-image", f"{path}:1")]


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [
        ("utf-8", None),
        ("utf-8-sig", "utf-8"),
        ("utf-16", "utf-16"),
        ("gb18030", "GB2312"),
        ("latin-1", "ISO-8859-1"),
    ],
)
def test_encodings_and_line_ends(tmp_path: Path, encoding: str, declared: str | None) -> None:
    name = "kurzschluß" if encoding == "latin-1" else "假 缺陷"
    draw(tmp_path / "JPEGImages" / f"{name}.png")
    head = f'<?xml version="1.0" encoding="{declared}"?>\n' if declared else ""
    text = (head + annotation(item("2 2 9 9", name), filename=f"{name}.png")).replace("\n", "\r\n")
    write(tmp_path / "Annotations" / "1.xml", text, encoding)
    data = read_voc(tmp_path)
    assert data.faults == ()
    assert (data.samples[0].image.stem, data.samples[0].labels) == (name, (name,))


BOMB = (
    '<!DOCTYPE z [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n" + BOMB + annotation(filename="&i;"), ":2: the file has a DOCTYPE"),
        ('<!DOCTYPE a SYSTEM "file:///etc/hostname"><annotation/>', ":1: the file has a DOCTYPE"),
        ('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><annotation>&x;</annotation>', "DOCTYPE"),
        ("<annotation>\n<object>\n</annotation>", ":3 is not XML: mismatched tag"),
        ("<annotation>&nbsp;</annotation>", "is not XML: undefined entity"),
        ("<annotation>" + "<a>" * 5000 + "</a>" * 5000 + "</annotation>", "nested 101 deep"),
        ("", "is not XML: no element found"),
        ('<?xml version="1.0" encoding="klingon"?><annotation/>', "is not text in klingon"),
        ('<?xml version="1.0" encoding="rot13"?><annotation/>', "is not text in rot13"),
    ],
)
def test_a_hostile_or_broken_file_is_named_and_the_others_are_read(
    tmp_path: Path, text: str, said: str
) -> None:
    devkit(tmp_path, item("2 2 9 9"))
    path = write(tmp_path / "Annotations" / "b.xml", text)
    data = read_voc(tmp_path)
    assert len(data.samples) == 1
    (fault,) = data.faults
    assert (fault.kind, fault.where) == ("corrupt-labels", str(path))
    assert str(path) in fault.message and said in fault.message


def test_a_list_of_classes_that_is_no_text_is_named(tmp_path: Path) -> None:
    devkit(tmp_path, item("2 2 9 9"))
    (tmp_path / "labelmap.txt").write_bytes(b"\xff\xffopen:::")
    data = read_voc(tmp_path)
    assert (data.class_names, kinds(data)) == (("open",), ["corrupt-labels"])


def test_what_is_no_voc_set_is_refused(tmp_path: Path) -> None:
    assert not looks_like_voc(tmp_path)
    write(tmp_path / "a.xml", "<?xml version='1.0'?><!-- x --><annotations/>")
    assert not looks_like_voc(tmp_path)
    with pytest.raises(ConfigError, match="no XML file is an <annotation>"):
        read_voc(tmp_path)


def test_numbered_pixels_are_the_objects_and_the_border_is_none(tmp_path: Path) -> None:
    path = devkit(tmp_path, item("2 2 9 9"), item("21 11 30 20", "short"), item("40 30 44 34"))
    numbers = np.zeros((40, 60), np.uint8)
    numbers[1:9, 1:9] = 255
    numbers[2:8, 2:8] = 1
    numbers[10:20, 20:30] = 2
    numbers[0, 59] = 7
    image = Image.fromarray(numbers)
    image.putpalette(list(range(256)) * 3)
    (tmp_path / "SegmentationObject").mkdir()
    image.save(tmp_path / "SegmentationObject" / "a.png")
    data = read_voc(tmp_path)
    (sample,) = data.samples
    assert sample.masks is not None
    first, second, third = sample.masks
    assert first is not None and second is not None and third is None
    np.testing.assert_array_equal(first.mask(40, 60), numbers == 1)
    np.testing.assert_array_equal(second.mask(40, 60), numbers == 2)
    assert [fault.kind for fault in data.faults] == ["bad-outline"]
    assert "pixels of [7] belong to none of 3 objects" in data.faults[0].message
    Image.fromarray(numbers[:20]).save(tmp_path / "SegmentationObject" / "a.png")
    data = read_voc(tmp_path)
    assert data.samples[0].masks is None
    assert "has (60, 20) px (width, height), its picture has (60, 40)" in data.faults[0].message
    (tmp_path / "SegmentationObject" / "a.png").rename(tmp_path / "a.png")
    (tmp_path / "SegmentationClass").mkdir()
    (tmp_path / "a.png").rename(tmp_path / "SegmentationClass" / "a.png")
    assert [(fault.kind, fault.where) for fault in read_voc(tmp_path).faults] == [
        ("unread-outlines", str(path))
    ]
