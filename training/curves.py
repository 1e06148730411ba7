"""The plot of a training run: loss terms and learning rate over steps."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt


def plot_curves(log: Path, picture: Path) -> None:
    """Draw the JSON-lines log of `fit` as a PNG; an empty log draws nothing."""
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    if not lines:
        return
    steps = [line["step"] for line in lines]
    figure, (losses, rate) = plt.subplots(
        2, 1, figsize=(8, 6), sharex=True, height_ratios=(3, 1), layout="constrained"
    )
    for term in ("loss", "centre", "box", "mask"):
        losses.plot(steps, [line[term] for line in lines], label=term, linewidth=1)
    losses.set(yscale="log", ylabel="loss, mean of 20 steps")
    losses.legend()
    losses.grid(alpha=0.3)
    rate.plot(steps, [line["lr"] for line in lines], color="black", linewidth=1)
    rate.set(xlabel="step", ylabel="learning rate")
    figure.savefig(picture, dpi=120)
    plt.close(figure)
