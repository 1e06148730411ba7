"""The plots of the report on the evidence, PNG: one of each measure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from training.faith_examine import DIFFERENCE, RANDOM
from training.faith_summary import ALIGNED

_COLOURS = ("#e69f00", "#009e73", "#0072b2", "#cc79a7", "#56b4e9", "#d55e00", "#7b3294")
"""Okabe and Ito 2008 without yellow and black, and a violet."""
_FIXED: dict[str, dict[str, Any]] = {
    DIFFERENCE: {"color": "#000000", "linestyle": "--"},
    RANDOM: {"color": "#888888", "linestyle": ":"},
}
_MARKERS = "osD^vPXh<>"
_BAR_SHADES = ("#0b6fa4", "#c2571a", "#6b9a3e", "#7b3294")


def draw_faithfulness(report: dict[str, Any], out: Path) -> list[Path]:
    """Draw every plot into `out` and name the files."""
    figures = {
        "faith_deletion.png": _curves(report, "deletion", "replaced by the reference; low is good"),
        "faith_insertion.png": _curves(report, "insertion", "of the board put back; high is good"),
        "faith_pointing.png": _bars(report, "pointing", "share of maps that peak on the true defect"),
        "faith_energy.png": _bars(report, "energy", "share of the map's sum on the true defect"),
        "faith_flip.png": _bars(report, "flip", "share of defects that vanish with 1 % replaced"),
    }
    if report["randomised"]:
        figures["faith_randomised.png"] = _randomised(report)
    for name, figure in figures.items():
        figure.savefig(out / name, dpi=110)
    return [out / name for name in figures]


def _style(place: int, name: str) -> dict[str, Any]:
    return _FIXED.get(name, {"color": _COLOURS[place % len(_COLOURS)], "linestyle": "-"})


def _title(alignment: str) -> str:
    return "reference aligned" if alignment == ALIGNED else f"reference moved by {alignment} px"


def _curves(report: dict[str, Any], kind: str, what: str) -> Figure:
    """Mean score against the share, one panel an alignment; the share's axis is linear below 0.1 %."""
    key = f"{kind}_curve"
    shown = {n: m for n, m in report["alignments"].items() if key in next(iter(m["maps"].values()))}
    figure, axes = _panels(len(shown), f"{kind.capitalize()} - {_caption(report)}", width=7.4)
    percent = 100.0 * np.array(report["shares"])
    for axis, (alignment, measured) in zip(axes, shown.items(), strict=True):
        for place, (name, figures) in enumerate(measured["maps"].items()):
            area = figures[kind]["value"]
            axis.plot(
                percent,
                figures[key],
                marker=_MARKERS[place % len(_MARKERS)],
                markersize=4,
                linewidth=1.5,
                label=f"{name}: {area:.3f}",
                **_style(place, name),
            )
        axis.set_xscale("symlog", linthresh=0.1, linscale=0.4)
        axis.set_xticks([0, 0.1, 1, 10, 100], ["0", "0.1", "1", "10", "100"])
        axis.set(title=_title(alignment), xlim=(0, 100), ylim=(0, 1))
        axis.set(xlabel=f"share of the region in %, {what}", ylabel="mean centre score of the defect")
        _legend(axis, "area under the curve")
    return figure


def _bars(report: dict[str, Any], kind: str, what: str) -> Figure:
    """One group of bars a map, one bar an alignment, with 95 % intervals."""
    alignments = report["alignments"]
    names = list(alignments[ALIGNED]["maps"])
    figure, (axis,) = _panels(1, f"{kind.capitalize()} - {_caption(report)}", width=13.0)
    thickness = 0.8 / len(alignments)
    for place, (alignment, measured) in enumerate(alignments.items()):
        figures = [measured["maps"][name][kind] for name in names]
        at = np.arange(len(names)) + (place - (len(alignments) - 1) / 2) * thickness
        _bar_group(axis, at, figures, thickness, place, _title(alignment))
    if kind == "energy":
        area = alignments[ALIGNED]["area"]["value"]
        axis.axhline(area, color="#000000", linewidth=1.0, linestyle="--", label=f"share of area, {area:.4f}")
    axis.set_xticks(range(len(names)), names)
    axis.set(ylabel=f"{what}\n95 % interval", ylim=(0, 1.02))
    _legend(axis)
    return figure


def _randomised(report: dict[str, Any]) -> Figure:
    parts = report["randomised"]
    names = list(next(iter(parts.values())))
    count = max(figures[RANDOM]["n"] for figures in parts.values())
    figure, (axis,) = _panels(1, f"Randomised weights - {_caption(report, count)}", width=13.0)
    thickness = 0.8 / len(parts)
    for place, (part, by_map) in enumerate(parts.items()):
        at = np.arange(len(names)) + (place - (len(parts) - 1) / 2) * thickness
        _bar_group(axis, at, [by_map[name] for name in names], thickness, place, f"{part} shuffled")
    axis.axhline(0.0, color="#000000", linewidth=0.8)
    axis.set_xticks(range(len(names)), names)
    lowest = min((f["low"] for by_map in parts.values() for f in by_map.values() if f["n"]), default=0.0)
    axis.set(ylabel="rank correlation with the trained model's map\nlow is good; 95 % interval")
    axis.set_ylim(min(lowest - 0.05, -0.1), 1.02)
    _legend(axis)
    return figure


def _bar_group(
    axis: Axes, at: np.ndarray, figures: list[dict[str, Any]], thickness: float, place: int, label: str
) -> None:
    values, low, high = (np.array([figure[k] for figure in figures]) for k in ("value", "low", "high"))
    known = ~np.isnan(values)
    spread = np.stack([values - low, high - values])[:, known].clip(min=0.0)
    axis.bar(at[known], values[known], thickness * 0.92, color=_BAR_SHADES[place % 4], label=label)
    axis.errorbar(at[known], values[known], spread, fmt="none", ecolor="#333333", elinewidth=1.0, capsize=2)


def _panels(count: int, title: str, *, width: float) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(width * count, 5.0), layout="constrained")
    figure.suptitle(title)
    axes = [figure.add_subplot(1, count, number + 1) for number in range(count)]
    for axis in axes:
        axis.grid(color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
    return figure, axes


def _legend(axis: Axes, title: str | None = None) -> None:
    """Right of the panel: curves and bars fill all of it."""
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), title=title, fontsize=8, title_fontsize=8)


def _caption(report: dict[str, Any], count: int | None = None) -> str:
    model, data = report["model"], report["data"]
    shown = report["defects"] if count is None else count
    return f"{model['name']} {model['version']}, {data['set']} {data['split']}, n = {shown} defects"
