"""Model versions on the wire: GET /v1/models, what changes their stage, and what a candidate says beside."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, FiniteFloat

from inspect_vit.config import Frozen
from inspect_vit.gate_report import Gate
from inspect_vit.results import Verdict
from serving.schemas import Wire

Stage = Literal["candidate", "shadow", "production", "retired"]
Deed = Literal["added", "promoted", "rolled back", "shadow", "retired"]
MAX_REASON_CHARS = 2000
RecipeName = Annotated[str, Field(min_length=1, max_length=200)]
_WHICH = "of which recipe; null: of boards without one, or whose recipe pins no version"


class ModelEvent(Wire):
    """One line of a version's history."""

    at: AwareDatetime
    actor: str = Field(description="name of the key; empty: without keys")
    recipe: str | None = Field(description=_WHICH)
    deed: Deed
    reason: str
    override: bool = Field(description="promoted although the gate did not pass")


class ModelReport(Wire):
    """One version."""

    version: str
    name: str
    stage: Stage
    parent: str | None = Field(description="version it was made from")
    classes: tuple[str, ...]
    needs_reference: bool
    added: AwareDatetime
    actor: str
    data_fingerprint: str
    git_revision: str
    recipes: tuple[str, ...] = Field(
        description="those in use that it inspects: they pin it, or pin nothing and it is the default"
    )
    is_default: bool = Field(description="inspects boards without a recipe, or whose recipe pins no version")
    loaded: bool = Field(description="in the memory of the process that answers")
    refused: str | None = Field(
        description="why that process could not load it when it was asked for last; what was in production "
        "before stays in use there. null: it could, or was not asked for"
    )
    report: dict[str, Any] | None = Field(
        description="the table of before and after that its training wrote; null: none"
    )
    gate: Gate | None = Field(description="of its newest promotion; null: none, or it went without one")
    overrides: tuple[ModelEvent, ...] = Field(
        description="promotions by which it is in production although the gate did not pass: who, where, why"
    )
    history: tuple[ModelEvent, ...] = Field(description="oldest first")


class ModelPage(Wire):
    models: tuple[ModelReport, ...] = Field(description="the one added last first")


class FigureRow(Wire):
    """One figure of two versions."""

    figure: str
    a: FiniteFloat | str | None = Field(description="null: that version does not have it")
    b: FiniteFloat | str | None


class ModelComparison(Wire):
    a: str = Field(description="version")
    b: str
    rows: tuple[FigureRow, ...]


class StageReport(Wire):
    """What a promotion or a rollback came to."""

    recipe: str | None = Field(description=_WHICH)
    version: str = Field(description="in production from now on")
    replaced: str | None = Field(description="the version that was until now")
    revision: int | None = Field(description="new revision of the recipe; null: none was needed")
    changed: bool = Field(description="false: it was in production already")


class RollbackRequest(Frozen):
    """The body of POST /v1/models/{version}/rollback."""

    recipe: RecipeName | None = Field(None, description=_WHICH)
    reason: str = Field("", max_length=MAX_REASON_CHARS)


class RetireRequest(Frozen):
    """The body of POST /v1/models/{version}/retire."""

    reason: str = Field("", max_length=MAX_REASON_CHARS)


class ShadowRequest(Frozen):
    """The body of POST /v1/models/{version}/shadow."""

    share: float = Field(
        ge=0.0, le=1.0, allow_inf_nan=False, description="of the boards, by their id; 0 ends it"
    )
    recipe: RecipeName | None = Field(None, description=_WHICH)


class ShadowSide(Wire):
    """What one version says of a board."""

    verdict: Verdict
    labels: tuple[str, ...] = Field(description="classes of the calls that count, each once, in order")


class ShadowCalls(Wire):
    """What both said of a board, as it is stored."""

    production: ShadowSide
    candidate: ShadowSide


class Disagreement(ShadowCalls):
    """A board of which the candidate says something else."""

    inspection: str
    serial: str | None = Field(description="of the board; null: it has none, or its inspection was deleted")


class ShadowReport(Wire):
    version: str
    share: FiniteFloat = Field(
        description="of the boards; the largest where several recipes have it; 0: ended"
    )
    recipes: tuple[str | None, ...] = Field(description="where it runs now; null as in requests")
    boards: int = Field(description="that both inspected")
    skipped: int = Field(description="drawn, and left out because boards of the line were waiting")
    disagreements: tuple[Disagreement, ...] = Field(
        description="boards with another verdict or other classes, newest first, at most 200"
    )
    num_disagreements: int
