"""Run by Alembic: migrate over the connection that `serving.store` opened."""

from alembic import context

import serving.review_tables  # noqa: F401, its tables join Base
from serving.database import Base

context.configure(
    connection=context.config.attributes["connection"], target_metadata=Base.metadata, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()
