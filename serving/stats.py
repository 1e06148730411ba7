"""Figures of the line over a span of time: what was good, what was called in vain, what escaped."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from inspect_vit.results import Verdict
from serving import stats_reads as reads
from serving.errors import NotFoundError
from serving.ids import second_of
from serving.recipes import list_revisions
from serving.stats_figures import FIELD_OF_WORD, LIMITS, PANEL_SIDE_MM2, control_limits, kappa, pareto, rate
from serving.stats_reads import Board, Span, Words
from serving.stats_schemas import (
    Agreement,
    AuditFigures,
    BoardCounts,
    Bucket,
    EscapeFigures,
    FalseCallFigures,
    FirstPassYield,
    Place,
    Rate,
    ReferenceSize,
    Stats,
    TrendPoint,
)

BUCKET_S = {"hour": 3600, "day": 86_400}
Tally = defaultdict[Any, Counter[str]]


@dataclass
class _Count:
    """What one pass over the boards adds up."""

    boards: Counter[str] = field(default_factory=Counter)
    buckets: Tally = field(default_factory=lambda: defaultdict(Counter))
    """By number of the bucket since 1970."""
    sides: Counter[tuple[str | None, int | None]] = field(default_factory=Counter)
    """Boards inspected by recipe and revision."""
    side_of: dict[str, tuple[str | None, int | None]] = field(default_factory=dict)
    """Recipe and revision of boards that failed or were reviewed: the others have neither calls nor words."""
    escaped: set[str] = field(default_factory=set)


def make_stats(engine: Engine, span: Span, bucket: Bucket) -> Stats:
    """Count a span; days of which retention has deleted boards are left out of it."""
    with Session(engine) as session:
        # A board that is read as failed must not be read as passed and escaped a query later.
        reads.at_one_moment(session)
        complete = reads.complete_since(session)
        asked_since = span.since
        if complete is not None and complete > span.since:
            span = replace(span, since=min(complete, span.until))
        count = _count_boards(reads.read_boards(session, span), BUCKET_S[bucket])
        words = {
            one.inspection: one for one in reads.read_words(session, span) if one.inspection in count.side_of
        }
        pairs = kappa(reads.word_pairs(session, span, count.side_of))
        by_label, by_recipe = _tally(reads.read_calls(session, span), words, count)
        false_calls = _false_calls(session, words, count, bucket)
        tested = reads.failed_tests(session, span)
        places, num_places = reads.read_places(session, span) if span.recipe is not None else ([], 0)
        challenge = reads.count_challenges(session, span)
        shown = tuple(
            Place(
                x=row.x or 0.0,
                y=row.y or 0.0,
                label=label,
                word=word,
                reference=row.reference,
            )
            for row in places
            for word, label in [_word(words, row.inspection, row.defect, row.label)]
        )
    n = count.boards
    passed = n["passed"] + n["found_good"]
    escapes = len(count.escaped | tested)
    return Stats(
        since=span.since,
        until=span.until,
        asked_since=asked_since,
        recipe=span.recipe,
        bucket=bucket,
        boards=BoardCounts(
            challenge=challenge,
            **{name: n[name] for name in BoardCounts.model_fields if name != "challenge"},
        ),
        first_pass_yield=FirstPassYield(
            before_review=rate(n["first_passed"], n["first"], _FIRST, is_share=True),
            after_review=rate(n["first_good"], n["first"], _FIRST, is_share=True),
        ),
        false_calls=false_calls,
        escapes=EscapeFigures(
            boards=rate(escapes, passed, "board that was passed", is_share=True),
            by_review=len(count.escaped),
            by_test=len(tested),
            missed_defects=sum(len(one.missed) for one in words.values()),
        ),
        by_label=pareto(by_label),
        by_recipe=pareto(by_recipe),
        references=_references(engine, span.recipe),
        places=shown,
        num_places=num_places,
        trend=_trend(count, BUCKET_S[bucket]),
        limits=LIMITS,
        audit=AuditFigures(
            drawn=n["drawn"],
            reviewed=n["drawn_reviewed"],
            escapes=n["drawn_escapes"],
            escape_rate=rate(
                n["drawn_escapes"], n["drawn_reviewed"], "drawn board that was reviewed", is_share=True
            ),
        ),
        agreement=Agreement(calls=pairs[0], agreed=pairs[1], kappa=pairs[2]),
    )


_FIRST = "board at its first attempt"


def _count_boards(boards: Iterable[Board], bucket_s: int) -> _Count:
    count, seen = _Count(), set[str]()
    n = count.boards
    for board in boards:
        is_done = board.state == "done" and not board.is_hasty
        final = board.final if is_done else None
        side = board.recipe, board.revision
        if board.verdict != Verdict.PASS.value or board.review:
            count.side_of[board.id] = side
        n["hasty"] += bool(board.is_hasty)
        if board.is_drawn:
            n["drawn"] += 1
            n["drawn_reviewed"] += is_done
            n["drawn_escapes"] += final == "bad"
        if board.verdict == Verdict.ERROR.value:
            n["not_inspected"] += 1
            continue
        is_pass = board.verdict == Verdict.PASS.value
        n["inspected"] += 1
        n["passed" if is_pass else "failed"] += 1
        n["failed_open"] += not is_pass and not is_done
        n["found_good"] += not is_pass and final == "good"
        n["without_serial"] += board.serial is None
        if is_pass and final == "bad":
            count.escaped.add(board.id)
        count.sides[side] += 1
        bucket = count.buckets[second_of(board.id) // bucket_s]
        bucket["inspected"] += 1
        # A first picture that was sent again is the same attempt.
        if board.serial is not None and (board.attempt != 1 or board.serial in seen):
            continue
        if board.serial is not None:
            seen.add(board.serial)
        n["first"] += 1
        n["first_passed"] += is_pass
        n["first_good"] += is_pass if final is None else final == "good"
        bucket["first"] += 1
        bucket["first_passed"] += is_pass
    return count


def _tally(
    calls: Iterable[tuple[str, int, str]], words: dict[str, Words], count: _Count
) -> tuple[Tally, Tally]:
    """Calls and words by class, and by recipe."""
    by_label, by_recipe = Tally(Counter), Tally(Counter)
    for inspection, defect, label in calls:
        if inspection not in count.side_of:
            continue
        recipe, _ = count.side_of[inspection]
        by_label[label]["calls"] += 1
        by_recipe[recipe]["calls"] += 1
        word, after = _word(words, inspection, defect, label)
        if word is not None:
            by_label[label if word == "false_call" else after][FIELD_OF_WORD[word]] += 1
            by_recipe[recipe][FIELD_OF_WORD[word]] += 1
    for one in words.values():
        recipe, _ = count.side_of[one.inspection]
        for label in one.missed:
            by_label[label]["missed"] += 1
            by_recipe[recipe]["missed"] += 1
    return by_label, by_recipe


def _word(words: dict[str, Words], inspection: str, defect: int, label: str) -> tuple[Any, str]:
    """The word for a call and its class after review; None and the class that was called without one."""
    review = words.get(inspection)
    return (None, label) if review is None else review.calls.get(defect, (None, label))


def _false_calls(
    session: Session, words: dict[str, Words], count: _Count, bucket: Bucket
) -> FalseCallFigures:
    areas = reads.areas_mm2(session, count.sides)
    total = on_known = 0
    for one in words.values():
        number = sum(word == "false_call" for word, _ in one.calls.values())
        total += number
        side = count.side_of.get(one.inspection)
        on_known += number if side in areas else 0
        count.buckets[second_of(one.inspection) // BUCKET_S[bucket]]["false_calls"] += number
    area_mm2 = sum(areas[side] * number for side, number in count.sides.items() if side in areas)
    return FalseCallFigures(
        count=total,
        boards=rate(count.boards["found_good"], count.boards["inspected"], "board inspected", is_share=True),
        rates=(
            rate(total, count.boards["inspected"], "board inspected"),
            *_per_area(on_known, area_mm2),
        ),
    )


def _per_area(number: int, area_mm2: float) -> tuple[Rate, Rate]:
    return (
        rate(number, area_mm2 / PANEL_SIDE_MM2, "18x24 inch panel side inspected"),
        rate(number, area_mm2, "mm2 inspected"),
    )


def _trend(count: _Count, bucket_s: int) -> tuple[TrendPoint, ...]:
    starts = sorted(number for number, bucket in count.buckets.items() if bucket["inspected"])
    first, passed = count.boards["first"], count.boards["first_passed"]
    sizes = [count.buckets[number]["first"] for number in starts]
    limits = control_limits([max(size, 1) for size in sizes], passed / first if first else 0.0)
    points = []
    for number, size, (lower, upper) in zip(starts, sizes, limits.tolist(), strict=True):
        bucket = count.buckets[number]
        share = bucket["first_passed"] / size if size else None
        points.append(
            TrendPoint(
                start=datetime.fromtimestamp(number * bucket_s, UTC),
                boards=size,
                first_pass_yield=share,
                false_call_rate=bucket["false_calls"] / bucket["inspected"],
                lower=lower if size else None,
                upper=upper if size else None,
                out_of_control=share is not None and not lower <= share <= upper,
            )
        )
    return tuple(points)


def _references(engine: Engine, recipe: str | None) -> tuple[ReferenceSize, ...]:
    if recipe is None:
        return ()
    try:
        newest = list_revisions(engine, recipe)[0]
    except NotFoundError:
        return ()
    return tuple(
        ReferenceSize(name=one.name, width=one.width, height=one.height) for one in newest.references
    )
