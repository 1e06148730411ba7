"""Finding pictures and naming copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.formats.pictures import PictureFinder, list_pictures, unique_names


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path.resolve()


def test_folders_count_in_their_order_and_paths_before_bare_names(tmp_path: Path) -> None:
    near, far = touch(tmp_path / "near" / "a.png"), touch(tmp_path / "far" / "sub" / "a.png")
    finder = PictureFinder([tmp_path / "near", tmp_path / "far"])
    assert finder.find("a.png") == near
    assert finder.find("sub/a.png") == far
    assert finder.find("../far/sub/a.png") == far
    assert finder.find("elsewhere/a.png") == near
    assert finder.find("A.PNG") == near


def test_what_is_not_there_or_not_clear_is_not_found(tmp_path: Path) -> None:
    touch(tmp_path / "b.png"), touch(tmp_path / "B.png")
    finder = PictureFinder([tmp_path])
    if len(list_pictures(tmp_path)) == 2:
        assert finder.find("b.PNG") is None, "two fit"
    for name in ("", "c.png", ".", "x\0.png", "a" * 5000 + ".png", "/"):
        assert finder.find(name) is None


def test_copies_get_their_own_names_also_where_case_is_one() -> None:
    root = Path("/set")
    paths = [root / name for name in ("a/1.png", "b/1.png", "b/1.PNG", "c/2.png", "a/1.png")]
    names = unique_names([*paths, Path("/elsewhere/b/1.png")], root)
    assert names == {
        paths[0]: "1.png",
        paths[1]: "b_1.png",
        paths[2]: "1_2.PNG",
        paths[3]: "2.png",
        Path("/elsewhere/b/1.png"): "1_3.png",
    }


@pytest.mark.parametrize("deep", [False, True])
def test_pictures_are_listed_by_name_without_hidden_files(tmp_path: Path, deep: bool) -> None:
    for name in ("b.PNG", "a.tiff", "._a.tiff", "c.txt", "sub/d.webp"):
        touch(tmp_path / name)
    names = [path.name for path in list_pictures(tmp_path, deep=deep)]
    assert names == ["a.tiff", "b.PNG", *(["d.webp"] if deep else [])]


def test_names_that_one_file_answers_by_their_last_part_are_unclear(tmp_path: Path) -> None:
    touch(tmp_path / "images" / "b.png"), touch(tmp_path / "lot" / "c.png")
    finder = PictureFinder([tmp_path, tmp_path / "images"])
    assert finder.unclear(["lotA/b.png", "lotB/b.png", "lot/c.png", "gone.png"]) == {
        "lotA/b.png",
        "lotB/b.png",
    }
    assert finder.unclear(["images/b.png", "b.png", "lotB/b.png"]) == {"lotB/b.png"}
    assert finder.unclear(["lotA/b.png", "lotA/b.png"]) == set()
    assert finder.trace("lotA/b.png") == ((tmp_path / "images" / "b.png").resolve(), True)


def test_no_copy_has_a_name_longer_than_a_disk_takes() -> None:
    root, long = Path("/set"), "\u00e9" * 122 + ".png"
    names = unique_names([root / folder / long for folder in ("first", "second", "third")], root)
    assert len({name.casefold() for name in names.values()}) == 3
    assert all(len(name.encode()) <= 255 and name.endswith(".png") for name in names.values())
