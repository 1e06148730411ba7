"""The plots of the doctor's page as SVG: what every head, matrix, gate and gradient looks like beside its
limits."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inspect_vit.doctor import Examination
from inspect_vit.doctor_attention import ENTROPY
from inspect_vit.doctor_findings import Finding, Health
from inspect_vit.doctor_heads import COST
from inspect_vit.doctor_maps import OUTLIER, SHARE
from inspect_vit.doctor_numbers import GRADIENT
from inspect_vit.doctor_weights import CONDITION, output_projections, singular_values
from inspect_vit.model import HierarchicalViT

COLOURS = {Health.OK: "#2f6f8f", Health.WARN: "#b87400", Health.ILL: "#b3261e", Health.SKIPPED: "#8a949b"}
MARKS = {Health.OK: "o", Health.WARN: "^", Health.ILL: "X", Health.SKIPPED: "."}
"""Shape says the same as colour, for those who do not see it."""
LEVEL_COLOURS = ("#2f6f8f", "#7a9a3a", "#9a5b8f")
ZONE = {Health.WARN: ("#b87400", 0.07), Health.ILL: ("#b3261e", 0.10)}
WIDTH_IN, ROW_IN = 5.6, 0.24


def draw_plots(model: HierarchicalViT, examination: Examination) -> list[tuple[str, str]]:
    """(caption, data URL of an SVG), in reading order; empty where nothing could be traced."""
    if not examination.traces:
        return []
    found = examination.by_check()
    figures = [
        (
            "Entropy of attention by head: at the left one key gets everything, at the right all get the "
            "same.",
            _by_place(found["attention entropy"], "entropy over log(keys)", (ENTROPY,), span=(-0.02, 1.02)),
        ),
        (
            "Spread of the scores by head, with the scale (filled) and without it (hollow). The bar is "
            "where a "
            "softmax of that many keys begins to rest on a handful.",
            _scores(examination, found["score spread"]),
        ),
        (
            "What the centre logits lose without a head, over their spread.",
            _by_place(found["removing a head"], "change over spread", (COST,), log=True),
        ),
        (
            "Gradient over weight by part of the network, against the median part.",
            _by_place(found["gradients"], "against the median part", (GRADIENT,), log=True),
        ),
        (
            "Singular values of every W_o over the largest. Below the dashed line fp16 loses them.",
            _spectra(model),
        ),
        (
            "Share of each level in the fused tokens, over all cells of all boards; the line and the "
            "number are the mean.",
            _shares(model, examination),
        ),
        ("Norms of each level's tokens over their median.", _norms(model, examination)),
    ]
    return [(caption, _as_url(figure)) for caption, figure in figures]


def _axes(rows: int) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH_IN, max(2.6, 0.9 + ROW_IN * rows)), layout="constrained")
    axis = figure.add_subplot()
    axis.grid(color="#e4e8eb", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=8, colors="#45525b", length=2)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axis.spines[side].set_color("#b8c1c8")
    return figure, axis


def _by_place(
    findings: Sequence[Finding],
    label: str,
    limits: tuple[object, ...],
    *,
    log: bool = False,
    span: tuple[float, float] | None = None,
) -> Figure:
    """One mark per finding, places from top to bottom."""
    figure, axis = _axes(len(findings))
    values = [finding.value for finding in findings]
    known = [value for value in values if value is not None and math.isfinite(value)]
    smallest = min((value for value in known if value > 0), default=1.0)
    floor = smallest / 10 if log else 0.0
    for row, (finding, value) in enumerate(zip(findings, values, strict=True)):
        is_known = value is not None and math.isfinite(value)
        at = max(value, floor) if is_known and value is not None else floor
        axis.plot(at, row, MARKS[finding.health], color=COLOURS[finding.health], markersize=6)
    if log:
        axis.set_xscale("log")
        axis.set_xlim(min(smallest, 1.0) / 20, max([*known, 1.0]) * 4)
    elif span is not None:
        axis.set_xlim(*span)
    _rows(axis, findings, label)
    _zones(axis, limits)
    return figure


def _scores(examination: Examination, findings: Sequence[Finding]) -> Figure:
    figure, axis = _axes(len(findings))
    row = 0
    for stat in examination.stats:
        critical = math.sqrt(2 * math.log(max(stat.num_keys, 2)))
        for spread in stat.score_spread.tolist():
            health = findings[row].health
            at = spread if math.isfinite(spread) and spread > 0 else 1e-3
            axis.plot(
                at * math.sqrt(stat.head_dim),
                row,
                "o",
                color=COLOURS[health],
                markerfacecolor="none",
                markersize=6,
            )
            axis.plot(at, row, MARKS[health], color=COLOURS[health], markersize=6)
            axis.plot([critical, critical], [row - 0.38, row + 0.38], color="#45525b", linewidth=1.6)
            row += 1
    axis.set_xscale("log")
    _rows(axis, findings, "standard deviation of a row's scores")
    return figure


def _spectra(model: HierarchicalViT) -> Figure:
    figure, axis = _axes(9)
    patch = [level.patch_size for level in model.config.levels]
    for place, weight in output_projections(model):
        values = singular_values(weight).numpy()
        is_fusion = place.part.startswith("fuse")
        axis.plot(
            np.linspace(0, 1, len(values)),
            np.maximum(values / max(values[0], 1e-30), 1e-8),
            color=LEVEL_COLOURS[patch.index(place.level_px or patch[0])],
            linestyle=":" if is_fusion else "-",
            linewidth=1.3,
        )
    for level_px, colour in zip(patch, LEVEL_COLOURS, strict=True):
        axis.plot([], [], color=colour, label=f"{level_px} px")
    axis.plot([], [], ":", color="#45525b", label="of the fusion")
    axis.axhline(1 / (CONDITION.warn_above or 1.0), color="#45525b", linewidth=0.9, linestyle="--")
    axis.set_yscale("log")
    axis.set_ylim(top=4.0)
    axis.set_xlabel("place among the singular values, largest first", fontsize=8, color="#45525b")
    axis.legend(fontsize=8, frameon=False, loc="upper right", ncols=2)
    return figure


def _shares(model: HierarchicalViT, examination: Examination) -> Figure:
    figure, axis = _axes(6)
    cells = torch.cat([trace.output.gate_shares[0].flatten(1) for trace in examination.traces], 1).cpu()
    labels = []
    for row, colour in enumerate(LEVEL_COLOURS):
        density, edges = np.histogram(np.nan_to_num(cells[row].numpy()), bins=80, range=(0, 1))
        height = 0.85 * density / max(density.max(), 1)
        axis.fill_between(
            (edges[1:] + edges[:-1]) / 2, row, row - height, color=colour, alpha=0.45, linewidth=0
        )
        mean = float(cells[row].mean())
        axis.plot([mean, mean], [row, row - 0.9], color=colour, linewidth=1.8)
        labels.append(f"{model.config.levels[row].patch_size} px: {mean:.2f}")
        axis.axhline(row, color="#b8c1c8", linewidth=0.6)
    axis.set_yticks(range(3), labels)
    axis.set_ylim(2.15, -1.2)
    axis.set_xlim(0, 1)
    axis.set_xlabel("share", fontsize=8, color="#45525b")
    _zones(axis, (SHARE,))
    return figure


def _norms(model: HierarchicalViT, examination: Examination) -> Figure:
    figure, axis = _axes(6)
    top = OUTLIER.warn_above or 4.0
    for i, (level, colour) in enumerate(zip(model.config.levels, LEVEL_COLOURS, strict=True)):
        norms = torch.cat([trace.tokens[i].norm(dim=1).flatten() for trace in examination.traces]).cpu()
        ratio = np.nan_to_num((norms / norms.median()).float().numpy())
        top = max(top, float(ratio.max()))
        count, edges = np.histogram(ratio, bins=np.linspace(0, max(top, 4.5), 120))
        axis.stairs(np.maximum(count / len(ratio), 1e-7), edges, color=colour, label=f"{level.patch_size} px")
    axis.set_yscale("log")
    axis.set_xlim(0, max(top * 1.05, 4.5))
    axis.set_ylim(1e-5, 2)
    axis.set_xlabel("norm over the median", fontsize=8, color="#45525b")
    axis.set_ylabel("share of tokens", fontsize=8, color="#45525b")
    axis.legend(fontsize=8, frameon=False)
    _zones(axis, (OUTLIER,))
    return figure


def _rows(axis: Axes, findings: Sequence[Finding], label: str) -> None:
    axis.set_yticks(range(len(findings)), [str(finding.place) for finding in findings])
    axis.set_ylim(len(findings) - 0.4, -0.6)
    axis.set_xlabel(label, fontsize=8, color="#45525b")


def _zones(axis: Axes, limits: tuple[object, ...]) -> None:
    """Shade what is a warning and what is ill, as far as the axis goes."""
    left, right = axis.get_xlim()
    for limit in limits:
        for health in (Health.WARN, Health.ILL):
            colour, alpha = ZONE[health]
            low, high = getattr(limit, f"{health}_below"), getattr(limit, f"{health}_above")
            if low is not None and low > left:
                axis.axvspan(left, low, color=colour, alpha=alpha, linewidth=0)
            if high is not None and high < right:
                axis.axvspan(high, right, color=colour, alpha=alpha, linewidth=0)
    axis.set_xlim(left, right)


def _as_url(figure: Figure) -> str:
    data = io.BytesIO()
    figure.savefig(data, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(data.getvalue()).decode('ascii')}"
