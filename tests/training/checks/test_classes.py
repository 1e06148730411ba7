"""Names that mean one class, and classes that show one thing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from training.checks.classes import check_looks, check_names, compare_classes
from training.checks.descriptors import describe_boxes


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("Short", "short", "class-spelling"),
        ("mouse_bite", "mousebite", "class-spelling"),
        ("pin hole", "pin-hole", "class-spelling"),
        ("open ", "open", "class-spelling"),
        ("\uff4fpen", "open", "class-spelling"),  # a full-width o
        ("scratch", "scratches", None),
        ("scratch", "scrach", "class-near-spelling"),
        ("missing_hole", "missnig_hole", "class-near-spelling"),
        ("spurs", "spur", None),
        ("copper", "coppar", "class-near-spelling"),
        ("hole_type_1", "hole_type_2", None),
        ("open", "oven", None),
        ("spur", "spurious_copper", None),
    ],
)
def test_names_that_may_be_one(first: str, second: str, kind: str | None) -> None:
    found = [f.kind for f in check_names([first, second], Counter({first: 3, second: 4}), {})]
    assert found == ([kind] if kind else [])


def test_names_without_a_box_and_boxes_without_a_listed_name() -> None:
    found = list(check_names(["open", "short"], Counter({"open": 2, "OPEN": 1}), {}))
    assert [(f.kind, f.message) for f in found] == [
        ("class-spelling", "'open' (2 boxes) and 'OPEN' (1) differ in case, spacing or punctuation only"),
        ("class-unused", "'short' is a class, and no box is of it"),
    ]


def crops(kind: str, count: int, seed: int) -> np.ndarray:  # type: ignore[type-arg]
    """Descriptors of discs or crosses of many sizes and places, each in a picture of its own."""
    rng = np.random.default_rng(seed)
    vectors = []
    for _ in range(count):
        y, x = np.mgrid[:64, :64] - rng.uniform(28, 36, (2, 1, 1))
        size = rng.uniform(6, 14)
        shape = x**2 + y**2 < size**2 if kind == "disc" else (np.minimum(abs(x), abs(y)) < size / 4)
        picture = np.clip(80 + 90 * shape + rng.normal(0, 8, shape.shape), 0, 255).astype(np.uint8)
        vectors.append(describe_boxes(picture, np.array([[16, 16, 48, 48]], np.float32))[0])
    return np.array(vectors)


def test_classes_that_show_one_thing_are_named_and_others_are_not() -> None:
    vectors = np.concatenate([crops("disc", 60, 0), crops("disc", 60, 1), crops("cross", 60, 2)])
    labels = ["pad"] * 60 + ["round"] * 60 + ["crossing"] * 60
    compared = compare_classes(vectors, labels, np.arange(180))
    shares = {(pair.first, pair.second): pair.share for pair in compared}
    assert shares["pad", "round"] < 0.65
    assert shares["pad", "crossing"] > 0.95 and shares["round", "crossing"] > 0.95
    assert ["'pad' and 'round'" in finding.message for finding in check_looks(compared, {})] == [True]


def test_boxes_of_one_picture_are_no_neighbours() -> None:
    """Twenty pictures of 8 equal boxes each: with those of its own picture left out, nothing tells a box."""
    rng = np.random.default_rng(0)
    per_picture = rng.normal(size=(20, 16)).astype(np.float32)
    vectors = np.repeat(per_picture, 8, axis=0)
    labels = ["a"] * 80 + ["b"] * 80
    (pair,) = compare_classes(vectors, labels, np.repeat(np.arange(20), 8))
    assert pair.share < 0.8
    (leaky,) = compare_classes(vectors, labels, np.arange(160))
    assert leaky.share == 1.0


def test_a_class_of_few_boxes_is_not_judged() -> None:
    vectors = np.zeros((40, 8), np.float32)
    assert compare_classes(vectors, ["a"] * 30 + ["b"] * 10, np.arange(40)) == []


def test_light_changes_a_descriptor_little() -> None:
    rng = np.random.default_rng(1)
    picture = np.kron(rng.integers(60, 180, (8, 8)), np.ones((8, 8))).astype(np.uint8)
    box = np.array([[8, 8, 56, 56]], np.float32)
    darker = np.asarray(0.5 * picture + 20, np.uint8)
    same, other = (describe_boxes(p, box)[0] for p in (picture, darker))
    assert np.linalg.norm(same) == pytest.approx(1.0, abs=1e-5)
    assert (
        np.linalg.norm(same - other) < 0.1 < np.linalg.norm(same - describe_boxes(picture.T.copy(), box)[0])
    )
