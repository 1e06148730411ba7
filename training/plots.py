"""The plots of an evaluation, PNG: precision-recall, misses against false calls, recall by true size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inspect_vit.matching import match_images
from training.metrics import average_precision, of_class, precision_recall
from training.protocols import CLEAN_RUN
from training.record import Record

TITLES = {"with_reference": "with golden reference", "without_reference": "without reference"}
_COLOURS = {"with_reference": "#0b6fa4", "without_reference": "#c2571a"}


def draw_plots(report: dict[str, Any], record: Record, out: Path) -> list[Path]:
    """Draw every plot into `out` and name the files."""
    figures = {
        "precision_recall.png": _precision_recall(report, record),
        "misses_false_calls.png": _misses_false_calls(report, record),
    }
    if (record.true_sizes_px >= 0).any():
        figures["recall_by_size.png"] = _recall_by_size(report)
    for name, figure in figures.items():
        figure.savefig(out / name, dpi=110)
    return [out / name for name in figures]


def _panels(count: int, title: str) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(6.2 * count, 5.0), layout="constrained")
    figure.suptitle(title)
    axes = [figure.add_subplot(1, count, number + 1) for number in range(count)]
    for axis in axes:
        axis.grid(color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
    return figure, axes


def _precision_recall(report: dict[str, Any], record: Record) -> Figure:
    modes = list(report["modes"])
    figure, axes = _panels(len(modes), f"Precision and recall, shipped matching - {_caption(report)}")
    for axis, mode in zip(axes, modes, strict=True):
        calls = record.runs[mode].detections
        for label, name in enumerate(record.class_names):
            matches = match_images(*of_class(calls, record.truths, label))
            if matches.num_truths:
                ap = average_precision(matches.correct, matches.num_truths)
                precision, recall = precision_recall(matches.correct, matches.num_truths)
                axis.plot(
                    recall, precision, label=f"{name}: AP {ap:.3f}, n = {matches.num_truths}", linewidth=1.4
                )
        matches = match_images(calls, record.truths)
        precision, recall = precision_recall(matches.correct, matches.num_truths)
        ap = report["modes"][mode]["quality"]["shipped"]["ap"]
        axis.plot(
            recall, precision, "k--", label=f"all: AP {ap:.3f}, n = {matches.num_truths}", linewidth=1.4
        )
        point = report["modes"][mode]["operating_points"][0]
        axis.plot(point["recall"], point["precision"], "ko", markersize=6, label="deployed threshold")
        axis.set(
            title=TITLES[mode], xlabel="recall", ylabel="precision", xlim=(0.5, 1.005), ylim=(0.5, 1.005)
        )
        axis.legend(loc="lower left", fontsize=8)
    return figure


def _misses_false_calls(report: dict[str, Any], record: Record) -> Figure:
    figure, (per_image, flagged) = _panels(2, f"Misses against false calls - {_caption(report)}")
    for mode, measured in report["modes"].items():
        matches = match_images(record.runs[mode].detections, record.truths)
        if not matches.num_truths or not len(matches.scores):
            continue
        misses = 1.0 - np.cumsum(matches.correct) / matches.num_truths
        style: dict[str, Any] = {"color": _COLOURS[mode], "label": TITLES[mode]}
        per_image.plot(np.cumsum(matches.outside) / matches.num_images, misses, **style)
        point = measured["operating_points"][0]
        per_image.plot(point["outside"]["per_image"], 1.0 - point["recall"], "o", color=_COLOURS[mode])
        clean = record.runs.get(CLEAN_RUN[mode])
        if clean is not None:
            top = np.sort([d.scores.max(initial=0.0) for d in clean.detections])
            share = 1.0 - np.searchsorted(top, matches.scores, side="left") / len(top)
            flagged.plot(share, misses, **style | {"label": f"{TITLES[mode]}, n = {len(top)}"})
            value = point["clean_boards_flagged"]["value"]
            flagged.plot(value, 1.0 - point["recall"], "o", color=_COLOURS[mode])
    num_defects = report["data"]["defects"]
    per_image.set(xlabel=f"calls outside every true box, per image (n = {report['data']['images']} images)")
    flagged.set(xlabel="share of good boards flagged (dots: deployed thresholds)")
    for axis in (per_image, flagged):
        axis.set(ylabel=f"defects missed or of wrong class, share of n = {num_defects}")
        # Linear up to the first power of ten that n can resolve, so that zero has a place.
        axis.set_xscale("symlog", linthresh=10.0 ** np.ceil(-np.log10(report["data"]["images"])))
        axis.set_yscale("symlog", linthresh=10.0 ** np.ceil(-np.log10(max(num_defects, 1))))
        axis.set(xlim=(0.0, None), ylim=(0.0, None))
        if axis.has_data():
            axis.legend(fontsize=8)
    return figure


def _recall_by_size(report: dict[str, Any]) -> Figure:
    figure, axes = _panels(2, f"Recall by true size, deployed thresholds - {_caption(report)}")
    for axis, opening in zip(axes, ("opening_2x2", "opening_3x3"), strict=True):
        for offset, (mode, measured) in zip((-0.12, 0.12), report["modes"].items(), strict=False):
            rows = measured["recall_by_true_size"][opening][1:]  # without "nothing left"
            kept = [(place, row["recall"]) for place, row in enumerate(rows) if row["recall"]["n"]]
            places = np.array([place for place, _ in kept]) + offset
            values = np.array([share["value"] for _, share in kept])
            bounds = np.array([(share["low"], share["high"]) for _, share in kept]).reshape(-1, 2)
            spread = np.abs(bounds - values[:, None]).T
            axis.errorbar(
                places, values, spread, fmt="o", capsize=4, color=_COLOURS[mode], label=TITLES[mode]
            )
            axis.set_xticks(range(len(rows)), [f"{row['size']}\nn = {row['recall']['n']}" for row in rows])
            axis.legend(loc="lower right", fontsize=8)
        axis.set(title=f"{opening.replace('_', ' ')} of the difference", xlim=(-0.5, 3.5))
        axis.set(ylabel="recall, class right; exact 95 % interval")
    return figure


def _caption(report: dict[str, Any]) -> str:
    model, data = report["model"], report["data"]
    return f"{model['name']} {model['version']}, {data['set']}, {data['split']}, {data['images']} images"
