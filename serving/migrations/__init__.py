"""Alembic migrations of the store; `store.py` runs them at every start."""
