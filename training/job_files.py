"""What a long job leaves for those who watch it: progress.json, metrics.jsonl; and how it is stopped."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from inspect_vit.console import say
from inspect_vit.files import write_atomically

Stage = Literal["boards", "features", "learning", "thresholds", "measuring"]
BEAT_S = 2.0
"""progress.json is written this often, whether or not anything changed."""
SAY_EVERY_S = 20.0
EXIT_TERMINATED = 143


class Progress:
    """Owns progress.json: {"stage", "done", "total", "eta_s"}, eta of the stage; null before it is known."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._state: dict[str, Any] = {"stage": "boards", "done": 0, "total": 0, "eta_s": None}
        self._began = self._said = time.monotonic()
        self._first = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        self._write()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._write()

    def tell(self, stage: Stage, done: int, total: int) -> None:
        """Note how far a stage is; now and then a line on stderr says so too."""
        now = time.monotonic()
        with self._lock:
            is_new = stage != self._state["stage"] or total != self._state["total"] or done < self._first
            if is_new:
                self._began, self._first = now, done
            advanced = done - self._first
            eta = (now - self._began) / advanced * (total - done) if advanced > 0 else None
            self._state = {
                "stage": stage,
                "done": done,
                "total": total,
                "eta_s": None if eta is None else round(eta, 1),
            }
        if is_new or now - self._said >= SAY_EVERY_S:
            self._said = now
            left = "" if eta is None else f", {eta:.0f} s left"
            say(f"{stage}: {done}/{total}{left}")

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_S):
            self._write()

    def _write(self) -> None:
        with self._lock:
            text = json.dumps(self._state)
        write_atomically(self.path, text.encode())


class MetricsLog:
    """Owns metrics.jsonl: the mean of the terms over `every` steps, one line each."""

    def __init__(self, path: Path, step: int, *, every: int) -> None:
        """Lines after `step`, of a part that is done again, go."""
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        kept = [line for line in lines if line.endswith("}") and json.loads(line)["step"] <= step]
        path.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        self._file = path.open("a", encoding="utf-8")
        self._every = every
        self._terms: list[dict[str, float]] = []

    def add(self, step: int, terms: dict[str, float]) -> None:
        self._terms.append(terms)
        if step % self._every:
            return
        means = {key: sum(t[key] for t in self._terms) / len(self._terms) for key in terms}
        line = {"step": step} | {key: float(f"{value:.5g}") for key, value in means.items()}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        self._terms = []

    def close(self) -> None:
        self._file.close()


class Termination:
    """Whether the process was asked to end; between `held` steps it ends at once."""

    def __init__(self) -> None:
        self.is_asked = False
        self._is_held = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside, a request only sets `is_asked`: a step is done or not done, never half."""
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        self.is_asked = True
        if not self._is_held:
            raise SystemExit(EXIT_TERMINATED)


@contextmanager
def termination() -> Iterator[Termination]:
    """SIGTERM ends the process with 143 where that loses nothing. Only in the main thread of a process."""
    asked = Termination()
    before = signal.signal(signal.SIGTERM, asked._ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGTERM, before)
