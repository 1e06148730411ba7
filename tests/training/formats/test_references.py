"""Rules that pair boards with references and gather pictures of one board."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from training.formats.dataset import DataSet
from training.formats.good import read_good
from training.formats.references import (
    GroupByFolder,
    GroupByName,
    GroupByTable,
    ReferenceByFolder,
    ReferenceByName,
    ReferenceByTable,
    apply_groups,
    apply_references,
    check_references,
    parse_groups,
    parse_references,
)


def draw(path: Path, size: tuple[int, int] = (20, 16)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", size).save(path)
    return path.resolve()


def pairs(data: DataSet) -> dict[str, str | None]:
    return {s.image.name: s.reference.name if s.reference else None for s in data.samples}


def kinds(data: DataSet) -> list[str]:
    return [fault.kind for fault in data.faults]


def test_by_name_the_reference_lies_beside_the_board(tmp_path: Path) -> None:
    for name in ("1_test.png", "1_temp.JPG", "2_test.png", "other.png"):
        draw(tmp_path / name)
    data = apply_references(read_good(tmp_path), ReferenceByName())
    assert pairs(data) == {"1_test.png": "1_temp.JPG", "2_test.png": None, "other.png": None}
    assert kinds(data) == ["used-as-reference", "missing-reference", "missing-reference"]
    assert data.faults[0].message.startswith("1 good pictures are references")


def test_by_name_with_a_pattern_of_one_s_own(tmp_path: Path) -> None:
    for name in ("IMG_07.png", "GOLD-07.png"):
        draw(tmp_path / name)
    data = apply_references(read_good(tmp_path), parse_references(r"name:IMG_(\d+)=GOLD-{1}"))
    assert pairs(data) == {"IMG_07.png": "GOLD-07.png"}
    with pytest.raises(ConfigError, match="asks for a group"):
        apply_references(read_good(tmp_path), parse_references("name:IMG_07={1}"))


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_by_table_as_spreadsheets_save_it(tmp_path: Path, separator: str) -> None:
    images = [draw(tmp_path / "set" / "images" / name) for name in ("a.png", "b\u00e9.png", "c.png")]
    golden = draw(tmp_path / "set" / "golden" / "x.png")
    rows = [
        ["image", "reference", "group"],
        ["images\\a.png", "golden/x.png", "lot 1"],
        ["b\u00e9.png", "golden/gone.png", ""],
        ["d.png", "golden/x.png", ""],
    ]
    table = tmp_path / "pairs.csv"
    table.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(separator.join(row) for row in rows).encode() + b"\r\n")
    boxes = np.array([[1, 1, 5, 5]], np.float32)
    data = DataSet(
        tuple(Sample(p, boxes, ("a",), group="own") for p in images), ("a",), root=tmp_path / "set"
    )
    paired = apply_references(data, ReferenceByTable(table))
    assert [sample.reference for sample in paired.samples] == [golden, None, None]
    assert [sample.group for sample in paired.samples] == ["lot 1", "own", "own"]
    assert [(f.kind, f.image and f.image.name) for f in paired.faults] == [
        ("missing-image", None),
        ("missing-reference", "b\u00e9.png"),
        ("missing-reference", "c.png"),
    ]
    grouped = apply_groups(data, GroupByTable(table))
    assert [sample.group for sample in grouped.samples] == ["lot 1", "own", "own"]
    assert kinds(grouped) == ["missing-image", "missing-group", "missing-group"]


def test_by_folder_the_own_name_counts_before_the_group_s_and_one_serves_all(tmp_path: Path) -> None:
    images = [draw(tmp_path / "images" / name) for name in ("1.png", "2.png")]
    no_boxes = np.zeros((0, 4), np.float32)
    data = DataSet(tuple(Sample(p, no_boxes, (), group="A") for p in images), (), root=tmp_path)
    (
        draw(tmp_path / "golden" / "1.jpg"),
        draw(tmp_path / "golden" / "A.jpg"),
        draw(tmp_path / "one" / "any.png"),
    )
    assert pairs(apply_references(data, ReferenceByFolder(Path("golden")))) == {
        "1.png": "1.jpg",
        "2.png": "A.jpg",
    }
    only = apply_references(data, parse_references(f"folder:{tmp_path / 'one'}"))
    assert pairs(only) == {"1.png": "any.png", "2.png": "any.png"}
    with pytest.raises(ConfigError, match="no folder of references"):
        apply_references(data, ReferenceByFolder(Path("nowhere")))


def test_groups_by_name_and_by_folder(tmp_path: Path) -> None:
    draw(tmp_path / "line 2" / "board17_top.png"), draw(tmp_path / "stray.png")
    data = read_good(tmp_path)
    by_name = apply_groups(data, parse_groups(r"name:(board\d+)_"))
    assert [sample.group for sample in by_name.samples] == ["board17", ""]
    assert kinds(by_name) == ["missing-group"]
    assert [s.group for s in apply_groups(data, GroupByName(r"line \d")).samples] == ["line 2", ""]
    assert [s.group for s in apply_groups(data, parse_groups("folder")).samples] == ["line 2", ""]


def test_references_that_do_not_fit_are_taken_off_and_named(tmp_path: Path) -> None:
    board, other, fitting = (
        draw(tmp_path / "a.png"),
        draw(tmp_path / "b.png", (16, 20)),
        draw(tmp_path / "c.png"),
    )
    (tmp_path / "d.png").write_bytes(b"")
    no_boxes = np.zeros((0, 4), np.float32)
    data = DataSet(
        tuple(Sample(board, no_boxes, (), reference=path) for path in (other, fitting, tmp_path / "d.png")),
        (),
    )
    checked = check_references(data)
    assert [sample.reference for sample in checked.samples] == [None, fitting, None]
    assert kinds(checked) == ["reference-size", "corrupt-reference"]
    assert "(16, 20), the board (20, 16)" in checked.faults[0].message


def test_rules_are_read_from_the_command_line() -> None:
    assert parse_references("name") == ReferenceByName("(.*)_test", "{1}_temp")
    assert parse_references("name:(.)=x=y") == ReferenceByName("(.)=x", "y")
    assert parse_references("table:a b.csv") == ReferenceByTable(Path("a b.csv"))
    assert parse_groups("table:g.csv") == GroupByTable(Path("g.csv"))
    assert parse_groups("folder") == GroupByFolder()
    for text in ("", "names", "name:no equals", "table:", "folder"):
        with pytest.raises(ConfigError, match="wanted name, name:PATTERN=NAME"):
            parse_references(text)
    for text in ("", "name", "name:", "column:x"):
        with pytest.raises(ConfigError, match="wanted name:PATTERN"):
            parse_groups(text)
    for parse, text in ((parse_references, "name:(=x"), (parse_groups, "name:(")):
        with pytest.raises(ConfigError, match="no regular expression"):
            parse(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins ''"),
        (b"picture,reference\n", "wanted the columns image"),
        (b"\xff\x00", "byte 0 is not utf-8"),
    ],
)
def test_tables_that_are_none_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    draw(tmp_path / "a.png")
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        apply_groups(read_good(tmp_path), GroupByTable(tmp_path / "t.csv"))
