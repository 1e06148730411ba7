"""Figures of the line as a table, one figure a row, for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from serving.stats_schemas import Rate, Stats

HEADER = ("figure", "group", "value", "count", "denominator", "unit")


def stats_csv(stats: Stats) -> str:
    """UTF-8 text with a header; places are left out."""
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(HEADER)
    writer.writerows([_safe(cell) for cell in row] for row in _rows(stats))
    return table.getvalue()


def _rows(stats: Stats) -> Iterator[tuple[Any, ...]]:
    for name in ("since", "until", "recipe", "limits"):
        value = getattr(stats, name)
        yield name, "", value.isoformat() if hasattr(value, "isoformat") else value, "", "", ""
    for name, number in stats.boards.model_dump().items():
        yield "boards", name, number, "", "", "inspections"
    yield _rate("first_pass_yield", "before_review", stats.first_pass_yield.before_review)
    yield _rate("first_pass_yield", "after_review", stats.first_pass_yield.after_review)
    yield _rate("false_calls", "boards", stats.false_calls.boards)
    for one in stats.false_calls.rates:
        yield _rate("false_calls", "calls", one)
    yield _rate("escapes", "boards", stats.escapes.boards)
    for name in ("by_review", "by_test", "missed_defects"):
        yield "escapes", name, getattr(stats.escapes, name), "", "", ""
    yield _rate("audit", "escape_rate", stats.audit.escape_rate)
    yield "audit", "drawn", stats.audit.drawn, "", "", "boards"
    yield "agreement", "kappa", stats.agreement.kappa, stats.agreement.agreed, stats.agreement.calls, "call"
    for figure, lines in (("by_label", stats.by_label), ("by_recipe", stats.by_recipe)):
        for line in lines:
            for name in ("calls", "real", "false_calls", "process_indicators", "missed"):
                yield figure, f"{line.name or '(none)'}: {name}", getattr(line, name), "", "", "calls"
    for point in stats.trend:
        start = point.start.isoformat()
        yield "trend first_pass_yield", start, point.first_pass_yield, "", point.boards, "board"
        yield "trend false_call_rate", start, point.false_call_rate, "", "", "board"
        yield "trend lower", start, point.lower, "", "", ""
        yield "trend upper", start, point.upper, "", "", ""


def _rate(figure: str, group: str, one: Rate) -> tuple[Any, ...]:
    return figure, group, one.value, one.count, one.of, one.unit


def _safe(cell: Any) -> Any:
    """A text that a spreadsheet would take for a formula becomes a text again: names come from anyone."""
    if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{cell}"
    return cell
