"""How far DeepPCB's labels reach beyond what differs from the golden reference, on each side, px.

    python benchmarks/label_margins.py

The last two columns give by how much the middle of a label lies off that of the difference; labels whose
sides differ by more than MOST_PX are left out there, since the difference is then not the whole defect.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

from training.formats.deeppcb import read_deeppcb
from training.redraw import redraw

MOST_PX = 8.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = Path(os.environ.get("INSPECT_VIT_DATA", "../shared/data")) / "deeppcb"
    parser.add_argument("--data", type=Path, default=data, help="folder of DeepPCB (default: %(default)s)")
    parser.add_argument("--split", choices=["trainval", "test"], default="trainval")
    options = parser.parse_args()
    labelled = read_deeppcb(options.data, options.split)
    tight, _ = redraw(labelled, margin_px=0)
    rows: dict[str, list[np.ndarray]] = {}
    for sample, drawn in zip(labelled, tight, strict=True):
        for label, bounds, name in zip(sample.boxes, drawn.boxes, sample.labels, strict=True):
            if (label == bounds).all():
                continue  # nothing differs there
            margins = (bounds - label) * np.array([1, 1, -1, -1])
            for row in ("all", name, f"group {sample.group}"):
                rows.setdefault(row, []).append(margins)
    print("| labels | n | left | top | right | bottom | label further right | further down |")
    print("|" + "---|" * 8)
    for row in sorted(rows, key=lambda row: (row != "all", row.startswith("group"), row)):
        margins = np.array(rows[row])
        leans = (margins[:, 2:] - margins[:, :2]) / 2
        far = [leans[np.abs(leans[:, axis]) < MOST_PX / 2, axis].mean() for axis in (0, 1)]
        shown = [f"{value:.1f}" for value in np.median(margins, 0)] + [f"{value:.2f}" for value in far]
        print(f"| {row} | {len(margins)} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
