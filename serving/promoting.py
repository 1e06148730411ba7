"""Promotion: the gate, a process of its own, on boards that were never trained on; then the registry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from inspect_vit.checkpoint import read_metadata
from serving.dataset_schemas import DatasetFilter
from serving.errors import FieldError, GateRefusedError, ModelRefusedError, NotFoundError, VersionGoneError
from serving.gate_command import gate_command
from serving.job_schemas import JobResult, Promotion
from serving.job_sets import read_part
from serving.job_steps import PROGRAM, Command, JobContext, JobFailedError, Outcome, Steps, exported
from serving.jobs import actor_of
from serving.promotion import promote as put_into_production
from serving.recipes import get_recipe
from serving.registry import find_model, production, version_file

GATE_CODES = frozenset((0, 1, 3))
"""Pass, fail, insufficient."""
NO_BOARDS = (
    "there is no acceptance board: no verified board is in the acceptance part, and INSPECT_VIT_ACCEPTANCE "
    "is not set"
)


def resolve(engine: Engine, asked: Promotion) -> Promotion:
    """The request, if it can be done.

    Raises:
        NotFoundError: no such version or recipe.
        FieldError: an override without a reason.
        ModelRefusedError: the version is retired, or in production there already.
    """
    model = find_model(engine, asked.version)
    if asked.override and not asked.reason.strip():
        raise FieldError("reason: an override needs one, in words")
    if model.is_retired:
        raise ModelRefusedError(f"model version {asked.version} is retired", hint="promote another version")
    if asked.recipe is None:
        is_there = production(engine) == asked.version
    else:
        is_there = get_recipe(engine, asked.recipe).recipe.model_version == asked.version
    if is_there:
        whose = "boards whose recipe pins none" if asked.recipe is None else f"recipe {asked.recipe!r}"
        raise ModelRefusedError(f"model version {asked.version} is in production for {whose} already")
    return asked


def promote(context: JobContext) -> Steps:
    """Export, compare, promote. Raises JobFailedError and what the registry raises."""
    asked = Promotion.model_validate_json(context.row.request)
    engine, home = context.store.engine, context.config.home_dir
    base = production(engine, asked.recipe)
    dataset = yield from exported(context, DatasetFilter(recipe=asked.recipe))
    part = home / dataset.folder / "acceptance"
    gate: dict[str, Any] | None = None
    folders = _acceptance(context, part, base, asked.version)
    if folders or not asked.override:
        if not folders:
            raise JobFailedError(NO_BOARDS)
        renamed, retired = lineage(context, base, asked.version)
        arguments = gate_command(
            engine,
            context.config,
            asked.version,
            recipe=asked.recipe,
            acceptance=folders,
            out=context.files.run,
            renamed=[f"{old}={new}" for old, new in renamed.items()],
            retired=retired,
        )[len(PROGRAM) :]
        yield Command("gate", (*arguments, *_mode(part)), good_codes=GATE_CODES)
        gate = json.loads((context.files.run / "gate.json").read_bytes())
    return _decided(context, asked, gate)


def _decided(context: JobContext, asked: Promotion, gate: dict[str, Any] | None) -> Outcome:
    def outcome(reason: str, *, is_promoted: bool) -> Outcome:
        return Outcome(
            JobResult(
                version=asked.version,
                is_promoted=is_promoted,
                gate_result=None if gate is None else gate["result"],
                gate=gate,
                table=None,
            ),
            reason,
        )

    try:
        put_into_production(
            context.store.engine,
            context.config.home_dir,
            asked.version,
            recipe=asked.recipe,
            actor=actor_of(context.row),
            gate=gate,
            override_reason=asked.reason if asked.override else None,
            reason=asked.reason,
        )
    except GateRefusedError as error:
        return outcome(f"not promoted: {error}", is_promoted=False)
    return outcome("", is_promoted=True)


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


def lineage(context: JobContext, base: str, candidate: str) -> tuple[Mapping[str, str], list[str]]:
    """New name by the base's, and the base's classes that were given up; nothing is known of that where the
    candidate did not come from the base."""
    engine, home = context.store.engine, context.config.home_dir
    steps: list[dict[str, Any]] = []
    version: str | None = candidate
    seen: set[str] = set()
    while version is not None and version != base:
        if version in seen:
            return {}, []
        seen.add(version)
        try:
            steps.append(read_metadata(version_file(home, version)).training)
            version = find_model(engine, version).parent
        except (NotFoundError, VersionGoneError):
            # A checkpoint may name a parent that was never here.
            return {}, []
    if version != base:
        return {}, []
    names = {name: name for name in find_model(engine, base).facts.classes}
    retired: list[str] = []
    for step in reversed(steps):
        given_up, renames = set(step.get("retired", ())), dict(step.get("renamed", {}))
        retired += [old for old, now in names.items() if now in given_up]
        names = {old: renames.get(now, now) for old, now in names.items() if now not in given_up}
    return {old: now for old, now in names.items() if old != now}, retired
