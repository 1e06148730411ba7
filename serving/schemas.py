"""The wire format: what a client sends beside its pictures, and the answers. Every number is finite."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from inspect_vit.calibration import CalibrationReport
from inspect_vit.config import Frozen
from inspect_vit.recipe import Recipe
from inspect_vit.report import inspection_report
from inspect_vit.results import BoxXyxy, InspectionResult, IntakeReport, Verdict

AttentionLevel = Literal["4", "16", "32"]
LEVELS: tuple[AttentionLevel, ...] = get_args(AttentionLevel)
AttentionFormat = Literal["png", "npz"]
AttentionMethod = Literal["attention", "relevance", "rollout"]
MapLevel = Literal["4", "16", "32", "all"]
RenderedName = Literal["defect_map", "overlay", "gate", "attention_4", "attention_16", "attention_32"]
RENDERED_NAMES: tuple[RenderedName, ...] = get_args(RenderedName)
"""Pictures that are drawn from an inspection, as `options.include` and `pictures` spell them."""

EvidenceMap = Literal[
    "attention_4",
    "attention_16",
    "attention_32",
    "gate",
    "rollout",
    "relevance",
    "relevance_4",
    "relevance_16",
    "relevance_32",
    "defect_map",
]
EVIDENCE_MAPS: tuple[EvidenceMap, ...] = get_args(EvidenceMap)
"""Maps whose truth is tested."""

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class Wire(BaseModel):
    """Base of every answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class InspectOptions(Frozen):
    """The `options` field of POST /v1/inspect, as JSON text."""

    include: tuple[RenderedName, ...] = Field(
        default=(), description="pictures to put into the answer as base64 PNG"
    )
    min_score: Share | None = Field(
        default=None,
        description="lowest score of a listed defect; default: the class thresholds. "
        "The verdict always uses the thresholds",
    )


class DefectReport(Wire):
    id: int = Field(ge=1, description="number of the defect in this inspection, highest score first")
    label: str
    score: Share
    box_xyxy: tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat] = Field(
        description="left, top, right, bottom in pixels of the posted image; right and bottom exclusive"
    )
    area_px: int = Field(ge=0, description="defect-map pixels above the threshold")
    size_mm: tuple[FiniteFloat, FiniteFloat] | None = Field(
        None, description="width and height of the box, where the recipe states the scale"
    )
    place_mm: tuple[FiniteFloat, FiniteFloat] | None = Field(
        None, description="(x, y) of its middle on the board, from the reference's upper left corner"
    )
    place_px: tuple[FiniteFloat, FiniteFloat] | None = Field(None, description="the same in reference px")
    gate_share: dict[AttentionLevel, Share] = Field(
        description="share of the 4, 16 and 32 px level in this call; sums to 1"
    )


class ImageSize(Wire):
    width: int
    height: int


class ModelRef(Wire):
    name: str
    version: str


class BoardFitReport(Wire):
    residual_px: FiniteFloat = Field(description="displacement left after registration with the first board")
    difference: FiniteFloat = Field(description="mean absolute difference from the reference, grey levels")


class RecipeReference(Wire):
    name: str
    sha256: str
    width: int
    height: int
    boards: tuple[BoardFitReport, ...] = Field(
        description="of a reference that was built from good boards: how each agrees with it"
    )
    picture: str = Field(description="link to the picture as it was sent")


class RecipeReport(Wire):
    name: str
    revision: int = Field(ge=1)
    created: datetime
    actor: str = Field(description="name of the key that stored it; empty: without keys")
    recipe: Recipe
    references: tuple[RecipeReference, ...]


class RecipePage(Wire):
    recipes: tuple[RecipeReport, ...]


class ReferenceReport(Wire):
    """How the golden reference was laid under the board; all null where it could not be aligned, and in
    inspections that were stored before references were aligned."""

    name: str | None = Field(None, description="of the recipe's references, the one that fitted best")
    residual_px: FiniteFloat | None = Field(description="misregistration left, pixels of the reference")
    residual_mm: FiniteFloat | None = Field(None, description="the same, where the scale is known")
    shift_px: FiniteFloat | None = Field(description="how far the middle of the board was off")
    turn_degrees: FiniteFloat | None = Field(None, description="how far the board was turned, clockwise")
    covered: Share | None = Field(None, description="share of the image that the reference shows")
    note: str = Field("", description="why it was taken as posted, where it could not be aligned")


class IntakeSummary(Wire):
    format: str
    mode: str
    bit_depth: int
    orientation: int = Field(1, ge=1, le=8, description="EXIF orientation in the file; it was undone")
    pages: int = Field(1, ge=1, description="pages or frames in the file; the first was inspected")
    dpi: tuple[FiniteFloat, FiniteFloat] | None = Field(
        None, description="dots per inch across and down, where the file gives them"
    )
    actions: tuple[str, ...] = Field(description="what was done to the picture, in words")
    warnings: tuple[str, ...]
    errors: tuple[str, ...] = Field(description="why the picture is not fit to be inspected")


class Links(Wire):
    image: str
    reference: str | None
    defect_map: str
    overlay: str
    attention: str
    evidence: str
    gate: str


class StoredReport(Wire):
    """The part of a report that is stored; links and pictures are added when it is answered."""

    id: str
    created: datetime
    verdict: Verdict
    reasons: tuple[str, ...] = Field(description="why the verdict is FAIL or ERROR, in words")
    score: Share = Field(description="highest defect score anywhere, whether or not it reached a threshold")
    defects: tuple[DefectReport, ...] = Field(description="at most 300, highest score first")
    num_defects: int | None = Field(
        None,
        ge=0,
        description="calls at or above their thresholds, listed or not; 0 when the verdict is ERROR; null: "
        "stored before they were counted",
    )
    differences: tuple[tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat], ...] = Field(
        (), description="large areas that do not look like the reference and that no defect class names"
    )
    covered: Share = Field(
        1.0,
        description="share of the board outside ignore zones that was inspected; below 1: verdict ERROR",
    )
    image: ImageSize
    serial: str | None
    recipe: str | None
    recipe_revision: int | None = Field(None, ge=1, description="null: inspected without a recipe")
    actor: str | None = Field(None, description="name of the key that posted it; null: posted without keys")
    attempt: int | None = Field(
        None, ge=1, description="1 for the first picture of a serial, 2 when the board comes back, ..."
    )
    model: ModelRef
    reference: ReferenceReport | None
    calibration: CalibrationReport | None = Field(
        None, description="what the thresholds promise on this board; null: they were not calibrated"
    )
    intake: IntakeSummary
    warnings: tuple[str, ...] = Field(
        (), description="of the recipe's boards, not of this one alone: drift, and defects that repeat"
    )
    timings_ms: dict[str, FiniteFloat] = Field(
        description="queue (waiting), decode, inference (of it: model, calls), store (pictures to disk)"
    )


class InspectionReport(StoredReport):
    links: Links
    pictures: dict[RenderedName, str] | None = Field(
        None, description="base64 PNGs asked for with options.include"
    )


class InspectionPage(Wire):
    inspections: tuple[InspectionReport, ...] = Field(description="newest first")
    next: str | None = Field(description="link to the next page, null on the last one")


class MapEvidence(Wire):
    """Whether one map of one defect can be believed."""

    map: EvidenceMap
    link: str = Field(description="the picture")
    score: Share = Field(description="of the defect, as the board is")
    score_without: Share = Field(description="of the defect when the map's most relevant area is replaced")
    score_without_random: Share = Field(description="of the defect when as large an area elsewhere is")
    drop: FiniteFloat = Field(description="score - score_without")
    random_drop: FiniteFloat = Field(description="score - score_without_random")
    faithfulness: FiniteFloat = Field(description="(drop - random_drop) / score: 1 all of it, 0 none")
    reliable: bool
    words: str


class EvidenceReport(Wire):
    """Whether the overlays of an inspection can be believed, for one of its defects."""

    id: str
    defect: int | None = Field(description="the defect they were tested on; null: the inspection lists none")
    label: str | None
    with_reference: bool = Field(
        description="true: the golden reference replaced areas; false: filled from around, a weaker test"
    )
    area_px: int | None = Field(description="pixels replaced each time")
    maps: tuple[MapEvidence, ...]
    words: str = Field(description="why nothing was tested; empty when something was")


class ErrorDetail(Wire):
    code: str
    message: str
    hint: str


class ErrorReport(Wire):
    error: ErrorDetail


def make_report(
    result: InspectionResult,
    intake: IntakeReport,
    *,
    inspection_id: str,
    created: datetime,
    serial: str | None,
    recipe: str | None,
    timings_ms: dict[str, float],
    actor: str | None = None,
    recipe_revision: int | None = None,
    reference_name: str | None = None,
    in_mm: Callable[[BoxXyxy], tuple[tuple[float, float], tuple[float, float]] | None] = lambda _: None,
    on_reference: Callable[[BoxXyxy], tuple[float, float] | None] = lambda _: None,
    warnings: tuple[str, ...] = (),
) -> StoredReport:
    """Put one result into wire words, with what the service knows beside it.

    in_mm, on_reference: size and place of a box in mm, and its place in px of the reference, or None.
    """
    told = inspection_report(result, inspection_id=inspection_id, intake=intake, links={})
    del told["links"]
    for defect, found in zip(told["defects"], result.defects, strict=True):
        if (measured := in_mm(found.box_xyxy)) is not None:
            defect["size_mm"], defect["place_mm"] = measured
        defect["place_px"] = on_reference(found.box_xyxy)
    if told["reference"] is not None:
        told["reference"]["name"] = reference_name
    told["timings_ms"] = {stage: round(spent, 2) for stage, spent in timings_ms.items()}
    told |= {"created": created, "serial": serial, "recipe": recipe, "actor": actor}
    told |= {"recipe_revision": recipe_revision, "warnings": warnings}
    return StoredReport.model_validate(told)


def answer(stored: StoredReport, *, pictures: dict[RenderedName, str] | None = None) -> InspectionReport:
    """Add what is not stored: the links, and the pictures that were asked for."""
    base = f"/v1/inspections/{stored.id}"
    links = Links(
        image=f"{base}/image",
        reference=f"{base}/reference" if stored.reference else None,
        defect_map=f"{base}/defect_map",
        overlay=f"{base}/overlay",
        attention=f"{base}/attention",
        evidence=f"{base}/evidence",
        gate=f"{base}/gate",
    )
    return InspectionReport(**dict(stored), links=links, pictures=pictures)
