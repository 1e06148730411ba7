"""What people verified, as labelled boards: which count, what is on them, and which are never trained on.

A board whose review is done shows what the review says and nothing else; so good boards count too. A board
(its serial; without one its picture) belongs to one part of the split by a hash of its name: whatever is
added later, it stays there.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from inspect_vit.results import BoxXyxy, Verdict
from serving.crops import box_around
from serving.database import InspectionRow
from serving.dataset_schemas import (
    DatasetFilter,
    DatasetPreview,
    Example,
    ExampleKind,
    ExamplePage,
    LeftOut,
    Part,
    Parts,
)
from serving.ids import first_id_at
from serving.line_tables import ChallengeRunRow
from serving.parts import board_names, part_of
from serving.review_schemas import Missed, Point
from serving.review_tables import QueueRow
from serving.reviews import DoneReview, done_reviews

IDS_AT_ONCE = 500
FINGERPRINT_CHARS = 16


@dataclass(frozen=True)
class Label:
    """One place on a board that a person spoke of."""

    kind: ExampleKind | None
    """None: a process indicator, which is neither a defect nor good copper."""
    label: str
    box_xyxy: BoxXyxy
    polygon: tuple[Point, ...] | None = None

    @property
    def is_defect(self) -> bool:
        return self.kind in ("missed", "reclassified", "real")


@dataclass(frozen=True)
class LabelledBoard:
    """One verified inspection."""

    inspection: str
    serial: str | None
    recipe: str | None
    image_sha256: str
    reference_sha256: str | None
    width: int
    height: int
    group: str
    """The board: no split may part its pictures."""
    part: Part
    labels: tuple[Label, ...]

    @property
    def defects(self) -> tuple[Label, ...]:
        return tuple(one for one in self.labels if one.is_defect)

    def content(self) -> list[Any]:
        """What of it the fingerprint is made over."""
        labels = [
            [one.label, one.box_xyxy, one.polygon, one.is_defect]
            for one in self.labels
            if one.kind != "false_call"
        ]
        return [self.image_sha256, self.reference_sha256, self.part, self.group, labels]


@dataclass
class Selection:
    """Boards in the order they were inspected, and how many were left out, and why."""

    filter: DatasetFilter
    boards: list[LabelledBoard] = field(default_factory=list)
    left_out: Counter[LeftOut] = field(default_factory=Counter)

    @property
    def fingerprint(self) -> str:
        lines = sorted(json.dumps(board.content(), ensure_ascii=False) for board in self.boards)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:FINGERPRINT_CHARS]

    def preview(self) -> DatasetPreview:
        return DatasetPreview(
            filter=self.filter,
            pictures=_parts(Counter(board.part for board in self.boards)),
            good=_parts(Counter(board.part for board in self.boards if not board.defects)),
            classes=defects_by_class(self.boards),
            left_out=dict(sorted(self.left_out.items())),
        )


def select_boards(engine: Engine, wanted: DatasetFilter, *, acceptance_share: float) -> Selection:
    """All verified boards that a filter names. Of a picture that came several times the newest counts.

    Reads the report of every reviewed board: some 0.2 ms each.
    """
    selection = Selection(wanted)
    newest: dict[str, LabelledBoard] = {}
    done = done_reviews(engine, recipe=wanted.recipe, since=wanted.since, until=wanted.until)
    while some := list(islice(done, IDS_AT_ONCE)):
        pictures = _pictures(engine, [one.report.id for one in some])
        names = board_names(engine, {image for image, _ in pictures.values()})
        challenged = _challenged(engine, [one.report.id for one in some])
        for one in some:
            why = "challenge" if one.report.id in challenged else _why_not(one)
            if why is not None or one.report.id not in pictures:
                selection.left_out[why or "gone"] += 1
                continue
            image, reference = pictures[one.report.id]
            board = _labelled(one, image, reference, names.get(image, image[:16]), acceptance_share)
            if newest.pop(board.image_sha256, None) is not None:
                selection.left_out["repeated"] += 1
            newest[board.image_sha256] = board
    shown = set(wanted.labels)
    selection.boards = [
        board for board in newest.values() if not shown or shown & {one.label for one in board.defects}
    ]
    if num_undone := _num_undone(engine, wanted):
        selection.left_out["undone"] = num_undone
    return selection


def defects_by_class(boards: Iterable[LabelledBoard]) -> dict[str, Parts]:
    """Number of defects of each class in either part, by name."""
    counts: defaultdict[str, Counter[Part]] = defaultdict(Counter)
    for board in boards:
        for one in board.defects:
            counts[one.label][board.part] += 1
    return {label: _parts(found) for label, found in sorted(counts.items())}


def list_examples(selection: Selection, *, label: str | None, limit: int) -> ExamplePage:
    """Labelled places, those of the newest board first; process indicators are none."""
    found: list[Example] = []
    for board in reversed(selection.boards):
        found += _examples(board, label)
        if len(found) >= limit:
            break
    return ExamplePage(examples=tuple(found[:limit]), counts=defects_by_class(selection.boards))


def _examples(board: LabelledBoard, label: str | None) -> Iterator[Example]:
    for one in board.labels:
        if one.kind is not None and label in (None, one.label):
            around = ",".join(map(str, box_around(one.box_xyxy, board.width, board.height)))
            yield Example(
                inspection=board.inspection,
                kind=one.kind,
                label=one.label,
                box_xyxy=one.box_xyxy,
                crop=f"/v1/inspections/{board.inspection}/crops/image?box={around}",
                part=board.part,
                serial=board.serial,
            )


def _why_not(one: DoneReview) -> LeftOut | None:
    if one.review.hasty:
        return "hasty"
    if one.report.verdict is Verdict.ERROR:
        return "error"
    if (one.report.num_defects or 0) > len(one.report.defects):
        return "unlisted"
    return None


def _labelled(
    one: DoneReview,
    image_sha256: str,
    reference_sha256: str | None,
    board: str,
    acceptance_share: float,
) -> LabelledBoard:
    report, document = one.report, one.review.document
    calls = {defect.id: defect for defect in report.defects}
    labels: list[Label] = []
    for said in document.calls:
        call = calls[said.defect]
        kinds: Mapping[str, ExampleKind | None] = {
            "real": "real" if said.label == call.label else "reclassified",
            "false_call": "false_call",
            "process_indicator": None,
        }
        labels.append(Label(kinds[said.word], said.label, call.box_xyxy))
    labels += [Label("missed", drawn.label, _box(drawn), drawn.polygon) for drawn in document.missed]
    return LabelledBoard(
        inspection=report.id,
        serial=report.serial,
        recipe=report.recipe,
        image_sha256=image_sha256,
        reference_sha256=reference_sha256,
        width=report.image.width,
        height=report.image.height,
        group=board,
        part=part_of(board, acceptance_share),
        labels=tuple(labels),
    )


def _box(drawn: Missed) -> BoxXyxy:
    if drawn.box_xyxy is not None:
        return drawn.box_xyxy
    x, y = zip(*(drawn.polygon or ()), strict=True)
    return min(x), min(y), max(x), max(y)


def _pictures(engine: Engine, ids: list[str]) -> dict[str, tuple[str, str | None]]:
    """Digests of board and reference by inspection."""
    columns = (InspectionRow.id, InspectionRow.image_sha256, InspectionRow.reference_sha256)
    with Session(engine) as session:
        rows = session.execute(select(*columns).where(InspectionRow.id.in_(ids))).all()
    return {inspection: (image, reference) for inspection, image, reference in rows}


def _challenged(engine: Engine, ids: list[str]) -> set[str]:
    query = select(ChallengeRunRow.inspection).where(ChallengeRunRow.inspection.in_(ids))
    with Session(engine) as session:
        return set(session.scalars(query))


def _num_undone(engine: Engine, wanted: DatasetFilter) -> int:
    query = select(func.count()).select_from(QueueRow).where(QueueRow.due, QueueRow.state != "done")
    if wanted.recipe is not None:
        query = query.join(InspectionRow, InspectionRow.id == QueueRow.inspection)
        query = query.where(InspectionRow.recipe == wanted.recipe)
    if wanted.since is not None:
        query = query.where(QueueRow.inspection >= first_id_at(wanted.since.timestamp()))
    if wanted.until is not None:
        query = query.where(QueueRow.inspection < first_id_at(wanted.until.timestamp()))
    with Session(engine) as session:
        return session.scalar(query) or 0


def _parts(counts: Mapping[Part, int]) -> Parts:
    return Parts(train=counts.get("train", 0), acceptance=counts.get("acceptance", 0))
