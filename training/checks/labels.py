"""Boxes, outlines and counts: what labels say by themselves, and held against the size of their picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from inspect_vit.matching import box_iou
from inspect_vit.results import BoxXyxy, Sample
from inspect_vit.shapes import Shape
from training.checks.findings import ClassCounts, Counts, Finding
from training.checks.orientation import SLACK_PX

SIZES = {"to 8": 8, "9 to 16": 16, "17 to 32": 32, "33 to 64": 64, "65 to 128": 128, "over 128": float("inf")}
"""Longest side of a box, px, rounded up."""
TINY_PX = 2.0
SAME_IOU = 0.9
"""Two boxes that overlap by this much are one."""
OUTLINE_SLACK_PX = 2.0
"""Annotators round; an outline may leave its box by so much."""
CROSSING_SHARE, CROSSING_PX = 0.1, 20.0
"""The two ways of counting the area of a ring differ by more than this share and area: it crosses itself."""
SCAN_LINES = 64


def count(samples: Sequence[Sample], class_names: Sequence[str]) -> Counts:
    """Pictures, boxes and classes, in the order of the set's own class names, others behind them."""
    boxes = Counter(label for sample in samples for label in sample.labels)
    pictures = Counter(label for sample in samples for label in set(sample.labels))
    sizes: dict[str, Counter[str]] = {}
    for sample in samples:
        for label, box in zip(sample.labels, sample.boxes, strict=True):
            sizes.setdefault(label, Counter())[_size_of(box)] += 1
    names = dict.fromkeys((*class_names, *sorted(boxes)))
    return Counts(
        pictures=len(samples),
        good_boards=sum(not sample.labels for sample in samples),
        references=len({sample.reference for sample in samples if sample.reference is not None}),
        boxes=boxes.total(),
        outlines=sum(shape is not None for sample in samples for shape in sample.masks or ()),
        ignored=sum(sum(sample.ignored) for sample in samples),
        splits=dict(Counter(sample.split for sample in samples if sample.split)),
        groups=len({sample.group for sample in samples if sample.group}),
        classes={
            name: ClassCounts(boxes[name], pictures[name], {s: sizes.get(name, Counter())[s] for s in SIZES})
            for name in names
        },
    )


def check_labels(sample: Sample, size: tuple[int, int]) -> Iterator[Finding]:
    """What is wrong with the boxes and outlines of one picture of `size` (width, height), upright."""
    yield from _check_boxes(sample, size)
    for kind, first, second in _doubles(sample):
        labels = (
            f"{sample.labels[first]} and {sample.labels[second]}"
            if kind == "two-classes"
            else sample.labels[first]
        )
        message = f"boxes {first + 1} and {second + 1}, {labels}, are the same"
        yield Finding(kind, message, sample.image, sample.origin, (_box(sample, first), _box(sample, second)))
    for number, shape in enumerate(sample.masks or ()):
        if shape is not None:
            for kind, message in _check_outline(shape, sample.boxes[number], size):
                message = f"box {number + 1}, {sample.labels[number]}: {message}"
                yield Finding(kind, message, sample.image, sample.origin, (_box(sample, number),))


def _check_boxes(sample: Sample, size: tuple[int, int]) -> Iterator[Finding]:
    width, height = size
    for number, box in enumerate(sample.boxes):
        left, top, right, bottom = box.tolist()
        what = f"box {number + 1}, {sample.labels[number]}, ({left:g}, {top:g}, {right:g}, {bottom:g})"
        if right <= left or bottom <= top:
            yield Finding("empty-box", f"{what}: has no area", sample.image, sample.origin)
        elif min(left, top) < -SLACK_PX or right > width + SLACK_PX or bottom > height + SLACK_PX:
            message = f"{what}: the picture has {width} x {height} px"
            yield Finding("box-outside", message, sample.image, sample.origin, (_box(sample, number),))
        elif min(right - left, bottom - top) < TINY_PX:
            message = f"{what}: {right - left:g} x {bottom - top:g} px, wanted {TINY_PX:g} or more a side"
            yield Finding("tiny-box", message, sample.image, sample.origin, (_box(sample, number),))


def _doubles(sample: Sample) -> Iterator[tuple[str, int, int]]:
    """(kind, first, second) of boxes that lie on each other."""
    overlap = np.triu(box_iou(sample.boxes, sample.boxes), k=1)
    for first, second in np.argwhere(overlap >= SAME_IOU).tolist():
        yield "double-box" if sample.labels[first] == sample.labels[second] else "two-classes", first, second


def _check_outline(
    shape: Shape, box: NDArray[np.float32], size: tuple[int, int]
) -> Iterator[tuple[str, str]]:
    holes = sum(len(polygon.holes) for polygon in shape.polygons)
    if holes:
        yield "outline-with-holes", f"{holes} {'hole' if holes == 1 else 'holes'}"
    for polygon in shape.polygons:
        wound, filled = _areas(polygon.exterior)
        if abs(wound - filled) > max(CROSSING_SHARE * filled, CROSSING_PX):
            yield "outline-crosses-itself", f"its ring winds around {wound:.0f} px2 and fills {filled:.0f}"
    if not shape.window(size[1], size[0])[2].any():
        yield "outline-without-pixels", "no pixel's centre lies inside"
        return
    bounds = np.array(shape.bounds())
    beyond = float(max((box[:2] - bounds[:2]).max(), (bounds[2:] - box[2:]).max()))
    if beyond > OUTLINE_SLACK_PX:
        yield "outline-beyond-box", f"the outline reaches {beyond:.1f} px out of the box"


def _areas(ring: NDArray[np.float64]) -> tuple[float, float]:
    """(area by winding, area filled by the even-odd rule), px2; they agree unless the ring crosses itself.

    The second is summed over scan lines: near enough for a tenth, whatever the number of corners.
    """
    x, y = (ring - ring.min(0)).T
    x1, y1 = np.roll(x, -1), np.roll(y, -1)
    wound = abs(float((x * y1 - x1 * y).sum())) / 2
    height = float(y.max())
    filled = 0.0
    for line in ((np.arange(SCAN_LINES) + 0.5) / SCAN_LINES * height).tolist():
        crossed = (y <= line) != (y1 <= line)
        at = np.sort(x[crossed] + (line - y[crossed]) / (y1 - y)[crossed] * (x1 - x)[crossed])
        filled += float((at[1::2] - at[::2]).sum())
    return wound, filled * height / SCAN_LINES


def _size_of(box: NDArray[np.float32]) -> str:
    longest = float(np.ceil((box[2:] - box[:2]).max()))
    return next(name for name, most in SIZES.items() if longest <= most)


def _box(sample: Sample, number: int) -> BoxXyxy:
    left, top, right, bottom = sample.boxes[number].tolist()
    return left, top, right, bottom
