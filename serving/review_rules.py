"""What may be said of an inspection, when its review is done, and what is said too fast to be believed."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from inspect_vit.results import Verdict
from serving.errors import FieldError
from serving.review_schemas import MAX_CALLS, Document, Final, Missed, Point, ReviewState, Verification
from serving.schemas import ImageSize, StoredReport
from serving.uploads import check_label

MAX_POINTS_IN_ALL = 20_000
LEAST_AREA_PX = 1.0
HASTY_WORDS, HASTY_PER_S = 200, 3.0
"""So many false calls at such a rate or faster were not looked at one by one."""
HASTY_REACH_S = (HASTY_WORDS + MAX_CALLS) / HASTY_PER_S
"""No run of revisions that just reaches HASTY_WORDS takes longer, as one revision has MAX_CALLS at most."""
QUESTION = (
    f"{HASTY_WORDS} or more calls were said to be false calls at {HASTY_PER_S:g} a second or faster, this "
    "board's among them. Was each of them looked at? They are kept out of retraining until the same "
    "verification is sent once more"
)


def said(asked: Verification, report: StoredReport, before: Document) -> Document:
    """The document after a verification, with names as they are kept.

    Raises:
        FieldError: a call that the inspection does not list, or that has two words; a class that cannot be a
            name; a place that does not lie within the image.
    """
    listed, seen = {defect.id for defect in report.defects}, set[int]()
    for n, call in enumerate(asked.calls):
        if call.defect not in listed:
            wanted = (
                f"one of the calls 1 to {len(listed)}" if listed else "no word: this inspection lists none"
            )
            raise FieldError(f"calls.{n}.defect: {call.defect}, wanted {wanted}")
        if call.defect in seen:
            raise FieldError(f"calls.{n}.defect: {call.defect} has two words, wanted one")
        seen.add(call.defect)
    num_points = sum(len(one.polygon or ()) for one in asked.missed)
    if num_points > MAX_POINTS_IN_ALL:
        raise FieldError(f"missed: {num_points} points in all polygons, wanted at most {MAX_POINTS_IN_ALL}")
    for n, one in enumerate(asked.missed):
        _check_place(f"missed.{n}", one, report.image)
    return before.model_copy(
        update={
            "calls": tuple(
                call.model_copy(update={"label": _clean(f"calls.{n}.label", call.label)})
                for n, call in enumerate(asked.calls)
            ),
            "missed": tuple(
                one.model_copy(update={"label": _clean(f"missed.{n}.label", one.label)})
                for n, one in enumerate(asked.missed)
            ),
            "checked": asked.checked,
        }
    )


def stands(document: Document, report: StoredReport) -> tuple[ReviewState, Final | None]:
    """Whether a review is done, and what the board then is.

    A board that was not inspected (ERROR) lists no calls; it too is bad when something was missed.
    """
    is_bad = bool(document.missed) or any(call.word == "real" for call in document.calls)
    has_words = {defect.id for defect in report.defects} <= {call.defect for call in document.calls}
    is_done = (
        document.checked
        and (has_words or report.verdict is Verdict.ERROR)
        and (document.disposition is not None or not is_bad)
    )
    return "done" if is_done else "open", "bad" if is_bad else "good" if is_done else None


def new_false_calls(before: Document, after: Document) -> int:
    """Calls that become false calls by a verification."""
    return len(_false_calls(after) - _false_calls(before))


@dataclass(frozen=True)
class Span:
    """What one person said in one revision."""

    num_false: int
    created: datetime
    """When the board was inspected: nobody can have looked at it before."""
    at: datetime


def hasty_run(spans: Sequence[Span]) -> int:
    """How many of one person's newest revisions came too fast together; 0: they did not.

    Args:
        spans: newest first, all of them back to `HASTY_REACH_S` before the newest. What a revision says may
            have been looked at since the person's revision before it, and since the board was there.
    """
    num_false = 0
    for n, span in enumerate(spans, start=1):
        num_false += span.num_false
        if num_false >= HASTY_WORDS:
            times = [
                one for one in (span.created, *(older.at for older in spans[n : n + 1])) if one <= span.at
            ]
            spent_s = (spans[0].at - max(times)).total_seconds() if times else HASTY_REACH_S
            return n if spent_s * HASTY_PER_S <= num_false else 0
    return 0


def stays_hasty(before: Document, after: Document) -> bool:
    """Whether doubts about a verification hold for the next: not when it is sent unchanged, as an answer to
    the question, and not when none of its false calls is left."""
    is_confirmed = (before.calls, before.missed, before.checked) == (after.calls, after.missed, after.checked)
    return not is_confirmed and bool(_false_calls(before) & _false_calls(after))


def _false_calls(document: Document) -> set[int]:
    return {call.defect for call in document.calls if call.word == "false_call"}


def _clean(name: str, label: str) -> str:
    cleaned = unicodedata.normalize("NFC", check_label(name, label.strip()))
    if not cleaned:
        raise FieldError(f"{name}: {label!r}, wanted the name of a class")
    return cleaned


def _check_place(name: str, missed: Missed, image: ImageSize) -> None:
    if (missed.box_xyxy is None) == (missed.polygon is None):
        told = "neither" if missed.box_xyxy is None else "both"
        raise FieldError(f"{name}: {told} of box_xyxy and polygon, wanted one of them")
    if missed.box_xyxy is not None:
        left, top, right, bottom = missed.box_xyxy
        points: tuple[Point, ...] = ((left, top), (right, top), (right, bottom), (left, bottom))
        field, is_whole = "box_xyxy", left < right and top < bottom
    else:
        points = missed.polygon or ()
        field, is_whole = "polygon", True
    for x, y in points:
        if not (0 <= x <= image.width and 0 <= y <= image.height):
            raise FieldError(
                f"{name}.{field}: the point ({x:g}, {y:g}) lies outside the image, which is "
                f"{image.width} x {image.height} px"
            )
    if not is_whole:
        raise FieldError(f"{name}.{field}: {missed.box_xyxy}, wanted left < right and top < bottom")
    if (area := _area(points)) < LEAST_AREA_PX:
        raise FieldError(f"{name}.{field}: an area of {area:g} px, wanted at least {LEAST_AREA_PX:g}")


def _area(points: Sequence[Point]) -> float:
    """Of a polygon, by the shoelace formula."""
    following = (*points[1:], points[0])
    return abs(sum(x * v - u * y for (x, y), (u, v) in zip(points, following, strict=True))) / 2
