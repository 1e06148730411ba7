"""Tables of reviews and of the queue that leads to them.

None refers to `inspections` by a foreign key: SQLite would empty these tables whenever a migration rebuilds
that one. Retention deletes from all of them in one transaction.
"""

from __future__ import annotations

from sqlalchemy import Index, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from serving.database import Base


class ReviewRow(Base):
    """One revision of what people said of an inspection; rows are added, never changed."""

    __tablename__ = "reviews"
    __table_args__ = (Index("ix_reviews_actor_at", "actor", "at"), Index("ix_reviews_at", "at"))

    inspection: Mapped[str] = mapped_column(String(32), primary_key=True)
    revision: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(12))
    """verification or disposition: which part of the document this revision is."""
    actor: Mapped[str] = mapped_column(String(100))
    """Name of the key; empty: without keys."""
    at: Mapped[str] = mapped_column(String(29))
    document: Mapped[str] = mapped_column(Text)
    """JSON: `review_schemas.Document`, whole, as it stands from this revision on."""
    num_false: Mapped[int]
    """Calls that were no false calls before this revision and are since."""


class QueueRow(Base):
    """What the queue needs of an inspection, and where its review stands. One for each inspection."""

    __tablename__ = "queue"
    __table_args__ = (
        Index("ix_queue_due_state_inspection", "due", "state", "inspection"),
        Index("ix_queue_due_state_score", "due", "state", "score", "inspection"),
        Index("ix_queue_due_state_uncertainty", "due", "state", "uncertainty", "inspection"),
    )

    inspection: Mapped[str] = mapped_column(String(32), primary_key=True)
    created: Mapped[str] = mapped_column(String(32))
    """The machine's clock, UTC, as in the report."""
    verdict: Mapped[str] = mapped_column(String(5))
    score: Mapped[float]
    uncertainty: Mapped[float]
    num_defects: Mapped[int]
    labels: Mapped[str] = mapped_column(Text)
    """JSON: classes of the listed calls, the highest score first, each once."""
    audit: Mapped[bool]
    """A PASS that was drawn to be looked at all the same."""
    due: Mapped[bool]
    """Whether a person has to look: FAIL, ERROR, or drawn."""
    revision: Mapped[int]
    """Of the newest review; 0: nobody yet."""
    state: Mapped[str] = mapped_column(String(4))
    """open or done."""
    disposition: Mapped[str | None] = mapped_column(String(12))
    final: Mapped[str | None] = mapped_column(String(4))
    hasty: Mapped[bool]
    """The newest verification came with more false calls than a person can have looked at."""


class QueueLabelRow(Base):
    """A class among the listed calls of an inspection."""

    __tablename__ = "queue_labels"
    __table_args__ = (Index("ix_queue_labels_label_inspection", "label", "inspection"),)

    inspection: Mapped[str] = mapped_column(String(32), primary_key=True)
    label: Mapped[str] = mapped_column(String(200), primary_key=True)
