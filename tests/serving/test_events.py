"""Events: everything once, from every server of the store, and an end when it is time."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from serving import event_routes, events
from serving.config import ServingConfig
from serving.errors import BusyError
from serving.events import Events, Reader
from serving.keys import create_key, find_key, revoke_key
from serving.review_tables import ReviewRow
from serving.roles import ANYONE, Role
from serving.store import Store
from tests.serving.reviewing import dispose, verify, with_calls


def told(reader: Reader) -> list[tuple[str, str]]:
    return [(event.name, json.loads(event.data)["id"]) for event in reader.look()]


def test_what_any_server_stores_is_told_once(config: ServingConfig, boards: Any) -> None:
    here, there = Store(config), Store(config)
    before = with_calls(boards.report(), "short")
    boards.add(here, before)
    verify(here, before.id, 0, "real")
    reader = Reader(here.engine)
    assert told(reader) == []
    late = boards.report(days_ago=20 / 86_400)
    new = boards.report(serial="SN-1")
    boards.add(there, new)
    assert told(reader) == [("inspection", new.id)]
    boards.add(there, late)
    dispose(there, before.id, 1, "scrap")
    found = reader.look()
    assert [event.name for event in found] == ["inspection", "review"]
    assert json.loads(found[0].data)["id"] == late.id, "made before the newest, visible after it"
    assert json.loads(found[1].data) == {"id": before.id, "revision": 2, "state": "done", "actor": "anna"}
    assert told(reader) == []
    with there.engine.begin() as connection:
        connection.execute(sa.delete(ReviewRow))
    assert told(reader) == []
    here.close()
    there.close()


def test_one_look_serves_all_listeners_and_a_slow_one_is_cut_off(
    config: ServingConfig, boards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MAX_LISTENERS", 3)
    monkeypatch.setattr(events, "MAX_WAITING", 2)
    store = Store(config)
    looks = []
    look = Reader.look
    monkeypatch.setattr(Reader, "look", lambda reader: looks.append(threading.get_ident()) or look(reader))

    async def run() -> None:
        hub = Events(store.engine, poll_s=0.05)
        listeners = [await hub.open() for _ in range(3)]
        with pytest.raises(BusyError, match="3 clients"):
            await hub.open()
        reports = [boards.report() for _ in range(3)]
        for number, report in enumerate(reports):
            await asyncio.to_thread(boards.add, store, report)
            for listener in listeners[:2]:
                event = await listener.next(timeout_s=20)
                assert event is not None and json.loads(event.data)["id"] == reports[number].id
        assert await listeners[2].next(timeout_s=20) is None, "two waited, the third was one too many"
        hub.close(listeners[2])
        await asyncio.sleep(0.2)
        before = len(looks)
        await asyncio.sleep(0.5)
        assert len(looks) - before <= 11, "one reader, however many listen"
        hub.close(listeners[0])
        await hub.open()
        hub.stop()
        assert await listeners[1].next(timeout_s=1) is None
        for listener in list(hub._listeners):
            hub.close(listener)
        await asyncio.sleep(0.1)
        before = len(looks)
        await asyncio.sleep(0.3)
        assert len(looks) == before, "nobody listens, nobody looks"

    asyncio.run(run())
    store.close()


def test_a_revoked_key_hears_no_more(
    config: ServingConfig, boards: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_routes, "COMMENT_S", 0.2)
    store = Store(config)
    keys = [create_key(store.engine, name, Role.OPERATOR, by=ANYONE) for name in ("anna", "bert")]

    def works(key: str) -> bool:
        with Session(store.engine) as session:
            return find_key(session, key) is not None

    async def run() -> None:
        hub = Events(store.engine, poll_s=0.05)
        anna, bert = [event_routes.told_while(partial(works, key), await hub.open()) for key in keys]
        for stream in (anna, bert):
            assert await anext(stream) == ": everything from now on\n\n"
            assert await anext(stream) == ": the line is open\n\n"
        revoke_key(store.engine, "anna", by=ANYONE)
        boards.add(store, boards.report())
        await asyncio.sleep(0.3)
        assert [line async for line in anna] == []
        assert (await anext(bert)).startswith("event: inspection\n")
        hub.stop()
        for listener in list(hub._listeners):
            hub.close(listener)

    asyncio.run(run())
    store.close()


def lines_of(answer: httpx.Response) -> Iterator[tuple[str, Any]]:
    """(event, data) of a stream of server-sent events."""
    name = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_a_browser_hears_of_boards_and_reviews(guarded: Any, board_png: bytes) -> None:
    headers = {"x-api-key": guarded.keys["operator"]}
    with (
        httpx.Client(base_url=guarded.server.client.base_url, timeout=60.0, headers=headers) as client,
        client.stream("GET", "/v1/events") as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        found = lines_of(answer)
        data = {"serial": "heard of"}
        report = guarded.call(
            "POST", "/v1/inspect", "line", files={"image": board_png + b"heard of"}, data=data
        ).json()
        name, item = next(one for one in found if one[1]["id"] == report["id"])
        assert (name, item["serial"], item["verdict"]) == ("inspection", "heard of", report["verdict"])
        body = {"expects": 0, "calls": [], "missed": [], "checked": True}
        path = f"/v1/inspections/{report['id']}/verifications"
        assert guarded.call("POST", path, "engineer", json=body).status_code == 200
        name, heard = next(one for one in found if one[1]["id"] == report["id"])
        assert (name, heard["revision"], heard["actor"]) == ("review", 1, "engineer")
    assert guarded.call("GET", "/v1/events", "line").status_code == 403
