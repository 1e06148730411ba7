"""JSON bodies of requests, read whole within a limit and held to their model."""

from __future__ import annotations

import re
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from serving.errors import FieldError

Body = TypeVar("Body", bound=BaseModel)
MAX_PLACE_CHARS = 200
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


async def read_json(request: Request, model: type[Body], *, max_bytes: int, example: str) -> Body:
    """The body as `model`; an empty one is {}.

    Args:
        example: what to send, for the hint of an error.

    Raises:
        FieldError: naming the first field that does not fit.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise FieldError(f"body: more than {max_bytes} bytes", hint=example)
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and content_type != "application/json":
        raise FieldError("content-type: wanted application/json", hint=example)
    if _NUL.search(body):
        # PostgreSQL keeps no text with it.
        raise FieldError("body: a text holds the character U+0000", hint=example)
    try:
        return model.model_validate_json(body or b"{}")
    except ValidationError as error:
        raise FieldError(faults(error, nowhere="body")[0], hint=example) from error


def faults(error: ValidationError, *, nowhere: str = "") -> list[str]:
    """What does not fit, each as "place: words".

    Args:
        nowhere: the place of what concerns the whole.
    """
    found = []
    for fault in error.errors(include_url=False, include_input=False):
        where = ".".join(str(part) for part in fault["loc"])[:MAX_PLACE_CHARS] or nowhere
        # Of the validators here, whose words say it all.
        words = fault["msg"].removeprefix("Value error, ")
        found.append(": ".join(filter(None, (where, words))))
    return found
