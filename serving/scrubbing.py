"""Texts for clients: where things lie on the server, and the database's password, are nobody's business."""

from __future__ import annotations

import re

from serving.config import ServingConfig

_FOLDERS = re.compile(r"(?<![\w./:$-])/(?!v1/|station/)(?:[^\s/'\":,]+/)+")
"""Folders from the root on, with the slash at their end; our own routes are none."""


def scrubbed(text: str, config: ServingConfig) -> str:
    """A text without the server's folders and without the database's password."""
    if config.database_url:
        text = text.replace(config.database_url, "$INSPECT_VIT_DATABASE_URL")
    for path in (config.checkpoint, config.calibration):
        if path is not None:
            text = text.replace(str(path), path.name)
    if config.acceptance is not None:
        text = text.replace(str(config.acceptance), "$INSPECT_VIT_ACCEPTANCE")
    text = text.replace(str(config.home_dir), "$INSPECT_VIT_HOME")
    return _FOLDERS.sub(".../", text)
