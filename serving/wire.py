"""What every route does with its query and its answer."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from serving.errors import FieldError
from serving.schemas import Wire

LARGEST_PAGE = 200
MAGIC = {
    b"\xff\xd8": "image/jpeg",
    b"\x89PNG": "image/png",
    b"BM": "image/bmp",
    b"II": "image/tiff",
    b"MM": "image/tiff",
    b"RIFF": "image/webp",
}
# Pictures are posted by anyone: a browser must neither guess another type nor run anything found inside.
PICTURE_HEADERS = {
    "cache-control": "private, max-age=3600",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    # Kept pictures are not for whoever logs in next.
    "vary": "cookie, authorization, x-api-key",
}


def read_query(request: Request, allowed: set[str]) -> dict[str, str]:
    """The query parameters. Raises FieldError for one that the route does not take."""
    query = dict(request.query_params)
    for name in query:
        if name not in allowed:
            hint = f"it takes {', '.join(sorted(allowed))}" if allowed else "it takes none"
            raise FieldError(f"{name[:80]!r} is not a query parameter of {request.url.path}", hint=hint)
    return query


def read_choice(query: dict[str, str], name: str, choices: list[str], default: str) -> str:
    value = query.get(name, default)
    if name in query and value not in choices:
        raise FieldError(f"{name}: {value[:40]!r}, wanted one of {', '.join(choices)}")
    return value


def read_limit(query: dict[str, str], default: int) -> int:
    """The page size asked for. Raises FieldError."""
    return read_number("limit", query.get("limit", str(default)), most=LARGEST_PAGE)


def read_number(name: str, text: str, *, most: int) -> int:
    """A whole number from 1. Raises FieldError; a number of thousands of digits is not even converted."""
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(most)) or not 1 <= int(text) <= most:
        raise FieldError(f"{name}: {text[:20]!r}, wanted a whole number from 1 to {most}")
    return int(text)


def picture_response(data: bytes) -> Response:
    """A picture as it was sent. It came from anyone: a browser must not run anything found inside."""
    media_type = next(
        (found for magic, found in MAGIC.items() if data.startswith(magic)), "application/octet-stream"
    )
    return Response(data, media_type=media_type, headers=PICTURE_HEADERS)


def wire_response(body: Wire, headers: dict[str, str] | None = None) -> Response:
    return Response(
        body.model_dump_json(),
        media_type="application/json",
        headers={"cache-control": "no-store", **(headers or {})},
    )
