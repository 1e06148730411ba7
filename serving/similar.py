"""Calls like a call: what the same recipe's boards showed at the same place, and what people said of it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import urlencode

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from inspect_vit.drawing import Rect
from inspect_vit.results import BoxXyxy, Verdict
from serving.calls import calls_of
from serving.crops import box_around
from serving.database import InspectionRow
from serving.errors import NotFoundError
from serving.line_tables import CallRow
from serving.picture_schemas import SimilarCall, SimilarCalls
from serving.reviews import latest_reviews
from serving.schemas import DefectReport, StoredReport

NUM_SEARCHED = 500
"""The newest failed boards of the recipe that are searched: bounds the time."""
CROP_PX = 240
NEAR_SHARE = 0.01
"""Of the board's longest side: the nearest band of places. Each further band reaches twice as far."""

FARTHEST = 99
"""Band of a call on another side or lighting of the product: of another reference."""

Words = Mapping[tuple[str, int], str]
"""(inspection, defect) -> what a person said of the call."""


def similar_calls(engine: Engine, report: StoredReport, number: int, *, limit: int) -> SimilarCalls:
    """Calls on other boards of the same recipe, or without one like this one, the most alike first.

    Places are compared in bands, so that of calls at about the same place the one of like size comes first.
    Reports are read of those alone that may be among the first `limit`.

    Raises:
        NotFoundError: the inspection has no such defect.
    """
    call = defect_of(report, number)
    here = next(row for row in calls_of(report) if row.defect == number)
    newest = (
        select(InspectionRow.id)
        .where(InspectionRow.verdict == Verdict.FAIL.value, InspectionRow.id != report.id)
        .where(InspectionRow.recipe == report.recipe)
        .order_by(InspectionRow.id.desc())
        .limit(NUM_SEARCHED)
    )
    with Session(engine) as session:
        ids = session.scalars(newest).all()
        rows = session.scalars(select(CallRow).where(CallRow.inspection.in_(ids))).all()
    words = words_of(engine, ids)
    # Where a place is not known as a number, the report may tell it in another way.
    in_words = {row.inspection for row in rows if _is_placeless(row) or _is_placeless(here)}
    told = _reports(engine, in_words)
    # Retention may delete what was found, from here on to the end.
    rows = [row for row in rows if row.inspection not in in_words - told.keys()]

    def likeness(row: CallRow) -> tuple[bool, bool, int]:
        """What calls are sorted by before their size: class, whether a person said something, place."""
        other = told.get(row.inspection)
        if other is None:
            band = _band_on_reference(report, here, row)
        else:
            band = _band(report, call, other, defect_of(other, row.defect))
        return row.label != call.label, (row.inspection, row.defect) not in words, band

    # Of calls that are alike the newest comes first.
    ordered = sorted(rows, key=lambda row: (row.inspection, -row.defect), reverse=True)
    found = sorted(((likeness(row), row) for row in ordered), key=lambda each: each[0])
    found = [each for each in found if each[0] <= found[min(limit, len(found)) - 1][0]]
    reports = told | _reports(engine, {row.inspection for _, row in found} - told.keys())
    answers = [
        (like, reports[row.inspection], defect_of(reports[row.inspection], row.defect))
        for like, row in found
        if row.inspection in reports
    ]
    answers.sort(key=lambda each: (each[0], _size_ratio(call, each[2])))
    return SimilarCalls(
        calls=tuple(_answer(call, other, defect, words) for _, other, defect in answers[:limit])
    )


def defect_of(report: StoredReport, number: int) -> DefectReport:
    """A defect by its id. Raises NotFoundError."""
    for defect in report.defects:
        if defect.id == number:
            return defect
    raise NotFoundError(
        f"inspection {report.id} has no defect {number}; it lists {len(report.defects)}",
        hint=f"GET /v1/inspections/{report.id} lists them",
    )


def words_of(engine: Engine, inspections: Iterable[str]) -> Words:
    """What people said of the calls of inspections."""
    return {
        (name, call.defect): call.word
        for name, review in latest_reviews(engine, inspections).items()
        for call in review.document.calls
    }


def _reports(engine: Engine, ids: Collection[str]) -> dict[str, StoredReport]:
    with Session(engine) as session:
        texts = session.scalars(select(InspectionRow.report).where(InspectionRow.id.in_(ids))).all()
    return {report.id: report for report in map(StoredReport.model_validate_json, texts)}


def _is_placeless(row: CallRow) -> bool:
    return row.x is None or row.y is None


def _band_on_reference(report: StoredReport, here: CallRow, there: CallRow) -> int:
    """As `_band`, of two places in px of a reference, or of the picture where there is none."""
    if here.reference != there.reference:
        return FARTHEST
    assert here.x is not None and here.y is not None and there.x is not None and there.y is not None
    distance = math.dist((here.x, here.y), (there.x, there.y))
    return _band_of(distance / max(report.image.width, report.image.height))


def _band(report: StoredReport, call: DefectReport, other: StoredReport, defect: DefectReport) -> int:
    """How far apart two places are, in bands from 0: on the board where known, else in the pictures."""
    here, there = _place(report, call.box_xyxy), _place(other, defect.box_xyxy)
    distance = math.dist(here, there)
    if call.place_mm is not None and defect.place_mm is not None:
        # The picture's scale is the box's: its longest side is known in both.
        longest = max(report.image.width, report.image.height) * _mm_per_px(call)
        distance = math.dist(call.place_mm, defect.place_mm) / longest
    return _band_of(distance)


def _band_of(distance: float) -> int:
    """Of a distance in shares of the board's longest side."""
    return max(0, math.ceil(math.log2(max(distance, 1e-9) / NEAR_SHARE)))


def _place(report: StoredReport, box: BoxXyxy) -> tuple[float, float]:
    """Middle of a box in shares of the picture's longest side."""
    longest = max(report.image.width, report.image.height)
    return (box[0] + box[2]) / 2 / longest, (box[1] + box[3]) / 2 / longest


def _mm_per_px(call: DefectReport) -> float:
    assert call.size_mm is not None
    width, height = call.box_xyxy[2] - call.box_xyxy[0], call.box_xyxy[3] - call.box_xyxy[1]
    return max(call.size_mm[0] / max(width, 1e-6), call.size_mm[1] / max(height, 1e-6), 1e-9)


def _size_ratio(call: DefectReport, defect: DefectReport) -> float:
    """How unlike two areas are, from 0."""
    return abs(math.log(max(defect.area_px, 1) / max(call.area_px, 1)))


def _answer(call: DefectReport, other: StoredReport, defect: DefectReport, words: Words) -> SimilarCall:
    box: Rect = box_around(defect.box_xyxy, other.image.width, other.image.height)
    asked = urlencode({"box": ",".join(map(str, box)), "size": CROP_PX}, safe=",")
    distance = None
    if call.place_mm is not None and defect.place_mm is not None:
        distance = round(math.dist(call.place_mm, defect.place_mm), 4)
    return SimilarCall(
        inspection=other.id,
        defect=defect.id,
        label=defect.label,
        score=defect.score,
        created=other.created,
        serial=other.serial,
        word=words.get((other.id, defect.id)),
        crop=f"/v1/inspections/{other.id}/crops/image?{asked}",
        distance_mm=distance,
    )
