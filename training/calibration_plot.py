"""The plot of a calibration: boards missed against false calls as the thresholds move, PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from inspect_vit.board_evidence import Evidence, misses_by_board
from inspect_vit.calibration import Calibration
from inspect_vit.matching import FloatArray

NUM_STEPS = 200


def draw_calibration(calibration: Calibration, evidence: Evidence, own: FloatArray, path: Path) -> None:
    """A line a class and one for all together; the dot is the choice, the ring the checkpoint's own.

    Along a line the thresholds of all classes move together, from the lowest that keeps any call to 1. Where
    own calls alone find a defect, a class stands against the false calls of its own name, else against all.

    Args:
        own: (K,) the checkpoint's thresholds.
    """
    names = list(calibration.thresholds)
    chosen = np.array(list(calibration.thresholds.values()))
    figure = Figure(figsize=(7.6, 5.4), layout="constrained")
    axis = figure.add_subplot()
    axis.grid(color="#dddddd", linewidth=0.6)
    levels = 1.0 / (1.0 + np.exp(-np.linspace(-4.6, 9.0, NUM_STEPS)))
    for label in (*range(len(names)), None):
        places = [_place(evidence, np.full(len(names), level), label, calibration) for level in levels]
        if places[0] is None:
            continue
        x, y = np.array([place for place in places if place is not None]).T
        name = "all classes" if label is None else names[label]
        n = misses_by_board(evidence, chosen, label, calibration.found_by)[1]
        style: dict[str, Any] = {"color": "black", "linestyle": "--"} if label is None else {}
        (line,) = axis.plot(x, y, label=f"{name}, n = {n} boards", linewidth=1.4, **style)
        for thresholds, face in ((own, "none"), (chosen, line.get_color())):
            place = _place(evidence, thresholds, label, calibration)
            assert place is not None
            axis.plot(*place, "o", markerfacecolor=face, markeredgecolor=line.get_color())
    axis.set(
        title=f"{calibration.model_name} {calibration.model_version}, "
        f"{calibration.reference_mode.replace('_', ' ')}, {calibration.data}",
        xlabel=f"false calls per board (n = {evidence.num_boards}); dot: chosen, ring: checkpoint's own",
        ylabel="share of boards with such a defect on which any is missed",
    )
    axis.title.set_fontsize(10)
    axis.set_xscale("symlog", linthresh=10.0 ** np.ceil(-np.log10(evidence.num_boards)))
    axis.set_xlim(left=0.0)
    axis.set_yscale("symlog", linthresh=0.01)
    axis.set_ylim(-0.001, 1.1)
    if axis.has_data():
        axis.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def _place(
    evidence: Evidence, thresholds: FloatArray, label: int | None, calibration: Calibration
) -> tuple[float, float] | None:
    """False calls per board and the share of boards missed; None where no board has such a defect."""
    missed, n = misses_by_board(evidence, thresholds, label, calibration.found_by)
    if not n:
        return None
    false = evidence.false_scores >= thresholds[evidence.false_labels]
    if label is not None and calibration.found_by == "own class":
        false = false & (evidence.false_labels == label)
    return float(np.count_nonzero(false)) / evidence.num_boards, missed / n
