"""GET /v1/inspections/{id}/evidence, and what an opened overlay says of itself."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest

from inspect_vit.legends import WARNING

TABLE = ["attention_4", "attention_16", "attention_32", "gate", "rollout", "relevance", "defect_map"]


def post(server: Any, board: bytes, reference: bytes | None) -> dict[str, Any]:
    files = {"image": ("a.png", board)} | ({"reference": ("b.png", reference)} if reference else {})
    answer = server.client.post("/v1/inspect", files=files, data={"options": '{"min_score": 0.0}'})
    report: dict[str, Any] = answer.json()
    assert len(report["defects"]) > 1
    return report


def test_every_map_of_the_table_is_tested_on_the_defect_that_is_named(
    server: Any, board_png: bytes, reference_png: bytes
) -> None:
    report = post(server, board_png, reference_png)
    told = server.client.get(report["links"]["evidence"], params={"defect": 2}).json()
    assert [each["map"] for each in told["maps"]] == TABLE
    assert (told["defect"], told["label"]) == (2, report["defects"][1]["label"])
    assert told["area_px"] == 51 * 16, "1 % of the board's 64 x 80 cells"
    for each in told["maps"]:
        assert each["score"] == pytest.approx(report["defects"][1]["score"], abs=2e-4), each["map"]
        assert each["drop"] == pytest.approx(each["score"] - each["score_without"], abs=1.01e-4)
        assert each["random_drop"] == pytest.approx(each["score"] - each["score_without_random"], abs=1.01e-4)
        assert each["reliable"] is (each["faithfulness"] >= 0.5)
        assert each["words"].startswith("reliable" if each["reliable"] else "not reliable")
        assert server.client.get(each["link"]).status_code == 200
    without = server.client.get(post(server, board_png, None)["links"]["evidence"], params={"map": "gate"})
    assert without.json()["with_reference"] is False
    assert without.json()["maps"][0]["words"].endswith("without a reference this is a weaker test")


def test_an_opened_overlay_says_whether_it_can_be_believed(
    server: Any, board_png: bytes, reference_png: bytes
) -> None:
    """In its headers, in the numbers' headers, in the JSON and, where it cannot, on the picture itself."""
    report = post(server, board_png, reference_png)
    params = {"method": "relevance", "level": "16", "defect": 1}
    drawn = server.client.get(report["links"]["attention"], params=params)
    numbers = server.client.get(report["links"]["attention"], params={**params, "format": "npz"})
    told = server.client.get(report["links"]["evidence"], params={"map": "relevance_16", "defect": 1}).json()
    (each,) = told["maps"]
    for answer in (drawn, numbers):
        assert answer.headers["evidence-words"] == each["words"]
        assert float(answer.headers["evidence-drop"]) == pytest.approx(each["drop"], abs=1e-9)
        assert float(answer.headers["evidence-random-drop"]) == pytest.approx(each["random_drop"], abs=1e-9)
        assert answer.headers["evidence-reliable"] == ("yes" if each["reliable"] else "no")
    assert not each["reliable"], "random weights depend on no place"
    enlarged = server.client.get(report["links"]["attention"], params={**params, "scale": 2}).content
    picture = cv2.imdecode(np.frombuffer(enlarged, np.uint8), cv2.IMREAD_COLOR)
    assert (np.abs(picture[..., ::-1].astype(int) - WARNING).max(2) < 30).sum() > 50


def test_what_cannot_be_tested_says_why(server: Any, board_png: bytes, reference_png: bytes) -> None:
    files = {"image": ("a.png", board_png), "reference": ("b.png", board_png)}
    clean = server.client.post("/v1/inspect", files=files).json()
    assert clean["defects"] == []
    told = server.client.get(clean["links"]["evidence"]).json()
    assert (told["defect"], told["maps"]) == (None, [])
    assert told["words"] == "not tested: the inspection lists no defect whose score could fall"
    opened = server.client.get(clean["links"]["attention"])
    assert (opened.headers["evidence-reliable"], opened.headers["evidence-words"]) == (
        "untested",
        told["words"],
    )
    answer = server.client.get(clean["links"]["attention"], params={"method": "relevance"})
    assert answer.status_code == 422
    assert answer.json()["error"]["message"] == "defect: 1, and this inspection lists no defects"

    report = post(server, board_png, reference_png)
    point = server.client.get(report["links"]["attention"], params={"x": 5, "y": 5})
    assert point.headers["evidence-words"] == "not tested: a point is no call whose score could fall"
    for query, words in (
        ("defect=99999", "defect: 99999, wanted 1 to"),
        ("defect=x", "defect: 'x', wanted the id of a defect"),
        ("map=gates", "map: 'gates', wanted one of attention_4"),
        ("level=4", "'level' is not a query parameter"),
    ):
        answer = server.client.get(f"{report['links']['evidence']}?{query}")
        assert answer.status_code == 422
        assert answer.json()["error"]["message"].startswith(words)
