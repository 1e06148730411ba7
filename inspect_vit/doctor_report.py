"""An examination in rows, one per check, for the table and the page; and what each check is, in a
sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from inspect_vit.doctor import Examination
from inspect_vit.doctor_findings import Finding, Health, worst

ABOUT = {
    "finite weights": "No weight is NaN or infinite.",
    "projection spread": "W_q, W_k and W_v are about as wide as when training began; scores go with their "
    "product.",
    "projection rows": "The rows of a head's W_q, W_k and W_v point different ways, so that it can tell "
    "tokens apart.",
    "W_o condition": "No direction of W_o is so small that storing it as fp16 loses it.",
    "W_o rank": "W_o uses its width: its singular values are many, not few.",
    "sizes": "head_dim and embed_dim are what tensor cores and flash-attn work on.",
    "masks": "Masks are bool, biases are float, and every query has a key to look at.",
    "score spread": "Scores differ enough to choose between keys, and not so much that one always wins.",
    "attention entropy": "A head neither stares at one key nor averages them all.",
    "top-1 weight": "The best key does not get all the weight.",
    "saturated rows": "Softmax still passes a gradient to the scores.",
    "duplicate heads": "No two heads of a block look at the same places for the same answer.",
    "dead heads": "Every head adds something to its tokens.",
    "removing a head": "The answer changes when a head is taken away.",
    "level share": "Every level has a say in the fused tokens.",
    "gate saturation": "The gates of the fusion are not stuck open or shut.",
    "gate spread": "The gates depend on what is there.",
    "patch pattern": "The grid of patches does not show in the maps.",
    "outlier tokens": "No token is far larger than the others and swamps them.",
    "position code": "Codes of near tokens are alike, of far ones less.",
    "position strength": "The position code is large enough to be seen.",
    "finite answer": "No answer is NaN or infinite.",
    "fp16 range": "Values have room below the largest fp16 number.",
    "half precision": "Scores hold in fp16 and bf16.",
    "gradients": "Every part learns: no gradient vanishes or explodes.",
    "backends": "Plain and fused attention give the same answer.",
}

STYLES = {"ok": "green", "warn": "yellow", "ill": "bold red", "skipped": "dim"}


@dataclass(frozen=True)
class CheckRow:
    """All findings of one check."""

    check: str
    about: str
    health: Health
    findings: tuple[Finding, ...]

    @property
    def faults(self) -> list[Finding]:
        """What is ill, then what is near it."""
        return [f for health in (Health.ILL, Health.WARN) for f in self.findings if f.health is health]

    @property
    def values(self) -> str:
        """As "0.03 to 0.85"; - where a check has no number."""
        known = [finding.value for finding in self.findings if finding.value is not None]
        finite = sorted(value for value in known if math.isfinite(value))
        words = " to ".join(dict.fromkeys(number(value) for value in (finite[:1] + finite[-1:])))
        return (
            ", ".join([word for word in (words, "not finite" if len(known) > len(finite) else "") if word])
            or "-"
        )

    @property
    def limit(self) -> str:
        """Of the worst finding: limits may differ by place."""
        return next((finding.limit for finding in (*self.faults, *self.findings) if finding.limit), "-")

    @property
    def where(self) -> str:
        """Places that are not ok, ill ones first; why, where all are skipped; else how many were looked
        at."""
        if self.faults:
            return named([str(finding.place) for finding in self.faults])
        looked = [finding for finding in self.findings if finding.health is not Health.SKIPPED]
        if not looked:
            return self.findings[0].detail
        return f"{len(looked)} place{'s' if len(looked) > 1 else ''}"


def check_rows(findings: Sequence[Finding]) -> list[CheckRow]:
    """One row per check, in the order of the findings."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.check, []).append(finding)
    return [CheckRow(check, ABOUT[check], worst(found), tuple(found)) for check, found in groups.items()]


def remedies(findings: Sequence[Finding]) -> list[tuple[Health, str, str]]:
    """(verdict, remedy, what it heals), each remedy once, ill ones first."""
    groups: dict[str, list[Finding]] = {}
    for health in (Health.ILL, Health.WARN):
        for finding in findings:
            if finding.health is health:
                groups.setdefault(finding.remedy, []).append(finding)
    return [
        (worst(found), remedy, ", ".join(dict.fromkeys(finding.check for finding in found)))
        for remedy, found in groups.items()
    ]


def tables(examination: Examination) -> list[Table]:
    """The checks, and what to do if there is something to do."""
    checks = Table("check", "verdict", "values", "limits", "where")
    for row in check_rows(examination.findings):
        style = STYLES[row.health]
        checks.add_row(row.check, f"[{style}]{row.health}[/]", row.values, row.limit, row.where)
    cures = Table("verdict", "what to do", "heals")
    for health, remedy, heals in remedies(examination.findings):
        cures.add_row(f"[{STYLES[health]}]{health}[/]", remedy, heals)
    return [checks, cures] if cures.row_count else [checks]


def counted(examination: Examination) -> str:
    """As "118 ok, 12 warn"."""
    counts = examination.as_json()["counts"]
    return ", ".join(f"{count} {health}" for health, count in counts.items() if count)


def report_json(examination: Examination, *, name: str, version: str, boards: str) -> dict[str, Any]:
    """What --json prints and doctor.json holds; every number is finite."""
    return {"model": {"name": name, "version": version}, "boards": boards, **examination.as_json()}


def number(value: float | None) -> str:
    """Three digits, however large or small; - where there is none."""
    if value is None:
        return "-"
    return f"{value:.3g}" if not 1000 <= abs(value) < 1e6 else f"{value:.0f}"


def named(places: Sequence[str], *, most: int = 3) -> str:
    """The first few and how many more."""
    more = f"; {len(places) - most} more" if len(places) > most else ""
    return "; ".join(places[:most]) + more
