"""GET /v1/inspections/{id}/spot: what is asked, and what the network sees there in numbers and words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from inspect_vit.drawing import Rect
from inspect_vit.results import InspectionResult
from serving.attention import read_rect
from serving.errors import FieldError
from serving.schemas import LEVELS, StoredReport
from serving.spot_schemas import Offer, Spot, SpotClass, SpotLevel

if TYPE_CHECKING:
    from inspect_vit import spot

LEAST_NEEDED = 0.02
"""A threshold below would call noise all over the board."""
MATTERS = 0.01
"""By which the score without a level must differ for a sentence of its own."""


def read_spot_box(text: str | None, report: StoredReport) -> Rect:
    """The box asked for. Raises FieldError: none, malformed, or not within the posted image."""
    if text is None:
        raise FieldError("box: missing, wanted left,top,right,bottom in whole pixels")
    box = read_rect("box", text)
    if box[2] > report.image.width or box[3] > report.image.height:
        raise FieldError(
            f"box: {text} reaches beyond the image, which is {report.image.width} x {report.image.height} px"
        )
    return box


def spot_report(report: StoredReport, result: InspectionResult, box: Rect, seen: spot.Spot) -> Spot:
    """Put a spot into wire words."""
    classes = sorted(
        (
            SpotClass(
                label=label,
                score=round(score, 4),
                threshold=round(result.thresholds[label], 4),
                needed=_needed(seen.peaks[label]),
            )
            for label, score in seen.scores.items()
        ),
        key=lambda one: (one.label != seen.label, -one.score),
    )
    can_lower = any(one.needed is not None and one.needed < result.thresholds[one.label] for one in classes)
    offers: list[Offer] = ["example", "class"]
    if can_lower and report.recipe is not None:
        offers.append("threshold")
    return Spot(
        inspection=report.id,
        box_xyxy=box,
        label=seen.label,
        classes=tuple(classes),
        gate_share={level: round(seen.gate_share[level], 4) for level in LEVELS},
        levels=tuple(
            SpotLevel(
                level=level,
                attention=round(seen.levels[level].attention, 3),
                removed=round(min(max(seen.levels[level].removed, 0.0), 1.0), 4),
            )
            for level in LEVELS
        ),
        difference=None if seen.difference is None else round(seen.difference, 4),
        words=_words(report, result, seen),
        offers=tuple(offers),
    )


def _needed(peak: float) -> float | None:
    """Rounded down: a threshold of just that much calls it."""
    return None if peak < LEAST_NEEDED else math.floor(peak * 1e4) / 1e4


def _words(report: StoredReport, result: InspectionResult, seen: spot.Spot) -> tuple[str, ...]:
    threshold = result.thresholds[seen.label]
    reached = f"class {seen.label} reached {seen.score:.2g} here, its threshold is {threshold:.2g}"
    if seen.score >= threshold:
        reached += ": it was called, or an ignore zone, a least size or a call beside it kept it out"
    elif _needed(seen.peaks[seen.label]) is None:
        reached += ": no threshold that is of use would have called it"
    sentences = [reached, *_of_levels(seen)]
    top = max(seen.gate_share, key=lambda level: seen.gate_share[level])
    sentences.append(f"the fusion takes {100 * seen.gate_share[top]:.0f} % from the {top} px level here")
    if seen.difference is not None:
        sentences.append(
            f"the spot differs from the reference in {100 * seen.difference:.0f} % of its pixels"
        )
    elif report.reference is not None:
        sentences.append(
            "the reference could not be laid under the board, so the scores are those without one"
        )
    return tuple(sentences)


def _of_levels(seen: spot.Spot) -> list[str]:
    """What speaks for the call and what against, by the score without each level."""
    changes: Mapping[str, float] = {level: seen.score - one.removed for level, one in seen.levels.items()}
    for_it = max(changes, key=lambda level: changes[level])
    against = min(changes, key=lambda level: changes[level])
    found = []
    if changes[for_it] >= MATTERS:
        found.append(
            f"the {for_it} px level speaks most for it: without it the score is "
            f"{seen.levels[for_it].removed:.2g}"
        )
    if changes[against] <= -MATTERS:
        found.append(
            f"the {against} px level speaks against it: without it the score is "
            f"{seen.levels[against].removed:.2g}"
        )
    return found or ["no level alone changes the score by as much as 0.01"]
