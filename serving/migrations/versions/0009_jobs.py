"""Jobs of retraining and promotion."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("created", sa.String(29), nullable=False),
        sa.Column("started", sa.String(29)),
        sa.Column("ended", sa.String(29)),
        sa.Column("actor", sa.String(100), nullable=False),
        sa.Column("role", sa.String(8), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("dataset", sa.String(16)),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("result", sa.Text()),
        sa.Column("cancel_asked", sa.Boolean(), nullable=False),
    )
    op.create_index("ix_jobs_state_id", "jobs", ["state", "id"])


def downgrade() -> None:
    op.drop_table("jobs")
