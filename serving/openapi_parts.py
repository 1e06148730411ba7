"""Schemas that several routes share. Their patterns say less than the checks, which know all of Unicode."""

from __future__ import annotations

from typing import Any

_CONTROLS = r"\u0000-\u001f\u007f-\u00a0"
LABEL: dict[str, Any] = {"type": "string", "maxLength": 200, "pattern": f"^[^{_CONTROLS}]*$"}
"""A short printable text, as `uploads.check_label` takes it."""
RECIPE_NAME: dict[str, Any] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "pattern": f"^[^/ {_CONTROLS}]([^/{_CONTROLS}]*[^/ {_CONTROLS}])?$",
}
"""In a path, so without a slash; no space at either end."""
INSPECTION_ID: dict[str, Any] = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
REVISION_TAG: dict[str, Any] = {"type": "string", "pattern": r'^(\*|(W/)?"?[0-9]{1,10}"?)$'}
"""A revision in quotes as an entity tag, or *."""
