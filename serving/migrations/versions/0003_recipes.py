"""Recipes and their revisions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "recipes",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("revision", sa.Integer(), primary_key=True),
        sa.Column("created", sa.String(29), nullable=False),
        sa.Column("actor", sa.String(100), nullable=False),
        sa.Column("is_deleted", sa.Boolean(), nullable=False),
        sa.Column("recipe", sa.Text(), nullable=False),
        sa.Column("reference_files", sa.Text(), nullable=False),
    )
    op.add_column("inspections", sa.Column("recipe_revision", sa.Integer(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("inspections") as table:
        table.drop_column("recipe_revision")
    op.drop_table("recipes")
