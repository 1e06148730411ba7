"""Clients that post one board after the other while something else is done to the server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

from tests.serving.conftest import Server

WAIT_S = 120.0


@dataclass
class Line:
    """What clients posted to one server and got: start and end of each request, its status and version."""

    server: Server
    answers: list[tuple[float, float, int, str]] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)

    def post_until(self, stop: threading.Event, board: bytes) -> None:
        with httpx.Client(
            base_url=self.server.client.base_url, timeout=WAIT_S, headers=self.headers
        ) as client:
            while not stop.is_set():
                start = time.monotonic()
                answer = client.post("/v1/inspect", files={"image": board})
                version = answer.json().get("model", {}).get("version", "")
                self.answers.append((start, time.monotonic(), answer.status_code, version))

    @contextmanager
    def posting(self, board: bytes, *, clients: int) -> Iterator[None]:
        """So many of them post meanwhile."""
        stop = threading.Event()
        threads = [threading.Thread(target=self.post_until, args=(stop, board)) for _ in range(clients)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def wait_for(self, version: str, since: float) -> None:
        """Until an answer to a request that began after `since` names a version."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            if any(start > since and found == version for start, _, _, found in list(self.answers)):
                return
            time.sleep(0.05)
        raise AssertionError(f"no answer of {version} in {WAIT_S:g} s")
