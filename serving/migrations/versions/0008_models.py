"""Model versions, what became of each, and what a candidate says beside the one in production."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "models",
        sa.Column("version", sa.String(64), primary_key=True),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("parent", sa.String(64)),
        sa.Column("added", sa.String(29), nullable=False),
        sa.Column("actor", sa.String(100), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("report", sa.Text()),
        sa.Column("is_retired", sa.Boolean(), nullable=False),
    )
    op.create_table(
        "model_stages",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("recipe", sa.String(200), nullable=False),
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("deed", sa.String(11), nullable=False),
        sa.Column("replaced", sa.String(64)),
        sa.Column("share", sa.Double()),
        sa.Column("at", sa.String(29), nullable=False),
        sa.Column("actor", sa.String(100), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("gate", sa.Text()),
        sa.Column("is_override", sa.Boolean(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_model_stages_kind_recipe_id", "model_stages", ["kind", "recipe", "id"])
    op.create_index("ix_model_stages_version_id", "model_stages", ["version", "id"])
    op.create_table(
        "shadow_runs",
        sa.Column("inspection", sa.String(32), primary_key=True),
        sa.Column("version", sa.String(64), primary_key=True),
        sa.Column("verdict", sa.String(5), nullable=False),
        sa.Column("calls", sa.Text(), nullable=False),
        sa.Column("disagreement", sa.Boolean(), nullable=False),
    )
    op.create_index("ix_shadow_runs_version_inspection", "shadow_runs", ["version", "inspection"])


def downgrade() -> None:
    for name in ("shadow_runs", "model_stages", "models"):
        op.drop_table(name)
