"""What finished reviews say of a recipe's thresholds: GET /v1/recipes/{name}/preview."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from inspect_vit.calibration import Target
from serving.schemas import Share, Wire


class ThresholdPoint(Wire):
    """What the class's threshold would do to the calls that were reviewed."""

    threshold: Share
    misses: int = Field(description="real defects that no call of the class reaches")
    false_calls: int = Field(description="false calls that would stay")
    miss_bound: Share | None = Field(
        description="upper bound of the share of boards with such a defect on which one is missed; null: no "
        "such board"
    )


class TargetState(Wire):
    """What the reviewed boards say of a target."""

    target: Target
    more_boards: int | None = Field(
        description="further boards with a confirmed defect, all found, that would support it; 0: supported; "
        "null: none would, more is missed than the target allows"
    )
    words: str


class ClassPreview(Wire):
    """One class, by the class that was called."""

    label: str
    threshold: Share | None = Field(description="in force now; null: the model does not know the class")
    real: tuple[Share, ...] = Field(description="scores of the calls with the word real, highest first")
    false_calls: tuple[Share, ...] = Field(description="scores of the calls with the word false_call")
    num_process_indicators: int
    missed: int = Field(description="defects that were never proposed")
    boards: int = Field(description="boards with a confirmed defect: the n of miss_bound")
    points: tuple[ThresholdPoint, ...] = Field(
        description="from the threshold in force up; below it calls are not listed, and nothing is known"
    )
    targets: tuple[TargetState, ...] = Field(description="the recipe's for this class")


class Preview(Wire):
    recipe: str
    model_version: str = Field(description="only boards that this version inspected")
    reference_mode: Literal["with_reference", "without_reference"] = Field(description="and in this mode")
    confidence: float = Field(description="of miss_bound")
    boards: int = Field(
        description="boards with a finished review; hasty reviews and challenge boards left out"
    )
    audited: int = Field(
        description="of them PASS boards: only there is it known what the model did not propose"
    )
    classes: tuple[ClassPreview, ...]
    targets: tuple[TargetState, ...] = Field(description="the recipe's for all classes together")
    words: str = Field(description="how far the figures may be trusted")
