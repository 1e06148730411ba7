"""Data sets and examples on the wire: what people verified, as it is learnt from and measured on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, BeforeValidator, ConfigDict, Field, FiniteFloat

from inspect_vit.config import Frozen
from serving.schemas import Wire

Part = Literal["train", "acceptance"]
ExampleKind = Literal["missed", "reclassified", "real", "false_call"]
LeftOut = Literal["undone", "hasty", "error", "challenge", "unlisted", "repeated", "gone"]

MAX_LABELS = 100
Name = Annotated[str, Field(min_length=1, max_length=200)]


def _as_moment(value: object) -> datetime:
    """A text in ISO 8601; UTC where it names no zone."""
    if not isinstance(value, str | datetime):
        raise ValueError("wanted a time as 2026-11-30T08:00:00Z, or a day")
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    wrong = ValueError("wanted a time after 1970 and before 9999")
    try:
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise wrong from None
    if not 1970 <= moment.year < 9999:
        raise wrong
    return moment


Moment = Annotated[AwareDatetime, BeforeValidator(_as_moment)]


class DatasetFilter(Frozen):
    """Which verified boards: the body of POST /v1/datasets, and `data` of POST /v1/retrain."""

    model_config = ConfigDict(strict=True)

    recipe: Name | None = Field(None, description="only boards of this recipe; null: all boards")
    since: Moment | None = Field(None, description="first moment of inspection; UTC where no zone is named")
    until: Moment | None = Field(None, description="exclusive")
    labels: Annotated[tuple[Name, ...], Field(max_length=MAX_LABELS)] = Field(
        (), description="only boards that show a defect of one of these classes; empty: all, good ones too"
    )


class Parts(Wire):
    """A count in either part of the split."""

    train: int = Field(0, ge=0, description="what a model may learn from")
    acceptance: int = Field(0, ge=0, description="never trained on: what a promotion is measured on")


class References(Wire):
    """How many boards have their golden reference with them."""

    laid: int = Field(ge=0, description="laid under the board, as the model saw it")
    not_laid: int = Field(ge=0, description="could not be aligned; the board is there without")
    none: int = Field(ge=0, description="inspected without a reference")


class DatasetPreview(Wire):
    """What a data set would hold; `left_out` counts boards by why they are not in it."""

    filter: DatasetFilter
    pictures: Parts
    good: Parts = Field(description="of these, boards without a defect: false calls are counted on them")
    classes: dict[str, Parts] = Field(description="defects by class, the class after review")
    left_out: dict[LeftOut, int] = Field(
        description="undone: due, and the review is not done; hasty: verified faster than anyone can look; "
        "error: not inspected; challenge: a challenge board; unlisted: it has more calls than were judged; "
        "repeated: the same picture came again; gone: its picture was deleted"
    )


class Dataset(DatasetPreview):
    """A data set on the disk, never changed once it is there."""

    fingerprint: str = Field(
        description="of pictures, labels and split: the same content has the same one, and one folder"
    )
    created: AwareDatetime
    actor: str = Field(description="who had it written first; empty: without keys")
    references: References
    folder: str = Field(description="in INSPECT_VIT_HOME; train/ and acceptance/ in COCO form")


class DatasetPage(Wire):
    datasets: tuple[Dataset, ...] = Field(description="newest first")


class Example(Wire):
    """One labelled place on a verified board."""

    inspection: str
    kind: ExampleKind = Field(
        description="missed: drawn; reclassified: called as another class; real: called as it is; "
        "false_call: nothing is wrong there"
    )
    label: str = Field(description="the class after review")
    box_xyxy: tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat]
    crop: str = Field(description="link to a picture of the place and some of its surroundings")
    part: Part
    serial: str | None


class ExamplePage(Wire):
    examples: tuple[Example, ...] = Field(description="newest board first")
    counts: dict[str, Parts] = Field(description="defects by class, of all boards the query names")
