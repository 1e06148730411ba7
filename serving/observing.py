"""From an inspection to what is watched of it."""

from __future__ import annotations

from datetime import datetime

from inspect_vit.results import InspectionResult
from serving.alarms import View
from serving.drift import Board, Observation
from serving.engine import Inspected
from serving.pictures import sha256_hex
from serving.recipes import StoredRecipe
from serving.repeaters import Call
from serving.uploads import Upload
from serving.watched import measure

POSTED = "(posted)"
"""Stands for the name of a reference that came with the board."""


def observe(
    upload: Upload,
    recipe: StoredRecipe,
    inspected: Inspected,
    result: InspectionResult,
    *,
    inspection_id: str,
    created: datetime,
    camera: str,
) -> Observation:
    """What is watched of one inspection by a recipe.

    Args:
        result: of `inspected`, or what became of it.
        camera: of this server; the recipe's own goes before.
    """
    framed, picture = inspected.framed, inspected.picture
    assert picture is not None, "statistics are taken of every board that has a recipe"
    registration = None if framed.laid is None else framed.laid.registration
    reference = "" if upload.reference is None else POSTED
    if framed.reference is not None:
        reference = framed.reference.name
    return Observation(
        view=View(
            recipe=recipe.name,
            reference=reference,
            camera=recipe.recipe.camera or camera,
            revision=recipe.revision,
            model_version=result.model_version,
        ),
        board=Board(image_sha256=sha256_hex(upload.image), serial=upload.serial),
        inspection_id=inspection_id,
        time=created.isoformat(timespec="milliseconds"),
        measured=measure(picture, registration, result),
        # `min_score` may list more than was called.
        calls=tuple(
            Call(defect.label, *framed.place_px(defect.box_xyxy))
            for defect in result.defects
            if defect.score >= result.thresholds[defect.label]
        ),
        px_per_mm=framed.px_per_mm,
    )
