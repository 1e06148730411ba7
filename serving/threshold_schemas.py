"""A new threshold for one class of a recipe: POST /v1/recipes/{name}/thresholds."""

from __future__ import annotations

from pydantic import Field

from inspect_vit.calibration import Claim
from serving.preview_schemas import ThresholdPoint
from serving.review_schemas import Said
from serving.schemas import Share, Wire

MAX_REASON_CHARS = 2000


class ThresholdRequest(Said):
    """The body of POST /v1/recipes/{name}/thresholds."""

    label: str = Field(min_length=1, max_length=200, description="a class that the model knows")
    threshold: float = Field(gt=0.0, lt=1.0, description="score from which a call of it is to count")
    reason: str = Field(min_length=1, max_length=MAX_REASON_CHARS, description="for the audit trail")
    accept_false_calls: bool = Field(
        False, description="store a lower threshold although good boards would be called, or nothing is known"
    )


class BeforeAfter(Wire):
    """What both thresholds do to the reviewed boards of the acceptance part."""

    before: ThresholdPoint
    after: ThresholdPoint


class ThresholdGate(Wire):
    """What the acceptance part says of the change. Each board counts once, however many pictures it has."""

    boards: int = Field(description="reviewed boards of the acceptance part")
    num_defect_boards: int = Field(description="of them with a confirmed defect of the class")
    boards_newly_missed: int = Field(description="of these, whole before, on which a defect is now missed")
    boards_newly_found: int = Field(description="of these, on which every defect is now found")
    num_good_boards: int = Field(description="good boards that passed and were drawn for audit")
    boards_newly_called: int = Field(description="of these, on which there is now a call")
    bound: Share | None = Field(
        description="95 % upper bound of the share of such good boards that are newly called; null: none"
    )
    not_inspected: int = Field(description="pictures left out: they could not be inspected again")
    words: tuple[str, ...]


class ThresholdReport(Wire):
    """A threshold that is in force from now on."""

    recipe: str
    revision: int = Field(description="of the recipe, the new one")
    label: str
    points: BeforeAfter
    claim: Claim | None = Field(description="what now holds for the recipe's target; null: it has none")
    gate: ThresholdGate
