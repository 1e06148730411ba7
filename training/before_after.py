"""What learning changed: every class before and after, on boards that were not trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

import numpy as np

from inspect_vit.inspector import Inspector
from inspect_vit.matching import Detections, match_images
from inspect_vit.results import Sample
from training.loop import evaluate
from training.metrics import ap_per_class, deployed_detections, of_class
from training.new_thresholds import Measured


class ClassRow(TypedDict):
    label: str
    is_new: bool
    before: float | None
    """Same-class AP at IoU 0.33; null where nothing can be counted."""
    after: float | None
    n: int
    """Labelled defects it was measured on."""


class FalseCalls(TypedDict):
    before: int
    """Old boards with a call that touches no label, at the thresholds of the model."""
    after: int
    boards: int


class BeforeAfter(TypedDict):
    base: str
    version: str
    classes: list[ClassRow]
    false_calls: FalseCalls
    examples: dict[str, int]
    minutes: float
    measured_on: str


def measure(
    inspector: Inspector,
    old_boards: Sequence[Sample],
    examples: Sequence[Sample],
    *,
    known: Mapping[str, str],
    with_reference: bool,
    label: str,
) -> Measured:
    """Inspect the boards held back.

    known: class of the labels -> class of the inspector; labels of others are ignored.
    """
    boards = [_named(sample, known) for sample in (*old_boards, *examples)]
    found = evaluate(inspector, boards, with_reference=with_reference, label=label)
    return Measured(*found, [True] * len(old_boards) + [False] * len(examples))


def _named(sample: Sample, known: Mapping[str, str]) -> Sample:
    flags = [
        bool(ignored) or name not in known
        for ignored, name in zip(sample.is_ignored, sample.labels, strict=True)
    ]
    labels = tuple(known.get(name, name) for name in sample.labels)
    return replace(sample, labels=labels, ignored=tuple(flags))


def class_rows(
    before: Measured, after: Measured, names: Mapping[str, str | None], old_names: Sequence[str]
) -> list[ClassRow]:
    """Old classes on old boards alone, since examples may lack their labels; new ones on both."""
    new_names = tuple(names)
    old_before = ap_per_class(*before.old(), len(old_names), matching="same-class")
    old_after = ap_per_class(*after.old(), len(new_names), matching="same-class")
    all_after = ap_per_class(after.calls, after.truths, len(new_names), matching="same-class")
    rows: list[ClassRow] = []
    for label, (name, origin) in enumerate(names.items()):
        _, truths = of_class(*(after.old() if origin is not None else (after.calls, after.truths)), label)
        rows.append(
            {
                "label": name,
                "is_new": origin is None,
                "before": None if origin is None else _figure(old_before[old_names.index(origin)]),
                "after": _figure((all_after if origin is None else old_after)[label]),
                "n": sum(len(t) for t in truths),
            }
        )
    return rows


def flagged(measured: Measured, class_names: Sequence[str], thresholds: Mapping[str, float]) -> int:
    """Old boards with a call outside every label."""
    calls, truths = measured.old()
    reached: list[Detections] = deployed_detections(calls, class_names, thresholds)
    matches = match_images(reached, truths)
    return len(np.unique(matches.images[matches.outside]))


def table_lines(table: BeforeAfter) -> list[str]:
    """The table as Markdown."""

    def shown(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    lines = ["| class | before | after | n |", "|---|---|---|---|"]
    lines += [
        f"| {row['label']}{' (new)' if row['is_new'] else ''} | {shown(row['before'])} "
        f"| {shown(row['after'])} | {row['n']} |"
        for row in table["classes"]
    ]
    calls = table["false_calls"]
    lines.append(f"| boards with a false call | {calls['before']} | {calls['after']} | {calls['boards']} |")
    return lines


def _figure(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 4)
