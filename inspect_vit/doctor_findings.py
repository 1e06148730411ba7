"""What a check says: where, the value met, its limits, a verdict, and what to change when it is not ok."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Health(StrEnum):
    OK = "ok"
    WARN = "warn"
    """Wasteful or near a limit; the model works."""
    ILL = "ill"
    """Something does not work as built: do not deploy, or know why it may be deployed."""
    SKIPPED = "skipped"
    """Could not be looked at here; `detail` says why."""


@dataclass(frozen=True)
class Limits:
    """Where a value stops being ok. None: no limit on that side."""

    warn_below: float | None = None
    warn_above: float | None = None
    ill_below: float | None = None
    ill_above: float | None = None

    def judge(self, value: float) -> Health:
        """A value that is not a number, or infinite, is ill: something overflowed on the way to it."""
        if not math.isfinite(value):
            return Health.ILL
        if _outside(value, self.ill_below, self.ill_above):
            return Health.ILL
        return Health.WARN if _outside(value, self.warn_below, self.warn_above) else Health.OK

    def __str__(self) -> str:
        """As "warn above 0.5, ill above 0.9"."""
        words = []
        for health, low, high in (
            ("warn", self.warn_below, self.warn_above),
            ("ill", self.ill_below, self.ill_above),
        ):
            bounds = [f"below {low:g}"] if low is not None else []
            bounds += [f"above {high:g}"] if high is not None else []
            if bounds:
                words.append(f"{health} {' or '.join(bounds)}")
        return ", ".join(words)


@dataclass(frozen=True)
class Place:
    """Which part of the network; nothing set means the whole of it."""

    level_px: int | None = None
    block: int | None = None
    head: int | None = None
    part: str = ""

    def __str__(self) -> str:
        """As "16 px, block 1, head 0, W_o"; blocks and heads count from 0, as in the weights' names."""
        words = [] if self.level_px is None else [f"{self.level_px} px"]
        words += [] if self.block is None else [f"block {self.block}"]
        words += [] if self.head is None else [f"head {self.head}"]
        return ", ".join([*words, self.part] if self.part else words) or "model"


@dataclass(frozen=True)
class Finding:
    """One check at one place."""

    check: str
    place: Place
    value: float | None
    limit: str
    health: Health
    detail: str
    """What the value is, in words; for SKIPPED the reason."""
    remedy: str = ""
    """What to change, with its configuration key; empty when there is nothing to do."""

    def as_json(self) -> dict[str, Any]:
        """Plain values; a value that is not finite becomes None, and `detail` says so."""
        finite = self.value is not None and math.isfinite(self.value)
        return {
            "check": self.check,
            "place": str(self.place),
            **asdict(self.place),
            "value": self.value if finite else None,
            "limit": self.limit,
            "verdict": str(self.health),
            "detail": self.detail,
            "remedy": self.remedy,
        }


def judged(check: str, place: Place, value: float, limits: Limits, *, detail: str, remedy: str) -> Finding:
    """A finding whose verdict follows from the limits; the remedy is kept where it is needed."""
    health = limits.judge(value)
    if not math.isfinite(value):
        detail = f"{detail}; the value is {value}"
    return Finding(check, place, value, str(limits), health, detail, "" if health is Health.OK else remedy)


def stated(
    check: str,
    place: Place,
    is_well: bool,
    *,
    limit: str,
    detail: str,
    remedy: str,
    health: Health = Health.ILL,
) -> Finding:
    """A finding that is yes or no; `health` is the verdict when it is no."""
    if is_well:
        return Finding(check, place, None, limit, Health.OK, detail)
    return Finding(check, place, None, limit, health, detail, remedy)


def skipped(check: str, place: Place, reason: str) -> Finding:
    """A check that could not be made."""
    return Finding(check, place, None, "", Health.SKIPPED, reason)


def worst(findings: Sequence[Finding]) -> Health:
    """ILL if any is, else WARN, else OK; SKIPPED if nothing was looked at."""
    found = {finding.health for finding in findings}
    return next(h for h in (Health.ILL, Health.WARN, Health.OK, Health.SKIPPED) if h in found or not found)


def _outside(value: float, low: float | None, high: float | None) -> bool:
    return (low is not None and value < low) or (high is not None and value > high)
