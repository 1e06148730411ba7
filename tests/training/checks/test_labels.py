"""Boxes and outlines that cannot be right, and counts that are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspect_vit.results import Sample
from inspect_vit.shapes import Polygon, Shape
from training.checks.labels import check_labels, count

SIZE = (200, 100)


def sample(
    *boxes: tuple[float, ...], labels: tuple[str, ...] = (), masks: tuple[Shape | None, ...] | None = None
) -> Sample:
    array = np.array(boxes, np.float32).reshape(-1, 4)
    return Sample(Path("a.png"), array, labels or ("open",) * len(array), origin="here:1", masks=masks)


def kinds(given: Sample) -> list[str]:
    return [finding.kind for finding in check_labels(given, SIZE)]


@pytest.mark.parametrize(
    ("box", "kind"),
    [
        ((10, 10, 30, 30), None),
        ((0, 0, 200, 100), None),
        ((-0.3, 0, 20, 20), None),
        ((-2, 10, 20, 30), "box-outside"),
        ((190, 10, 203, 30), "box-outside"),
        ((10, 90, 30, 130), "box-outside"),
        ((10, 10, 10, 30), "empty-box"),
        ((30, 10, 20, 30), "empty-box"),
        ((10, 10, 11.5, 30), "tiny-box"),
    ],
)
def test_boxes(box: tuple[float, ...], kind: str | None) -> None:
    assert kinds(sample(box)) == ([kind] if kind else [])


def test_boxes_that_lie_on_each_other() -> None:
    twice = sample((10, 10, 40, 40), (10, 10, 40, 41), (100, 10, 140, 40), labels=("open", "open", "open"))
    (found,) = check_labels(twice, SIZE)
    assert (found.kind, found.message) == ("double-box", "boxes 1 and 2, open, are the same")
    assert found.boxes == ((10, 10, 40, 40), (10, 10, 40, 41))
    assert kinds(sample((10, 10, 40, 40), (10, 10, 40, 40), labels=("open", "short"))) == ["two-classes"]
    assert kinds(sample((10, 10, 40, 40), (20, 10, 50, 40))) == []  # IoU 0.5


def ring(*points: tuple[float, float]) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(points, np.float64)


SQUARE = ring((20, 20), (60, 20), (60, 60), (20, 60))
BOX = (20.0, 20.0, 60.0, 60.0)


@pytest.mark.parametrize(
    ("polygon", "kind"),
    [
        (Polygon(SQUARE), None),
        (Polygon(SQUARE, (ring((30, 30), (40, 30), (40, 40)),)), "outline-with-holes"),
        (Polygon(ring((20, 20), (60, 60), (60, 20), (20, 60))), "outline-crosses-itself"),
        (Polygon(np.add(SQUARE, (8, 0))), "outline-beyond-box"),
        (Polygon(np.add(SQUARE, (1.5, 0))), None),
        (Polygon(ring((30.1, 20), (30.3, 20), (30.3, 60), (30.1, 60))), "outline-without-pixels"),
    ],
)
def test_outlines(polygon: Polygon, kind: str | None) -> None:
    assert kinds(sample(BOX, masks=(Shape((polygon,)),))) == ([kind] if kind else [])


def test_a_star_of_one_stroke_crosses_itself_and_a_jagged_outline_does_not() -> None:
    angles = np.arange(5) * 4 * np.pi / 5
    star = np.stack([40 + 20 * np.sin(angles), 40 - 20 * np.cos(angles)], 1)
    assert "outline-crosses-itself" in kinds(sample(BOX, masks=(Shape((Polygon(star),)),)))
    turns = np.linspace(0, 2 * np.pi, 80, endpoint=False)
    radius = 14 + 5 * np.cos(9 * turns)
    jagged = np.stack([40 + radius * np.cos(turns), 40 + radius * np.sin(turns)], 1)
    assert kinds(sample(BOX, masks=(Shape((Polygon(jagged),)),))) == []


def test_masks_of_pixels_and_boxes_without_outline_pass() -> None:
    mask = np.zeros((100, 200), np.bool_)
    mask[25:50, 25:50] = True
    mask[30:35, 30:35] = False
    assert kinds(sample(BOX, BOX, labels=("open", "short"), masks=(Shape.from_mask(mask), None))) == [
        "two-classes"
    ]


def test_counts() -> None:
    first = sample((0, 0, 8, 8), (0, 0, 8.5, 2), (0, 0, 300, 2), labels=("open", "open", "short"))
    second = sample((0, 0, 16, 17), labels=("open",))
    counted = count([first, second, sample()], ["short", "open", "spur"])
    assert (counted.pictures, counted.good_boards, counted.boxes) == (3, 1, 4)
    assert list(counted.classes) == ["short", "open", "spur"]
    assert counted.classes["open"].boxes == 3 and counted.classes["open"].pictures == 2
    assert {size: n for size, n in counted.classes["open"].sizes.items() if n} == {
        "to 8": 1,
        "9 to 16": 1,
        "17 to 32": 1,
    }
    assert {size: n for size, n in counted.classes["short"].sizes.items() if n} == {"over 128": 1}
    assert counted.classes["spur"].boxes == 0
