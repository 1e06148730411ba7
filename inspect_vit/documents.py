"""JSON documents that commands write and others read: checked against a schema, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from inspect_vit.config import validate
from inspect_vit.errors import ConfigError
from inspect_vit.files import write_atomically

DocumentT = TypeVar("DocumentT", bound=BaseModel)


def save_document(path: Path, document: BaseModel) -> None:
    """Write a document; its folder is made if missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, (document.model_dump_json(indent=2) + "\n").encode())


def load_document(path: str | Path, schema: type[DocumentT], *, what: str, maker: str) -> DocumentT:
    """Read what `save_document` wrote.

    Args:
        what: of what kind it is, for errors.
        maker: the command that makes such a document.

    Raises:
        ConfigError: not there, or not such a document.
    """
    try:
        tree = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the {what} {path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is no {what} ({error}); {maker} makes one") from error
    return validate(tree, schema, source=f"{what} {path}")
