"""Conversion: the summary says what came in and, by reading back, what the target format cannot hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from inspect_vit.shapes import Polygon, Shape
from training.formats.coco import write_coco
from training.formats.convert import count, import_dataset, not_held, same_shape
from training.formats.dataset import DataSet
from training.formats.references import ReferenceByName
from training.formats.registry import WRITTEN, read_dataset

RING = np.array([[10.1, 10.2], [30.3, 10.4], [30.5, 25.6], [10.7, 25.8]])


def draw(path: Path, seed: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 255, (30, 40), np.uint8)).save(path)
    return path.resolve()


def rich_set(root: Path) -> DataSet:
    """A hole, two parts, pixels, a crowd, a pair, a group, splits, a name twice, a class without a box."""
    hole, apart = RING * 0.5 + 10.05, np.array([[33.5, 5.5], [38.5, 5.25], [38.125, 9.25]])
    shapes = (
        Shape(polygons=(Polygon(RING, (hole,)), Polygon(apart))),
        Shape.from_mask(np.random.default_rng(0).random((30, 40)) < 0.1),
        None,
    )
    bounds = [[10.1, 5.25, 38.5, 25.8], [0, 0, 40, 30], [1.7, 2.9, 3.3, 4.1]]
    first = Sample(
        draw(root / "one" / "b\u00e9.png", 1),
        np.array(bounds, np.float32),
        ("open", "short", "open"),
        reference=draw(root / "golden.png", 3),
        group="lot 5",
        masks=shapes,
        ignored=(False, True, False),
        split="train",
    )
    second = Sample(draw(root / "two" / "b\u00e9.png", 2), np.zeros((0, 4), np.float32), (), split="val")
    return DataSet((first, second), ("open", "short", "never seen"), root=root.resolve())


def test_coco_to_coco_holds_everything_and_counts_it(tmp_path: Path) -> None:
    write_coco(rich_set(tmp_path / "in"), tmp_path / "coco")
    summary = import_dataset(tmp_path / "coco", tmp_path / "out")
    assert json.loads(json.dumps(summary)) == summary
    assert (summary["from_format"], summary["detected"], summary["to_format"]) == ("coco", True, "coco")
    expected: dict[str, Any] = {
        "samples": 2,
        "good_boards": 1,
        "boxes": 3,
        "ignored": 1,
        "outlines": 2,
        "with_holes": 1,
        "in_parts": 1,
        "references": 1,
        "groups": 1,
        "classes": {"open": 2, "short": 1, "never seen": 0},
        "splits": {"train": 1, "val": 1},
        "faults": [],
        "lost": [],
        "not_held": [],
    }
    assert {key: summary[key] for key in expected} == expected
    assert all(Path(path).is_file() for path in summary["written"])


@pytest.mark.parametrize("name", WRITTEN)
def test_whatever_a_format_loses_is_said(tmp_path: Path, name: str) -> None:
    """Each difference that is found here in what was written has its sentence, and no other has."""
    write_coco(rich_set(tmp_path / "in"), tmp_path / "coco")
    summary = import_dataset(tmp_path / "coco", tmp_path / "out", to_format=name)
    before, after = (read_dataset(tmp_path / folder) for folder in ("coco", "out"))
    pictures = {sample.image.read_bytes(): sample for sample in after.samples}
    pairs = [(sample, pictures[sample.image.read_bytes()]) for sample in before.samples]
    first, same = pairs[0]
    kept = [i for i in range(3) if len(same.boxes) == 3 or not first.ignored[i]]
    assert len(same.boxes) == len(kept), "every format keeps the defects that count"
    said = "\n".join(summary["not_held"])
    checks = {
        "references differ": same.reference is None
        or first.reference is None
        or first.reference.read_bytes() != same.reference.read_bytes(),
        "group names differ": first.group != same.group,
        "flags of ignored boxes": len(kept) == 3
        and any(a.ignored != (b.ignored or (False,) * len(b.boxes)) for a, b in pairs[:1]),
        "stated splits differ": any(a.split != b.split for a, b in pairs),
        "boxes do not come back": len(kept) < 3 or bool(np.abs(first.boxes - same.boxes).max() > 0.01),
        "class names differ": tuple(first.labels[i] for i in kept) != same.labels,
        "classes without a box": not set(before.class_names) <= set(after.class_names),
    }
    for sentence, is_lost in checks.items():
        assert (sentence in said) == is_lost, (sentence, said)


def test_changes_are_found_and_counted(tmp_path: Path) -> None:
    data = rich_set(tmp_path)
    assert not_held(data, data) == []
    first, second = data.samples
    assert first.masks is not None
    moved = Shape(polygons=(Polygon(RING + 0.02), *first.masks[0].polygons[1:])) if first.masks[0] else None
    changed = replace(
        first,
        boxes=first.boxes + np.array([[0, 0, 0, 0.02], [0, 0, 0, 0], [0, 0, 0.005, 0]], np.float32),
        labels=("open", "open", "open"),
        masks=(moved, first.masks[1], first.masks[1]),
        ignored=(),
        reference=None,
        group="",
        split="test",
    )
    assert not_held(data, replace(data, samples=(changed,), class_names=("short", "open"))) == [
        "1 of 2 pictures do not come back",
        "1 of 3 boxes do not come back, or are off by more than 0.01 px",
        "1 of 3 class names differ",
        "2 of 2 outlines do not come back, or cover other pixels",
        "1 of 1 flags of ignored boxes differ",
        "1 of 1 references differ",
        "1 of 1 group names differ",
        "1 of 1 stated splits differ",
        "classes without a box do not come back: never seen",
    ]
    fewer = replace(
        first,
        boxes=first.boxes[1:],
        labels=first.labels[1:],
        masks=first.masks[1:],
        ignored=first.ignored[1:],
    )
    assert not_held(data, replace(data, samples=(fewer, second))) == [
        "1 of 3 boxes do not come back, or are off by more than 0.01 px"
    ]
    as_pixels = replace(
        first, masks=(first.masks[0] and Shape.from_mask(first.masks[0].mask(30, 40)), *first.masks[1:])
    )
    assert not_held(data, replace(data, samples=(as_pixels, second))) == [
        "1 of 2 outlines come back in another form, covering the same pixels"
    ]


def test_outlines_are_compared_ring_by_ring() -> None:
    one, hole = Polygon(RING), Polygon(RING, (RING * 0.5 + 10,))
    assert same_shape(Shape(polygons=(one,)), Shape(polygons=(Polygon(RING + 0.005),)))
    assert not same_shape(Shape(polygons=(one,)), Shape(polygons=(Polygon(RING + 0.02),)))
    assert not same_shape(Shape(polygons=(one,)), Shape(polygons=(hole,)))
    assert not same_shape(Shape(polygons=(one, one)), Shape(polygons=(one,)))
    assert not same_shape(Shape(polygons=(one,)), None)
    assert not same_shape(Shape(runs=(3, 3), size=(3, 2)), Shape(runs=(3, 3), size=(2, 3)))
    assert same_shape(None, None)
    turned = np.roll(RING[::-1], 1, 0)
    assert same_shape(Shape(polygons=(hole, one)), Shape(polygons=(one, Polygon(turned, hole.holes))))
    assert not same_shape(Shape(polygons=(one,)), Shape(polygons=(Polygon(RING[[0, 2, 1, 3]]),)))


def test_rules_and_faults_of_the_source_are_in_the_summary(tmp_path: Path) -> None:
    for seed, name in enumerate(("1_test.png", "1_temp.png", "2_test.png")):
        draw(tmp_path / "boards" / name, seed)
    (tmp_path / "boards" / "3_test.png").write_bytes(b"")
    summary = import_dataset(
        tmp_path / "boards", tmp_path / "out", references=ReferenceByName(), copy_pictures=False
    )
    assert (summary["from_format"], summary["samples"], summary["good_boards"]) == ("good", 2, 2)
    assert (summary["references"], summary["not_held"]) == (1, [])
    assert [fault["kind"] for fault in summary["faults"]] == [
        "corrupt-image",
        "used-as-reference",
        "missing-reference",
    ]
    assert summary["faults"][0]["image"] == str((tmp_path / "boards" / "3_test.png").resolve())
    assert [Path(path).name for path in summary["written"]] == ["annotations.coco.json"]


def test_impossible_conversions_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    write_coco(rich_set(tmp_path / "in"), tmp_path / "coco")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").touch()
    for out, options, message in (
        ("out", {"to_format": "mvtec"}, "'mvtec' is not written; use one of coco"),
        ("full", {}, "not empty; name a new folder"),
        ("coco/inside", {}, "would be read with it next time"),
        ("out", {"from_format": "good2"}, "no format 'good2'"),
        ("out", {"from_format": "deeppcb"}, "no PCBData"),
    ):
        with pytest.raises(ConfigError, match=message):
            import_dataset(tmp_path / "coco", tmp_path / out, **options)
    assert not (tmp_path / "out").exists()


def test_a_set_of_which_nothing_can_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "boards").mkdir()
    (tmp_path / "boards" / "a.png").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"read as good and has no sample: a\.png: the picture is empty"):
        import_dataset(tmp_path / "boards", tmp_path / "out")


def test_deeppcb_becomes_coco_without_loss(deeppcb_root: Path, tmp_path: Path) -> None:
    data = read_dataset(deeppcb_root)
    some = replace(data, samples=data.samples[::50])
    write_coco(some, tmp_path / "out", copy_pictures=False)
    assert not_held(some, read_dataset(tmp_path / "out")) == []
    assert count(data)["boxes"] == 10013
