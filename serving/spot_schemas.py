"""What the network sees at one spot of a board: GET /v1/inspections/{id}/spot."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from serving.schemas import AttentionLevel, Share, Wire

Offer = Literal["example", "class", "threshold"]


class SpotClass(Wire):
    """One class that the model knows."""

    label: str
    score: Share = Field(description="highest centre score within the box and one cell of 4 px around it")
    threshold: Share = Field(description="that the inspection was made with")
    needed: Share | None = Field(
        description="highest threshold with which this class would have been called here; null: no centre "
        "above 0.02 from which a call could come"
    )


class SpotLevel(Wire):
    """One level's part in the score of the spot's class."""

    level: AttentionLevel
    attention: float = Field(
        ge=0.0, allow_inf_nan=False, description="attention that the spot receives; 1: as anywhere else"
    )
    removed: Share = Field(description="score without what this level hands to the fusion")


class Spot(Wire):
    inspection: str
    box_xyxy: tuple[int, int, int, int] = Field(description="as asked, px of the posted image")
    label: str = Field(description="the spot's class: the one nearest to its threshold, as a share of it")
    classes: tuple[SpotClass, ...] = Field(description="nearest to its threshold first")
    gate_share: dict[AttentionLevel, Share] = Field(
        description="share of each level in the fusion here; sums to 1, and is no measure of what decides"
    )
    levels: tuple[SpotLevel, ...]
    difference: Share | None = Field(
        description="share of the box's pixels that differ from the golden reference; null: none was used"
    )
    words: tuple[str, ...] = Field(description="the same in short sentences")
    offers: tuple[Offer, ...] = Field(
        description="what can be done: add it as an example, add a class, propose a threshold for the recipe"
    )
