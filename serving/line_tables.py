"""Tables of the line's figures: calls by place, challenge boards, results of electrical test, pruned days.

None refers to `inspections` by a foreign key: SQLite would empty these tables whenever a migration rebuilds
that one. Retention deletes from those in BESIDE together with the inspection.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Double, Index, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from serving.database import Base
from serving.model_tables import ShadowRunRow


class CallRow(Base):
    """One listed defect of an inspection, in columns that can be counted."""

    __tablename__ = "calls"

    inspection: Mapped[str] = mapped_column(String(32), primary_key=True)
    defect: Mapped[int] = mapped_column(primary_key=True)
    """Its number in the report, from 1."""
    label: Mapped[str] = mapped_column(String(200))
    score: Mapped[float] = mapped_column(Double())
    x: Mapped[float | None] = mapped_column(Double())
    y: Mapped[float | None] = mapped_column(Double())
    """Middle of its box, px of the golden reference; without one, of the posted picture. NULL: not known."""
    reference: Mapped[str] = mapped_column(String(200))
    """Of the recipe's references the one whose px these are; empty: another picture's."""


class ChallengeRow(Base):
    """The challenge boards of one recipe, and whether it is locked."""

    __tablename__ = "challenges"

    recipe: Mapped[str] = mapped_column(String(200), primary_key=True)
    boards: Mapped[str] = mapped_column(Text)
    """JSON: `challenge_schemas.ChallengeBoard` of each."""
    every_hours: Mapped[float | None] = mapped_column(Double())
    changed: Mapped[str] = mapped_column(String(29))
    shown: Mapped[str | None] = mapped_column(String(29))
    """When a challenge board was last found to be what it is."""
    locked: Mapped[str | None] = mapped_column(String(29))
    """Since when; NULL: not locked."""
    why: Mapped[str] = mapped_column(Text)
    """Empty: not locked."""


class ChallengeRunRow(Base):
    """An inspection of a challenge board: it says nothing of the line, and no figure counts it."""

    __tablename__ = "challenge_runs"

    inspection: Mapped[str] = mapped_column(String(32), primary_key=True)
    recipe: Mapped[str] = mapped_column(String(200))
    serial: Mapped[str] = mapped_column(String(200))
    is_found: Mapped[bool]
    """Every expected class was called."""


class ElectricalTestRow(Base):
    """What in-circuit or functional test said of a board that was inspected."""

    __tablename__ = "test_results"
    # The same row sent again changes nothing.
    __table_args__ = (
        UniqueConstraint("inspection", "result", "label", "tested", name="uq_test_results_row"),
        Index("ix_test_results_result_inspection", "result", "inspection"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    inspection: Mapped[str] = mapped_column(String(32))
    """The board's last inspection before the test."""
    serial: Mapped[str] = mapped_column(String(200))
    result: Mapped[str] = mapped_column(String(4))
    """pass or fail."""
    label: Mapped[str] = mapped_column(String(200))
    tested: Mapped[str] = mapped_column(String(29))
    """UTC; empty: not stated."""
    received: Mapped[str] = mapped_column(String(29))
    actor: Mapped[str] = mapped_column(String(100))


class PrunedDayRow(Base):
    """A UTC day of which retention deleted inspections: figures of it would be wrong."""

    __tablename__ = "pruned_days"

    day: Mapped[str] = mapped_column(String(10), primary_key=True)


BESIDE: tuple[type[CallRow] | type[ChallengeRunRow] | type[ElectricalTestRow] | type[ShadowRunRow], ...] = (
    CallRow,
    ChallengeRunRow,
    ElectricalTestRow,
    ShadowRunRow,
)
"""Tables whose rows belong to one inspection each, by their column of that name."""
