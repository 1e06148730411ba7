"""Figures and tables of a report in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any


def number(value: float) -> str:
    """A figure to four places, or a dash where there is none."""
    return f"{value:.4f}" if math.isfinite(value) else "-"


def tenths(value: float) -> str:
    """A figure to one place, or a dash."""
    return f"{value:.1f}" if math.isfinite(value) else "-"


def interval(share: dict[str, Any]) -> str:
    """A share with its exact 95 % interval."""
    return f"{share['value']:.3f} ({share['low']:.3f} to {share['high']:.3f})" if share["n"] else "-"


def share(share: dict[str, Any]) -> str:
    """The same with its counts."""
    return f"{interval(share)}; {share['count']} of {share['n']}" if share["n"] else "-"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells as a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    cells = ([cell.replace("|", r"\|").replace("\n", " ") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
