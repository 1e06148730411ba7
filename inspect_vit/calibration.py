"""A calibration: thresholds of one model and reference mode, and what they promise until something changes.

The document is one JSON file, made by `inspect-vit calibrate`. docs/calibration.md says what a claim means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from inspect_vit.config import Frozen
from inspect_vit.documents import load_document, save_document
from inspect_vit.errors import ConfigError

Mode = Literal["with_reference", "without_reference"]
FoundBy = Literal["own class", "any class"]
"""Which calls find a defect: those of its own class, or of whatever class, since each stops the board."""
Unit = Literal["group", "picture"]
"""What counts as one board: the pictures of a group (a picture without one is its own), or each picture."""

_TARGET = re.compile(
    r"(?:(?P<label>.*\S)\s*:)?\s*(?P<rate>[\d.]+)\s*%\s*@\s*(?P<confidence>[\d.]+)\s*%\s*", re.DOTALL
)


class Target(Frozen):
    """A miss rate that is asked for."""

    label: str | None = Field(None, description="defect class; null: all of them together")
    max_miss_rate: float = Field(gt=0.0, lt=1.0)
    confidence: float = Field(0.95, ge=0.5, lt=1.0)


class Claim(Target):
    """What calibration boards say about a target. A miss is a board on which any such defect is missed."""

    kept: bool
    num_defects: int = Field(ge=0)
    num_boards: int = Field(ge=0, description="boards with a defect of the class: the n of the claim")
    boards_missed: int = Field(ge=0, description="of them, at the thresholds chosen")
    boards_missed_anyway: int = Field(
        ge=0, description="of them, at every threshold: no call finds the defect"
    )
    bound: float | None = Field(None, description="upper bound of the miss rate; null: not kept")
    more_boards: int | None = Field(
        description="further boards with such a defect, all found, that would support the target; 0: kept; "
        "null: none would, the model itself misses more than the target"
    )
    words: str


class ClassFigures(Frozen):
    """What the thresholds chosen do on the calibration boards, for a class or for all together."""

    label: str | None = Field(description="defect class; null: all of them together")
    threshold: float | None = Field(description="score from which a call counts; null: one per class")
    own_threshold: float | None = Field(description="the checkpoint's own")
    num_defects: int
    defects_missed: int
    num_boards: int = Field(description="boards with such a defect")
    boards_missed: int = Field(description="of them, on which any is missed")
    bound: float | None = Field(
        description="upper bound of the share of such boards on which any is missed: of the kept claim, else "
        "95 % sure from the checkpoint's own thresholds; null: they were exceeded, or no board has one"
    )


class FalseCalls(Frozen):
    """Calls that share no area with any labelled defect."""

    num_calls: int
    num_boards: int = Field(description="all boards, good ones included")
    boards_with: int = Field(description="boards that have at least one")
    per_board: float
    per_board_own: float = Field(description="the same at the checkpoint's own thresholds")


class Calibration(Frozen):
    """Thresholds, claims and everything on which they depend."""

    format: Literal[1] = 1
    model_name: str
    model_version: str
    reference_mode: Mode
    recipe: str | None = None
    camera: str | None = None
    date: str = Field(description="UTC, ISO 8601")
    data: str = Field(description="the set and its part")
    data_fingerprint: str
    unit: Unit
    num_pictures: int
    num_boards: int
    not_inspected: int = Field(0, description="pictures with verdict ERROR, left out of every figure")
    found_by: FoundBy
    min_iou: float = Field(description="a call finds a defect that it overlaps by more")
    thresholds: dict[str, Annotated[float, Field(ge=0.0, le=1.0)]]
    claims: tuple[Claim, ...]
    joint_confidence: float = Field(description="at least so sure that all kept claims hold together")
    classes: tuple[ClassFigures, ...]
    false_calls: FalseCalls


class CalibrationReport(Frozen):
    """The calibration behind one inspection, as every report carries it."""

    valid: bool
    void_because: tuple[str, ...] = Field(description="in words; void claims say nothing of this board")
    claims: tuple[Claim, ...]
    n: int = Field(description="calibration boards, good ones included")
    recipe: str | None
    camera: str | None
    date: str


def parse_target(text: str) -> Target:
    """`short: 1% @ 95%` or, for all classes together, `1% @ 95%`.

    Raises:
        ConfigError: written otherwise, or a share outside 0 to 100 %.
    """
    match = _TARGET.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"target {text!r}; wanted 'CLASS: RATE% @ CONFIDENCE%', as 'short: 1% @ 95%', "
            "or '1% @ 95%' for all classes together"
        )
    try:
        rate, confidence = (float(match[name]) / 100.0 for name in ("rate", "confidence"))
    except ValueError as error:
        raise ConfigError(f"target {text!r}: {error}; wanted numbers, as 0.5% @ 99%") from error
    if not 0.0 < rate < 1.0 or not 0.5 <= confidence < 1.0:
        raise ConfigError(
            f"target {text!r}; wanted a miss rate between 0 and 100 %, a confidence of 50 % to under 100 %"
        )
    return Target(label=match["label"], max_miss_rate=rate, confidence=confidence)


def save_calibration(path: Path, calibration: Calibration) -> None:
    """Write the document, whole or not at all."""
    save_document(path, calibration)


def load_calibration(path: str | Path) -> Calibration:
    """Read what `save_calibration` wrote. Raises ConfigError: not there, or not such a document."""
    return load_document(path, Calibration, what="calibration", maker="inspect-vit calibrate")


def thresholds_in_force(
    calibration: Calibration | None,
    own_thresholds: Mapping[str, float],
    *,
    model_version: str,
    mode: Mode,
    recipe: str | None = None,
    camera: str | None = None,
) -> tuple[dict[str, float], CalibrationReport | None]:
    """The thresholds of one inspection, and what the calibration says of it.

    A void calibration must not make the model miss more. Under another recipe or camera each class takes the
    lower of the calibrated and the checkpoint's own threshold; with another model version or reference mode
    scores mean something else, and the checkpoint's own are taken.

    Args:
        own_thresholds: the checkpoint's, for this mode.
        recipe, camera: as stated with this inspection; they must equal what the calibration states, where
            nothing stated equals nothing stated.
    """
    if calibration is None:
        return dict(own_thresholds), None
    other_scores = _differences(
        ("model version", calibration.model_version, model_version),
        ("reference mode", calibration.reference_mode.replace("_", " "), mode.replace("_", " ")),
    )
    other_pictures = _differences(
        ("recipe", calibration.recipe, recipe), ("camera", calibration.camera, camera)
    )
    void_because = (*other_scores, *other_pictures)
    report = CalibrationReport(
        valid=not void_because,
        void_because=void_because,
        claims=calibration.claims,
        n=calibration.num_boards,
        recipe=calibration.recipe,
        camera=calibration.camera,
        date=calibration.date,
    )
    if other_scores:
        return dict(own_thresholds), report
    if calibration.thresholds.keys() != own_thresholds.keys():
        raise ConfigError(
            f"the calibration has thresholds for {', '.join(calibration.thresholds)}, "
            f"the model knows {', '.join(own_thresholds)}; calibrate again"
        )
    chosen = dict(calibration.thresholds)
    if other_pictures:
        chosen = {label: min(chosen[label], own) for label, own in own_thresholds.items()}
    return chosen, report


def _differences(*pairs: tuple[str, str | None, str | None]) -> tuple[str, ...]:
    return tuple(
        f"calibrated for {what} {then or '(none stated)'}, this inspection has {now or '(none stated)'}"
        for what, then, now in pairs
        if (then or None) != (now or None)
    )
