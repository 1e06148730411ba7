"""Tables, connection and schema version of the database: SQLite or PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import BigInteger, Engine, ForeignKey, Index, Integer, String, Text, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from serving.errors import StoreError

MIGRATIONS = Path(__file__).parent / "migrations"
SQLITE_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000", "foreign_keys=ON")
"""A commit is on the disk when it returns; a writer waits up to 10 s for another one."""


class Base(DeclarativeBase):
    """Tables; migrations/ holds their history and a test holds the two together."""


class InspectionRow(Base):
    __tablename__ = "inspections"
    __table_args__ = (
        Index("ix_inspections_verdict_id", "verdict", "id"),
        Index("ix_inspections_serial_id", "serial", "id"),
        Index("ix_inspections_actor_id", "actor", "id"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    verdict: Mapped[str] = mapped_column(String(5))
    serial: Mapped[str | None] = mapped_column(String(200))
    recipe: Mapped[str | None] = mapped_column(String(200))
    model_version: Mapped[str] = mapped_column(String(64))
    image_sha256: Mapped[str] = mapped_column(String(64))
    reference_sha256: Mapped[str | None] = mapped_column(String(64))
    idempotency_key: Mapped[str | None] = mapped_column(String(255), unique=True)
    request_sha256: Mapped[str] = mapped_column(String(64))
    report: Mapped[str] = mapped_column(Text)
    """StoredReport as JSON text, exactly as it was answered."""
    actor: Mapped[str | None] = mapped_column(String(100))
    """Name of the key that posted it; NULL: posted without keys."""


class KeyRow(Base):
    """An API key. Times are UTC texts of one length (`audit.utc_now`), so that they sort."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(String(8), primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    role: Mapped[str] = mapped_column(String(8))
    sha256: Mapped[str] = mapped_column(String(64))
    created: Mapped[str] = mapped_column(String(29))
    revoked: Mapped[str | None] = mapped_column(String(29))


class SessionRow(Base):
    __tablename__ = "sessions"

    token_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    key_id: Mapped[str] = mapped_column(ForeignKey("api_keys.id"), index=True)
    created: Mapped[str] = mapped_column(String(29))
    expires: Mapped[str] = mapped_column(String(29))


class AuditRow(Base):
    """One deed. Triggers, made by the migration, refuse to change or delete a row."""

    __tablename__ = "audit"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    time: Mapped[str] = mapped_column(String(29))
    actor: Mapped[str] = mapped_column(String(100))
    role: Mapped[str] = mapped_column(String(8))
    action: Mapped[str] = mapped_column(String(40))
    object: Mapped[str] = mapped_column(String(200))
    details: Mapped[str] = mapped_column(Text)
    model_version: Mapped[str | None] = mapped_column(String(64))


def make_engine(url: str) -> Engine:
    """Raises StoreError for a URL that SQLAlchemy cannot use."""
    try:
        engine = create_engine(url, pool_pre_ping=True)
    except (SQLAlchemyError, ImportError) as error:
        raise StoreError(f"INSPECT_VIT_DATABASE_URL cannot be used: {error}") from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _set_pragmas)
    return engine


def _set_pragmas(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    for pragma in SQLITE_PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def migrate(engine: Engine) -> None:
    """Bring the schema to this code's version.

    Raises:
        StoreError: no connection, or a schema of a newer version.
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    try:
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except CommandError as error:
        raise StoreError(
            f"the database {engine.url.render_as_string()} has a schema this version does not know: {error}; "
            "it was made by a newer inspect-vit: install that one, or set another INSPECT_VIT_HOME"
        ) from error
    except SQLAlchemyError as error:
        raise StoreError(f"cannot open the database {engine.url.render_as_string()}: {error}") from error
