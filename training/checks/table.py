"""A check as tables on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from training.checks.findings import CheckReport
from training.checks.kinds import Severity, kind_of
from training.checks.labels import SIZES

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}


def print_report(report: CheckReport, console: Console) -> None:
    """How much there is of what, then the findings by kind with one example of each."""
    console.print(summary(report), soft_wrap=True, markup=False)
    if report.counts.classes:
        console.print(class_table(report))
    if report.findings:
        console.print(finding_table(report))
    else:
        console.print("nothing found")


def summary(report: CheckReport) -> str:
    """The set in one line."""
    counts = report.counts
    checked = f"{counts.pictures}"
    if counts.pictures < report.num_samples:
        checked += f" of {report.num_samples}"
    parts = [f"{checked} pictures", f"{counts.good_boards} of them without a box", f"{counts.boxes} boxes"]
    parts += [f"{counts.outlines} outlines"] if counts.outlines else []
    parts += [f"{counts.ignored} to be ignored"] if counts.ignored else []
    parts += [f"{counts.references} references"] if counts.references else []
    parts += [f"{counts.groups} groups"] if counts.groups else []
    parts += [f"{number} in {split}" for split, number in counts.splits.items()]
    return f"{report.root} ({report.format}): {', '.join(parts)}"


def class_table(report: CheckReport) -> Table:
    """Boxes per class and longest side."""
    table = Table("class", "boxes", "pictures", *SIZES, title="boxes by longest side (px)")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, counts in report.counts.classes.items():
        sizes = (str(counts.sizes[size] or "-") for size in SIZES)
        table.add_row(escape(name), str(counts.boxes), str(counts.pictures), *sizes)
    return table


def finding_table(report: CheckReport) -> Table:
    """One row for each kind of finding."""
    table = Table("", "found", "times", "for example", title="findings")
    table.columns[2].justify = "right"
    for name, found in report.by_kind().items():
        kind, first = kind_of(name), found[0]
        example = f"{first.image.name}: {first.message}" if first.image else first.message
        severity = f"[{STYLES[kind.severity]}]{kind.severity.value}[/]"
        table.add_row(severity, kind.title, str(len(found)), escape(example))
    return table
