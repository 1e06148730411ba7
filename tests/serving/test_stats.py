"""Figures of the line against a line small enough to count by hand, the queries in either database."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from sqlalchemy.orm import Session

from inspect_vit.recipe import Recipe
from serving.config import ServingConfig
from serving.database import alembic_config
from serving.line_tables import CallRow, ChallengeRunRow, PrunedDayRow
from serving.recipes import ReferenceFile, put_recipe
from serving.retention import Limits, prune
from serving.roles import ANYONE
from serving.stats import make_stats
from serving.stats_csv import stats_csv
from serving.stats_figures import control_limits, kappa
from serving.stats_reads import Span
from serving.stats_schemas import Stats
from serving.store import Store
from serving.tested import import_results, read_rows
from tests.serving.reviewed import Line

DAY = "2026-03-02"
SPAN = Span(datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(ServingConfig(home=tmp_path, min_free_mb=0.0))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A line that is only read."""
    opened = Store(ServingConfig(home=tmp_path_factory.mktemp("filled"), min_free_mb=0.0))
    fill(opened)
    yield opened
    opened.close()


@pytest.fixture
def either(config: ServingConfig) -> Iterator[Store]:
    opened = Store(config)
    yield opened
    opened.close()


def fill(store: Store) -> dict[str, str]:
    """Thirteen inspections from 8 to 10 h, all but one by the recipe "panel", a board of 100 x 200 mm."""
    line = Line(store)
    put_recipe(store.engine, "panel", Recipe(board_mm=(100.0, 200.0)), (), ANYONE)
    panel: dict[str, Any] = {"recipe": "panel", "revision": 1}
    ids = {
        "A": line.inspect(f"{DAY}T08:01+00:00", "PASS", serial="A", **panel),
        "B": line.inspect(
            f"{DAY}T08:02+00:00", "FAIL", ("short", 0.8), ("open", 0.6), serial="B",
            at=[(10.0, 20.0), (30.0, 40.0)], **panel,
        ),
        "B2": line.inspect(f"{DAY}T08:03+00:00", "PASS", serial="B", **panel),
        "C": line.inspect(f"{DAY}T08:04+00:00", "FAIL", ("short", 0.9), serial="C", **panel),
        "D": line.inspect(f"{DAY}T08:05+00:00", "ERROR", serial="D", **panel),
        "E": line.inspect(f"{DAY}T08:06+00:00", "PASS", serial="E", **panel),
        "F": line.inspect(f"{DAY}T09:01+00:00", "FAIL", ("short", 0.7), serial="F", **panel),
        "nameless": line.inspect(f"{DAY}T09:02+00:00", "PASS"),
        "G": line.inspect(f"{DAY}T09:03+00:00", "PASS", serial="G", **panel),
        "H": line.inspect(f"{DAY}T09:04+00:00", "PASS", serial="H", **panel),
        "I": line.inspect(f"{DAY}T09:05+00:00", "FAIL", ("mousebite", 0.5), serial="I", **panel),
        "J": line.inspect(f"{DAY}T09:06+00:00", "PASS", serial="A", picture=b"picture 1", **panel),
        "challenge": line.inspect(f"{DAY}T09:07+00:00", "FAIL", ("short", 0.9), serial="X", **panel),
    }  # fmt: skip
    line.review(ids["B"], ("false_call", "short"), ("false_call", "open"), final="good")
    line.review(ids["C"], ("real", "spur"), final="bad")
    line.review(ids["E"], missed=["open"], final="bad")
    line.review(ids["F"], ("false_call", "short"), final=None)
    line.review(ids["G"], final="good")
    line.review(ids["I"], ("false_call", "mousebite"), final="good")
    line.place(ids["E"], audit=True)
    line.place(ids["G"], audit=True)
    with Session(store.engine) as session:
        session.add(ChallengeRunRow(inspection=ids["challenge"], recipe="panel", serial="X", is_found=True))
        session.commit()
    import_results(store.engine, read_rows("serial,result\nH,fail\nA,pass\nC,fail\n"), ANYONE)
    return ids


def test_every_figure_is_what_a_count_by_hand_says(either: Store) -> None:
    fill(either)
    stats = make_stats(either.engine, SPAN, "hour")
    assert stats.boards.model_dump() == {
        "inspected": 11,
        "passed": 7,
        "failed": 4,
        "not_inspected": 1,
        "first": 9,
        "without_serial": 1,
        "failed_open": 1,
        "hasty": 0,
        "challenge": 1,
    }
    # First attempts: A B C E F nameless G H I. B2 is a second one, J is A's first picture sent again.
    before, after = stats.first_pass_yield.before_review, stats.first_pass_yield.after_review
    assert (before.count, before.of) == (5, 9), "A E nameless G H"
    assert (after.count, after.of) == (6, 9), "E was found bad, B and I good; nobody has finished F"
    assert before.lower is not None and before.lower < 5 / 9 < (before.upper or 0.0)
    false_calls = stats.false_calls
    assert false_calls.count == 3, "F's review is not finished"
    assert (false_calls.boards.count, false_calls.boards.of) == (2, 11)
    per_board, per_side, per_mm2 = false_calls.rates
    assert per_board.value == pytest.approx(3 / 11)
    assert per_side.of == pytest.approx(10 * 20_000 / 278_709.12), "ten boards by the recipe, 2787 cm2 a side"
    assert per_mm2.ppm == pytest.approx(1e6 * 3 / 200_000)
    assert stats.escapes.model_dump(exclude={"boards"}) == {"by_review": 1, "by_test": 1, "missed_defects": 1}
    assert (stats.escapes.boards.count, stats.escapes.boards.of) == (2, 9), "C failed, so it did not escape"
    assert (stats.audit.drawn, stats.audit.reviewed, stats.audit.escapes) == (2, 2, 1)


def test_no_more_boards_escape_than_were_passed(either: Store) -> None:
    """Tests fail boards that were not inspected but called good by people, or called so too quickly."""
    line = Line(either)
    passed = line.inspect(f"{DAY}T08:00+00:00", "PASS", serial="P")
    for serial, verdict in (("E", "ERROR"), ("E2", "ERROR"), ("Q", "FAIL"), ("G", "FAIL")):
        board = line.inspect(f"{DAY}T08:01+00:00", verdict, serial=serial)
        line.review(board, final="good", is_hasty=serial == "Q")
    found = import_results(
        either.engine, read_rows("serial,result\nP,fail\nE,fail\nE2,fail\nQ,fail\nG,fail"), ANYONE
    )
    assert {one.serial for one in found.escapes} == {"P", "E", "E2", "Q", "G"}, "people let all of them pass"
    escapes = make_stats(either.engine, SPAN, "day").escapes
    assert (escapes.by_test, escapes.boards.count, escapes.boards.of) == (2, 2, 2.0), "P and G"
    assert passed in {one.inspection for one in found.escapes}


def test_figures_are_of_one_moment(either: Store) -> None:
    """Both boards are reviewed and fail test while the figures are being read."""
    line = Line(either)
    boards = [line.inspect(f"{DAY}T08:0{n}+00:00", "FAIL", serial=f"F{n}") for n in range(2)]
    line.inspect(f"{DAY}T08:05+00:00", "PASS", serial="P")
    waiting = [True]

    def meanwhile(*seen: Any) -> None:
        if "FROM test_results" in seen[2] and waiting:
            waiting.clear()
            for board in boards:
                line.review(board, final="good")
            import_results(either.engine, read_rows("serial,result\nF0,fail\nF1,fail"), ANYONE)

    sa.event.listen(either.engine, "before_cursor_execute", meanwhile)
    escapes = make_stats(either.engine, SPAN, "day").escapes
    assert not waiting
    assert (escapes.boards.count, escapes.boards.of) == (0, 1.0)
    later = make_stats(either.engine, SPAN, "day").escapes
    assert (later.boards.count, later.boards.of) == (2, 3.0)


def test_classes_and_recipes_come_in_the_order_of_their_calls(filled: Store) -> None:
    stats = make_stats(filled.engine, SPAN, "hour")
    table = {line.name: line for line in stats.by_label}
    assert [line.name for line in stats.by_label] == ["short", "mousebite", "open", "spur"]
    assert [line.calls for line in stats.by_label] == [3, 1, 1, 0]
    assert [line.cumulative for line in stats.by_label] == pytest.approx([0.6, 0.8, 1.0, 1.0])
    assert (table["short"].real, table["short"].false_calls, table["spur"].real) == (0, 1, 1)
    assert (table["open"].false_calls, table["open"].missed) == (1, 1)
    (panel,) = stats.by_recipe
    assert (panel.name, panel.calls, panel.real, panel.false_calls, panel.missed) == ("panel", 5, 1, 3, 1)


def test_the_trend_has_one_point_an_hour_and_its_own_limits(filled: Store) -> None:
    eight, nine = make_stats(filled.engine, SPAN, "hour").trend
    assert (eight.start.hour, eight.boards, eight.first_pass_yield) == (8, 4, 0.5)
    assert (nine.start.hour, nine.boards, nine.first_pass_yield) == (9, 5, pytest.approx(0.6))
    assert (eight.false_call_rate, nine.false_call_rate) == (2 / 5, pytest.approx(1 / 6))
    assert (eight.lower, eight.upper, eight.out_of_control) == (0.0, 1.0, False)
    (day,) = make_stats(filled.engine, SPAN, "day").trend
    assert (day.start, day.boards) == (SPAN.since, 9)


def test_places_lie_on_the_reference_and_carry_their_words(store: Store) -> None:
    fill(store)
    put_recipe(store.engine, "panel", Recipe(), (ReferenceFile("top", "0" * 64, 640, 480),), ANYONE)
    assert make_stats(store.engine, SPAN, "day").places == (), "places of several recipes make no picture"
    stats = make_stats(store.engine, Span(SPAN.since, SPAN.until, "panel"), "day")
    assert [(one.x, one.y, one.label, one.word) for one in stats.places] == [
        (10.0, 20.0, "short", "false_call"),
        (30.0, 40.0, "open", "false_call"),
    ], "the other calls' places are not known"
    assert (stats.num_places, stats.places[0].reference) == (2, "top")
    assert [one.model_dump() for one in stats.references] == [{"name": "top", "width": 640, "height": 480}]
    assert stats.boards.without_serial == 0


def test_a_hasty_review_counts_as_none(store: Store) -> None:
    ids = fill(store)
    Line(store).review(ids["I"], ("false_call", "mousebite"), final="good", is_hasty=True)
    stats = make_stats(store.engine, SPAN, "day")
    assert (stats.boards.hasty, stats.boards.failed_open, stats.false_calls.count) == (1, 2, 2)
    assert stats.first_pass_yield.after_review.count == 5


def test_two_people_agree_by_the_last_word_of_each(either: Store) -> None:
    line = Line(either)
    calls = [("short", 0.9)] * 4
    board = line.inspect(f"{DAY}T08:00+00:00", "FAIL", *calls)
    real, false = ("real", "short"), ("false_call", "short")
    line.review(board, false, false, false, false, actor="ann", final="good")
    line.review(board, real, real, false, false, actor="ann", final="bad")
    line.review(board, real, false, false, real, actor="bob", final="bad")
    alone = line.inspect(f"{DAY}T08:01+00:00", "FAIL", *calls)
    line.review(alone, real, real, real, real, actor="ann", final="bad")
    agreement = make_stats(either.engine, SPAN, "day").agreement
    # Each says real half of the time: by chance they agree on half, and so they do.
    assert (agreement.calls, agreement.agreed, agreement.kappa) == (4, 2, 0.0)


def test_kappa_is_that_of_the_textbook_table() -> None:
    """Two readers of 50 grants: 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no; observed 0.7, by chance 0.5."""
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert kappa(pairs) == (50, 35, pytest.approx(0.4))
    assert kappa([]) == (0, 0, None)
    assert kappa([("y", "y")]) == (1, 1, None)


@pytest.mark.parametrize(("n", "share"), [(1, 0.9), (10, 0.9), (200, 0.97), (50, 0.0), (50, 1.0)])
def test_control_limits_leave_out_no_more_than_three_sigma_would(n: int, share: float) -> None:
    chances = [math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
    ((lower, upper),) = control_limits([n], share).tolist()
    low, high = round(lower * n), round(upper * n)
    assert sum(chances[:low]) < 0.00135 <= sum(chances[: low + 1]) + 1e-12
    assert sum(chances[:high]) < 0.99865 <= sum(chances[: high + 1]) + 1e-12


def test_figures_start_behind_what_retention_deleted(store: Store) -> None:
    ids = fill(store)
    later = Span(SPAN.since, datetime(2026, 3, 5, tzinfo=UTC))
    line = Line(store)
    line.inspect("2026-03-03T12:00+00:00", "PASS", serial="K")
    pruned = prune(store, Limits(keep_days=0.0, keep_bytes=None), pause_s=0.0)
    assert pruned.num_inspections >= 8
    with Session(store.engine) as session:
        assert {row.day for row in session.scalars(sa.select(PrunedDayRow))} == {DAY, "2026-03-03"}
        left = set(session.scalars(sa.select(CallRow.inspection)))
    assert ids["F"] in left, "nobody has finished its review"
    line.inspect("2026-03-04T12:00+00:00", "PASS", serial="L")
    stats = make_stats(store.engine, later, "day")
    assert (stats.since, stats.asked_since) == (datetime(2026, 3, 4, tzinfo=UTC), SPAN.since)
    assert (stats.boards.inspected, stats.boards.failed) == (1, 0), "a day without its passes has no yield"


def test_an_empty_span_has_no_rates(store: Store) -> None:
    stats = make_stats(store.engine, SPAN, "day")
    assert stats.first_pass_yield.before_review.value is None
    assert (stats.trend, stats.by_label, stats.agreement.kappa) == ((), (), None)
    assert Stats.model_validate_json(stats.model_dump_json()) == stats


def test_the_table_holds_the_same_figures_and_no_formulas(store: Store) -> None:
    fill(store)
    Line(store).inspect(f"{DAY}T09:30+00:00", "FAIL", ("=cmd()", 0.9), recipe="@panel")
    rows = list(csv.DictReader(io.StringIO(stats_csv(make_stats(store.engine, SPAN, "day")))))
    found = {(row["figure"], row["group"]): row for row in rows}
    assert found["first_pass_yield", "after_review"]["count"] == "6"
    assert found["boards", "inspected"]["value"] == "12"
    assert found["by_label", "'=cmd(): calls"]["value"] == "1"
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "@"))]


def test_the_migration_finds_the_calls_of_reports_that_are_there(config: ServingConfig) -> None:
    store = Store(config)
    line = Line(store)
    put_recipe(store.engine, "panel", Recipe(px_per_mm=10.0), (), ANYONE)
    free = line.inspect(f"{DAY}T08:00+00:00", "FAIL", ("short", 0.8), ("open", 0.6), has_reference=False)
    laid = line.inspect(f"{DAY}T08:01+00:00", "FAIL", ("short", 0.7), recipe="panel", revision=1)
    query = sa.select(CallRow.inspection, CallRow.defect, CallRow.label, CallRow.score, CallRow.x, CallRow.y)
    with store.engine.begin() as connection:
        before = connection.execute(query.order_by(CallRow.inspection, CallRow.defect)).all()
        command.downgrade(alembic_config(connection), "0006")
        assert not {"calls", "challenges", "test_results"} & set(sa.inspect(connection).get_table_names())
        command.upgrade(alembic_config(connection), "head")
        after = connection.execute(query.order_by(CallRow.inspection, CallRow.defect)).all()
    assert after == before
    assert [tuple(row) for row in after] == [
        (free, 1, "short", 0.8, 1.5, 4.5),
        (free, 2, "open", 0.6, 5.5, 4.5),
        (laid, 1, "short", 0.7, None, None),
    ]
    store.close()
