"""Pictures of an inspection on the wire: their tiles, the meaning of their colours, and calls like a call."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, FiniteFloat

from serving.schemas import Share, Wire

Byte = Annotated[int, Field(ge=0, le=255)]


class TilesReport(Wire):
    """What a viewer of tiles has to know of a layer."""

    width: int = Field(description="of the board, px")
    height: int
    tile_px: int = Field(description="side of a tile; those at the right and lower edge are smaller")
    max_level: int = Field(description="the level of full size; each one below it is half as large")


class LegendStop(Wire):
    value: FiniteFloat = Field(description="in the legend's unit")
    rgba: tuple[Byte, Byte, Byte, Byte]
    name: str = Field("", description="what the colour stands for, where it is no value on a scale")


class LegendReport(Wire):
    """What the colours of a layer mean; the scale is the same on every board."""

    stops: tuple[LegendStop, ...] = Field(
        description="colours of the scale by growing value; empty: the layer has no scale"
    )
    threshold: FiniteFloat | None = Field(description="value at which something becomes plain to see")
    unit: str
    words: str


class SimilarCall(Wire):
    """A call of another inspection."""

    inspection: str
    defect: int = Field(ge=1)
    label: str
    score: Share
    created: datetime
    serial: str | None
    word: str | None = Field(description="what a person said of it; null: nobody did")
    crop: str = Field(description="link to a picture of the place")
    distance_mm: FiniteFloat | None = Field(
        description="between the two places on the board; null: the recipe states no scale"
    )


class SimilarCalls(Wire):
    calls: tuple[SimilarCall, ...] = Field(
        description="same class first, then those of which a person said something, then the nearest place, "
        "then the nearest size"
    )
