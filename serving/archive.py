"""The maps of a result as one compact file, and the result that pictures are drawn from later."""

from __future__ import annotations

import io
import json

import numpy as np
from numpy.typing import NDArray

from inspect_vit.results import Alignment, Defect, InspectionResult
from serving.schemas import StoredReport

_GATE_PREFIX = "gate_"


def pack_maps(result: InspectionResult) -> bytes:
    """Defect map and gate maps, 8 bits a value, with class names and thresholds, as .npz bytes."""
    text = json.dumps({"class_names": result.class_names, "thresholds": result.thresholds})
    arrays: dict[str, NDArray[np.uint8]] = {
        "defect_map": _to_bytes(result.defect_map),
        "text": np.frombuffer(text.encode(), np.uint8),
    }
    for level, gate in result.gate_maps.items():
        arrays[_GATE_PREFIX + level] = _to_bytes(gate)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def unpack_thresholds(packed: bytes) -> dict[str, float]:
    """By class, as they were used; no map is unpacked."""
    with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
        text = json.loads(arrays["text"].tobytes())
    return {str(label): float(text["thresholds"][label]) for label in text["class_names"]}


def unpack_result(report: StoredReport, packed: bytes) -> InspectionResult:
    """The result of a stored inspection: maps within 1/510 of what the model gave, numbers as reported."""
    with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
        text = json.loads(arrays["text"].tobytes())
        defect_map = _from_bytes(arrays["defect_map"])
        gate_maps = {
            name.removeprefix(_GATE_PREFIX): _from_bytes(arrays[name])
            for name in arrays.files
            if name.startswith(_GATE_PREFIX)
        }
    return InspectionResult(
        verdict=report.verdict,
        reasons=report.reasons,
        score=report.score,
        defects=tuple(
            Defect(
                label=defect.label,
                score=defect.score,
                box_xyxy=defect.box_xyxy,
                area_px=defect.area_px,
                gate_share={str(level): share for level, share in defect.gate_share.items()},
            )
            for defect in report.defects
        ),
        num_defects=len(report.defects) if report.num_defects is None else report.num_defects,
        covered=report.covered,
        defect_map=defect_map,
        gate_maps=gate_maps,
        class_names=tuple(text["class_names"]),
        thresholds={str(label): float(threshold) for label, threshold in text["thresholds"].items()},
        width=report.image.width,
        height=report.image.height,
        with_reference=report.reference is not None,
        model_name=report.model.name,
        model_version=report.model.version,
        timings_ms=dict(report.timings_ms),
        differences=report.differences,
        alignment=_alignment(report),
        calibration=report.calibration,
    )


def _alignment(report: StoredReport) -> Alignment | None:
    found = report.reference
    if found is None or found.shift_px is None:
        return None
    return Alignment(
        residual_px=found.residual_px,
        residual_mm=found.residual_mm,
        shift_px=found.shift_px,
        turn_degrees=found.turn_degrees or 0.0,
        covered=1.0 if found.covered is None else found.covered,
        note=found.note,
    )


def _to_bytes(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.asarray(np.rint(np.clip(values, 0.0, 1.0) * 255.0), np.uint8)


def _from_bytes(values: NDArray[np.uint8]) -> NDArray[np.float32]:
    return values.astype(np.float32) / np.float32(255.0)
