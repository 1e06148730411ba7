"""Results of electrical test: which boards escaped, and that a table comes in whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from serving.config import ServingConfig
from serving.errors import FieldError
from serving.line_tables import ElectricalTestRow
from serving.roles import ANYONE
from serving.store import Store
from serving.tested import import_results, read_rows
from tests.serving.reviewed import Line

DAY = "2026-03-02"


@pytest.fixture
def store(config: ServingConfig) -> Iterator[Store]:
    opened = Store(config)
    yield opened
    opened.close()


def num_rows(store: Store) -> int:
    with Session(store.engine) as session:
        return session.scalar(sa.select(sa.func.count()).select_from(ElectricalTestRow)) or 0


def test_a_board_that_was_passed_and_fails_test_has_escaped(store: Store) -> None:
    line = Line(store)
    passed = line.inspect(f"{DAY}T08:00+00:00", "PASS", serial="passed")
    line.inspect(f"{DAY}T08:01+00:00", "FAIL", ("short", 0.9), serial="failed")
    judged = line.inspect(f"{DAY}T08:02+00:00", "FAIL", ("short", 0.9), serial="judged good")
    line.review(judged, ("false_call", "short"), final="good")
    line.inspect(f"{DAY}T08:03+00:00", "ERROR", serial="not inspected")
    line.inspect(f"{DAY}T08:04+00:00", "PASS", serial="fine")
    table = (
        "\ufeffSerial,Result,Label\r\npassed,FAIL,open\r\nfailed,fail,\r\n\r\njudged good,fail,\r\n"
        "not inspected,fail,\r\nfine,pass,\r\nnever seen,fail,\r\n"
    )
    report = import_results(store.engine, read_rows(table), ANYONE)
    assert (report.rows, report.matched, report.unmatched) == (6, 5, 1)
    assert report.unmatched_serials == ("never seen",)
    assert {(one.serial, one.inspection) for one in report.escapes} == {
        ("passed", passed),
        ("judged good", judged),
    }
    assert num_rows(store) == 5
    assert import_results(store.engine, read_rows(table), ANYONE) == report, "sent again after a lost answer"
    assert num_rows(store) == 5


def test_a_result_belongs_to_the_last_inspection_before_the_test(store: Store) -> None:
    line = Line(store)
    first = line.inspect(f"{DAY}T08:00+00:00", "PASS", serial="A")
    second = line.inspect(f"{DAY}T10:00+00:00", "PASS", serial="A")

    def escapes(time: str) -> list[str]:
        rows = read_rows(f"serial,result,time\nA,fail,{time}\n")
        return [one.inspection for one in import_results(store.engine, rows, ANYONE).escapes]

    assert escapes(f"{DAY}T09:00:00Z") == [first]
    assert escapes(f"{DAY}T10:30:00+01:00") == [first], "9:30 UTC"
    assert escapes(f"{DAY}T11:00:00") == [second], "no zone: UTC"
    assert escapes("") == [second]
    assert escapes(f"{DAY}T07:00:00Z") == [], "tested before it was ever inspected"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "body: no row"),
        ("serial,verdict\nA,fail", "line 1: columns"),
        ("serial,serial,result\nA,A,fail", "line 1: columns"),
        ("serial,result\nA,fail\nB,maybe", "line 3: result: 'maybe', wanted pass or fail"),
        ("serial,result\nA,fail\n\n,fail", "line 4: serial: empty"),
        ("serial,result\nA,fail,short", "line 2: 3 cells, wanted 2"),
        ('serial,result\n"A,fail', "line 2: unexpected end of data"),
        ("serial,result\nA\x07,fail", "line 2: serial: holds characters"),
        ("serial,result\n" + "A" * 201 + ",fail", "line 2: serial: 201 characters"),
        ("serial,result,time\nA,fail,yesterday", "line 2: time: 'yesterday'"),
        ("serial,result,time\nA,fail,0001-01-01T00:00:00+14:00", "line 2: time: "),
    ],
)
def test_a_bad_row_is_named(text: str, words: str) -> None:
    with pytest.raises(FieldError) as caught:
        read_rows(text)
    assert str(caught.value).startswith(words)
