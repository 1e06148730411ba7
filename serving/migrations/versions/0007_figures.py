"""What figures of the line are made from: calls by place, challenge boards, test results, pruned days."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

ROWS_AT_ONCE = 500


def upgrade() -> None:
    calls = op.create_table(
        "calls",
        sa.Column("inspection", sa.String(32), primary_key=True),
        sa.Column("defect", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("label", sa.String(200), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("x", sa.Double()),
        sa.Column("y", sa.Double()),
        sa.Column("reference", sa.String(200), nullable=False),
    )
    op.create_table(
        "challenges",
        sa.Column("recipe", sa.String(200), primary_key=True),
        sa.Column("boards", sa.Text(), nullable=False),
        sa.Column("every_hours", sa.Double()),
        sa.Column("changed", sa.String(29), nullable=False),
        sa.Column("shown", sa.String(29)),
        sa.Column("locked", sa.String(29)),
        sa.Column("why", sa.Text(), nullable=False),
    )
    op.create_table(
        "challenge_runs",
        sa.Column("inspection", sa.String(32), primary_key=True),
        sa.Column("recipe", sa.String(200), nullable=False),
        sa.Column("serial", sa.String(200), nullable=False),
        sa.Column("is_found", sa.Boolean(), nullable=False),
    )
    op.create_table(
        "test_results",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("inspection", sa.String(32), nullable=False),
        sa.Column("serial", sa.String(200), nullable=False),
        sa.Column("result", sa.String(4), nullable=False),
        sa.Column("label", sa.String(200), nullable=False),
        sa.Column("tested", sa.String(29), nullable=False),
        sa.Column("received", sa.String(29), nullable=False),
        sa.Column("actor", sa.String(100), nullable=False),
        sa.UniqueConstraint("inspection", "result", "label", "tested", name="uq_test_results_row"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_test_results_result_inspection", "test_results", ["result", "inspection"])
    op.create_table("pruned_days", sa.Column("day", sa.String(10), primary_key=True))
    columns = ["id", "verdict", "attempt", "serial", "recipe", "recipe_revision"]
    op.create_index("ix_inspections_figures", "inspections", columns)
    _fill(calls)


def downgrade() -> None:
    op.drop_index("ix_inspections_figures", "inspections")
    for name in ("pruned_days", "test_results", "challenge_runs", "challenges", "calls"):
        op.drop_table(name)


def _fill(calls: sa.Table) -> None:
    """The listed defects of the reports that are there; their place where it can be told."""
    connection = op.get_bind()
    recipes = sa.table("recipes", *map(sa.column, ("name", "revision", "recipe")))
    scales = {
        (name, number): json.loads(text).get("px_per_mm")
        for name, number, text in connection.execute(sa.select(*recipes.c))
    }
    inspections = sa.table("inspections", *map(sa.column, ("id", "recipe", "recipe_revision", "report")))
    query = sa.select(*inspections.c).order_by(inspections.c.id).limit(ROWS_AT_ONCE)
    last = ""
    while rows := connection.execute(query.where(inspections.c.id > last)).all():
        found = [
            call
            for inspection, recipe, number, report in rows
            for call in _calls(inspection, json.loads(report), scales.get((recipe, number)))
        ]
        if found:
            connection.execute(calls.insert(), found)
        last = rows[-1][0]


def _calls(inspection: str, report: dict[str, Any], px_per_mm: float | None) -> list[dict[str, Any]]:
    reference = report.get("reference")
    found = []
    for defect in report["defects"]:
        x = y = None
        if reference is None:
            left, top, right, bottom = defect["box_xyxy"]
            x, y = (left + right) / 2, (top + bottom) / 2
        elif px_per_mm is not None and defect.get("place_mm") is not None:
            x, y = (edge * px_per_mm for edge in defect["place_mm"])
        call = {key: defect[key] for key in ("label", "score")}
        call |= {"inspection": inspection, "defect": defect["id"], "x": x, "y": y}
        found.append(call | {"reference": (reference or {}).get("name") or ""})
    return found
