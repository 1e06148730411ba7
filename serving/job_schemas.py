"""Jobs on the wire: what is asked for, how far it is, what came of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AwareDatetime,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from inspect_vit.config import Frozen
from serving.dataset_schemas import DatasetFilter, Name
from serving.schemas import Wire

JobKind = Literal["retrain", "promote"]
JobState = Literal["waiting", "running", "done", "failed", "cancelled"]
GateResult = Literal["pass", "fail", "insufficient"]
MAX_CLASSES, MAX_SETTINGS, MAX_NOTE_CHARS, MAX_REASON_CHARS = 20, 40, 2000, 2000
MAX_SETTING = 100_000
"""Above any count that helps: what is prepared for a billion crops fills memory and disk of the line."""
ENDED: tuple[JobState, ...] = ("done", "failed", "cancelled")

Version = Annotated[str, Field(min_length=1, max_length=64)]
SettingName = Annotated[str, Field(max_length=60, pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$")]


def _as_setting(value: object, check: ValidatorFunctionWrapHandler) -> object:
    """The value that fits one of the kinds, or one sentence on all of them."""
    try:
        return check(value)
    except ValidationError as error:
        raise ValueError(
            f"wanted true or false, a number from -{MAX_SETTING} to {MAX_SETTING}, or the name of a choice "
            "in lower case"
        ) from error


SettingValue = Annotated[
    bool
    | Annotated[int, Field(ge=-MAX_SETTING, le=MAX_SETTING)]
    | Annotated[FiniteFloat, Field(ge=-MAX_SETTING, le=MAX_SETTING)]
    | Annotated[str, Field(max_length=20, pattern=r"^[a-z][a-z-]*$")],
    WrapValidator(_as_setting),
]
"""A word is the name of a choice; no setting of a job is a path."""


class RetrainRequest(Frozen):
    """The body of POST /v1/retrain: which classes a model learns, from which verified boards."""

    model_config = ConfigDict(strict=True)

    base: Version | None = Field(None, description="model version to start from; null: the one in production")
    add: Annotated[tuple[Name, ...], Field(max_length=MAX_CLASSES)] = Field(
        (), description="classes that the base does not know, each with a verified example to train on"
    )
    rename: Annotated[dict[Name, Name], Field(max_length=MAX_CLASSES)] = Field(
        {}, description="new name by the base's"
    )
    retire: Annotated[tuple[Name, ...], Field(max_length=MAX_CLASSES)] = Field(
        (), description="classes of the base that are given up"
    )
    data: DatasetFilter = DatasetFilter()
    replay: Literal["verified", "drawn"] = Field(
        "verified",
        description="what keeps the old classes: the verified boards, or boards that are drawn, where there "
        "are few",
    )
    settings: Annotated[dict[SettingName, SettingValue], Field(max_length=MAX_SETTINGS)] = Field(
        {}, description="settings of add-class that are not to be as usual, as steps or optim.lr"
    )
    note: str = Field("", max_length=MAX_NOTE_CHARS)


class PromoteRequest(Frozen):
    """The body of POST /v1/models/{version}/promote."""

    model_config = ConfigDict(strict=True)

    recipe: Name | None = Field(None, description="null: all boards whose recipe pins no version")
    reason: str = Field("", max_length=MAX_REASON_CHARS, description="an override needs one")
    override: bool = Field(
        False, description="promote whatever the gate says; kept with the promotion and in the audit trail"
    )
    renamed: Annotated[dict[Name, Name], Field(max_length=MAX_CLASSES)] = Field(
        {},
        description="new name by the one in production, of a class whose lineage does not tell it",
    )
    retired: Annotated[tuple[Name, ...], Field(max_length=MAX_CLASSES)] = Field(
        (),
        description="classes of the version in production that this one has given up, where the lineage does "
        "not tell it",
    )


class Promotion(PromoteRequest):
    """What a job of kind promote does."""

    version: Version


class Progress(Wire):
    """Where a job is."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    stage: str = Field(max_length=200)
    done: FiniteFloat = Field(0, ge=0)
    total: FiniteFloat = Field(0, ge=0, description="0: not known")
    eta_s: FiniteFloat | None = Field(None, ge=0, description="of the stage's end; null: not known")


class JobResult(Wire):
    """What came of a job that is done."""

    version: str = Field(description="of the candidate, or of what was to be promoted")
    is_promoted: bool
    is_override: bool = Field(
        False, description="promoted although the gate did not pass; `reason` of the job says by whom and why"
    )
    gate_result: GateResult | None = Field(description="null: not asked, or it could not judge")
    gate: dict[str, Any] | None = Field(description="gate.json; null in lists and of other jobs")
    table: dict[str, Any] | None = Field(description="figures before and after; null in lists and others")


class JobLinks(Wire):
    log: str
    curves: str


class Job(Wire):
    """One job."""

    id: str
    kind: JobKind
    state: JobState
    created: AwareDatetime
    started: AwareDatetime | None = Field(description="the newest start")
    ended: AwareDatetime | None
    actor: str = Field(description="name of the key; empty: without keys")
    request: dict[str, Any] = Field(
        description="what was asked for, with the versions that it was found to mean"
    )
    dataset: str | None = Field(description="fingerprint of its data set, once that is there")
    progress: Progress | None
    reason: str = Field(
        description="why it failed, was not promoted, or by override, or still runs though cancelled"
    )
    result: JobResult | None
    can_resume: bool = Field(description="it ended before it was done, and goes on where it was")
    links: JobLinks


class JobPage(Wire):
    jobs: tuple[Job, ...] = Field(description="newest first")
    next: str | None = Field(description="link to the next page, null on the last one")


class CurvesReport(Wire):
    """What was measured while learning."""

    points: tuple[dict[str, FiniteFloat], ...] = Field(
        description="each with its step; at most 500, evenly chosen"
    )
