"""When a review is done, what may be said at all, and what was said too fast."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from serving.errors import FieldError
from serving.review_rules import Span, hasty_run, said, stands
from serving.review_schemas import Document, Verification
from tests.serving.reviewing import with_calls

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
BOX = [1, 2, 9, 14]


def body(**more: Any) -> Verification:
    return Verification.model_validate(
        {"expects": 0, "calls": (), "missed": (), "checked": True} | more, strict=False
    )


def words(*those: str) -> list[dict[str, Any]]:
    return [{"defect": n, "word": word, "label": "short"} for n, word in enumerate(those, start=1)]


@pytest.mark.parametrize(
    ("verdict", "said_of_calls", "missed", "checked", "disposition", "state", "final"),
    [
        ("FAIL", ["real", "false_call"], [], True, "rework", "done", "bad"),
        ("FAIL", ["real", "false_call"], [], True, None, "open", "bad"),
        ("FAIL", ["real"], [], True, "rework", "open", "bad"),
        ("FAIL", ["real", "false_call"], [], False, "rework", "open", "bad"),
        ("FAIL", ["false_call", "process_indicator"], [], True, None, "done", "good"),
        ("FAIL", ["false_call", "false_call"], [], False, None, "open", None),
        ("FAIL", ["false_call", "false_call"], [BOX], True, None, "open", "bad"),
        ("FAIL", ["false_call", "false_call"], [BOX], True, "scrap", "done", "bad"),
        ("ERROR", [], [], True, None, "done", "good"),
        ("ERROR", [], [], False, "scrap", "open", None),
        ("ERROR", [], [BOX], True, None, "open", "bad"),
    ],
)
def test_a_review_is_done_when_nothing_is_left_to_say(
    boards: Any,
    verdict: str,
    said_of_calls: list[str],
    missed: list[Any],
    checked: bool,
    disposition: Any,
    state: str,
    final: str | None,
) -> None:
    report = with_calls(boards.report(verdict=verdict), "short", "open")
    seen = [{"label": "hole", "box_xyxy": tuple(box)} for box in missed]
    document = said(body(calls=words(*said_of_calls), missed=seen, checked=checked), report, Document())
    assert stands(document.model_copy(update={"disposition": disposition}), report) == (state, final)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"calls": words("real", "real", "real")}, "calls.2.defect: 3, wanted one of the calls 1 to 2"),
        ({"calls": words("real") * 2}, "calls.1.defect: 1 has two words"),
        ({"calls": [{**words("real")[0], "label": " "}]}, "calls.0.label: ' '"),
        ({"calls": [{**words("real")[0], "label": "a\nb"}]}, "calls.0.label: holds characters"),
        ({"missed": [{"label": "hole"}]}, "missed.0: neither of box_xyxy and polygon"),
        (
            {"missed": [{"label": "hole", "box_xyxy": BOX, "polygon": [(1, 1), (5, 1), (5, 5)]}]},
            "missed.0: both of box_xyxy and polygon",
        ),
        ({"missed": [{"label": "hole", "box_xyxy": [1, 2, 30.5, 14]}]}, "(30.5, 2) lies outside the image"),
        ({"missed": [{"label": "hole", "box_xyxy": [-1, 2, 9, 14]}]}, "(-1, 2) lies outside the image"),
        ({"missed": [{"label": "hole", "box_xyxy": [9, 2, 1, 14]}]}, "wanted left < right and top < bottom"),
        ({"missed": [{"label": "hole", "polygon": [(1, 1), (5, 1), (5, 22.25)]}]}, "(5, 22.25) lies outside"),
        ({"missed": [{"label": "hole", "polygon": [(1, 1), (5, 5), (9, 9)]}]}, "an area of 0 px"),
    ],
)
def test_what_cannot_be_meant_of_this_board_is_refused_by_its_value(
    boards: Any, more: dict[str, Any], message: str
) -> None:
    """The image is 30 x 22 px."""
    with pytest.raises(FieldError) as refused:
        said(body(**more), with_calls(boards.report(), "short", "open"), Document())
    assert message in str(refused.value)


def test_places_up_to_the_edge_and_new_classes_are_taken(boards: Any) -> None:
    missed = [
        {"label": " e\u0301toile ", "box_xyxy": (0, 0, 30, 22)},
        {"label": "hole", "polygon": ((0, 22), (30, 22), (30, 0))},
    ]
    document = said(body(missed=missed), boards.report(), Document())
    assert [one.label for one in document.missed] == ["\u00e9toile", "hole"]


def span(seconds: float, num_false: int, *, board_s: float = -9999.0) -> Span:
    return Span(num_false, NOON + timedelta(seconds=board_s), NOON + timedelta(seconds=seconds))


def test_two_hundred_false_calls_at_three_a_second_are_too_fast() -> None:
    # A little faster than 3 a second: the 200 newest took 66.6 s from the revision before them.
    steady = [span(-n * 0.333, 1) for n in range(400)]
    assert hasty_run(steady) == 200
    assert hasty_run(steady[:199]) == 0, "fewer than 200"
    slower = [span(-n * 0.334, 1) for n in range(400)]
    assert hasty_run(slower) == 0
    assert hasty_run([span(0, 150), span(-10, 60), span(-20, 0)]) == 2
    assert hasty_run([span(0, 150), span(-10, 60), span(-80, 0)]) == 0, "210 words in 80 s"


def test_a_board_cannot_have_been_looked_at_before_it_was_there() -> None:
    assert hasty_run([span(0, 250, board_s=-10)]) == 1
    assert hasty_run([span(0, 250, board_s=-100)]) == 0
    assert hasty_run([span(0, 250, board_s=60)]) == 0, "a clock that was set back says nothing"
    assert hasty_run([span(0, 250, board_s=-100), span(-5, 0)]) == 1, "and not while another was looked at"
