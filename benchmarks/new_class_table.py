"""The table of benchmarks/new_class.py."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any


def summary(cells: Sequence[dict[str, Any]], joint: dict[str, Any]) -> list[str]:
    """One line per class, k, method and part: mean and spread over the draws."""
    lines = [
        "| class | k | how | trained | draws | new AP | of joint | old AP | largest drop | old recall "
        "| boards called outside | without reference: new AP | of joint | old AP | largest drop "
        "| clean boards flagged | CPU minutes |",
        "|" + "---|" * 17,
    ]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for cell in cells:
        groups.setdefault((cell["task"], cell["k"], cell["method"], cell["part"]), []).append(cell)
    for (task, k, method, part), some in groups.items():
        minutes = statistics.mean(cell["cpu_minutes"] for cell in some)
        columns = [
            *(task, k, method, part, len(some)),
            *(_ap(some, joint, "ap"), _old(some, "recall"), _change(some, "boards_called_outside")),
            *(_ap(some, joint, "ap_alone"), _change(some, "clean_flagged"), f"{minutes:.1f}"),
        ]
        lines.append(f"| {' | '.join(map(str, columns))} |")
    return lines


def _ap(cells: Sequence[dict[str, Any]], joint: dict[str, Any], key: str) -> str:
    """Of new classes, their share of joint training's, of old classes, and what one of them lost at most."""
    new = [statistics.mean(c["after"][key][name] for name in c["new"]) for c in cells]
    upper = statistics.mean(joint[key][name] for name in cells[0]["new"])
    drops = [
        max((c["before"][key][name] - c["after"][key][name], name) for name in c["before"][key])
        for c in cells
    ]
    drop, worst = max(drops)
    lost = f"{100 * drop:.2f} ({worst})" if drop > 0 else "none"
    spread = f" +- {statistics.stdev(new):.3f}" if len(new) > 1 else ""
    mean = statistics.mean(new)
    return f"{mean:.3f}{spread} | {mean / upper:.2f} | {_old(cells, key)} | {lost}"


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
