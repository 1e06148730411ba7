"""The queue and its events on the wire."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from inspect_vit.results import Verdict
from serving.review_schemas import Disposition, Final, ReviewState
from serving.schemas import Share, Wire

QueueOrder = Literal["newest", "worst", "uncertain"]
QueueState = Literal["open", "done", "all"]


class QueueLinks(Wire):
    thumbnail: str
    report: str


class QueueItem(Wire):
    """One board in the queue."""

    id: str
    created: AwareDatetime
    verdict: Verdict
    serial: str | None
    recipe: str | None
    attempt: int | None
    model_version: str
    score: Share
    uncertainty: Share = Field(
        description="1: a score lies on its threshold; falling to 0 at the ends of the scale"
    )
    num_defects: int
    labels: tuple[str, ...] = Field(description="classes of its calls, highest score first")
    state: ReviewState
    disposition: Disposition | None
    final: Final | None
    audit: bool = Field(description="a PASS that was drawn to be looked at")
    revision: int = Field(description="of its review; 0: nobody yet")
    links: QueueLinks


class QueueCounts(Wire):
    """Boards that the query names, on all of its pages."""

    open: int = Field(description="due for review and open, whatever `state` the query asks for")
    done: int = Field(description="due for review and done, whatever `state` the query asks for")
    by_verdict: dict[Verdict, int]
    by_label: dict[str, int] = Field(description="boards with at least one call of the class")


class QueuePage(Wire):
    items: tuple[QueueItem, ...]
    next: str | None = Field(description="link to the next page, null on the last one")
    counts: QueueCounts


class ReviewEvent(Wire):
    """Data of the event `review`: somebody spoke."""

    id: str
    revision: int
    state: ReviewState
    actor: str = Field(description="name of the key; empty: without keys")
