"""The plot of learning a new class: what the labels cost, and what holding the old answers costs."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

TERMS = {
    "labels": ("centre", "box", "mask"),
    "old answers": ("old_centre", "old_box", "old_mask", "old_gate", "old_name"),
}


def plot_learning(log: Path, picture: Path) -> None:
    """Draw metrics.jsonl as a PNG; an empty log draws nothing."""
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    if not lines:
        return
    steps = [line["step"] for line in lines]
    figure, axes = plt.subplots(len(TERMS), 1, figsize=(8, 7), sharex=True, layout="constrained")
    for axis, (title, terms) in zip(axes, TERMS.items(), strict=True):
        for term in terms:
            values = [line.get(term, 0.0) for line in lines]
            if any(value > 0 for value in values):
                axis.plot(steps, values, label=term, linewidth=1)
        axis.set(title=title, yscale="log", ylabel="loss")
        axis.grid(alpha=0.3)
        if axis.lines:
            axis.legend()
    axes[-1].set(xlabel="step")
    figure.savefig(picture, dpi=120)
    plt.close(figure)
