"""The main job over HTTP: post a board, get the answer, look it up, look at its pictures."""

from __future__ import annotations

import base64
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
import pytest

from inspect_vit.image_io import read_image
from serving.schemas import RENDERED_NAMES, InspectionPage, InspectionReport


def post(client: httpx.Client, image: bytes, reference: bytes | None = None, **more: Any) -> httpx.Response:
    files = {"image": ("board.png", image)}
    if reference is not None:
        files["reference"] = ("golden.png", reference)
    options = more.pop("options", None)
    data = {**more.pop("data", {}), **({"options": json.dumps(options)} if options is not None else {})}
    return client.post("/v1/inspect", files=files, data=data, **more)


def decoded(png: bytes) -> np.ndarray:
    picture = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED)
    assert picture is not None
    return np.asarray(picture)


@pytest.fixture(scope="module")
def report(server: Any, board_png: bytes, reference_png: bytes) -> dict[str, Any]:
    """One inspection with a reference and every call listed, so that there are defects to look at."""
    assert server.client.put("/v1/recipes/sensor-a", json={}).status_code == 200
    answer = post(
        server.client,
        board_png + b"SN-0042",
        reference_png,
        data={"serial": "SN-0042", "recipe": "sensor-a"},
        options={"min_score": 0.0},
    )
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_an_answer_keeps_the_documented_form(report: dict[str, Any]) -> None:
    checked = InspectionReport.model_validate(report)
    assert (checked.image.width, checked.image.height) == (320, 256)
    assert (checked.serial, checked.recipe) == ("SN-0042", "sensor-a")
    assert checked.recipe_revision == 1
    assert checked.model.name == "tiny"
    assert checked.reference is not None
    assert {"queue", "decode", "inference", "store"} <= set(checked.timings_ms)
    assert checked.defects, "min_score 0 lists every call"
    assert [defect.id for defect in checked.defects] == list(range(1, len(checked.defects) + 1))
    for defect in checked.defects:
        left, top, right, bottom = defect.box_xyxy
        assert 0 <= left < right <= 320
        assert 0 <= top < bottom <= 256
        assert sum(defect.gate_share.values()) == pytest.approx(1.0, abs=1e-3)


def test_the_verdict_ignores_min_score(server: Any, board_png: bytes) -> None:
    listed_all = post(server.client, board_png, options={"min_score": 0.0}).json()
    by_thresholds = post(server.client, board_png).json()
    assert len(listed_all["defects"]) > len(by_thresholds["defects"])
    assert listed_all["verdict"] == by_thresholds["verdict"]


def test_an_inspection_is_read_back_as_it_was_answered(server: Any, report: dict[str, Any]) -> None:
    assert server.client.get(f"/v1/inspections/{report['id']}").json() == report


def test_posted_pictures_come_back_byte_for_byte(
    server: Any, report: dict[str, Any], board_png: bytes, reference_png: bytes
) -> None:
    for name, posted in (("image", board_png + b"SN-0042"), ("reference", reference_png)):
        answer = server.client.get(report["links"][name])
        assert answer.content == posted
        assert answer.headers["content-type"] == "image/png"
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "query",
    [
        "image?format=png",
        "reference?format=png",
        "defect_map",
        "defect_map?style=colour",
        "overlay",
        "gate",
        "attention",
        "attention?level=16",
        "attention?level=32",
    ],
)
def test_every_picture_has_the_size_of_the_board(server: Any, report: dict[str, Any], query: str) -> None:
    answer = server.client.get(f"/v1/inspections/{report['id']}/{query}")
    assert answer.headers["content-type"] == "image/png", answer.text
    picture = decoded(answer.content)
    assert picture.shape[:2] == (256, 320)


def test_attention_levels_are_different_pictures(server: Any, report: dict[str, Any]) -> None:
    link = report["links"]["attention"]
    pictures = {server.client.get(link, params={"level": level}).content for level in ("4", "16", "32")}
    assert len(pictures) == 3


def test_included_pictures_are_those_served_later(
    server: Any, board_png: bytes, reference_png: bytes
) -> None:
    answer = post(server.client, board_png, reference_png, options={"include": RENDERED_NAMES}).json()
    assert set(answer["pictures"]) == set(RENDERED_NAMES)
    base = f"/v1/inspections/{answer['id']}"
    for name, coded in answer["pictures"].items():
        path = f"{base}/attention?level={name[10:]}" if name.startswith("attention_") else f"{base}/{name}"
        assert base64.b64decode(coded) == server.client.get(path).content, name


def test_the_service_answers_what_the_library_finds(
    server: Any, tiny_checkpoint: Path, board_png: bytes, reference_png: bytes
) -> None:
    from inspect_vit.inspector import Inspector

    board, _ = read_image(board_png)
    reference, _ = read_image(reference_png)
    found = Inspector(tiny_checkpoint, device="cpu").inspect(board, reference=reference, min_score=0.0)
    answer = post(server.client, board_png, reference_png, options={"min_score": 0.0}).json()
    assert answer["verdict"] == found.verdict
    assert answer["score"] == pytest.approx(found.score, abs=2e-4)
    assert answer["model"]["version"] == found.model_version
    assert [defect["label"] for defect in answer["defects"]] == [defect.label for defect in found.defects]
    for told, defect in zip(answer["defects"], found.defects, strict=True):
        assert told["score"] == pytest.approx(defect.score, abs=2e-4)
        assert told["box_xyxy"] == pytest.approx(defect.box_xyxy, abs=0.1)
        assert told["gate_share"] == pytest.approx(defect.gate_share, abs=1e-3)
    grey = decoded(server.client.get(answer["links"]["defect_map"]).content)
    assert grey.ndim == 2
    cells = found.defect_map.max(axis=0) * 255
    assert np.abs(grey[2::4, 2::4].astype(np.float32) - cells).max() <= 2, "probability times 255, 4 px cells"


def test_the_same_board_twice_gets_the_same_answer(
    server: Any, board_png: bytes, reference_png: bytes
) -> None:
    first, second = (
        post(server.client, board_png, reference_png, options={"min_score": 0.0}).json() for _ in range(2)
    )
    assert first["id"] != second["id"]
    for field in ("verdict", "reasons", "score", "defects"):
        assert first[field] == second[field]


def test_a_board_without_reference_has_none(server: Any, board_png: bytes) -> None:
    report = post(server.client, board_png).json()
    assert report["reference"] is None
    assert report["links"]["reference"] is None
    assert server.client.get(f"/v1/inspections/{report['id']}/reference").status_code == 404


def test_a_black_frame_is_stored_as_error_with_a_reason(server: Any) -> None:
    black = np.zeros((64, 64, 3), np.uint8)
    report = post(server.client, bytes(cv2.imencode(".png", black)[1])).json()
    assert report["verdict"] == "ERROR"
    assert report["defects"] == []
    assert "black" in report["reasons"][0]
    assert server.client.get(f"/v1/inspections/{report['id']}").json() == report


def test_a_black_reference_is_an_error_that_names_the_reference(server: Any, board_png: bytes) -> None:
    black = bytes(cv2.imencode(".png", np.zeros((256, 320, 3), np.uint8))[1])
    report = post(server.client, board_png, black).json()
    assert report["verdict"] == "ERROR"
    assert report["reasons"][0].startswith("reference: ")


def test_the_same_key_and_request_get_the_stored_answer(server: Any, board_png: bytes) -> None:
    headers = {"Idempotency-Key": "line-3/0001"}
    first = post(server.client, board_png, headers=headers)
    again = post(server.client, board_png, headers=headers)
    assert again.json() == first.json()
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"


def test_a_key_of_another_request_is_a_conflict(server: Any, board_png: bytes, reference_png: bytes) -> None:
    headers = {"Idempotency-Key": "line-3/0002"}
    assert post(server.client, board_png, headers=headers).status_code == 200
    for other in (
        post(server.client, reference_png, headers=headers),
        post(server.client, board_png, reference_png, headers=headers),
        post(server.client, board_png, headers=headers, data={"serial": "other"}),
    ):
        assert other.status_code == 409
        assert other.json()["error"]["code"] == "idempotency_conflict"


def test_one_key_sent_eight_times_at_once_is_one_inspection(server: Any, board_png: bytes) -> None:
    serial = {"serial": "eight-at-once"}

    def work(_: int) -> httpx.Response:
        return post(server.client, board_png, headers={"Idempotency-Key": "line-3/8"}, data=serial)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(work, range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(server.client.get("/v1/inspections", params=serial).json()["inspections"]) == 1


def test_eight_clients_at_once_get_the_answers_to_their_own_boards(
    server: Any, board_png: bytes, reference_png: bytes
) -> None:
    def work(number: int) -> tuple[bytes, dict[str, Any]]:
        # Bytes after the end of a PNG make it another picture file of the same pixels.
        image = (board_png if number % 2 else reference_png) + b"%d" % number
        return image, post(server.client, image, data={"serial": f"client-{number}"}).json()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(work, range(16)))
    for number, (image, report) in enumerate(answers):
        assert report["serial"] == f"client-{number}"
        assert server.client.get(report["links"]["image"]).content == image
    scores = {(number % 2, report["score"]) for number, (_, report) in enumerate(answers)}
    assert len(scores) == 2


def test_pages_walk_through_all_inspections_newest_first(server: Any, board_png: bytes) -> None:
    serial = {"serial": "walk"}
    posted = [post(server.client, board_png, data=serial).json() for _ in range(5)]
    link: str | None = "/v1/inspections?serial=walk&limit=2"
    pages = []
    while link:
        pages.append(InspectionPage.model_validate(server.client.get(link).json()))
        link = pages[-1].next
    assert [len(page.inspections) for page in pages] == [2, 2, 1]
    walked = [inspection.id for page in pages for inspection in page.inspections]
    assert walked == [report["id"] for report in reversed(posted)]


def test_pages_are_filtered_by_verdict(server: Any, report: dict[str, Any]) -> None:
    errors = server.client.get("/v1/inspections", params={"verdict": "ERROR", "limit": 200}).json()
    assert errors["inspections"], "the black frame is one"
    assert {inspection["verdict"] for inspection in errors["inspections"]} == {"ERROR"}
    assert report["id"] not in {inspection["id"] for inspection in errors["inspections"]}


def test_metrics_count_inspections_and_routes(server: Any, board_png: bytes) -> None:
    def value(name: str) -> float:
        found = re.search(rf"^{re.escape(name)} (\S+)$", server.client.get("/metrics").text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    report = post(server.client, board_png).json()
    labels = f'model="{report["model"]["version"]}",recipe="(none)",verdict="{report["verdict"]}"'
    verdict = f"inspect_vit_inspections_total{{{labels}}}"
    route = 'inspect_vit_requests_total{method="GET",route="/v1/inspections/{id}",status="200"}'
    before = value(verdict), value(route)
    post(server.client, board_png)
    server.client.get(f"/v1/inspections/{report['id']}")
    assert (value(verdict), value(route)) == (before[0] + 1, before[1] + 1)
    assert report["id"] not in server.client.get("/metrics").text, "an id in a label is a series per board"


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_health_is_answered(server: Any, path: str) -> None:
    assert server.client.get(path).status_code == 200
