"""What a check answers: findings of known kinds, counts, and the pictures to keep out of training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inspect_vit.results import BoxXyxy
from training.checks.kinds import Severity, kind_of


@dataclass(frozen=True)
class Example:
    """One box to be shown with a finding that is about classes."""

    caption: str
    image: Path
    box: BoxXyxy


@dataclass(frozen=True)
class Finding:
    """One thing found, at one place."""

    kind: str
    """A name in `kinds.KINDS`, or one that a reader gave to a fault."""
    message: str
    """The value met and the value wanted."""
    image: Path | None = None
    where: str = ""
    """File, and the line or path inside it."""
    boxes: tuple[BoxXyxy, ...] = ()
    """Where on the picture, px; empty: everywhere."""
    others: tuple[Path, ...] = ()
    """Pictures that it is held against: a reference, a duplicate."""
    examples: tuple[Example, ...] = ()
    """For the page only."""

    @property
    def severity(self) -> Severity:
        return kind_of(self.kind).severity


@dataclass(frozen=True)
class ClassCounts:
    boxes: int
    pictures: int
    sizes: dict[str, int]
    """Boxes by the longest side, as `labels.SIZES` parts it."""


@dataclass(frozen=True)
class Counts:
    """How much there is of everything, in the samples that were checked."""

    pictures: int
    good_boards: int
    """Pictures without a box."""
    references: int
    boxes: int
    outlines: int
    ignored: int
    splits: dict[str, int]
    groups: int
    classes: dict[str, ClassCounts]


@dataclass(frozen=True)
class CheckReport:
    """Everything `inspect-vit data check` found."""

    root: Path
    format: str
    num_samples: int
    """Samples of the set; more than `counts.pictures` where a limit was given."""
    counts: Counts
    findings: tuple[Finding, ...]
    """Errors first, then warnings and notes; of one severity by kind."""
    written: tuple[Path, ...] = field(default=())

    @property
    def exit_code(self) -> int:
        """1 with a finding of severity error, else 0."""
        return int(any(finding.severity is Severity.ERROR for finding in self.findings))

    def by_kind(self) -> dict[str, list[Finding]]:
        """Findings of each kind, in their order."""
        groups: dict[str, list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault(finding.kind, []).append(finding)
        return groups

    def quarantine(self) -> dict[Path, tuple[str, str]]:
        """Picture -> (kind, message) of what must not be trained on; the first reason of each."""
        reasons: dict[Path, tuple[str, str]] = {}
        for finding in self.findings:
            if finding.image is not None and kind_of(finding.kind).quarantine:
                reasons.setdefault(finding.image, (finding.kind, finding.message))
        return reasons

    def as_json(self) -> dict[str, Any]:
        """The report as JSON's types; boxes are [left, top, right, bottom], px."""
        counts = self.counts
        severities = Counter(finding.severity.value for finding in self.findings)
        return {
            "root": str(self.root),
            "format": self.format,
            "samples": self.num_samples,
            "checked": counts.pictures,
            "counts": {
                "good_boards": counts.good_boards,
                "references": counts.references,
                "boxes": counts.boxes,
                "outlines": counts.outlines,
                "ignored": counts.ignored,
                "splits": counts.splits,
                "groups": counts.groups,
                "classes": {
                    name: {"boxes": c.boxes, "pictures": c.pictures, "longest_side_px": c.sizes}
                    for name, c in counts.classes.items()
                },
            },
            "severities": {severity.value: severities[severity.value] for severity in Severity},
            "findings": [
                {
                    "kind": finding.kind,
                    "severity": finding.severity.value,
                    "image": None if finding.image is None else str(finding.image),
                    "where": finding.where,
                    "message": finding.message,
                    "boxes": [[round(value, 2) for value in box] for box in finding.boxes],
                    "others": [str(path) for path in finding.others],
                }
                for finding in self.findings
            ],
        }


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Errors, warnings, notes; then by kind; otherwise as they came."""
    rank = list(Severity)
    return tuple(sorted(findings, key=lambda finding: (rank.index(finding.severity), finding.kind)))
