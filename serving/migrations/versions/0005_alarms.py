"""What is watched of each recipe's boards, and the alarms that came of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "drift_states",
        sa.Column("recipe", sa.String(200), primary_key=True),
        sa.Column("reference", sa.String(200), primary_key=True),
        sa.Column("camera", sa.String(200), primary_key=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("model_version", sa.String(64), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
    )
    op.create_table(
        "alarms",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("raised", sa.String(29), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("subject", sa.String(200), nullable=False),
        sa.Column("recipe", sa.String(200), nullable=False),
        sa.Column("reference", sa.String(200), nullable=False),
        sa.Column("camera", sa.String(200), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("model_version", sa.String(64), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("acknowledged", sa.String(29)),
        sa.Column("acknowledged_by", sa.String(100)),
        sa.Column("note", sa.Text()),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alarms_acknowledged_recipe", "alarms", ["acknowledged", "recipe"])


def downgrade() -> None:
    op.drop_table("alarms")
    op.drop_table("drift_states")
