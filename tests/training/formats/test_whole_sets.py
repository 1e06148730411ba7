"""A written set is there whole or not at all, and a crowded picture takes no longer than its boxes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from training.formats.convert import not_held
from training.formats.dataset import DataSet, Fault
from training.formats.registry import WRITTEN, read_dataset, write_dataset

every_format = pytest.mark.parametrize("name", WRITTEN)


def boards(root: Path, count: int = 3) -> DataSet:
    samples = []
    for i in range(count):
        path = root / f"b{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (64, 48), i).save(path)
        box = np.array([[1, 1, 9, 9]], np.float32)
        samples.append(Sample(path.resolve(), box, ("open",), group="lot 1", split="train"))
    return DataSet(tuple(samples), ("open",), root=root.resolve())


@every_format
def test_a_writer_that_dies_half_way_leaves_no_set(tmp_path: Path, name: str) -> None:
    """The last picture goes away after the set was read: the others must not pass for good boards."""
    data = boards(tmp_path / "in")
    last = data.samples[-1].image
    content = last.read_bytes()
    last.unlink()
    with pytest.raises(Exception, match=last.name):
        write_dataset(data, tmp_path / "out", name)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    last.write_bytes(content)
    (tmp_path / ".out.part" / "images").mkdir(parents=True)  # what a process leaves that is killed
    (tmp_path / ".out.part" / "images" / "old.png").write_bytes(content)
    (tmp_path / "out").mkdir()
    written = write_dataset(data, tmp_path / "out", name)
    files = {path for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert set(written) == files and not any(path.name == "old.png" for path in files)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]
    assert len(read_dataset(tmp_path / "out").samples) == 3


@every_format
@pytest.mark.parametrize("copy_pictures", [True, False])
def test_no_file_names_the_folder_in_which_it_grew(tmp_path: Path, name: str, copy_pictures: bool) -> None:
    written = write_dataset(boards(tmp_path / "in"), tmp_path / "out", name, copy_pictures=copy_pictures)
    assert all(path.is_file() for path in written)
    texts = [path.read_bytes() for path in written if path.suffix != ".png"]
    assert texts and not any(b".part" in text for text in texts)
    back = read_dataset(tmp_path / "out")
    assert [sample.group for sample in back.samples] == ["lot 1"] * 3
    home = tmp_path / ("out" if copy_pictures else "in")
    assert all(sample.image.is_relative_to(home.resolve()) for sample in back.samples)


@every_format
def test_a_folder_that_holds_something_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").touch()
    with pytest.raises(ConfigError, match="not an empty folder"):
        write_dataset(boards(tmp_path / "in"), tmp_path / "out", name)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def crowded(root: Path, count: int) -> DataSet:
    (sample,) = boards(root, 1).samples
    corners = np.stack([np.arange(count) % 200, np.arange(count) // 200], 1).astype(np.float32) / 4
    boxes = np.concatenate([corners, corners + 7.25], 1)
    ignored = tuple(i % 2 == 1 for i in range(count))
    crowd = replace(sample, boxes=boxes, labels=("open",) * count, ignored=ignored)
    return DataSet((crowd,), ("open",), root=root.resolve())


@every_format
def test_twenty_thousand_boxes_are_written_and_compared(tmp_path: Path, name: str) -> None:
    """Half of them ignored, which YOLO leaves out; each pass over all boxes per box would take minutes."""
    data = crowded(tmp_path / "in", 20_000)
    lost: list[Fault] = []
    write_dataset(data, tmp_path / "out", name, lost=lost)
    said = not_held(data, read_dataset(tmp_path / "out"))
    wanted = (
        ["10000 of 20000 boxes do not come back, or are off by more than 0.01 px"] if name == "yolo" else []
    )
    assert said == wanted


@every_format
def test_long_names_leave_room_for_label_files(tmp_path: Path, name: str) -> None:
    data = boards(tmp_path / "in", 2)
    samples = []
    for folder, sample in zip("ab", data.samples, strict=True):
        path = tmp_path / "in" / folder / ("\u00e9" * 125 + ".png")
        path.parent.mkdir()
        samples.append(replace(sample, image=sample.image.rename(path)))
    write_dataset(replace(data, samples=tuple(samples)), tmp_path / "out", name)
    back = read_dataset(tmp_path / "out")
    assert {s.image.read_bytes() for s in back.samples} == {s.image.read_bytes() for s in samples}
    assert [len(sample.boxes) for sample in back.samples] == [1, 1]
