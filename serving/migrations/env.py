"""Run by Alembic: migrate over the connection that `serving.store` opened."""

from alembic import context

import serving.job_tables
import serving.line_tables
import serving.model_tables
import serving.review_tables  # noqa: F401, the tables are declared by importing them
from serving.database import Base

context.configure(
    connection=context.config.attributes["connection"], target_metadata=Base.metadata, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()
