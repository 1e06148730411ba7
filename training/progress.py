"""Progress of long work: a bar with an ETA on a terminal, plain lines elsewhere; on stderr."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

ItemT = TypeVar("ItemT")
_PLAIN_LINES = 10


def track(items: Iterable[ItemT], *, total: int, label: str) -> Iterator[ItemT]:
    """Pass the items on while showing how many of `total` are done."""
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as progress:
            yield from progress.track(items, total=total, description=label)
        return
    start = time.monotonic()
    step = max(total // _PLAIN_LINES, 1)
    for done, item in enumerate(items, 1):
        yield item
        if done % step == 0 or done == total:
            elapsed = time.monotonic() - start
            left = elapsed / done * (total - done)
            console.print(f"{label}: {done}/{total}, {elapsed:.0f} s, {left:.0f} s left", highlight=False)
