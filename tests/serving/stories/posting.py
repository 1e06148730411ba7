"""Boards for the stories, posted to a running server."""

from __future__ import annotations

import itertools
import json
from functools import cache
from typing import Any

import httpx

from tests.serving.conftest import draw_board, encode

_numbers = itertools.count()


@cache
def _pair() -> tuple[bytes, bytes]:
    """A board with a patch that its reference lacks, so that it fails whatever the network says."""
    board = draw_board(seed=7)
    reference = encode(".png", board)
    board[150:230, 200:290] = 30
    return encode(".png", board), reference


@cache
def _blank() -> bytes:
    return encode(".png", draw_board(seed=1, tracks=0))


def post_failed(client: httpx.Client, serial: str, *, min_score: float = 0.5, **more: Any) -> Any:
    """A FAIL board; its report. It lists the calls from `min_score` on: none by default."""
    board, reference = _pair()
    data = {"serial": serial, "options": json.dumps({"min_score": min_score})}
    # Bytes after the end of a PNG make it another picture file: no two boards have the same.
    files = {"image": board + f"{serial}{next(_numbers)}".encode(), "reference": reference}
    return _report(client.post("/v1/inspect", files=files, data=data, **more), "FAIL")


def post_blank(client: httpx.Client, serial: str, **more: Any) -> Any:
    """An ERROR board, which lists no calls; its report."""
    files = {"image": _blank() + f"{serial}{next(_numbers)}".encode()}
    return _report(client.post("/v1/inspect", files=files, data={"serial": serial}, **more), "ERROR")


def score_of_few_calls(client: httpx.Client, serial: str, **more: Any) -> float:
    """From which score on a failed board has a few calls, at least two."""
    scores = [defect["score"] for defect in post_failed(client, serial, min_score=0.0, **more)["defects"]]
    # Reports round to four decimals; half a step below none is cut off.
    return next(score for score in sorted(set(scores), reverse=True) if scores[1] >= score) - 0.00005


def review_of(client: httpx.Client, inspection: str) -> Any:
    return client.get(f"/v1/inspections/{inspection}/review").json()


def _report(answer: httpx.Response, verdict: str) -> Any:
    assert answer.status_code == 200, answer.text
    report = answer.json()
    assert report["verdict"] == verdict, report["reasons"]
    return report
