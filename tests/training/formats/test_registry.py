"""Which format a folder is in, and reading it with rules for what it does not say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from inspect_vit.shapes import Polygon, Shape
from training.formats.dataset import DataSet
from training.formats.references import GroupByFolder, ReferenceByFolder, ReferenceByName
from training.formats.registry import FORMATS, WRITTEN, detect_format, read_dataset, write_dataset


def draw(path: Path, size: tuple[int, int] = (40, 30)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", size, len(path.name)).save(path)
    return path.resolve()


def small_set(root: Path) -> DataSet:
    ring = np.array([[5.5, 5.5], [15.5, 5.5], [15.5, 12.25]])
    sample = Sample(
        draw(root / "a.png"),
        np.array([[5.5, 5.5, 15.5, 12.25]], np.float32),
        ("open",),
        masks=(Shape(polygons=(Polygon(ring),)),),
    )
    return DataSet(
        (sample, Sample(draw(root / "bb.png"), np.zeros((0, 4), np.float32), ())), ("open",), root=root
    )


@pytest.mark.parametrize("name", WRITTEN)
def test_every_written_format_is_recognised_and_no_other_fits(tmp_path: Path, name: str) -> None:
    write_dataset(small_set(tmp_path / "in"), tmp_path / "out", name)
    assert [other for other, format_ in FORMATS.items() if format_.looks_like(tmp_path / "out")] == [name]
    data = read_dataset(tmp_path / "out")
    assert data.format == name
    assert data.class_names == ("open",)
    assert [len(sample.boxes) for sample in data.samples] == [1, 0]
    np.testing.assert_allclose(data.samples[0].boxes, [[5.5, 5.5, 15.5, 12.25]], atol=0.01)
    assert all(sample.image.is_absolute() and sample.image.is_file() for sample in data.samples)


def test_a_folder_in_no_format_is_told_what_each_looked_for(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("boards of May", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        detect_format(tmp_path)
    for name, format_ in FORMATS.items():
        assert f"{name}: {format_.wanted}" in str(caught.value)


def test_a_folder_in_two_formats_is_not_guessed(tmp_path: Path) -> None:
    write_dataset(small_set(tmp_path / "in"), tmp_path / "out", "coco")
    (tmp_path / "out" / "train" / "good").mkdir(parents=True)
    with pytest.raises(ConfigError, match="may be coco or mvtec; say which with --format"):
        read_dataset(tmp_path / "out")
    assert read_dataset(tmp_path / "out", format="coco").format == "coco"


def test_unknown_formats_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        read_dataset(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="no format 'tfrecord'; use auto or one of deeppcb, coco"):
        read_dataset(tmp_path, format="tfrecord")
    with pytest.raises(ConfigError, match="'good' is not written; use one of coco"):
        write_dataset(small_set(tmp_path), tmp_path / "out", "good")


def test_rules_fill_in_what_the_format_does_not_say(tmp_path: Path) -> None:
    for name in ("lot 1/a_test.png", "lot 1/a_temp.png", "lot 2/b_test.png"):
        draw(tmp_path / "set" / name)
    draw(tmp_path / "set" / "lot 2" / "b_temp.png", (30, 40))
    data = read_dataset(tmp_path / "set", references=ReferenceByName(), groups=GroupByFolder())
    assert [(s.image.name, s.reference and s.reference.name, s.group) for s in data.samples] == [
        ("a_test.png", "a_temp.png", "lot 1"),
        ("b_test.png", None, "lot 2"),
    ]
    assert [fault.kind for fault in data.faults] == ["used-as-reference", "reference-size"]


def test_real_sets_are_recognised(deeppcb_root: Path, project: Path) -> None:
    assert detect_format(deeppcb_root) == "deeppcb"
    assert detect_format(project / "data_samples") == "coco"
    boards = deeppcb_root.parent / "hripcb_3boards"
    if boards.is_dir():
        assert detect_format(boards) == "coco"
        data = read_dataset(boards / "templates", references=ReferenceByFolder(boards / "templates"))
        assert (data.format, len(data.samples)) == ("good", 3)
