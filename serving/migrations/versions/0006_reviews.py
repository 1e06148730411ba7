"""Reviews, and the queue that leads to them, filled with the inspections that are there."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

ROWS_AT_ONCE = 500
GUESSED_THRESHOLD = 0.5
"""Reports do not name the thresholds that were used."""


def upgrade() -> None:
    op.create_table(
        "reviews",
        sa.Column("inspection", sa.String(32), primary_key=True),
        sa.Column("revision", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(12), nullable=False),
        sa.Column("actor", sa.String(100), nullable=False),
        sa.Column("at", sa.String(29), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("num_false", sa.Integer(), nullable=False),
    )
    op.create_index("ix_reviews_actor_at", "reviews", ["actor", "at"])
    op.create_index("ix_reviews_at", "reviews", ["at"])
    queue = op.create_table(
        "queue",
        sa.Column("inspection", sa.String(32), primary_key=True),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("verdict", sa.String(5), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("uncertainty", sa.Double(), nullable=False),
        sa.Column("num_defects", sa.Integer(), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("audit", sa.Boolean(), nullable=False),
        sa.Column("due", sa.Boolean(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(4), nullable=False),
        sa.Column("disposition", sa.String(12)),
        sa.Column("final", sa.String(4)),
        sa.Column("hasty", sa.Boolean(), nullable=False),
    )
    labels = op.create_table(
        "queue_labels",
        sa.Column("inspection", sa.String(32), primary_key=True),
        sa.Column("label", sa.String(200), primary_key=True),
    )
    _fill(queue, labels)
    for value in (None, "score", "uncertainty"):
        columns = ["due", "state", *([value] if value else []), "inspection"]
        op.create_index(f"ix_queue_due_state_{value or 'inspection'}", "queue", columns)
    op.create_index("ix_queue_labels_label_inspection", "queue_labels", ["label", "inspection"])


def downgrade() -> None:
    for table in ("queue_labels", "queue", "reviews"):
        op.drop_table(table)


def _fill(queue: sa.Table, labels: sa.Table) -> None:
    connection = op.get_bind()
    inspections = sa.table("inspections", *map(sa.column, ("id", "verdict", "report")))
    query = sa.select(inspections).order_by(inspections.c.id).limit(ROWS_AT_ONCE)
    last = ""
    while rows := connection.execute(query.where(inspections.c.id > last)).all():
        queued = [_queued(*row) for row in rows]
        connection.execute(queue.insert(), queued)
        of_calls = [
            {"inspection": one["inspection"], "label": label}
            for one in queued
            for label in json.loads(one["labels"])
        ]
        if of_calls:
            connection.execute(labels.insert(), of_calls)
        last = rows[-1][0]


def _queued(inspection: str, verdict: str, text: str) -> dict[str, Any]:
    report = json.loads(text)
    defects = report["defects"]
    scores = [defect["score"] for defect in defects] or [report["score"]]
    uncertainty = max(1.0 - abs(score - GUESSED_THRESHOLD) / GUESSED_THRESHOLD for score in scores)
    num_defects = report.get("num_defects")
    return {
        "inspection": inspection,
        "created": report["created"].replace("Z", "+00:00"),
        "verdict": verdict,
        "score": report["score"],
        "uncertainty": 0.0 if verdict == "ERROR" else round(max(uncertainty, 0.0), 4),
        "num_defects": len(defects) if num_defects is None else num_defects,
        "labels": json.dumps(list(dict.fromkeys(defect["label"] for defect in defects))),
        # Nobody drew them when they passed, and whoever drew now would draw from what retention left.
        "audit": False,
        "due": verdict != "PASS",
        "revision": 0,
        "state": "open",
        "hasty": False,
    }
