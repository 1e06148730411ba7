"""The table of jobs: what is learnt or promoted beside the service, one at a time."""

from __future__ import annotations

from sqlalchemy import Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from serving.database import Base


class JobRow(Base):
    """One job. Its files are in INSPECT_VIT_HOME/jobs/ID."""

    __tablename__ = "jobs"
    __table_args__ = (Index("ix_jobs_state_id", "state", "id"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    """Made as those of inspections are: they sort by time."""
    kind: Mapped[str] = mapped_column(String(10))
    """retrain or promote."""
    state: Mapped[str] = mapped_column(String(10))
    created: Mapped[str] = mapped_column(String(29))
    started: Mapped[str | None] = mapped_column(String(29))
    ended: Mapped[str | None] = mapped_column(String(29))
    actor: Mapped[str] = mapped_column(String(100))
    """Name of the key; empty: without keys."""
    role: Mapped[str] = mapped_column(String(8))
    request: Mapped[str] = mapped_column(Text)
    """JSON: `job_schemas.RetrainRequest` or `job_schemas.Promotion`, names and versions resolved."""
    dataset: Mapped[str | None] = mapped_column(String(16))
    """Fingerprint of the data set it works on, once that is there."""
    reason: Mapped[str] = mapped_column(Text)
    result: Mapped[str | None] = mapped_column(Text)
    """JSON: `job_schemas.JobResult`."""
    cancel_asked: Mapped[bool]
