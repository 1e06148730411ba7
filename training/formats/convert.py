"""Read a labelled set in one format, write it in another, read that back and say what is not the same."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from inspect_vit.errors import ConfigError
from inspect_vit.image_io import picture_size
from inspect_vit.results import Sample
from inspect_vit.shapes import Polygon, Ring, Shape
from training.formats.dataset import DataSet, Fault
from training.formats.references import GroupRule, ReferenceRule
from training.formats.registry import WRITTEN, detect_format, read_dataset, write_dataset

T = TypeVar("T")
_MAX_PAIRINGS = 4_000_000
SAME_PX = 0.01
"""Boxes and outlines that come back within this are the same: formats round decimals."""


def import_dataset(
    source: str | Path,
    out: str | Path,
    *,
    from_format: str = "auto",
    to_format: str = "coco",
    references: ReferenceRule | None = None,
    groups: GroupRule | None = None,
    copy_pictures: bool = True,
) -> dict[str, Any]:
    """Convert a set, read what was written, and say what the format could not hold.

    Args:
        out: a new or empty folder.
        copy_pictures: else the labels name the pictures where they are.

    Returns:
        A summary that JSON can hold: `from_format` (and whether it was `detected`), counts of `samples`,
        `good_boards`, `boxes`, `ignored`, `outlines`, `with_holes`, `in_parts`, `references`, `groups`;
        `classes` and `splits` with their counts; `remarks` and `faults` of the source and what was `lost` in
        writing, faults as {kind, where, message, image}; `not_held`: sentences on what the written set, read
        again, has otherwise, none where it is the same; `written`: files.

    Raises:
        ConfigError: nothing can be read, a format that is not written, or `out` holds files.
    """
    source, out = Path(source).resolve(), Path(out).resolve()
    if to_format not in WRITTEN:
        raise ConfigError(f"format {to_format!r} is not written; use one of {', '.join(WRITTEN)}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} is there already and not empty; name a new folder")
    if out.is_relative_to(source):
        raise ConfigError(f"{out} lies in {source} and would be read with it next time; name another folder")
    name = detect_format(source) if from_format == "auto" else from_format
    data = read_dataset(source, format=name, references=references, groups=groups)
    if not data.samples:
        reasons = "; ".join(f"{fault.where}: {fault.message}" for fault in data.faults[:3])
        raise ConfigError(f"{source} was read as {name} and has no sample: {reasons or 'it lists none'}")
    lost: list[Fault] = []
    written = write_dataset(data, out, to_format, copy_pictures=copy_pictures, lost=lost)
    back = read_dataset(out, format=to_format)
    return {
        "source": str(source),
        "out": str(out),
        "from_format": name,
        "detected": from_format == "auto",
        "to_format": to_format,
        **count(data),
        "remarks": list(data.remarks),
        "faults": [_as_json(fault) for fault in data.faults],
        "lost": [_as_json(fault) for fault in lost],
        "not_held": not_held(data, back),
        "written": [str(path) for path in written],
    }


def _as_json(fault: Fault) -> dict[str, Any]:
    return asdict(fault) | {"image": str(fault.image) if fault.image else None}


def count(data: DataSet) -> dict[str, Any]:
    """How much of everything a set has."""
    shapes = [shape for sample in data.samples for shape in _outlines(sample) if shape is not None]
    classes = Counter(dict.fromkeys(data.class_names, 0))
    classes.update(label for sample in data.samples for label in sample.labels)
    return {
        "samples": len(data.samples),
        "good_boards": sum(not len(sample.boxes) for sample in data.samples),
        "boxes": classes.total(),
        "ignored": sum(sum(sample.ignored) for sample in data.samples),
        "outlines": len(shapes),
        "with_holes": sum(any(polygon.holes for polygon in shape.polygons) for shape in shapes),
        "in_parts": sum(len(shape.polygons) > 1 for shape in shapes),
        "references": sum(sample.reference is not None for sample in data.samples),
        "groups": len({sample.group for sample in data.samples} - {""}),
        "classes": dict(classes),
        "splits": dict(Counter(sample.split for sample in data.samples if sample.split)),
    }


def not_held(data: DataSet, back: DataSet) -> list[str]:
    """What `back`, read from the written set, lacks of `data` or has otherwise: sentences with counts."""
    pairs, lost = _pair(data, back)
    said = [f"{lost} of {len(data.samples)} pictures do not come back"] if lost else []
    for what, differs in _COMPARISONS.items():
        both = [differs(before, after) for before, after in pairs]
        if changed := sum(number for number, _ in both):
            total = sum(n for _, n in both)
            said.append(f"{changed} of {total} {what}" if total else f"{changed} {what}")
    if missing := [name for name in data.class_names if name not in back.class_names]:
        said.append(f"classes without a box do not come back: {', '.join(missing)}")
    if data.class_names != back.class_names and set(data.class_names) == set(back.class_names):
        said.append("the order of the classes changes")
    return said + [f"reading back: {fault.kind}: {fault.message}" for fault in back.faults]


def _pair(data: DataSet, back: DataSet) -> tuple[list[tuple[Sample, Sample]], int]:
    """Samples that show the same picture, whatever a copy is called; and how many come back with none."""
    left_in_place = {sample.image for sample in data.samples} & {sample.image for sample in back.samples}
    waiting: dict[object, list[Sample]] = {}
    for sample in back.samples:
        waiting.setdefault(_content(sample.image, left_in_place), []).append(sample)
    found = [(sample, waiting.get(_content(sample.image, left_in_place))) for sample in data.samples]
    pairs = [(sample, partners.pop(0)) for sample, partners in found if partners]
    return pairs, len(data.samples) - len(pairs)


def _content(image: Path, left_in_place: set[Path]) -> object:
    if image in left_in_place:
        return image
    with image.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _outlines(sample: Sample) -> tuple[Shape | None, ...]:
    return sample.masks if sample.masks is not None else (None,) * len(sample.boxes)


def _partners(before: Sample, after: Sample) -> list[tuple[int, int]]:
    """Indices of defects that are the same: in their order, or by the nearest box where some are missing."""
    if len(before.boxes) == len(after.boxes):
        return [(i, i) for i in range(len(before.boxes))]
    pairs, rows, columns = _same_boxes(before, after)
    if len(rows) * len(columns) > _MAX_PAIRINGS:  # too many to weigh each against each: in their order
        return sorted(pairs + list(zip(rows, columns, strict=False)))
    apart = np.abs(before.boxes[rows][:, None] - after.boxes[columns][None]).sum(2)
    i, j = linear_sum_assignment(apart)
    nearest = zip(np.array(rows, int)[i].tolist(), np.array(columns, int)[j].tolist(), strict=True)
    return sorted([*pairs, *nearest])


def _cell(box: NDArray[np.float32]) -> tuple[float, ...]:
    """The box in steps of SAME_PX; the shift keeps whole and half steps off the edge between two."""
    return tuple(np.floor(box.astype(np.float64) / SAME_PX + 0.317).tolist())


def _same_boxes(before: Sample, after: Sample) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Pairs of boxes that come back as they were, in their order, and the indices of the others."""
    waiting: dict[object, list[int]] = {}
    for j in range(len(after.boxes) - 1, -1, -1):
        waiting.setdefault((after.labels[j], *_cell(after.boxes[j])), []).append(j)
    found = [
        waiting.get((label, *_cell(box))) for label, box in zip(before.labels, before.boxes, strict=True)
    ]
    pairs = [(i, partners.pop()) for i, partners in enumerate(found) if partners]
    taken, kept = {i for i, _ in pairs}, {j for _, j in pairs}
    rows, columns = (
        [i for i in range(len(s.boxes)) if i not in used] for s, used in ((before, taken), (after, kept))
    )
    return pairs, rows, columns


def _boxes_differ(before: Sample, after: Sample) -> tuple[int, int]:
    missing = abs(len(before.boxes) - len(after.boxes))
    off = [np.abs(before.boxes[i] - after.boxes[j]).max() > SAME_PX for i, j in _partners(before, after)]
    return missing + sum(map(int, off)), len(before.boxes)


def _labels_differ(before: Sample, after: Sample) -> tuple[int, int]:
    return sum(before.labels[i] != after.labels[j] for i, j in _partners(before, after)), len(before.labels)


def _flags_differ(before: Sample, after: Sample) -> tuple[int, int]:
    flags = [s.ignored or (False,) * len(s.boxes) for s in (before, after)]
    return sum(flags[0][i] != flags[1][j] for i, j in _partners(before, after)), sum(before.ignored)


def _outlines_differ(before: Sample, after: Sample) -> tuple[int, int]:
    """Outlines of boxes that come back which are neither the same nor cover the same pixels."""
    size = picture_size(before.image)
    return _count_outlines(before, after, lambda a, b: not _same_pixels(a, b, size))


def _forms_differ(before: Sample, after: Sample) -> tuple[int, int]:
    size = picture_size(before.image)
    return _count_outlines(before, after, lambda a, b: _same_pixels(a, b, size))


def _count_outlines(
    before: Sample, after: Sample, counts: Callable[[Shape | None, Shape | None], bool]
) -> tuple[int, int]:
    """Outlines that are not the same and for which `counts` holds, and how many there were."""
    shapes, others = _outlines(before), _outlines(after)
    pairs = [(shapes[i], others[j]) for i, j in _partners(before, after)]
    differ = sum(not same_shape(a, b) and counts(a, b) for a, b in pairs)
    return differ, sum(shape is not None for shape in shapes)


def _same_pixels(first: Shape | None, second: Shape | None, size: tuple[int, int]) -> bool:
    if first is None or second is None:
        return False
    width, height = size
    windows = (shape.window(height, width) for shape in (first, second))
    runs = [Shape.from_mask(mask, at=(left, top), size=(height, width)).runs for left, top, mask in windows]
    return runs[0] == runs[1]


def _references_differ(before: Sample, after: Sample) -> tuple[int, int]:
    """Whether a reference is lost, gained, or another picture."""
    kept = {path for path in (before.reference, after.reference) if path is not None}
    same = (before.reference is None) == (after.reference is None)
    return int(not same or len({_content(path, set()) for path in kept}) > 1), int(
        before.reference is not None
    )


def _named(what: Callable[[Sample], object]) -> Callable[[Sample, Sample], tuple[int, int]]:
    return lambda before, after: (int(what(before) != what(after)), int(bool(what(before))))


_COMPARISONS: dict[str, Callable[[Sample, Sample], tuple[int, int]]] = {
    f"boxes do not come back, or are off by more than {SAME_PX} px": _boxes_differ,
    "class names differ": _labels_differ,
    "outlines do not come back, or cover other pixels": _outlines_differ,
    "outlines come back in another form, covering the same pixels": _forms_differ,
    "flags of ignored boxes differ": _flags_differ,
    "references differ": _references_differ,
    "group names differ": _named(lambda sample: sample.group),
    "stated splits differ": _named(lambda sample: sample.split),
}


def same_shape(first: Shape | None, second: Shape | None, *, within_px: float = SAME_PX) -> bool:
    """Whether two outlines agree: pixels exactly, polygons point by point, in any order and direction."""
    if first is None or second is None:
        return first is second
    if first.runs is not None or second.runs is not None:
        return first.runs == second.runs and first.size == second.size

    def same_polygon(one: Polygon, other: Polygon) -> bool:
        return _same_ring(one.exterior, other.exterior, within_px) and _all_paired(
            one.holes, other.holes, lambda a, b: _same_ring(a, b, within_px)
        )

    return _all_paired(first.polygons, second.polygons, same_polygon)


def _all_paired(first: Sequence[T], second: Sequence[T], same: Callable[[T, T], bool]) -> bool:
    """Whether each entry of the one has an entry of its own in the other."""
    left = list(second)
    for one in first:
        found = next((i for i, other in enumerate(left) if same(one, other)), None)
        if found is None:
            return False
        del left[found]
    return not left


def _same_ring(one: Ring, other: Ring, within_px: float) -> bool:
    if one.shape != other.shape:
        return False
    start = int(np.abs(other - one[0]).max(1).argmin())
    turned = np.roll(other, -start, 0), np.roll(other[::-1], start + 1, 0)
    return any(bool((np.abs(one - ring) <= within_px).all()) for ring in turned)
