"""Tables of model versions: which there are, which inspects what since when, and what a candidate would say.

None refers to `inspections` by a foreign key: SQLite would empty these tables whenever a migration rebuilds
that one.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Double, Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from serving.database import Base


class ModelRow(Base):
    """One version; its files lie in HOME/models/VERSION. Only `is_retired` ever changes."""

    __tablename__ = "models"

    version: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    parent: Mapped[str | None] = mapped_column(String(64))
    """Version it was made from, whether or not that one is in the store."""
    added: Mapped[str] = mapped_column(String(29))
    actor: Mapped[str] = mapped_column(String(100))
    sha256: Mapped[str] = mapped_column(String(64))
    """Of model.safetensors."""
    facts: Mapped[str] = mapped_column(Text)
    """JSON: `registry.Facts`, what the checkpoint says of itself."""
    report: Mapped[str | None] = mapped_column(Text)
    """JSON: the table of before and after that came with it."""
    is_retired: Mapped[bool]


class ModelStageRow(Base):
    """One deed; rows are added, never changed, and of a recipe and kind the newest counts.

    Which version inspects the boards of a pinned recipe is in the recipe's revision: its rows here say how
    that came about.
    """

    __tablename__ = "model_stages"
    __table_args__ = (
        Index("ix_model_stages_kind_recipe_id", "kind", "recipe", "id"),
        Index("ix_model_stages_version_id", "version", "id"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    recipe: Mapped[str] = mapped_column(String(200))
    """Empty: boards without a recipe, or whose recipe pins no version."""
    version: Mapped[str] = mapped_column(String(64))
    """The one that is in that stage from now on; empty: a recipe that pins none any more."""
    kind: Mapped[str] = mapped_column(String(10))
    """production, shadow or retired."""
    deed: Mapped[str] = mapped_column(String(11))
    """started, promoted, rolled back, shadow or retired."""
    replaced: Mapped[str | None] = mapped_column(String(64))
    """The version that was in production there until then."""
    share: Mapped[float | None] = mapped_column(Double())
    """Of a shadow: of the boards, 0 to 1; 0 ends it."""
    at: Mapped[str] = mapped_column(String(29))
    actor: Mapped[str] = mapped_column(String(100))
    reason: Mapped[str] = mapped_column(Text)
    gate: Mapped[str | None] = mapped_column(Text)
    """JSON: what `inspect-vit evaluate --against` found."""
    is_override: Mapped[bool]
    """Promoted although the gate did not pass."""


class ShadowRunRow(Base):
    """What a candidate said of a board that another version inspected."""

    __tablename__ = "shadow_runs"
    __table_args__ = (Index("ix_shadow_runs_version_inspection", "version", "inspection"),)

    inspection: Mapped[str] = mapped_column(String(32), primary_key=True)
    version: Mapped[str] = mapped_column(String(64), primary_key=True)
    verdict: Mapped[str] = mapped_column(String(5))
    """Empty: skipped, because boards of the line were waiting."""
    calls: Mapped[str] = mapped_column(Text)
    """JSON: `shadow_schemas.ShadowCalls` of both."""
    disagreement: Mapped[bool]
