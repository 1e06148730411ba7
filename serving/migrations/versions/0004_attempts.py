"""Attempts of a board, and the indexes that pruning and the check for duplicate pictures need."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("inspections", sa.Column("attempt", sa.Integer()))
    op.create_index("ix_inspections_image_sha256_id", "inspections", ["image_sha256", "id"])
    op.create_index("ix_inspections_reference_sha256_id", "inspections", ["reference_sha256", "id"])
    # Distinct pictures of the serial up to and including the first time this one came.
    op.execute(
        """
        UPDATE inspections SET attempt = (
            SELECT count(DISTINCT earlier.image_sha256) FROM inspections AS earlier
            WHERE earlier.serial = inspections.serial AND earlier.id <= (
                SELECT min(same.id) FROM inspections AS same
                WHERE same.serial = inspections.serial AND same.image_sha256 = inspections.image_sha256
            )
        ) WHERE serial IS NOT NULL
        """
    )


def downgrade() -> None:
    op.drop_index("ix_inspections_reference_sha256_id", "inspections")
    op.drop_index("ix_inspections_image_sha256_id", "inspections")
    with op.batch_alter_table("inspections") as table:
        table.drop_column("attempt")
