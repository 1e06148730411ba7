"""JSON bodies: what is refused before anything is stored."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import Request
from starlette.types import Message

from serving.bodies import read_json
from serving.errors import FieldError
from serving.model_schemas import RetireRequest


def read(body: bytes) -> str:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    headers = [(b"content-type", b"application/json")]
    request = Request({"type": "http", "method": "POST", "headers": headers}, receive)
    return asyncio.run(read_json(request, RetireRequest, max_bytes=1000, example="")).reason


@pytest.mark.parametrize("text", [rb"\u0000", rb"a\u0000b", rb"\\\u0000", rb"\n\u0000"])
def test_no_text_has_the_character_that_postgresql_cannot_keep(text: bytes) -> None:
    with pytest.raises(FieldError, match=r"U\+0000"):
        read(b'{"reason": "%b"}' % text)


@pytest.mark.parametrize(
    ("text", "meant"), [(rb"\\u0000", "\\u0000"), (rb"\\\\u0000", "\\\\u0000"), (rb"\u0001", "\x01")]
)
def test_what_only_looks_like_it_is_taken(text: bytes, meant: str) -> None:
    assert read(b'{"reason": "%b"}' % text) == meant
