"""What the command line shows: tables on stdout, remarks and errors on stderr."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

VERDICT_STYLES = {"PASS": "bold green", "FAIL": "bold red", "ERROR": "bold yellow"}
PLAIN_WIDTH = 120
"""Columns of a table that goes to a file or a pipe."""


def stdout() -> Console:
    """Results: coloured and as wide as the terminal, plain elsewhere."""
    return Console(
        width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False, soft_wrap=False, emoji=False
    )


def say(text: str) -> None:
    """One remark on stderr, as it is: nothing in it is taken for markup."""
    print(text, file=sys.stderr, flush=True)


def verdict_table(reports: Sequence[Mapping[str, Any]]) -> Table:
    """One row per board."""
    table = Table("board", "verdict", "defects", "score", "why")
    for report in reports:
        score = report["score"]
        table.add_row(
            report["id"],
            f"[{VERDICT_STYLES[report['verdict']]}]{report['verdict']}[/]",
            str(len(report["defects"])),
            "-" if score is None else f"{score:.2f}",
            "; ".join(report["reasons"]).replace("[", r"\["),
        )
    return table


def defect_table(report: Mapping[str, Any]) -> Table:
    """One row per defect of one board, with the level that the gates weigh most."""
    table = Table("no.", "class", "score", "left, top, right, bottom (px)", "area (px)", "largest gate share")
    for defect in report["defects"]:
        level, share = max(defect["gate_share"].items(), key=lambda item: item[1])
        table.add_row(
            str(defect["id"]),
            defect["label"],
            f"{defect['score']:.2f}",
            ", ".join(f"{edge:.0f}" for edge in defect["box_xyxy"]),
            str(defect["area_px"]),
            f"{level} px ({share:.0%})",
        )
    return table


def model_tables(info: Mapping[str, Any]) -> list[Table]:
    """Facts, levels and, for a checkpoint, thresholds and validation figures; JSON has its configuration."""
    facts = Table(show_header=False)
    nested = {"levels", "thresholds", "training", "class_names", "gflops_side_px"}
    for key, value in info.items():
        if key not in nested:
            facts.add_row(key.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
    side = info["gflops_side_px"]
    facts.add_row("gflops are for", f"{side} x {side} px, reference included, 2 per multiply-add")
    facts.add_row("classes", ", ".join(info["class_names"]))
    training = dict(info.get("training", {}))
    training.pop("config", None)
    validation = training.pop("validation", {})
    for key, value in training.items():
        told = ", ".join(f"{v} {k}" for k, v in value.items()) if isinstance(value, Mapping) else str(value)
        facts.add_row(f"training: {key.replace('_', ' ')}", told)

    levels = Table(*(key.replace("_", " ") for key in info["levels"][0]), title="levels")
    for level in info["levels"]:
        levels.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in level.values()))
    tables = [facts, levels]
    if "thresholds" in info:
        limits = Table("class", *(mode.replace("_", " ") for mode in info["thresholds"]), title="thresholds")
        for name in info["class_names"]:
            limits.add_row(name, *(f"{by_class[name]:.3f}" for by_class in info["thresholds"].values()))
        tables.append(limits)
    if validation:
        figures = Table("figure", *(mode.replace("_", " ") for mode in validation), title="validation boards")
        for name in next(iter(validation.values())):
            figures.add_row(
                name.replace("_", " "), *(f"{figure[name]:.4f}" for figure in validation.values())
            )
        tables.append(figures)
    return tables
