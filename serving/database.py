"""Tables, connection and schema version of the database: SQLite or PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import (
    BigInteger,
    Connection,
    Engine,
    ForeignKey,
    Index,
    Integer,
    String,
    Text,
    create_engine,
    event,
    make_url,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from serving.errors import StoreError

MIGRATIONS = Path(__file__).parent / "migrations"
SQLITE_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON")
"""A commit is on the disk when it returns. PostgreSQL does so unless its synchronous_commit was changed."""
LONGEST_WAIT_S = 600.0
POSTGRESQL_DISK_FULL = "53100"
"""Its error code disk_full."""


class Base(DeclarativeBase):
    """Tables; migrations/ holds their history and a test holds the two together."""


class InspectionRow(Base):
    __tablename__ = "inspections"
    __table_args__ = (
        Index("ix_inspections_verdict_id", "verdict", "id"),
        Index("ix_inspections_serial_id", "serial", "id"),
        Index("ix_inspections_actor_id", "actor", "id"),
        Index("ix_inspections_image_sha256_id", "image_sha256", "id"),
        Index("ix_inspections_reference_sha256_id", "reference_sha256", "id"),
        # All that figures of the line need, so that they are counted without reading reports.
        Index(
            "ix_inspections_figures",
            *("id", "verdict", "attempt", "serial", "recipe", "recipe_revision"),
        ),
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
    """StoredReport as JSON text, as it was answered but for the attempt."""
    actor: Mapped[str | None] = mapped_column(String(100))
    """Name of the key that posted it; NULL: posted without keys."""
    recipe_revision: Mapped[int | None]
    attempt: Mapped[int | None]
    """1 for the first picture of a serial, 2 when the board comes back; None without a serial."""


class RecipeRow(Base):
    """One revision of a recipe; rows are added, never changed."""

    __tablename__ = "recipes"

    name: Mapped[str] = mapped_column(String(200), primary_key=True)
    revision: Mapped[int] = mapped_column(primary_key=True)
    created: Mapped[str] = mapped_column(String(29))
    actor: Mapped[str] = mapped_column(String(100))
    is_deleted: Mapped[bool]
    """The recipe was taken out of use by this revision."""
    recipe: Mapped[str] = mapped_column(Text)
    reference_files: Mapped[str] = mapped_column(Text)
    """JSON: `recipes.ReferenceFile` of each reference."""


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


class DriftRow(Base):
    """What is known of the boards of one recipe, by what they are compared with and the camera."""

    __tablename__ = "drift_states"

    recipe: Mapped[str] = mapped_column(String(200), primary_key=True)
    reference: Mapped[str] = mapped_column(String(200), primary_key=True)
    camera: Mapped[str] = mapped_column(String(200), primary_key=True)
    revision: Mapped[int]
    model_version: Mapped[str] = mapped_column(String(64))
    """Of another revision or version the state is void."""
    state: Mapped[str] = mapped_column(Text)
    """JSON: `drift.State`."""


class AlarmRow(Base):
    """One alarm; only its acknowledgement is added later."""

    __tablename__ = "alarms"
    __table_args__ = (
        Index("ix_alarms_acknowledged_recipe", "acknowledged", "recipe"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    raised: Mapped[str] = mapped_column(String(29))
    kind: Mapped[str] = mapped_column(String(8))
    subject: Mapped[str] = mapped_column(String(200))
    """Of a drift the statistic, of a repeater the class."""
    recipe: Mapped[str] = mapped_column(String(200))
    reference: Mapped[str] = mapped_column(String(200))
    camera: Mapped[str] = mapped_column(String(200))
    revision: Mapped[int]
    model_version: Mapped[str] = mapped_column(String(64))
    message: Mapped[str] = mapped_column(Text)
    details: Mapped[str] = mapped_column(Text)
    """JSON: `alarms.DriftDetails` or `alarms.RepeaterDetails`."""
    acknowledged: Mapped[str | None] = mapped_column(String(29))
    acknowledged_by: Mapped[str | None] = mapped_column(String(100))
    note: Mapped[str | None] = mapped_column(Text)


def make_engine(url: str, *, wait_s: float | None = None) -> Engine:
    """An engine for either database.

    Args:
        wait_s: longest wait for a lock and, with PostgreSQL, for any answer. None waits as long as it takes,
            as migrations and backups have to.

    Raises:
        StoreError: a URL that SQLAlchemy cannot use.
    """
    try:
        address = make_url(url)
        is_pg8000 = address.get_backend_name() == "postgresql" and address.get_driver_name() == "pg8000"
        # Longer than for a lock, so that the server says which it was.
        limits = {"timeout": 2.0 * wait_s + 1.0} if is_pg8000 and wait_s is not None else {}
        engine = create_engine(address, pool_pre_ping=True, connect_args=limits)
    except (SQLAlchemyError, ImportError) as error:
        raise StoreError(
            f"INSPECT_VIT_DATABASE_URL cannot be used: {error}; leave it empty for SQLite, or give "
            "postgresql+pg8000://user:password@host/database and install inspect-vit[postgres]"
        ) from error
    if engine.dialect.name == "sqlite":
        waiting_ms = int(1000 * (LONGEST_WAIT_S if wait_s is None else wait_s))
        statements = [f"PRAGMA {pragma}" for pragma in (f"busy_timeout={waiting_ms}", *SQLITE_PRAGMAS)]
    else:
        statements = [] if wait_s is None else [f"SET lock_timeout = {int(1000 * wait_s)}"]
    event.listen(engine, "connect", lambda connection, _: _prepare(connection, statements))
    return engine


def _prepare(connection: Any, statements: list[str]) -> None:
    cursor = connection.cursor()
    for statement in statements:
        cursor.execute(statement)
    cursor.close()
    connection.commit()


def sqlite_file(engine: Engine) -> Path | None:
    """The file of a SQLite database; None for one in memory or of another kind."""
    if engine.dialect.name != "sqlite" or engine.url.database in (None, "", ":memory:"):
        return None
    return Path(engine.url.database or "").absolute()


def is_disk_full(error: SQLAlchemyError) -> bool:
    """Whether a statement failed because the database's disk is full."""
    told = str(getattr(error, "orig", error))
    return "disk is full" in told or POSTGRESQL_DISK_FULL in told


def migrate(url: str) -> None:
    """Bring the schema to this code's version, however long that takes.

    Raises:
        StoreError: no connection, or a schema of a newer version.
    """
    engine = make_engine(url)
    try:
        with engine.begin() as connection:
            command.upgrade(alembic_config(connection), "head")
    except CommandError as error:
        raise StoreError(
            f"the database {engine.url.render_as_string()} has a schema this version does not know: {error}; "
            "it was made by a newer inspect-vit: install that one, or set another INSPECT_VIT_HOME"
        ) from error
    except SQLAlchemyError as error:
        raise StoreError(f"cannot open the database {engine.url.render_as_string()}: {error}") from error
    finally:
        engine.dispose()


def alembic_config(connection: Connection) -> Config:
    """What Alembic's commands take to work within this connection's transaction."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
