"""Inspections."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "inspections",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("verdict", sa.String(5), nullable=False),
        sa.Column("serial", sa.String(200)),
        sa.Column("recipe", sa.String(200)),
        sa.Column("model_version", sa.String(64), nullable=False),
        sa.Column("image_sha256", sa.String(64), nullable=False),
        sa.Column("reference_sha256", sa.String(64)),
        sa.Column("idempotency_key", sa.String(255), unique=True),
        sa.Column("request_sha256", sa.String(64), nullable=False),
        sa.Column("report", sa.Text(), nullable=False),
    )
    op.create_index("ix_inspections_verdict_id", "inspections", ["verdict", "id"])
    op.create_index("ix_inspections_serial_id", "inspections", ["serial", "id"])


def downgrade() -> None:
    op.drop_table("inspections")
