"""One inspection as plain JSON values, the same words for the command line and the service."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from inspect_vit.results import InspectionResult, IntakeReport, Verdict


def inspection_report(
    result: InspectionResult, *, inspection_id: str, intake: IntakeReport, links: Mapping[str, str]
) -> dict[str, Any]:
    """Put a result into the wire's words.

    Scores and shares have 4 decimals, pixels and milliseconds 2. Defects are numbered from 1 in the result's
    order, as on the overlay. `reference` is null without one; its figures are null where it could not be
    aligned.
    """
    return {
        "id": inspection_id,
        "verdict": result.verdict.value,
        "reasons": list(result.reasons),
        "score": round(float(result.score), 4),
        "defects": [
            {
                "id": number,
                "label": defect.label,
                "score": round(float(defect.score), 4),
                "box_xyxy": [round(float(edge), 2) for edge in defect.box_xyxy],
                "area_px": int(defect.area_px),
                "gate_share": {level: round(float(share), 4) for level, share in defect.gate_share.items()},
            }
            for number, defect in enumerate(result.defects, start=1)
        ],
        "num_defects": result.num_defects,
        "differences": [[round(float(edge), 2) for edge in box] for box in result.differences],
        "covered": _share_down(result.covered),
        "image": {"width": result.width, "height": result.height},
        "model": {"name": result.model_name, "version": result.model_version},
        "reference": _reference(result),
        "calibration": result.calibration.model_dump(mode="json") if result.calibration else None,
        "intake": {
            "format": intake.format,
            "mode": intake.mode,
            "bit_depth": intake.bit_depth,
            "orientation": intake.orientation,
            "pages": intake.pages,
            "dpi": list(intake.dpi) if intake.dpi else None,
            "actions": list(intake.actions),
            "warnings": [*intake.warnings, *result.warnings],
            "errors": list(intake.errors),
        },
        "timings_ms": {stage: round(float(spent), 2) for stage, spent in result.timings_ms.items()},
        "links": dict(links),
    }


def reference_notes(result: InspectionResult) -> tuple[str, ...]:
    """What must be known of how the reference was laid, for the report's warnings."""
    found = result.alignment
    return () if found is None or not found.note else (f"reference {found.note}",)


def _reference(result: InspectionResult) -> dict[str, float | str | None] | None:
    if not result.with_reference:
        return None
    found = result.alignment
    if found is None:
        names = ("residual_px", "residual_mm", "shift_px", "turn_degrees", "covered")
        return {**dict.fromkeys(names), "note": ""}
    return {
        "residual_px": None if found.residual_px is None else round(found.residual_px, 3),
        "residual_mm": None if found.residual_mm is None else round(found.residual_mm, 5),
        "shift_px": round(found.shift_px, 2),
        "turn_degrees": round(found.turn_degrees, 4),
        "covered": _share_down(found.covered),
        "note": found.note,
    }


def _share_down(share: float) -> float:
    """4 decimals, never rounded up: what is not whole must not read 1."""
    return math.floor(share * 10_000) / 10_000


def refused_report(
    *, inspection_id: str, reason: str, model_name: str, model_version: str, links: Mapping[str, str]
) -> dict[str, Any]:
    """The report of a picture that could not be inspected at all: verdict ERROR, in the same shape."""
    return {
        "id": inspection_id,
        "verdict": Verdict.ERROR.value,
        "reasons": [reason],
        "score": None,
        "defects": [],
        "num_defects": 0,
        "differences": [],
        "covered": 0.0,
        "image": None,
        "model": {"name": model_name, "version": model_version},
        "reference": None,
        "calibration": None,
        "intake": None,
        "timings_ms": {},
        "links": dict(links),
    }
