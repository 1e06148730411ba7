"""GET /v1/inspections/{id}/attention: what is asked changes the answer, and what cannot be asked is named."""

from __future__ import annotations

import io
from typing import Any

import cv2
import httpx
import numpy as np
import pytest

from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from serving.attention import read_ask
from serving.errors import FieldError


@pytest.fixture(scope="module")
def link(server: Any, board_png: bytes, reference_png: bytes) -> str:
    """The attention of an inspection with a reference, all calls listed."""
    files = {"image": ("a.png", board_png), "reference": ("b.png", reference_png)}
    answer = server.client.post("/v1/inspect", files=files, data={"options": '{"min_score": 0.0}'})
    assert len(answer.json()["defects"]) > 1
    return str(answer.json()["links"]["attention"])


def numbers(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/octet-stream"
    with np.load(io.BytesIO(answer.content), allow_pickle=False) as arrays:
        return dict(arrays)


def test_the_numbers_are_those_of_the_library(
    server: Any, link: str, tiny_checkpoint: Any, board_png: bytes, reference_png: bytes
) -> None:
    pictures = [read_image(data)[0] for data in (board_png, reference_png)]
    wanted = Inspector(tiny_checkpoint).attention(pictures[0], reference=pictures[1])
    for level in ("4", "16", "32"):
        got = numbers(server.client.get(link, params={"level": level, "format": "npz"}))
        assert got["cell_px"] == 4
        np.testing.assert_allclose(got["attention"], wanted[level], rtol=1e-3, atol=1e-5)


def test_a_point_a_defect_and_the_board_are_three_answers(server: Any, link: str) -> None:
    def ask(**params: Any) -> dict[str, Any]:
        return numbers(server.client.get(link, params={"level": 4, "format": "npz", **params}))

    board, point, defect, other = ask(), ask(x=100.5, y=37), ask(defect=1), ask(defect=2)
    assert "query" not in board
    assert np.argwhere(point["query"]).tolist() == [[9, 25]]
    # A window of the fine level is 8 x 8 tokens of 4 px: rows 8 to 15, columns 24 to 31; the row sums to 64.
    inside = point["attention"][8:16, 24:32]
    assert inside.sum() == pytest.approx(64, rel=1e-4)
    assert point["attention"].sum() == pytest.approx(float(inside.sum()))
    assert defect["query"].sum() > 0
    assert not np.array_equal(defect["attention"], other["attention"])
    again = ask(defect=1)
    assert np.array_equal(again["attention"], defect["attention"])


def test_heads_are_apart_or_side_by_side(server: Any, link: str) -> None:
    def ask(**params: Any) -> httpx.Response:
        return server.client.get(link, params={"level": 16, **params})  # type: ignore[no-any-return]

    heads = numbers(ask(head="all", format="npz"))["attention"]
    assert heads.shape == (2, 64, 80)
    for head in (0, 1):
        np.testing.assert_array_equal(numbers(ask(head=head, format="npz"))["attention"], heads[head])
    np.testing.assert_allclose(numbers(ask(format="npz"))["attention"], heads.mean(0), rtol=1e-5)
    picture = cv2.imdecode(np.frombuffer(ask(head="all", defect=1).content, np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    assert picture.shape[1] > 3 * 400, "two heads and their mean"


def test_relevance_and_rollout_are_of_the_top_call_unless_a_defect_is_named(server: Any, link: str) -> None:
    def ask(**params: Any) -> Any:
        return numbers(server.client.get(link, params={"format": "npz", **params}))

    for method, levels in (("relevance", ("4", "16", "32", "all")), ("rollout", ("all",))):
        top, first, second = (ask(method=method, **params) for params in ({}, {"defect": 1}, {"defect": 2}))
        np.testing.assert_array_equal(top[method], first[method])
        assert top[method].shape == (64, 80)
        assert not np.array_equal(first[method], second[method])
        maps = [ask(method=method, level=level)[method] for level in levels]
        np.testing.assert_array_equal(maps[-1], top[method])
        if method == "relevance":
            np.testing.assert_allclose(sum(maps[:3]), maps[3], atol=1e-6)


def test_a_part_is_drawn_at_any_zoom_and_a_contour_on_demand(server: Any, link: str) -> None:
    def picture(**params: Any) -> Any:
        answer = server.client.get(link, params={"level": 16, "defect": 1, **params})
        assert answer.status_code == 200, answer.text
        return cv2.imdecode(np.frombuffer(answer.content, np.uint8), cv2.IMREAD_COLOR)

    assert picture(scale=0.5).shape[:2] == (128, 160)
    part = picture(crop="40,20,140,80", scale=3)
    assert part.shape[:2] == (180, 300)
    whole = picture()
    lined = picture(contour=0.5)
    changed = (whole != lined).any(2).mean()
    assert 0 < changed < 0.2, "a thin line around the asked window"
    heads = picture(head="all", scale=0.5)
    assert heads.shape[1] < 3 * 250, "panels follow the scale"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("method=gate", "method: 'gate', wanted one of attention, relevance, rollout"),
        ("level=all", "level: 'all', wanted one of 4, 16, 32"),
        ("method=rollout&level=4", "level: '4', wanted all: roll-out adds the levels"),
        ("method=relevance&head=0", "head: met together with method=relevance, wanted a defect"),
        ("method=rollout&x=1&y=1", "x: met together with method=rollout, wanted a defect"),
        ("scale=0", "scale: 0, wanted 0.1 to 16"),
        ("scale=16", "scale: 16 gives a picture of 5120 x 4096 px, wanted at most 1 megapixels"),
        ("head=all&level=16&scale=4&crop=0,0,9,9", "scale: 4 gives 3 pictures of 1600 x 1600 px"),
        ("crop=1,2,3", "crop: '1,2,3', wanted left,top,right,bottom in whole pixels"),
        ("crop=9,2,3,4", "crop: '9,2,3,4', wanted left < right and top < bottom"),
        ("crop=0,0,321,9", "crop: 0,0,321,9 does not lie on the board of 320 x 256 px"),
        ("contour=0", "contour: 0, wanted a value above 0"),
        ("format=npz&scale=2", "scale: met together with format=npz"),
        ("level=8", "level: '8', wanted one of 4, 16, 32"),
        ("head=2&level=16", "head: 2, wanted 0 to 1 on the 16 px level, or all"),
        ("head=-1", "head: '-1', wanted a number from 0, or all"),
        ("x=10", "y: missing"),
        ("y=10", "x: missing"),
        ("x=320&y=10", "x: 320, wanted 0 to below 320"),
        ("x=10&y=-1", "y: -1, wanted 0 to below 256"),
        ("x=nan&y=1", "x: 'nan', wanted a number of pixels"),
        ("x=1&y=1&defect=1", "defect: met together with x and y"),
        ("defect=0", "defect: 0, wanted 1 to"),
        ("defect=99999", "defect: 99999, wanted 1 to"),
        ("defect=one", "defect: 'one', wanted the id of a defect"),
        ("format=jpg", "format: 'jpg', wanted one of png, npz"),
        ("heads=1", "'heads' is not a query parameter"),
    ],
)
def test_what_cannot_be_asked_is_named(server: Any, link: str, query: str, words: str) -> None:
    answer = server.client.get(f"{link}?{query}")
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["code"] == "bad_field"
    assert answer.json()["error"]["message"].startswith(words)


def test_points_of_one_cell_are_one_question() -> None:
    """What is kept in memory is kept by cell, not by pixel."""
    asks = [read_ask({"x": x, "y": "8"}) for x in ("4", "7.9", "8")]
    assert asks[0].rows == asks[1].rows != asks[2].rows
    assert read_ask({"level": "32"}).rows == read_ask({"head": "0"}).rows
    with pytest.raises(FieldError, match="head: '9999999'"):
        read_ask({"head": "9999999"})
