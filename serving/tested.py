"""Results of in-circuit and functional test: which boards the inspection had passed and the test did not."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import Field
from sqlalchemy import Engine, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from inspect_vit.results import Verdict
from serving.audit import record, utc_now
from serving.database import InspectionRow
from serving.errors import FieldError
from serving.ids import first_id_at
from serving.line_tables import ElectricalTestRow
from serving.review_tables import QueueRow
from serving.roles import Actor
from serving.schemas import Wire
from serving.uploads import check_label

MAX_ROWS = 50_000
MAX_CSV_BYTES = 8_000_000
IDS_AT_ONCE = 500
MAX_NAMED = 200
IMPORTED = "test_results_imported"
COLUMNS = ("serial", "result", "label", "time")
EXAMPLE = "serial,result,label,time\\nSN-17,fail,short,2026-11-30T10:15:00Z"


class EscapedBoard(Wire):
    serial: str
    inspection: str = Field(description="the inspection that passed the board")


class ImportReport(Wire):
    """What became of the rows that were sent."""

    rows: int
    matched: int = Field(description="rows of a board that was inspected before its test")
    unmatched: int
    unmatched_serials: tuple[str, ...] = Field(
        description=f"whose rows were left out, as they came; the first {MAX_NAMED}"
    )
    escapes: tuple[EscapedBoard, ...] = Field(
        description="boards that failed test and were passed: verdict PASS, or good after review"
    )


@dataclass(frozen=True)
class BoardTest:
    """One row of the table that was sent."""

    serial: str
    result: str
    label: str = ""
    tested: str = ""
    """UTC; empty: not stated."""


def read_rows(text: str) -> list[BoardTest]:
    """The rows of a CSV text. Raises FieldError that names the line."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    rows: list[BoardTest] = []
    header: list[str] | None = None
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = _check_header([cell.strip().lower() for cell in cells])
                continue
            if len(rows) == MAX_ROWS:
                raise FieldError(f"line {reader.line_num}: more than {MAX_ROWS} rows; send them in parts")
            rows.append(_read_row(header, cells, reader.line_num))
    except csv.Error as error:
        raise FieldError(f"line {reader.line_num}: {error}", hint=EXAMPLE) from error
    if header is None:
        raise FieldError("body: no row", hint=EXAMPLE)
    return rows


def import_results(engine: Engine, rows: list[BoardTest], actor: Actor) -> ImportReport:
    """Store the rows of boards that were inspected, all in one transaction.

    A row belongs to the last inspection of its serial before its time, or without a time to the last of all.
    A row that is there already changes nothing.
    """
    with Session(engine) as session:
        inspections = _inspections(session, sorted({row.serial for row in rows}))
        received, matched = utc_now(), 0
        values, escapes, unmatched = [], dict[str, EscapedBoard](), dict[str, None]()
        for row in rows:
            end = first_id_at(datetime.fromisoformat(row.tested).timestamp()) if row.tested else "g"
            before = [one for one in inspections.get(row.serial, ()) if one[0] < end]
            if not before:
                unmatched[row.serial] = None
                continue
            inspection, was_passed = before[-1]
            matched += 1
            values.append(
                {**vars(row), "inspection": inspection, "received": received, "actor": actor.name or ""}
            )
            if row.result == "fail" and was_passed:
                escapes[inspection] = EscapedBoard(serial=row.serial, inspection=inspection)
        kind = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite
        for start in range(0, len(values), IDS_AT_ONCE):
            statement = kind.insert(ElectricalTestRow).values(values[start : start + IDS_AT_ONCE])
            session.execute(statement.on_conflict_do_nothing())
        details = {"rows": len(rows), "matched": matched, "escapes": len(escapes)}
        record(session, actor, IMPORTED, details=details)
        session.commit()
    return ImportReport(
        rows=len(rows),
        matched=matched,
        unmatched=len(rows) - matched,
        unmatched_serials=tuple(unmatched)[:MAX_NAMED],
        escapes=tuple(escapes.values()),
    )


def _inspections(session: Session, serials: list[str]) -> dict[str, list[tuple[str, bool]]]:
    """By serial: id and whether it passed the board, oldest first."""
    found: dict[str, list[tuple[str, bool]]] = {}
    query = (
        select(InspectionRow.serial, InspectionRow.id, InspectionRow.verdict, QueueRow.final)
        .outerjoin(QueueRow, QueueRow.inspection == InspectionRow.id)
        .order_by(InspectionRow.id)
    )
    for start in range(0, len(serials), IDS_AT_ONCE):
        some = query.where(InspectionRow.serial.in_(serials[start : start + IDS_AT_ONCE]))
        for serial, inspection, verdict, final in session.execute(some):
            was_passed = verdict == Verdict.PASS.value or final == "good"
            found.setdefault(str(serial), []).append((inspection, was_passed))
    return found


def _check_header(header: list[str]) -> list[str]:
    if len(set(header)) < len(header) or not {"serial", "result"} <= set(header) <= set(COLUMNS):
        raise FieldError(
            f"line 1: columns {', '.join(header)[:200]!r}, wanted serial,result and maybe label,time",
            hint=EXAMPLE,
        )
    return header


def _read_row(header: list[str], cells: list[str], line: int) -> BoardTest:
    if len(cells) != len(header):
        raise FieldError(f"line {line}: {len(cells)} cells, wanted {len(header)}", hint=EXAMPLE)
    row = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
    if not row["serial"]:
        raise FieldError(f"line {line}: serial: empty", hint=EXAMPLE)
    result = row["result"].lower()
    if result not in ("pass", "fail"):
        raise FieldError(f"line {line}: result: {row['result'][:40]!r}, wanted pass or fail", hint=EXAMPLE)
    return BoardTest(
        serial=check_label(f"line {line}: serial", row["serial"]),
        result=result,
        label=check_label(f"line {line}: label", row.get("label", "")),
        tested=_utc(row.get("time", ""), line),
    )


def _utc(text: str, line: int) -> str:
    if not text:
        return ""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        moment.timestamp()
    except (ValueError, OverflowError) as error:
        raise FieldError(
            f"line {line}: time: {text[:40]!r}, wanted a time as 2026-11-30T10:15:00Z", hint=EXAMPLE
        ) from error
    return moment.isoformat(timespec="milliseconds")
