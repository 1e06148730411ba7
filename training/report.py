"""An evaluation's report on disk: report.json, report.md and the plots."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from inspect_vit.files import write_atomically
from training.plots import draw_plots
from training.protocols import build_report
from training.record import Record, load_record
from training.report_page import as_markdown


def report_record(path: Path, *, out: Path) -> dict[str, Any]:
    """Report on the detections that an evaluation kept: build and write; needs no model."""
    record = load_record(path)
    report = build_report(record)
    write_report(report, record, out)
    return report


def write_report(report: dict[str, Any], record: Record, out: Path) -> list[Path]:
    """Write report.json (NaN as null), report.md and the plots into `out`; names the files."""
    out.mkdir(parents=True, exist_ok=True)
    data, page = out / "report.json", out / "report.md"
    write_atomically(data, (json.dumps(finite(report), indent=2, allow_nan=False) + "\n").encode())
    plots = draw_plots(report, record, out)
    write_atomically(page, as_markdown(report, [plot.name for plot in plots]).encode())
    return [data, page, *plots]


def finite(tree: Any) -> Any:
    """The same tree with every NaN and infinity as None."""
    if isinstance(tree, dict):
        return {key: finite(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [finite(value) for value in tree]
    return None if isinstance(tree, float) and not math.isfinite(tree) else tree
