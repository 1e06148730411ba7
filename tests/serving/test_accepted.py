"""Odd requests that are fine, because a factory's clients send them."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest


@pytest.mark.parametrize(
    "name", ["b" * 300 + ".png", "../../etc/passwd", "Platine Nr. 7 \u00e4\u00f6\u00fc.png"]
)
def test_any_file_name_is_taken_and_never_used(server: Any, board_png: bytes, name: str) -> None:
    answer = server.client.post("/v1/inspect", files={"image": (name, board_png, "application/octet-stream")})
    assert answer.status_code == 200, answer.text
    files = server.posted_files()
    assert name not in files
    assert all(len(found) in (36, 64) for found in files), "names are hashes and ids"


@pytest.mark.parametrize(
    ("suffix", "media_type"),
    [(".jpg", "image/jpeg"), (".bmp", "image/bmp"), (".tiff", "image/tiff"), (".webp", "image/webp")],
)
def test_every_format_is_inspected_and_returned_as_posted(
    server: Any, board_png: bytes, suffix: str, media_type: str
) -> None:
    data = bytes(cv2.imencode(suffix, cv2.imdecode(np.frombuffer(board_png, np.uint8), 1))[1])
    report = server.client.post("/v1/inspect", files={"image": ("a" + suffix, data)}).json()
    answer = server.client.get(report["links"]["image"])
    assert answer.content == data
    assert answer.headers["content-type"] == media_type
    shown = server.client.get(report["links"]["image"], params={"format": "png"})
    picture = cv2.imdecode(np.frombuffer(shown.content, np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    assert picture.shape == (256, 320, 3)


def test_empty_text_fields_count_as_absent(server: Any, board_png: bytes) -> None:
    data = {"serial": " ", "recipe": "", "options": ""}
    report = server.client.post("/v1/inspect", files={"image": board_png}, data=data).json()
    assert report["serial"] is None
    assert report["recipe"] is None


def test_a_board_posted_twice_is_kept_once(server: Any, board_png: bytes) -> None:
    assert server.client.post("/v1/inspect", files={"image": board_png}).status_code == 200
    before = server.posted_files()
    assert server.client.post("/v1/inspect", files={"image": board_png}).status_code == 200
    assert len(server.posted_files() - before) == 1, "only the maps of the second inspection"
