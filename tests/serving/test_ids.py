"""Ids grow whatever the clock does."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime

import pytest

from serving.ids import IdClock, day_of, first_id_at, ids_of_day, is_id

NOON_S = datetime(2026, 11, 29, 12, tzinfo=UTC).timestamp()


def test_ids_name_their_moment() -> None:
    inspection_id, created = IdClock(None, now_s=lambda: NOON_S + 0.25).next()
    assert is_id(inspection_id)
    assert int(inspection_id[:12], 16) == int((NOON_S + 0.25) * 1000)
    assert day_of(inspection_id) == "2026-11-29" == created.date().isoformat()
    first, end = ids_of_day("2026-11-29")
    assert first == first_id_at(NOON_S - 43_200) < inspection_id < end == first_id_at(NOON_S + 43_200)


@pytest.mark.parametrize("step_s", [-1.0, -3600.0, -26 * 365 * 86_400.0], ids=["second", "hour", "battery"])
def test_a_clock_that_goes_back_neither_repeats_nor_reorders_ids(step_s: float) -> None:
    now_s = NOON_S
    ids = IdClock(None, now_s=lambda: now_s)
    given = [ids.next() for _ in range(3)]
    now_s += step_s
    given += [ids.next() for _ in range(3)]
    now_s = NOON_S + 60.0
    given.append(ids.next())
    texts = [inspection_id for inspection_id, _ in given]
    assert texts == sorted(set(texts))
    assert {day_of(text) for text in texts} == {"2026-11-29"}, "nothing looks old enough to be pruned"
    assert given[4][1].timestamp() == pytest.approx(NOON_S + step_s), "the report says what the clock said"
    assert int(texts[-1][:12], 16) == int((NOON_S + 60.0) * 1000), "and the ids follow the clock again"


def test_a_server_started_with_a_clock_behind_goes_on_from_the_newest_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    newest, _ = IdClock(None, now_s=lambda: NOON_S).next()
    with caplog.at_level(logging.WARNING):
        following, _ = IdClock(newest, now_s=lambda: NOON_S - 9e8).next()
    assert following > newest
    assert "set the clock" in caplog.text


def test_threads_never_get_the_same_stamp() -> None:
    ids = IdClock(None, now_s=lambda: NOON_S)
    found: list[str] = []

    def work() -> None:
        found.extend(ids.next()[0][:12] for _ in range(500))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 2000
