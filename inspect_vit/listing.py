"""Calls in words: the defects of a list with what the maps say of them, and the reasons of a verdict."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from inspect_vit.cells import CELL_PX, box_cells
from inspect_vit.findings import MAP_THRESHOLD, MAX_LISTED, Findings
from inspect_vit.results import Defect


def list_defects(
    found: Findings, chosen: NDArray[np.int64], *, names: tuple[str, ...], levels: tuple[str, ...]
) -> tuple[Defect, ...]:
    """The chosen calls as defects: area and gate share read off the maps inside the box."""
    defects = []
    calls = found.boxes[chosen], found.scores[chosen].tolist(), found.labels[chosen].tolist()
    for box, score, label in zip(*calls, strict=True):
        left, top, right, bottom = (float(v) for v in box)
        rows, columns = box_cells((left, top, right, bottom))
        patch = found.defect_map[label, rows, columns]
        weight = patch / max(float(patch.sum()), 1e-6)
        share = (found.gate_shares[:, rows, columns] * weight).sum((1, 2))
        share = share / max(float(share.sum()), 1e-6)
        defects.append(
            Defect(
                label=names[label],
                score=score,
                box_xyxy=(left, top, right, bottom),
                area_px=max(int((patch >= MAP_THRESHOLD).sum()), 1) * CELL_PX**2,
                gate_share={name: float(s) for name, s in zip(levels, share, strict=True)},
            )
        )
    return tuple(defects)


def failure_reasons(labels: list[str]) -> tuple[str, ...]:
    """One line per class found, most frequent first; before them, that there are too many to be spots."""
    counts = sorted(Counter(labels).items(), key=lambda item: -item[1])
    lines = tuple(f"{count} x {label}" for label, count in counts)
    if len(labels) <= MAX_LISTED:
        return lines
    return (
        f"process failure: {len(labels)} calls (limit {MAX_LISTED}); check printing, etching, focus and "
        "whether this is the right product and reference",
        *lines,
    )
