"""Calls like a call: the same recipe's, the same class before others, near before far, on either database."""

from __future__ import annotations

import dataclasses
from contextlib import closing

import pytest
from sqlalchemy.orm import Session

from inspect_vit.results import BoxXyxy, Defect
from serving.config import ServingConfig
from serving.database import InspectionRow
from serving.errors import NotFoundError
from serving.schemas import StoredReport
from serving.similar import similar_calls
from serving.store import Store
from tests.serving.boards import Boards
from tests.serving.reviewing import verify

GATES = {"4": 0.5, "16": 0.25, "32": 0.25}


def add(
    store: Store,
    boards: Boards,
    label: str,
    box: BoxXyxy,
    *,
    recipe: str | None = "panel",
    place_mm: tuple[float, float] | None = None,
    place_px: tuple[float, float] | None = None,
    reference: str = "top",
    verdict: str = "FAIL",
    serial: str | None = None,
) -> StoredReport:
    """Store a board of 1000 x 800 px with one call."""
    area = int((box[2] - box[0]) * (box[3] - box[1]))
    boards.result = dataclasses.replace(
        boards.result, width=1000, height=800, defects=(Defect(label, 0.9, box, area, GATES),)
    )
    report = boards.report(verdict=verdict, serial=serial)
    told = report.model_dump()
    told["recipe"] = recipe
    if place_mm is not None:
        told["defects"] = [{**told["defects"][0], "place_mm": place_mm, "size_mm": (1.0, 1.0)}]
    if place_px is not None:
        told["defects"] = [{**told["defects"][0], "place_px": place_px}]
        told["reference"] = {**told["reference"], "name": reference}
    report = StoredReport.model_validate(told)
    boards.add(store, report, digest=report.id * 2)
    return report


def square(x: float, y: float, side: float = 20.0) -> BoxXyxy:
    return (x - side / 2, y - side / 2, x + side / 2, y + side / 2)


def test_alike_is_class_then_place_then_size(config: ServingConfig, boards: Boards) -> None:
    with closing(Store(config)) as store:
        far = add(store, boards, "short", square(900, 700))
        large = add(store, boards, "short", square(501, 401, 60), serial="SN-7")
        other_class = add(store, boards, "open", square(500, 400))
        near = add(store, boards, "short", square(503, 398, 21))
        asked = add(store, boards, "short", square(500, 400))
        add(store, boards, "short", square(500, 400), recipe="another")
        add(store, boards, "short", square(500, 400), recipe=None)
        add(store, boards, "short", square(500, 400), verdict="PASS")
        found = similar_calls(store.engine, asked, 1, limit=8).calls
        assert [call.inspection for call in found] == [one.id for one in (near, large, far, other_class)]
        assert (found[1].serial, found[1].defect, found[1].label, found[1].score) == ("SN-7", 1, "short", 0.9)
        assert all(call.word is None and call.distance_mm is None for call in found)
        assert found[0].crop == f"/v1/inspections/{near.id}/crops/image?box=471,366,535,430&size=240"
        assert len(similar_calls(store.engine, asked, 1, limit=2).calls) == 2


def test_places_on_the_board_count_where_they_are_known(config: ServingConfig, boards: Boards) -> None:
    with closing(Store(config)) as store:
        # In the picture the first lies nearer, on the board the second does: it was placed askew.
        seen_near = add(store, boards, "short", square(510, 400), place_mm=(40.0, 10.0))
        lies_near = add(store, boards, "short", square(800, 400), place_mm=(13.0, 14.0))
        asked = add(store, boards, "short", square(500, 400), place_mm=(10.0, 10.0))
        found = similar_calls(store.engine, asked, 1, limit=8).calls
        assert [(call.inspection, call.distance_mm) for call in found] == [
            (lies_near.id, 5.0),
            (seen_near.id, 30.0),
        ]


def test_reports_are_read_of_the_likeliest_calls_alone(config: ServingConfig, boards: Boards) -> None:
    with closing(Store(config)) as store:
        places = {"far": (900.0, 700.0), "near": (506.0, 400.0), "large": (500.0, 405.0)}
        made = {
            name: add(store, boards, "short", square(500, 400, 40 if name == "large" else 20), place_px=place)
            for name, place in places.items()
        }
        other_side = add(store, boards, "short", square(500, 400), place_px=(500.0, 400.0), reference="back")
        asked = add(store, boards, "short", square(100, 100), place_px=(500.0, 400.0))
        with Session(store.engine) as session:
            for unread in (made["far"], other_side):
                session.get_one(InspectionRow, unread.id).report = "no report"
            session.commit()
        found = similar_calls(store.engine, asked, 1, limit=2).calls
        # Both lie in the nearest band, and one has the asked call's size.
        assert [call.inspection for call in found] == [made["near"].id, made["large"].id]


def test_boards_without_a_recipe_are_compared_among_themselves(config: ServingConfig, boards: Boards) -> None:
    with closing(Store(config)) as store:
        alone = add(store, boards, "short", square(5, 5), recipe=None)
        add(store, boards, "short", square(5, 5))
        asked = add(store, boards, "short", square(9, 9), recipe=None)
        (found,) = similar_calls(store.engine, asked, 1, limit=8).calls
        assert found.inspection == alone.id
        assert "box=0,0,64,64&" in found.crop, "the crop stays on the board"


def test_calls_that_somebody_judged_come_before_nearer_ones(config: ServingConfig, boards: Boards) -> None:
    with closing(Store(config)) as store:
        judged = add(store, boards, "short", square(900, 700))
        near = add(store, boards, "short", square(503, 398))
        asked = add(store, boards, "short", square(500, 400))
        verify(store, judged.id, 0, "false_call")
        found = similar_calls(store.engine, asked, 1, limit=8).calls
        told = [(call.inspection, call.word) for call in found]
        assert told == [(judged.id, "false_call"), (near.id, None)]


def test_a_call_that_is_not_there(config: ServingConfig, boards: Boards) -> None:
    with closing(Store(config)) as store:
        asked = add(store, boards, "short", square(500, 400))
        with pytest.raises(NotFoundError, match="has no defect 2; it lists 1"):
            similar_calls(store.engine, asked, 2, limit=8)
