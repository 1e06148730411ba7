"""Promotion: the gate, a process of its own, on boards that were never trained on; then the registry."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from inspect_vit.errors import ConfigError
from serving.config import ServingConfig
from serving.dataset_schemas import DatasetFilter
from serving.errors import (
    FieldError,
    GateRefusedError,
    ModelMismatchError,
    ModelRefusedError,
    NotFoundError,
    VersionGoneError,
)
from serving.gate_command import GateAnswer, gate_answer, gate_command, unjudged
from serving.job_schemas import JobResult, Promotion
from serving.job_sets import read_part
from serving.job_steps import DONE, PROGRAM, Command, JobContext, JobFailedError, Outcome, Steps, exported
from serving.jobs import actor_of
from serving.lineage import class_changes
from serving.model_stages import NO_PIN, newest_stage
from serving.promotion import promote as put_into_production
from serving.promotion import usable
from serving.recipes import get_recipe
from serving.registry import find_model, production

GATE_CODES = frozenset((0, 1, 3))
"""Pass, fail, insufficient."""
ANY_CODES = frozenset(range(256)) - {128 + signal.SIGINT, 128 + signal.SIGTERM}
"""Of a step that an override goes ahead without, unless somebody ended it."""
NO_BOARDS = (
    "there is no acceptance board: no verified board is in the acceptance part, and INSPECT_VIT_ACCEPTANCE "
    "is not set"
)


def resolve(engine: Engine, config: ServingConfig, asked: Promotion) -> Promotion:
    """The request, if it can be done.

    Raises:
        NotFoundError: no such version or recipe.
        FieldError: an override without a reason, a renamed or retired class that is none, or a class of the
            version in production that this one lacks and nobody says why.
        ModelRefusedError, VersionGoneError: the version is retired, in production there already, damaged or
            gone.
    """
    if asked.override and not asked.reason.strip():
        raise FieldError("reason: an override needs one, in words")
    usable(engine, config.home_dir, asked.version)
    if _is_there(engine, asked):
        raise ModelRefusedError(_there_already(asked))
    _check_classes(engine, config, asked)
    return asked


def _is_there(engine: Engine, asked: Promotion) -> bool:
    """Whether the version is what would be replaced."""
    if asked.recipe is None:
        return production(engine) == asked.version
    return get_recipe(engine, asked.recipe).recipe.model_version == asked.version


def _there_already(asked: Promotion) -> str:
    whose = "boards whose recipe pins none" if asked.recipe is None else f"recipe {asked.recipe!r}"
    return f"model version {asked.version} is in production for {whose} already"


def _check_classes(engine: Engine, config: ServingConfig, asked: Promotion) -> None:
    try:
        base = production(engine, asked.recipe)
    except (NotFoundError, ModelMismatchError):
        return
    changes = class_changes(
        engine, config.home_dir, base, asked.version, renamed=asked.renamed, retired=asked.retired
    )
    if changes.untold and not asked.override:
        named = ", ".join(map(repr, changes.untold))
        raise FieldError(
            f"renamed: {asked.version} does not know {named} of {base}, which is in production, and its "
            "lineage does not say why",
            hint=f'send "renamed": {{"{changes.untold[0]}": NEW}} for another name, '
            f'or "retired": ["{changes.untold[0]}"] for a class that is given up',
        )


def promote(context: JobContext) -> Steps:
    """Export, compare, promote. Raises JobFailedError and what the registry raises."""
    asked = Promotion.model_validate_json(context.row.request)
    engine, home = context.store.engine, context.config.home_dir
    if _is_there(engine, asked):
        # By a job before this one, or by this one before its service was killed.
        return _found_there(context, asked)
    codes = ANY_CODES if asked.override else DONE
    try:
        dataset = yield from exported(context, DatasetFilter(recipe=asked.recipe), good_codes=codes)
    except JobFailedError as error:
        if not asked.override:
            raise
        words = f"its boards were not exported: {error}"
        return _decided(context, asked, unjudged(words, context.config))
    part = home / dataset.folder / "acceptance"
    arguments: tuple[str, ...] = ()
    answer = GateAnswer(None)
    try:
        base = production(engine, asked.recipe)
        folders = _acceptance(context, part, base, asked.version)
        if folders:
            command = gate_command(
                engine,
                context.config,
                asked.version,
                recipe=asked.recipe,
                acceptance=folders,
                out=context.files.run,
                renamed=asked.renamed,
                retired=asked.retired,
            )
            arguments = (*command[len(PROGRAM) :], *_mode(part))
        elif not asked.override:
            raise JobFailedError(NO_BOARDS)
    except (ConfigError, NotFoundError, ModelMismatchError, ModelRefusedError, VersionGoneError) as error:
        # What is in production cannot be measured: an override still can take its place.
        if not asked.override:
            raise
        answer = unjudged(str(error), context.config)
    if arguments:
        code = yield Command("gate", arguments, good_codes=ANY_CODES if asked.override else GATE_CODES)
        answer = gate_answer(context.files.run, code, context.config)
    return _decided(context, asked, answer)


def _decided(context: JobContext, asked: Promotion, answer: GateAnswer) -> Outcome:
    gate = answer.document

    def outcome(reason: str, *, is_promoted: bool, is_override: bool = False) -> Outcome:
        return Outcome(
            JobResult(
                version=asked.version,
                is_promoted=is_promoted,
                is_override=is_override,
                gate_result=None if gate is None else gate["result"],
                gate=gate,
                table=None,
            ),
            reason,
        )

    try:
        done = put_into_production(
            context.store.engine,
            context.config.home_dir,
            asked.version,
            recipe=asked.recipe,
            actor=actor_of(context.row),
            gate=gate,
            unjudged=answer.unjudged,
            override_reason=asked.reason if asked.override else None,
            reason=asked.reason,
        )
    except GateRefusedError as error:
        return outcome(f"not promoted: {error}", is_promoted=False)
    if not done.is_changed:
        return _found_there(context, asked)
    if not done.is_override:
        return outcome("", is_promoted=True)
    return outcome(_override_words(context, asked, answer), is_promoted=True, is_override=True)


def _found_there(context: JobContext, asked: Promotion) -> Outcome:
    """Of a version that is in production without another deed: how it came there."""
    with Session(context.store.engine) as session:
        row = newest_stage(session, recipe=asked.recipe or NO_PIN)
    words, is_override = _there_already(asked), False
    gate: dict[str, Any] | None = None
    if row is not None and row.version == asked.version:
        words = f"{words}: {row.deed} {row.at}{f' by {row.actor}' if row.actor else ''}"
        words = f"{words}: {row.reason}" if row.reason else words
        gate, is_override = json.loads(row.gate or "null"), row.is_override
    result = JobResult(
        version=asked.version,
        is_promoted=True,
        is_override=is_override,
        gate_result=None if gate is None else gate["result"],
        gate=gate,
        table=None,
    )
    return Outcome(result, words)


def _override_words(context: JobContext, asked: Promotion, answer: GateAnswer) -> str:
    """Who let it go into production without the gate, why, and what the gate said."""
    who = actor_of(context.row).name
    said = f"could not judge: {answer.unjudged}" if answer.unjudged else "was not asked: no acceptance board"
    if answer.document is not None:
        said = f"said {answer.document['result']!r}"
    return f"promoted by override{f' of {who}' if who else ''}: {asked.reason.strip()}; the gate {said}"


def _acceptance(context: JobContext, part: Path, base: str, candidate: str) -> list[Path]:
    """Folders of boards that are compared on; a class that neither model knows is not counted there."""
    engine, folders = context.store.engine, list[Path]()
    boards = read_part(part)
    if boards.images:
        known = {*find_model(engine, base).facts.classes, *find_model(engine, candidate).facts.classes}
        out = context.files.folder / "acceptance"
        boards.write(out, known=known, boards={str(image["group"]) for image in boards.images})
        folders.append(out)
    if context.config.acceptance is not None:
        folders.append(context.config.acceptance.expanduser().absolute())
    return folders


def _mode(part: Path) -> tuple[str, ...]:
    """Whether boards are compared with a reference: as most of them were inspected."""
    images = read_part(part).images
    return ("--reference",) if 2 * sum("reference" in image for image in images) > len(images) else ()
