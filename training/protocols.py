"""The protocols on a record of detections: the figures of a report, without the model and without files.

Two modes are measured side by side: with the golden reference and without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from inspect_vit.matching import BoolArray, Detections, Matches, Truths, located, match_images
from inspect_vit.thresholds import operating_point
from training.formats.deeppcb import TEST_ONLY_GROUPS
from training.intervals import bootstrap_ap
from training.measured_set import DEEPPCB
from training.metrics import deployed_detections, false_calls, misses, proportion, summarise
from training.record import Record, Run
from training.true_size import OPENINGS

MODES = ("with_reference", "without_reference")
CLEAN_RUN = {"with_reference": "reimaged_templates", "without_reference": "templates"}
"""The run over boards known to be good, per mode. With a reference the board is the template taken again: a
template against itself would prove nothing."""
SHIFT_RUN = "reference_shifted_{}px"
TURN_RUN = "reference_turned_{}deg"
RECALL_TARGETS = (0.95, 0.98)
OUTSIDE_TARGETS = (1.0, 0.1)
"""Calls outside every true box, per picture, that an operator may be asked to bear."""
MAX_BOARDS = 40
"""Sets of more board groups are not reported group by group."""
SIZE_BUCKETS = (("nothing left", 0, 0), ("<= 8 px", 1, 8), ("9-12 px", 9, 12), ("13-16 px", 13, 16))
"""(name, smallest, largest) true size in px; the larger ones are a bucket of their own."""


def build_report(record: Record) -> dict[str, Any]:
    """Every figure that the runs of the record allow; NaN where a figure has no n."""
    return {
        "command": record.command,
        "model": record.model,
        "data": {
            "set": record.data_set,
            "split": record.split,
            "images": len(record.images),
            "split_images": record.split_size,
            "defects": sum(len(truths) for truths in record.truths),
            "total_px": int(record.sizes_px.prod(axis=1).sum()),
            "px_per_mm": record.px_per_mm,
            "references": "as posted" if record.as_posted else "aligned",
            "seed": record.seed,
        },
        "thresholds": record.thresholds,
        "modes": {mode: _mode_report(record, mode) for mode in MODES if mode in record.runs},
        "reference_moves": _move_reports(record),
    }


def _mode_report(record: Record, mode: str) -> dict[str, Any]:
    run, truths, thresholds = record.runs[mode], record.truths, record.thresholds[mode]
    quality = summarise(run.detections, truths, record.class_names, thresholds=thresholds)
    quality["shipped"]["ap_interval"] = bootstrap_ap(match_images(run.detections, truths), seed=record.seed)
    deployed = match_images(deployed_detections(run.detections, record.class_names, thresholds), truths)
    return {
        "quality": quality,
        "misses": misses(deployed),
        "operating_points": _operating_points(record, mode),
        "recall_by_true_size": _recall_by_true_size(record, deployed),
        "boards": _boards(record, mode),
        "error_verdicts": int(run.errors.sum()),
        "timings_ms": _timings(run),
    }


def _operating_points(record: Record, mode: str) -> list[dict[str, Any]]:
    """False calls at the deployed thresholds, and at the shared threshold that reaches each target recall."""
    calls, thresholds = record.runs[mode].detections, record.thresholds[mode]
    clean = record.runs[CLEAN_RUN[mode]].detections if CLEAN_RUN[mode] in record.runs else []
    points = [
        _operating_point(
            record,
            "deployed",
            thresholds,
            *(deployed_detections(some, record.class_names, thresholds) for some in (calls, clean)),
        )
    ]
    matches = match_images(calls, record.truths)
    for target in RECALL_TARGETS:
        name, limit = f"recall >= {target}", threshold_at_recall(matches, target)
        if limit is None:
            points.append({"name": name, "reached": False})
        else:
            points.append(_shared_point(record, name, limit, calls, clean))
    for target in OUTSIDE_TARGETS:
        limit = threshold_at_outside(matches, target)
        points.append(_shared_point(record, f"outside <= {target:g} per image", limit, calls, clean))
    return points


def _shared_point(
    record: Record, name: str, limit: float, calls: list[Detections], clean: list[Detections]
) -> dict[str, Any]:
    """One threshold for all classes."""
    kept = ([d.select(d.scores >= limit) for d in some] for some in (calls, clean))
    return _operating_point(record, name, limit, *kept)


def _operating_point(
    record: Record, name: str, threshold: object, calls: list[Detections], clean: list[Detections]
) -> dict[str, Any]:
    """What `calls` on the split and `clean` on good boards say; both hold the accepted calls only."""
    matches = match_images(calls, record.truths)
    per_class = np.bincount(matches.labels[matches.outside], minlength=len(record.class_names))
    return {
        "name": name,
        "reached": True,
        **asdict(operating_point(matches, 0.0)),
        "threshold": threshold,
        "found": proportion(int(np.count_nonzero(matches.found())), matches.num_truths),
        "located": proportion(int(np.count_nonzero(located(calls, record.truths))), matches.num_truths),
        "outside": _false_calls(record, matches, slice(None)),
        "outside_per_class": dict(zip(record.class_names, per_class.tolist(), strict=True)),
        "clean_boards_flagged": proportion(sum(len(d) > 0 for d in clean), len(clean)),
    }


def threshold_at_recall(matches: Matches, target: float) -> float | None:
    """The highest score threshold whose recall is at least `target`; None where no threshold reaches it."""
    if not matches.num_truths:
        return None
    reached = np.flatnonzero(np.cumsum(matches.correct) >= target * matches.num_truths)
    return float(matches.scores[reached[0]]) if len(reached) else None


def threshold_at_outside(matches: Matches, per_image: float) -> float:
    """The lowest score threshold at which calls outside every box are at most that many per image."""
    outside = np.cumsum(matches.outside)
    # Calls of equal score are accepted together or not at all.
    last_of_score = np.append(matches.scores[1:] < matches.scores[:-1], True)[: len(outside)]
    allowed = np.flatnonzero(last_of_score & (outside <= per_image * matches.num_images))
    return float(matches.scores[allowed[-1]]) if len(allowed) else float("inf")


def _false_calls(record: Record, matches: Matches, images: Any) -> dict[str, Any]:
    return false_calls(
        matches,
        total_px=int(record.sizes_px[images].prod(axis=1).sum()),
        px_per_mm=float("nan") if record.px_per_mm is None else record.px_per_mm,
    )


def _recall_by_true_size(record: Record, deployed: Matches) -> dict[str, list[dict[str, Any]]]:
    """Recall of each size bucket at the deployed thresholds: class right, and found whatever the class."""
    recalled, found = deployed.recalled(), deployed.found()
    largest = np.iinfo(np.int64).max
    buckets = (*SIZE_BUCKETS, (f"> {SIZE_BUCKETS[-1][2]} px", SIZE_BUCKETS[-1][2] + 1, largest))
    report: dict[str, list[dict[str, Any]]] = {}
    for column, opening in enumerate(OPENINGS):
        sizes = record.true_sizes_px[:, column]
        rows = []
        for name, smallest, biggest in buckets:
            inside = (sizes >= smallest) & (sizes <= biggest)
            rows.append(
                {
                    "size": name,
                    "recall": _share(recalled, inside),
                    "found": _share(found, inside),
                    "recall_per_class": {
                        label: _share(recalled, inside & (deployed.truth_labels == index))
                        for index, label in enumerate(record.class_names)
                    },
                }
            )
        report[f"opening_{opening}x{opening}"] = rows
    return report


def _share(hit: BoolArray, inside: BoolArray) -> dict[str, Any]:
    return proportion(int(np.count_nonzero(hit & inside)), int(np.count_nonzero(inside)))


def _boards(record: Record, mode: str) -> dict[str, dict[str, Any]]:
    """The main figures by board group; of DeepPCB by whether the training split holds the group."""
    groups = np.array(record.groups)
    if record.data_set == DEEPPCB:
        if record.split != "test":
            return {}
        unseen = np.isin(groups, list(TEST_ONLY_GROUPS))
        parts = {"seen": ~unseen, "unseen": unseen}
    else:
        names = sorted(set(record.groups) - {""})
        if not 2 <= len(names) <= MAX_BOARDS:
            return {}
        parts = {name: groups == name for name in names}
    run = record.runs[mode]
    return {name: _main_figures(record, mode, run, np.flatnonzero(chosen)) for name, chosen in parts.items()}


def _main_figures(record: Record, mode: str, run: Run, images: Sequence[int] | Any) -> dict[str, Any]:
    """The main figures over some of the images."""
    calls = [run.detections[image] for image in images]
    truths: list[Truths] = [record.truths[image] for image in images]
    quality = summarise(calls, truths, record.class_names, thresholds=record.thresholds[mode], coco=False)
    deployed = match_images(deployed_detections(calls, record.class_names, record.thresholds[mode]), truths)
    return {
        "images": len(calls),
        "defects": quality["truths"],
        "ap": quality["shipped"]["ap"],
        "ap_interval": bootstrap_ap(match_images(calls, truths), seed=record.seed),
        "mean_ap": quality["shipped"]["mean_ap"],
        "same_class_mean_ap": quality["same_class"]["mean_ap"],
        "f_score": quality["shipped"]["deployed"]["f_score"],
        "outside": _false_calls(record, deployed, images),
        "absent_classes": quality["absent_classes"],
    }


def _move_reports(record: Record) -> list[dict[str, Any]]:
    """The main figures with the reference moved, and what that costs against the reference as it is."""
    mode = MODES[0]
    moves = [
        (name.removeprefix(prefix).removesuffix(suffix), unit, name)
        for run, unit in ((SHIFT_RUN, "px"), (TURN_RUN, "degrees"))
        for prefix, suffix in [run.split("{}")]
        for name in record.runs
        if name.startswith(prefix)
    ]
    if not moves or mode not in record.runs:
        return []
    every = range(len(record.images))
    base = _main_figures(record, mode, record.runs[mode], every)
    reports = [{"moved": "0", "ap_loss": 0.0, **base}]
    for amount, unit, name in sorted(moves, key=lambda move: (move[1] != "px", float(move[0]))):
        moved = _main_figures(record, mode, record.runs[name], every)
        reports.append({"moved": f"{amount} {unit}", "ap_loss": base["ap"] - moved["ap"], **moved})
    return reports


def _timings(run: Run) -> dict[str, dict[str, float]]:
    """Per stage: mean, median, 95th percentile, and share of the total, over the run's pictures."""
    if not run.timings_ms:
        return {}
    stages = dict(run.timings_ms)
    total = stages.pop("total", np.sum(list(stages.values()), axis=0))
    return {
        stage: {
            "mean": float(np.mean(values)),
            "median": float(np.median(values)),
            "p95": float(np.quantile(values, 0.95)),
            "share": float(np.mean(values) / np.mean(total)),
            "n": len(values),
        }
        for stage, values in {**stages, "total": total}.items()
    }
