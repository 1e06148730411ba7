"""The queue: what is in it, in which order, page by page while boards come in, and how many."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest

from inspect_vit.results import Verdict
from serving.config import ServingConfig
from serving.ids import IdClock
from serving.queue import Cursor, QueueFilter, count_queue, list_queue
from serving.queue_rows import is_drawn, uncertainty_of
from serving.queue_schemas import QueueItem, QueueOrder, QueuePage
from serving.store import Store
from tests.serving.reviewing import verify, with_calls

THRESHOLDS = {"open": 0.3, "short": 0.4}


def test_the_queue_holds_failures_errors_and_drawn_passes(config: ServingConfig, boards: Any) -> None:
    everything = {verdict: boards.report(verdict=verdict) for verdict in ("PASS", "FAIL", "ERROR")}
    for share, drawn in ((0.0, False), (1.0, True)):
        store = Store(config.model_copy(update={"audit_share": share}))
        ids = {}
        for verdict in everything:
            report = boards.report(verdict=verdict)
            boards.add(store, report)
            ids[verdict] = report.id
        found = {
            item.id: item for item, _ in list_queue(store.engine, QueueFilter(), order="newest", limit=9)
        }
        assert (ids["PASS"] in found) is drawn
        assert {ids["FAIL"], ids["ERROR"]} <= found.keys()
        assert {one for one, item in found.items() if item.audit} == ({ids["PASS"]} if drawn else set())
        store.close()


def test_every_id_is_drawn_with_the_share_that_is_set() -> None:
    clock = IdClock(None)
    ids = [clock.next()[0] for _ in range(20_000)]
    for share in (0.02, 0.5):
        drawn = sum(is_drawn(one, share) for one in ids)
        # Five standard deviations of a binomial count.
        assert abs(drawn - share * len(ids)) < 5 * (len(ids) * share * (1 - share)) ** 0.5
    assert [is_drawn(ids[0], 0.5)] * 3 == [is_drawn(ids[0], 0.5) for _ in range(3)]


@pytest.mark.parametrize(
    ("verdict", "labels", "score", "uncertainty"),
    [
        # Calls are 0.01 apart below the score; 0.4 is the threshold of short, 0.3 that of open.
        ("FAIL", ["short"], 0.41, 1.0),
        ("FAIL", ["short"], 0.71, 0.5),
        ("FAIL", ["short"], 1.01, 0.0),
        ("FAIL", ["open", "short"], 0.66, 0.6),
        ("FAIL", ["open"], 0.16, 0.5),
        ("PASS", [], 0.15, 0.5),
        ("PASS", [], 0.35, 0.875),
        ("PASS", [], 0.7, 0.5),
        ("ERROR", [], 0.4, 0.0),
    ],
)
def test_uncertainty_falls_with_the_distance_from_the_threshold(
    boards: Any, verdict: str, labels: list[str], score: float, uncertainty: float
) -> None:
    report = with_calls(boards.report(verdict=verdict), *labels, score=score)
    assert uncertainty_of(report, THRESHOLDS) == uncertainty


@pytest.fixture
def filled(config: ServingConfig, boards: Any) -> Any:
    """A store of 40 boards with many equal scores, their items newest first, and a way to add one more."""
    store, rng = Store(config), random.Random(0)

    def add() -> str:
        verdict = rng.choice(["FAIL", "FAIL", "ERROR", "PASS"])
        labels = rng.choices(["open", "short"], k=rng.randint(1, 2)) if verdict == "FAIL" else []
        report = with_calls(
            boards.report(serial=f"SN-{rng.randint(0, 9)}", verdict=verdict),
            *labels,
            score=rng.choice([0.35, 0.5, 0.9]),
        ).model_copy(update={"recipe": rng.choice(["panel", "card", None])})
        boards.add(store, report, image=report.id.encode())
        if rng.random() < 0.4:
            verify(store, report.id, 0, *["false_call"] * len(labels))
        return str(report.id)

    for _ in range(40):
        add()
    everything = [
        item for item, _ in list_queue(store.engine, QueueFilter(state="all"), order="newest", limit=99)
    ]
    yield dataclasses.make_dataclass("Filled", ["store", "everything", "add"])(store, everything, add)
    store.close()


def test_filters_and_counts_agree_with_a_look_at_every_board(filled: Any) -> None:
    assert len(filled.everything) == 40
    middle = filled.everything[20].created
    # Ids begin with milliseconds since 1970.
    first = f"{int(middle.timestamp() * 1000):012x}"
    filters: dict[str, tuple[QueueFilter, Any]] = {
        "open": (QueueFilter(), lambda item: True),
        "done": (QueueFilter(state="done"), lambda item: True),
        "all": (QueueFilter(state="all"), lambda item: True),
        "verdict": (QueueFilter(state="all", verdict="PASS"), lambda item: item.verdict == "PASS"),
        "recipe": (QueueFilter(recipe="panel"), lambda item: item.recipe == "panel"),
        "label": (QueueFilter(state="done", label="open"), lambda item: "open" in item.labels),
        "serial": (QueueFilter(state="all", serial="SN-3"), lambda item: item.serial == "SN-3"),
        "model": (QueueFilter(model="another"), lambda item: False),
        "since": (QueueFilter(since=middle), lambda item: item.id >= first),
        "until": (QueueFilter(until=middle), lambda item: item.id < first),
    }
    for name, (asked, matches) in filters.items():
        named = [item for item in filled.everything if matches(item)]
        due = [item for item in named if item.verdict != "PASS" or item.audit]
        wanted = named if asked.state == "all" else [item for item in due if item.state == asked.state]
        found = [item for item, _ in list_queue(filled.store.engine, asked, order="newest", limit=99)]
        assert found == wanted, name
        counts = count_queue(filled.store.engine, asked)
        assert counts.open == sum(item.state == "open" for item in due), name
        assert counts.done == sum(item.state == "done" for item in due), name
        for verdict in Verdict:
            assert counts.by_verdict[verdict] == sum(item.verdict == verdict for item in wanted), name
        labels = sorted(label for item in wanted for label in item.labels)
        assert counts.by_label == {label: labels.count(label) for label in labels}, name


@pytest.mark.parametrize("order", ["newest", "worst", "uncertain"])
def test_pages_show_each_board_once_while_others_come_in(filled: Any, order: QueueOrder) -> None:
    values = {
        "newest": lambda item: 0.0,
        "worst": lambda item: -1.0 if item.verdict == "ERROR" else item.score,
        "uncertain": lambda item: item.uncertainty,
    }
    by_id = sorted(filled.everything, key=lambda item: item.id, reverse=True)
    wanted = sorted(by_id, key=values[order], reverse=True)
    after: Cursor | None = None
    seen: list[QueueItem] = []
    while page := list_queue(
        filled.store.engine, QueueFilter(state="all"), order=order, limit=7, after=after
    ):
        seen += [item for item, _ in page]
        after = page[-1][1]
        filled.add()
    assert [item.id for item in seen if item in filled.everything] == [item.id for item in wanted]
    assert len({item.id for item in seen}) == len(seen)


def test_of_the_worst_boards_those_that_were_not_inspected_come_last(
    config: ServingConfig, boards: Any
) -> None:
    store = Store(config)
    told = [("ERROR", 0.99), ("FAIL", 0.5), ("ERROR", 0.01), ("FAIL", 0.9), ("FAIL", 0.0)]
    for verdict, score in told:
        report = boards.report(verdict=verdict).model_copy(update={"score": score})
        boards.add(store, report, image=report.id.encode())
    found = [item for item, _ in list_queue(store.engine, QueueFilter(), order="worst", limit=9)]
    # A board that was not inspected keeps the score that it has; among such ones the newest comes first.
    order = [("FAIL", 0.9), ("FAIL", 0.5), ("FAIL", 0.0), ("ERROR", 0.01), ("ERROR", 0.99)]
    assert [(item.verdict.value, item.score) for item in found] == order
    # Page by page, across where the two meet.
    after, seen = None, []
    while page := list_queue(store.engine, QueueFilter(), order="worst", limit=2, after=after):
        seen += [item for item, _ in page]
        after = page[-1][1]
    assert seen == found
    store.close()


def test_the_queue_over_http(guarded: Any, board_png: bytes) -> None:
    for number in range(3):
        # Each a file of its own: the same bytes under another serial were a duplicate, ERROR.
        image = board_png + b"queue %d" % number
        data = {"serial": f"queue {number}", "options": '{"min_score": 0.0}'}
        guarded.call("POST", "/v1/inspect", "line", files={"image": image}, data=data).raise_for_status()
    query = {"state": "all", "order": "uncertain", "limit": 1, "since": "2026-01-01"}
    link: str | None = "/v1/queue"
    seen: list[str] = []
    while link and len(seen) < 3:
        answer = guarded.call("GET", link, "operator", **({} if seen else {"params": query}))
        page = QueuePage.model_validate_json(answer.text)
        seen += [item.id for item in page.items]
        link = page.next
    assert len(set(seen)) == 3
    mine = guarded.call("GET", "/v1/queue?state=all&serial=queue 1", "operator").json()["items"]
    assert [item["serial"] for item in mine] == ["queue 1"]
    assert mine[0]["links"]["report"] == f"/v1/inspections/{mine[0]['id']}"
    report = guarded.call("GET", mine[0]["links"]["report"], "operator").json()
    assert mine[0]["labels"] == list(dict.fromkeys(defect["label"] for defect in report["defects"]))
    for name in ("created", "verdict", "score", "num_defects", "attempt"):
        assert mine[0][name] == report[name], name
    assert guarded.call("GET", "/v1/queue", "line").status_code == 403


@pytest.mark.parametrize(
    "query",
    [
        "order=oldest",
        "state=begun",
        "verdict=GOOD",
        "since=yesterday",
        "until=2026-11-30T08:00:00+01:00",
        "limit=0",
        "after=x",
        "order=worst&after=" + "0" * 32,
        "order=worst&after=nan-" + "0" * 32,
        "after=0.5-" + "0" * 32,
        "page=2",
    ],
)
def test_a_query_that_cannot_be_meant_is_refused(guarded: Any, query: str) -> None:
    answer = guarded.call("GET", f"/v1/queue?{query}", "operator")
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_field"), answer.text
