"""What is refused: with the right status, in words, in one shape, and without leaving anything behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cv2
import httpx
import numpy as np
import pytest

from serving.schemas import ErrorReport

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><rect width="9" height="9"/></svg>'


def check(answer: httpx.Response, status: int, code: str, *words: str) -> None:
    assert answer.status_code == status, answer.text
    error = ErrorReport.model_validate_json(answer.text).error
    assert error.code == code
    for word in words:
        assert word in error.message


@pytest.fixture(autouse=True)
def nothing_is_left_behind(server: Any) -> Iterator[None]:
    before = server.posted_files(), server.client.get("/v1/inspections?limit=1").text
    yield
    assert (server.posted_files(), server.client.get("/v1/inspections?limit=1").text) == before
    assert server.process.poll() is None


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"", 400, "image_undecodable"),
        (b"hello, this is not a board", 415, "image_unsupported"),
        (SVG, 415, "image_unsupported"),
        (b"%PDF-1.7 ...", 415, "image_unsupported"),
        (bytes(range(256)) * 8, 415, "image_unsupported"),
    ],
    ids=["empty", "text", "svg", "pdf", "noise"],
)
@pytest.mark.parametrize("field", ["image", "reference"])
def test_what_is_no_picture(
    server: Any, board_png: bytes, data: bytes, status: int, code: str, field: str
) -> None:
    files = {"image": ("a.png", board_png), field: ("b.png", data)}
    check(server.client.post("/v1/inspect", files=files), status, code, f"{field}: ")


@pytest.mark.parametrize("suffix", [".jpg", ".png"])
def test_a_truncated_picture(server: Any, board_png: bytes, suffix: str) -> None:
    whole = bytes(cv2.imencode(suffix, cv2.imdecode(np.frombuffer(board_png, np.uint8), 1))[1])
    answer = server.client.post("/v1/inspect", files={"image": ("a", whole[: len(whole) // 2])})
    check(answer, 400, "image_undecodable", "image: ")


def test_a_picture_of_too_many_pixels_in_few_bytes(server: Any) -> None:
    bomb = bytes(cv2.imencode(".png", np.zeros((1001, 1000), np.uint8))[1])
    answer = server.client.post("/v1/inspect", files={"image": ("a.png", bomb)})
    check(answer, 413, "image_too_large", "1000 x 1001")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("{not json", "options"),
        ("[]", "options"),
        ('{"min_scroe": 0.3}', "min_scroe"),
        ('{"min_score": 2}', "min_score"),
        ('{"min_score": NaN}', "options"),
        ('{"include": ["x-ray"]}', "include"),
        ("[" * 5000, "options"),
    ],
)
def test_options_that_do_not_fit(server: Any, board_png: bytes, options: str, word: str) -> None:
    answer = server.client.post("/v1/inspect", files={"image": board_png}, data={"options": options})
    check(answer, 422, "bad_field", word)


def test_fields_that_do_not_fit(server: Any, board_png: bytes) -> None:
    def post(files: Any, data: Any = None, **more: Any) -> httpx.Response:
        return server.client.post("/v1/inspect", files=files, data=data, **more)

    image = ("a.png", board_png)
    check(post({"picture": image}), 422, "bad_field", "picture")
    check(post({"reference": image}), 422, "bad_field", "image: missing")
    check(post({"image": image, "threshold": (None, "0.5")}), 422, "bad_field", "threshold")
    check(post({"image": (None, "/etc/passwd")}), 422, "bad_field", "image: ")
    check(
        post({"image": image, "reference": (None, "http://127.0.0.1/x.png")}), 422, "bad_field", "reference: "
    )
    check(post([("image", image), ("image", image)]), 422, "bad_field", "2 times")
    check(post({"image": image, "serial": ("s.txt", b"A1")}), 422, "bad_field", "serial: ")
    check(post({"image": image}, {"serial": "x" * 201}), 422, "bad_field", "serial: 201")
    check(post({"image": image}, {"recipe": "a\x00b"}), 422, "bad_field", "recipe: ")
    for key in ("", "k" * 256):
        check(post({"image": image}, headers={"Idempotency-Key": key}), 422, "bad_field", "Idempotency-Key")


def test_a_text_part_that_is_far_too_long(server: Any, board_png: bytes) -> None:
    answer = server.client.post("/v1/inspect", files={"image": board_png}, data={"serial": "x" * 100_000})
    check(answer, 400, "bad_multipart", "maximum size")


def test_a_thousand_fields(server: Any, board_png: bytes) -> None:
    fields = {f"field{number}": "x" for number in range(1000)}
    answer = server.client.post("/v1/inspect", files={"image": board_png}, data=fields)
    check(answer, 400, "bad_multipart", "Too many fields")


def test_bodies_that_are_no_multipart(server: Any) -> None:
    def post(content_type: str, body: bytes) -> httpx.Response:
        return server.client.post("/v1/inspect", content=body, headers={"content-type": content_type})

    check(server.client.post("/v1/inspect"), 415, "not_multipart", "(none)")
    check(post("application/json", b'{"image": "x"}'), 415, "not_multipart", "application/json")
    check(post("image/png", b"\x89PNG"), 415, "not_multipart", "image/png")
    check(post("multipart/form-data", b"--x\r\n\r\n--x--"), 400, "bad_multipart", "boundary")
    check(post("multipart/form-data; boundary=x", b"garbage"), 400, "bad_multipart")
    check(post("multipart/form-data; boundary=x", b"--x\r\nno header\r\n\r\n--x--"), 400, "bad_multipart")


def test_a_body_over_the_limit_by_its_length(server: Any) -> None:
    answer = server.client.post("/v1/inspect", files={"image": bytes(3_000_000)})
    check(answer, 413, "body_too_large", "2 MB")


def test_a_body_over_the_limit_without_a_length(server: Any) -> None:
    def chunks() -> Iterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\n'
        for _ in range(30):
            yield bytes(100_000)
        yield b"\r\n--x--\r\n"

    headers = {"content-type": "multipart/form-data; boundary=x"}
    check(server.client.post("/v1/inspect", content=chunks(), headers=headers), 413, "body_too_large", "2 MB")


def test_unknown_paths_inspections_and_methods(server: Any) -> None:
    client = server.client
    check(client.get("/v1/inspections/0123"), 404, "not_found", "0123")
    check(client.get("/v1/inspections/..%2f..%2fetc%2fpasswd"), 404, "not_found")
    check(client.get("/v1/inspections/" + "9" * 32 + "/overlay"), 404, "not_found")
    check(client.get("/v2/inspect"), 404, "not_found", "/v2/inspect")
    check(client.get("/station/..%2fservice.py"), 404, "not_found")
    check(client.get("/station/station.py"), 404, "not_found")
    check(client.get("/station/samples/..%2fpyproject.toml"), 404, "not_found")
    check(client.delete("/v1/inspect"), 405, "http_error", "POST")
    assert client.delete("/v1/inspect").headers["allow"] == "POST"


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=201", "limit=x", "verdict=pass", "verdict=", "serial=%00", "page=2", "before=foo"],
)
def test_query_parameters_that_do_not_fit(server: Any, query: str) -> None:
    check(server.client.get(f"/v1/inspections?{query}"), 422, "bad_field", query.split("=")[0])
