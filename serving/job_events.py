"""What changes about jobs, for those who listen to events."""

from __future__ import annotations

from sqlalchemy import Engine

from serving.config import ServingConfig
from serving.events import Event
from serving.jobs import list_jobs

NUM_WATCHED = 25
"""The newest jobs; more than can wait, with the one that runs."""


class JobChanges:
    """Finds jobs that changed since it was made, or since the last look: added, further on, ended."""

    def __init__(self, engine: Engine, config: ServingConfig) -> None:
        self._engine, self._config = engine, config
        self._told = self._read()

    def look(self) -> list[Event]:
        """Each changed job as GET /v1/jobs lists it, oldest first."""
        before, self._told = self._told, self._read()
        return [Event("job", data) for job, data in self._told.items() if before.get(job) != data]

    def _read(self) -> dict[str, str]:
        found = list_jobs(self._engine, self._config, limit=NUM_WATCHED)
        return {job.id: job.model_dump_json() for job in reversed(found)}
