"""Damaged uploads are inspected or refused with a 4xx that says why; the server never fails or restarts."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import fuzz_pictures as fuzz
from serving.schemas import ErrorReport, InspectionReport

REFUSALS = {400: "image_undecodable", 413: "image_too_large", 415: "image_unsupported"}


@pytest.mark.parametrize("damage", fuzz.DAMAGES)
def test_damaged_uploads(server: Any, board_png: bytes, damage: str) -> None:
    worker = server.worker()
    statuses = set()
    for number, source in enumerate(fuzz.SOURCES):
        data = fuzz.damaged_picture(source, damage, seed=1)
        files = {"image": ("a", data)}
        if number % 2:
            files = {"image": ("a.png", board_png), "reference": ("b", data)}
        answer = server.client.post("/v1/inspect", files=files)
        statuses.add(answer.status_code)
        if answer.status_code in REFUSALS:
            error = ErrorReport.model_validate_json(answer.text).error
            assert error.code == REFUSALS[answer.status_code]
            assert error.message.startswith("reference: " if number % 2 else "image: ")
        else:
            assert answer.status_code == 200, f"{source}: {answer.text}"
            # A damaged reference that can still be read is too small to be aligned.
            assert number % 2 == 0 or answer.json()["verdict"] == "ERROR", f"{source}: {answer.text}"
    assert 400 in statuses
    assert server.worker() == worker
    after = server.client.post("/v1/inspect", files={"image": ("a.png", board_png)})
    assert after.status_code == 200
    assert InspectionReport.model_validate_json(after.text).intake.pages == 1


def test_what_came_is_told(server: Any) -> None:
    """Format, orientation, pages and resolution of the upload, over HTTP."""
    data = fuzz.encoded(fuzz.board(), "TIFF", dpi=(600, 300), exif=fuzz.rotated_exif(), save_all=True)
    report = InspectionReport.model_validate_json(
        server.client.post("/v1/inspect", files={"image": ("a.tif", data)}).text
    )
    assert (report.image.width, report.image.height) == (40, 56)
    intake = report.intake
    assert (intake.format, intake.bit_depth, intake.orientation, intake.pages) == ("TIFF", 8, 6, 1)
    assert intake.dpi == (300, 600)
    assert "rotated by EXIF orientation 6" in intake.actions
