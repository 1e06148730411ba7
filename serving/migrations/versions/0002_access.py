"""API keys, sessions, the append-only audit trail, and who posted an inspection."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

REFUSAL = "the audit trail is append-only"
# REPLACE deletes the row that is in its way without firing the delete trigger, so an insert over an id is
# refused too.
SQLITE_TRIGGERS = (
    f"CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END",
    f"CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END",
    "CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit "
    "WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id) "
    f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END",
)
POSTGRESQL_TRIGGERS = (
    "CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$",
    "CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON audit "
    "FOR EACH ROW EXECUTE FUNCTION audit_refuse()",
    "CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit "
    "FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()",
)


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(8), primary_key=True),
        sa.Column("name", sa.String(100), nullable=False, unique=True),
        sa.Column("role", sa.String(8), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("created", sa.String(29), nullable=False),
        sa.Column("revoked", sa.String(29)),
    )
    op.create_table(
        "sessions",
        sa.Column("token_sha256", sa.String(64), primary_key=True),
        sa.Column("key_id", sa.String(8), sa.ForeignKey("api_keys.id"), nullable=False),
        sa.Column("created", sa.String(29), nullable=False),
        sa.Column("expires", sa.String(29), nullable=False),
    )
    op.create_index("ix_sessions_key_id", "sessions", ["key_id"])
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("time", sa.String(29), nullable=False),
        sa.Column("actor", sa.String(100), nullable=False),
        sa.Column("role", sa.String(8), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("object", sa.String(200), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("model_version", sa.String(64)),
        sqlite_autoincrement=True,
    )
    for trigger in POSTGRESQL_TRIGGERS if _is_postgresql() else SQLITE_TRIGGERS:
        op.execute(trigger)
    op.add_column("inspections", sa.Column("actor", sa.String(100)))
    op.create_index("ix_inspections_actor_id", "inspections", ["actor", "id"])


def downgrade() -> None:
    op.drop_index("ix_inspections_actor_id", "inspections")
    op.drop_column("inspections", "actor")
    op.drop_table("audit")
    if _is_postgresql():
        op.execute("DROP FUNCTION audit_refuse()")
    op.drop_table("sessions")
    op.drop_table("api_keys")


def _is_postgresql() -> bool:
    return op.get_bind().dialect.name == "postgresql"
