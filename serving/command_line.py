"""What a command on the database starts from. A running server may use the database at the same time."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

from sqlalchemy import Engine

from inspect_vit.errors import ConfigError
from serving.config import from_environment
from serving.errors import ServingError
from serving.roles import Actor, Role
from serving.store import Store


@contextmanager
def in_plain_words() -> Iterator[None]:
    """What the service would answer to a request is a caller's mistake here: ConfigError, with the hint."""
    try:
        yield
    except ServingError as error:
        raise ConfigError(f"{error}; {error.hint}" if error.hint else str(error)) from error


@contextmanager
def open_database() -> Iterator[Engine]:
    """The database that the INSPECT_VIT_* variables name. Raises StoreError, ConfigError."""
    with closing(Store(from_environment(os.environ))) as store:
        yield store.engine


def person() -> Actor:
    """Whoever may write the database may do everything; the trail says which user of the machine it was."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return Actor(name=f"(command line: {user})"[:100], role=Role.ADMIN)
