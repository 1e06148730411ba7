"""The table of benchmarks/new_class.py."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any


def summary(cells: Sequence[dict[str, Any]], joint: dict[str, Any]) -> list[str]:
    """One line per class, k, method and part: mean and spread over the draws."""
    lines = [
        "| class | k | how | trained | draws | new AP | of joint | old AP | largest drop "
        "| old recall | clean boards flagged | boards called outside | CPU minutes |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for cell in cells:
        groups.setdefault((cell["task"], cell["k"], cell["method"], cell["part"]), []).append(cell)
    for (task, k, method, part), some in groups.items():
        new = [statistics.mean(c["after"]["ap"][name] for name in c["new"]) for c in some]
        upper = statistics.mean(joint["ap"][name] for name in some[0]["new"])
        drops = [
            max((c["before"]["ap"][name] - c["after"]["ap"][name], name) for name in c["before"]["ap"])
            for c in some
        ]
        drop, worst = max(drops)
        spread = f" +- {statistics.stdev(new):.3f}" if len(new) > 1 else ""
        lines.append(
            f"| {task} | {k} | {method} | {part} | {len(some)} | {statistics.mean(new):.3f}{spread} "
            f"| {statistics.mean(new) / upper:.2f} | {_old(some, 'ap')} | {100 * drop:+.2f} ({worst}) "
            f"| {_old(some, 'recall')} | {_change(some, 'clean_flagged')} "
            f"| {_change(some, 'boards_called_outside')} "
            f"| {statistics.mean(c['cpu_minutes'] for c in some):.1f} |"
        )
    return lines


def _old(cells: Sequence[dict[str, Any]], key: str) -> str:
    """The mean over old classes, before and after."""
    before, after = (
        statistics.mean(c[when][key][name] for c in cells for name in c["before"]["ap"])
        for when in ("before", "after")
    )
    return f"{before:.3f} -> {after:.3f}"


def _change(cells: Sequence[dict[str, Any]], key: str) -> str:
    before, after = (statistics.mean(c[when][key] for c in cells) for when in ("before", "after"))
    return f"{100 * before:.1f} -> {100 * after:.1f} %"
