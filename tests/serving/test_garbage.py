"""Twenty-eight kinds of garbage: each is refused with a 4xx, soon, and leaves nothing behind."""

from __future__ import annotations

import io
import socket
import struct
import zlib
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import cv2
import numpy as np
import pytest
from PIL import Image

BOUNDARY = "----garbage"
PNG_HEAD = b"\x89PNG\r\n\x1a\n"
SOON_S = 30.0


def picture(suffix: str = ".png") -> bytes:
    pixels = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    return bytes(cv2.imencode(suffix, pixels)[1])


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, data: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return PNG_HEAD + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def gif() -> bytes:
    buffer = io.BytesIO()
    Image.new("P", (8, 8)).save(buffer, "GIF")
    return buffer.getvalue()


def part(data: bytes, name: str = "image", more: str = '; filename="a"') -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'
    return head.encode() + data + b"\r\n"


END = f"--{BOUNDARY}--\r\n".encode()

PICTURES: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "one byte": lambda: b"\x00",
    "zeros": lambda: bytes(10_000),
    "text": lambda: b"PASS " * 500,
    "html": lambda: b"<!doctype html><img src=x onerror=alert(1)>",
    "svg that reads a file": lambda: (
        b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///x"/></svg>'
    ),
    "pdf": lambda: b"%PDF-1.7\n" + bytes(500),
    "zip": lambda: b"PK\x03\x04" + bytes(500),
    "script": lambda: b"#!/bin/sh\nrm -rf /\n",
    "gif": gif,
    "pickle": lambda: b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix.",
    "png signature alone": lambda: PNG_HEAD,
    "png cut in its header": lambda: picture()[:20],
    "png cut in its pixels": lambda: picture()[:-2000],
    "png with too few pixels": lambda: png(64, 64, bytes(100)),
    "png of no size": lambda: png(0, 0, b""),
    "png that claims 4 gigapixels": lambda: png(65_535, 65_535, bytes(100)),
    "png that unpacks to 300 MB": lambda: png(10_000, 10_000, bytes(1_000_000)),
    "png with a broken checksum": lambda: picture()[:40] + b"\xff\xff\xff" + picture()[43:],
    "jpeg cut in half": lambda: picture(".jpg")[:1500],
    "jpeg markers alone": lambda: b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(9) + b"\xff\xd9",
    "tiff whose directory is nowhere": lambda: b"II*\x00\xff\xff\xff\x7f",
    "tiff whose directory is itself": lambda: b"II*\x00\x08\x00\x00\x00\x00\x00\x08\x00\x00\x00",
    "bmp header alone": lambda: picture(".bmp")[:54],
    "webp of another length": lambda: b"RIFF\xff\xff\xff\x7fWEBPVP8 " + bytes(40),
}
BODIES: dict[str, bytes] = {
    "a body that never ends its part": part(b"x")[:-2],
    "headers of a part that go on and on": f"--{BOUNDARY}\r\n".encode() + b"X-A: " + b"a" * 70_000,
    "a field of another alphabet": part(picture(), name="\u56fe\u50cf") + END,
}


def send(server: Any, body: bytes) -> tuple[int, bytes]:
    """Status and body of the answer to a multipart body, sent as it is."""
    address = urlsplit(str(server.client.base_url))
    head = (
        f"POST /v1/inspect HTTP/1.1\r\nhost: {address.netloc}\r\nconnection: close\r\n"
        f"content-type: multipart/form-data; boundary={BOUNDARY}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((address.hostname, address.port), timeout=SOON_S) as connection:
        connection.sendall(head.encode() + body)
        answer = b""
        while data := connection.recv(65_536):
            answer += data
    return int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[2]


def test_there_are_28_kinds() -> None:
    assert len(PICTURES) + len(BODIES) == 28


@pytest.mark.parametrize("kind", [*PICTURES, *BODIES])
def test_garbage_is_refused(server: Any, kind: str) -> None:
    before, worker = server.posted_files(), server.worker()
    body = BODIES[kind] if kind in BODIES else part(PICTURES[kind]()) + END
    status, answer = send(server, body)
    assert status in (400, 413, 415, 422), answer
    assert b'"error"' in answer
    assert server.posted_files() == before
    assert server.worker() == worker
