"""The calls of an inspection as rows, to be counted and found by place without reading reports."""

from __future__ import annotations

from serving.line_tables import CallRow
from serving.schemas import StoredReport


def calls_of(report: StoredReport) -> list[CallRow]:
    """One row for each listed defect."""
    name = "" if report.reference is None else report.reference.name or ""
    rows = []
    for defect in report.defects:
        place = defect.place_px
        if place is None and report.reference is None:
            left, top, right, bottom = defect.box_xyxy
            place = (left + right) / 2, (top + bottom) / 2
        x, y = (None, None) if place is None else place
        rows.append(
            CallRow(
                inspection=report.id,
                defect=defect.id,
                label=defect.label,
                score=defect.score,
                x=x,
                y=y,
                reference=name,
            )
        )
    return rows
