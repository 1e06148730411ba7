"""What the command line shows: tables on stdout, remarks and errors on stderr."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from inspect_vit.calibration import Calibration

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


def calibration_tables(calibration: Calibration) -> list[Table]:
    """The claims, and what the thresholds do for each class and for all together."""
    claims = Table("kept", "claim", title="claims", show_lines=len(calibration.claims) > 1)
    for claim in calibration.claims:
        claims.add_row("[bold green]yes[/]" if claim.kept else "[bold red]no[/]", claim.words)
    figures = Table(
        "class",
        "threshold",
        "checkpoint's own",
        "defects missed",
        "boards missed",
        "bound",
        title=f"{calibration.num_boards} boards, {calibration.num_pictures} pictures of {calibration.data}",
        caption=f"a board is missed when any such defect on it is; found by a call of {calibration.found_by}",
    )
    for row in calibration.classes:
        limits = (row.threshold, row.own_threshold)
        figures.add_row(
            "all" if row.label is None else row.label,
            *("" if limit is None else f"{limit:.3f}" for limit in limits),
            f"{row.defects_missed} of {row.num_defects}",
            f"{row.boards_missed} of {row.num_boards}",
            "-" if row.bound is None else f"{row.bound:.1%}",
        )
    false = calibration.false_calls
    calls = Table(show_header=False)
    calls.add_row("false calls per board", f"{false.per_board:.3f} ({false.num_calls} on {false.num_boards})")
    calls.add_row("at the checkpoint's own thresholds", f"{false.per_board_own:.3f}")
    calls.add_row("boards with a false call", f"{false.boards_with} of {false.num_boards}")
    calls.add_row("all kept claims together", f"{calibration.joint_confidence:.1%} sure")
    return [claims, figures, calls]


def calibration_remark(reports: Sequence[Mapping[str, Any]]) -> str | None:
    """What the calibration says of the boards just inspected; None where there is none."""
    stated = [report["calibration"] for report in reports if report["calibration"]]
    if not stated:
        return None
    void = [one for one in stated if not one["valid"]]
    if void:
        boards = "" if len(void) == len(reports) else f" for {len(void)} of {len(reports)} boards"
        return f"calibration VOID{boards}: {'; '.join(void[0]['void_because'])}"
    claims = [claim["words"] for claim in stated[0]["claims"]]
    return "\n".join(f"calibration of {stated[0]['date']}: {words}" for words in claims)
