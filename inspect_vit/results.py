"""What an inspection answers, and the labelled pictures it is trained and measured on."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inspect_vit.calibration import CalibrationReport
from inspect_vit.errors import ConfigError
from inspect_vit.shapes import Shape

BoxXyxy = tuple[float, float, float, float]
"""(left, top, right, bottom) in pixels of the posted image, right and bottom exclusive."""


class Verdict(StrEnum):
    PASS = "PASS"
    FAIL = "FAIL"
    ERROR = "ERROR"
    """Not inspected: the board must not be passed on this answer."""


@dataclass(frozen=True)
class Defect:
    """One call. `score` is the centre score (0..1); `area_px` counts defect-map pixels above threshold,
    in whole cells of 4x4 px and at least one."""

    label: str
    score: float
    box_xyxy: BoxXyxy
    area_px: int
    gate_share: dict[str, float]
    """Share of each level ("4", "16", "32") in the fused output at this defect; sums to 1."""


@dataclass(frozen=True)
class IntakeReport:
    """What came in as a picture, and what was done to it before the network saw it."""

    format: str
    """Container as named by Pillow: JPEG, PNG, TIFF, ..."""
    mode: str
    """Pixel layout in the file as named by Pillow: L, RGB, I;16, ..."""
    bit_depth: int
    width: int
    height: int
    """Size after EXIF rotation."""
    actions: tuple[str, ...] = ()
    """What was done, in words: "rotated by EXIF orientation 6", "scaled 16 to 8 bit by value / 257"."""
    warnings: tuple[str, ...] = ()
    """Faults that leave the picture usable: "over-exposed: 41 % of pixels are 255"."""
    errors: tuple[str, ...] = ()
    """Faults that do not: each becomes a reason of verdict ERROR ("almost blank: ...")."""
    orientation: int = 1
    """EXIF orientation in the file, 1 to 8; the pixels were turned upright by it."""
    pages: int = 1
    """Pages or frames in the file; the first was taken."""
    dpi: tuple[float, float] | None = None
    """Dots per inch of the upright picture, across and down, where the file gives them."""
    full_scale: int = 255
    """The sample value that became 255: 255, 4095 (12 bit), 65535 (16 bit), or 1 for floats."""


@dataclass(frozen=True)
class Alignment:
    """How the golden reference was laid under the board."""

    residual_px: float | None
    """Displacement left where both match, root mean square, pixels of the reference; None: not measured."""
    shift_px: float
    """How far the middle of the board was off, pixels of the reference."""
    turn_degrees: float
    """How far the board was turned, clockwise as seen."""
    covered: float
    """Share of the posted picture that the reference shows, 0..1."""
    residual_mm: float | None = None
    """The residual in millimetres, where the scale is known."""
    note: str = ""
    """Why the reference was taken as posted, where it could not be aligned."""


@dataclass(frozen=True)
class InspectionResult:
    """Everything one inspection found. Maps cover the posted image; (h, w) = (ceil(H / 4), ceil(W / 4))."""

    verdict: Verdict
    reasons: tuple[str, ...]
    score: float
    """Highest centre score anywhere, 0..1, whether or not it reached a threshold."""
    defects: tuple[Defect, ...]
    """Calls at or above their thresholds (or `min_score`), highest score first; at most 300."""
    num_defects: int
    """Calls at or above their thresholds, listed or not; 0 when the verdict is ERROR."""
    defect_map: NDArray[np.float32]
    """(num_classes, h, w), probability 0..1 that a 4 px cell is that defect class."""
    gate_maps: dict[str, NDArray[np.float32]]
    """{"4", "16", "32"}: (h, w) share of each level, 0..1; the three sum to 1 in every cell."""
    class_names: tuple[str, ...]
    thresholds: dict[str, float]
    """Score per class at which a call becomes a defect, for the reference mode that was used."""
    width: int
    height: int
    with_reference: bool
    model_name: str
    model_version: str
    timings_ms: dict[str, float] = field(default_factory=dict)
    alignment: Alignment | None = None
    """None without a reference, and where it could not be aligned."""
    differences: tuple[BoxXyxy, ...] = ()
    """Large areas that do not look like the reference and that no call names; any makes the verdict FAIL."""
    covered: float = 1.0
    """Share of the cells outside ignore zones of which something is known; below 1 the verdict is ERROR."""
    calibration: CalibrationReport | None = None
    """What the thresholds promise on this board; None where they were never calibrated."""
    warnings: tuple[str, ...] = ()
    """What was done otherwise than usual, and leaves the answer valid: "inspected in tiles of ..."."""


@dataclass(frozen=True)
class Sample:
    """One labelled picture on disk, as every label format is read."""

    image: Path
    boxes: NDArray[np.float32]
    """(N, 4) box_xyxy, pixels of `image` after EXIF rotation."""
    labels: tuple[str, ...]
    """N class names."""
    reference: Path | None = None
    """The golden reference of the same size, aligned, or None."""
    group: str = ""
    """Board or lot; splits never cut a group in two."""
    origin: str = ""
    """Where the label was read: file and line, for reports."""
    masks: tuple[Shape | None, ...] | None = None
    """N exact outlines, None for a defect with a box only; None for all where the set has boxes only."""
    ignored: tuple[bool, ...] = ()
    """N flags, True for a crowd or a difficult object: neither defect nor background. Empty: none is."""
    split: str = ""
    """"train", "val" or "test" as the set itself says, else ""."""

    def __post_init__(self) -> None:
        counts = {"boxes": len(self.boxes), "labels": len(self.labels)}
        counts |= {"masks": len(self.masks)} if self.masks is not None else {}
        counts |= {"ignored": len(self.ignored)} if self.ignored else {}
        if len(set(counts.values())) > 1:
            raise ConfigError(f"{self.origin or self.image}: one entry per defect wanted, not {counts}")

    @property
    def is_ignored(self) -> NDArray[np.bool_]:
        """`ignored` as an array, (N,), made anew at each call: take it once for all boxes."""
        return np.array(self.ignored or (False,) * len(self.labels), np.bool_)
