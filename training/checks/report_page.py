"""A check as one HTML file that needs nothing beside it: counts, findings, pictures of the suspects."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from inspect_vit.files import write_atomically
from training.checks.findings import CheckReport, Finding
from training.checks.kinds import Severity, kind_of
from training.checks.labels import SIZES
from training.checks.suspects import Panel, draw_panels
from training.checks.table import summary
from training.progress import track

MAX_SHOWN = {Severity.ERROR: 24, Severity.WARNING: 12, Severity.NOTE: 6}
"""Findings of one kind that are shown with pictures."""
MAX_LISTED = 200
"""Further ones that are listed; check.json has all."""


def write_page(report: CheckReport, path: Path) -> None:
    """Draw the suspects and write the page."""
    kinds = report.by_kind()
    shown = {name: found[: MAX_SHOWN[kind_of(name).severity]] for name, found in kinds.items()}
    total = sum(map(len, shown.values()))
    drawn = (_card(report, finding) for found in shown.values() for finding in found)
    cards = iter(list(track(drawn, total=total, label="drawing the suspects")))
    sections = [
        {
            "name": name,
            "kind": kind_of(name),
            "count": len(found),
            "cards": [next(cards) for _ in shown[name]],
            "more": [_line(report, finding) for finding in found[len(shown[name]) :][:MAX_LISTED]],
            "unlisted": max(len(found) - len(shown[name]) - MAX_LISTED, 0),
        }
        for name, found in kinds.items()
    ]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    counts = report.counts
    tiles: Sequence[tuple[int, str]] = [
        (
            counts.pictures,
            "pictures" if counts.pictures == report.num_samples else f"of {report.num_samples} pictures",
        ),
        (counts.good_boards, "without a box"),
        (counts.references, "references"),
        (counts.boxes, "boxes"),
        (counts.outlines, "outlines"),
        (counts.groups, "groups"),
        *((number, f"in {split}") for split, number in counts.splits.items()),
    ]
    page = environment.get_template("page.html").render(
        report=report,
        summary=summary(report),
        tiles=tiles,
        sizes=list(SIZES),
        severities=[
            (severity.value, sum(f.severity is severity for f in report.findings)) for severity in Severity
        ],
        sections=sections,
    )
    write_atomically(path, page.encode())


def _card(report: CheckReport, finding: Finding) -> dict[str, Any]:
    return {
        "message": finding.message,
        "where": _inside(report, finding.where),
        "image": _inside(report, str(finding.image)) if finding.image else "",
        "panels": [(panel.caption, _as_url(panel)) for panel in draw_panels(finding)],
    }


def _line(report: CheckReport, finding: Finding) -> str:
    place = _inside(report, str(finding.image)) if finding.image else _inside(report, finding.where)
    return f"{place}: {finding.message}" if place else finding.message


def _inside(report: CheckReport, path: str) -> str:
    """A path without the folder of the set."""
    return path.removeprefix(f"{report.root}/")


def _as_url(panel: Panel) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(panel.jpeg).decode('ascii')}"
