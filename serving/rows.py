"""Rows of a database as lines of JSON that mean the same in SQLite and PostgreSQL."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

TIME, BYTES = "$time", "$bytes"


def row_to_line(row: Mapping[str, Any]) -> bytes:
    """One row; times and bytes are marked, all else is JSON's own. Raises TypeError for anything more."""
    return json.dumps(dict(row), default=_mark, allow_nan=False).encode() + b"\n"


def line_to_row(line: bytes) -> dict[str, Any]:
    """Undo `row_to_line`. Raises ValueError when it is not such a line."""
    row = json.loads(line, object_hook=_unmark)
    if not isinstance(row, dict):
        raise ValueError(f"wanted a row, found {line[:40]!r}")
    return row


def _mark(value: Any) -> dict[str, str]:
    if isinstance(value, datetime):
        return {TIME: value.isoformat()}
    if isinstance(value, bytes | memoryview):
        return {BYTES: base64.b64encode(value).decode()}
    raise TypeError(f"a column of {type(value).__name__} cannot be backed up")


def _unmark(found: dict[str, Any]) -> Any:
    if found.keys() == {TIME}:
        return datetime.fromisoformat(found[TIME])
    if found.keys() == {BYTES}:
        return base64.b64decode(found[BYTES])
    return found
