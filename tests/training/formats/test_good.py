"""A plain folder of good boards."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from inspect_vit.errors import ConfigError
from training.formats.good import looks_like_good, read_good


def draw(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (20, 16)).save(path)
    return path.resolve()


def test_every_picture_is_a_board_and_its_folder_the_group(tmp_path: Path) -> None:
    pictures = [draw(tmp_path / name) for name in ("b.JPG", "lot 7/a.png", "lot 7/\u00e4.bmp")]
    for name in ("Thumbs.db", "._b.JPG", "README.txt"):
        (tmp_path / name).write_bytes(b"no picture")
    assert looks_like_good(tmp_path)
    data = read_good(tmp_path)
    assert [sample.image for sample in data.samples] == pictures
    assert [sample.group for sample in data.samples] == ["", "lot 7", "lot 7"]
    assert all(not len(sample.boxes) and sample.labels == () for sample in data.samples)
    assert data.faults == data.class_names == ()


def test_corrupt_pictures_and_files_that_may_be_labels_are_named(tmp_path: Path) -> None:
    draw(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"")
    (tmp_path / "a.txt").write_text("0 0.5 0.5 0.1 0.1", encoding="utf-8")
    assert not looks_like_good(tmp_path)
    data = read_good(tmp_path)
    assert [sample.image.name for sample in data.samples] == ["a.png"]
    assert [(fault.kind, fault.where) for fault in data.faults] == [
        ("corrupt-image", "b.png"),
        ("unread-file", "a.txt"),
    ]


def test_a_folder_without_pictures_is_refused(tmp_path: Path) -> None:
    assert not looks_like_good(tmp_path)
    assert not looks_like_good(tmp_path / "nowhere")
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ConfigError, match="no pictures here"):
            read_good(folder)
