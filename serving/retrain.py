"""Retraining: from verified boards to a candidate in the registry, by `inspect-vit add-class`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from serving.config import ServingConfig
from serving.datasets import select_boards
from serving.errors import FieldError
from serving.job_schemas import JobResult, RetrainRequest
from serving.job_sets import LabelledPart, class_key, read_part
from serving.job_steps import Command, JobContext, JobFailedError, Outcome, Steps, exported
from serving.jobs import actor_of
from serving.registry import add_version, find_model, production, version_file

LEAST_REPLAYED = 2
"""Old boards: one is learnt from and one held back."""
THREADS = "threads"
"""The one setting of add-class that is the service's to make."""


def resolve(engine: Engine, config: ServingConfig, asked: RetrainRequest) -> RetrainRequest:
    """The request with its base named, if it can be done.

    Raises:
        NotFoundError: no such version or recipe.
        FieldError: classes that do not fit the base, or a class without an example to learn from.
    """
    version = asked.base or production(engine, asked.data.recipe)
    known = find_model(engine, version).facts.classes
    if not (asked.add or asked.rename or asked.retire):
        raise FieldError(
            "add: nothing is added, renamed or retired; name a class that was drawn or reclassified"
        )
    for n, name in enumerate(asked.add):
        if name in known or name in asked.add[:n]:
            raise FieldError(f"add.{n}: {name!r} is known already, wanted a class beside {', '.join(known)}")
    for field, names in (("rename", tuple(asked.rename)), ("retire", asked.retire)):
        for name in names:
            if name not in known:
                raise FieldError(
                    f"{field}: {name!r} is no class of {version}, which knows {', '.join(known)}"
                )
    if set(asked.retire) >= {*known} and not asked.add:
        raise FieldError("retire: no class would be left")
    _check_names(known, asked)
    _check_settings(asked)
    _check_examples(engine, config, asked)
    return asked.model_copy(update={"base": version})


def _check_names(known: Sequence[str], asked: RetrainRequest) -> None:
    """That every class of the new model has a name of its own, which labels can be read by."""
    if both := sorted(set(asked.retire) & set(asked.rename)):
        raise FieldError(f"retire: {both[0]!r} is to be renamed too; give one of the two")
    for old, new in asked.rename.items():
        if old == new:
            raise FieldError(f"rename: {old!r} has that name already, wanted another")
    named = [("rename", old, asked.rename.get(old, old)) for old in known if old not in asked.retire]
    named += [(f"add.{n}", "", name) for n, name in enumerate(asked.add)]
    meant = {class_key(old): old for old in known}
    taken: dict[str, str] = {}
    for field, _, name in named:
        key = class_key(name)
        if key in taken:
            raise FieldError(
                f"{field}: {name!r} and {taken[key]!r} would be two classes, which labels do not tell apart",
                hint="case, spaces, - and _ make no other class",
            )
        taken[key] = name
    for field, own, name in named:
        other = meant.get(class_key(name), own)
        if other != own:
            raise FieldError(
                f"{field}: {name!r}, but labels of that name mean the base's class {other!r}",
                hint="wanted a name that no class of the base has",
            )
    # The command line has OLD=NEW.
    for name in (*asked.add, *asked.rename, *asked.rename.values()):
        if "=" in name:
            raise FieldError(f"{'add' if name in asked.add else 'rename'}: {name!r}, wanted a name without =")


def _check_settings(asked: RetrainRequest) -> None:
    """What only training knows of a setting, its name and its bounds, add-class checks as the job begins."""
    if asked.settings and not asked.add:
        raise FieldError("settings: nothing is learnt without a class in add; leave them out, or add one")
    if THREADS in asked.settings:
        raise FieldError(
            f"settings.{THREADS}: {asked.settings[THREADS]}, wanted none: the service shares out the cores",
            hint="INSPECT_VIT_JOB_THREADS says how many a job has",
        )


def _check_examples(engine: Engine, config: ServingConfig, asked: RetrainRequest) -> None:
    if not asked.add:
        return
    found = select_boards(engine, asked.data, acceptance_share=config.acceptance_share).preview().classes
    for n, name in enumerate(asked.add):
        parts = found.get(name)
        if parts is None or not parts.train:
            num_held = 0 if parts is None else parts.acceptance
            others = ", ".join(f"{other} ({one.train})" for other, one in found.items() if one.train)
            raise FieldError(
                f"add.{n}: 0 examples of {name!r} on verified boards to train on, {num_held} on acceptance "
                f"boards, which are never trained on; there are {others or 'none of any class'}",
                hint="draw it, or reclassify a call, on more boards, and finish their reviews",
            )


def retrain(context: JobContext) -> Steps:
    """Export, learn, register. Raises JobFailedError and what the registry raises."""
    asked = RetrainRequest.model_validate_json(context.row.request)
    assert asked.base is not None, "resolve() names it"
    base = find_model(context.store.engine, asked.base)
    run = context.files.run
    arguments = ["add-class", "--from", str(version_file(context.config.home_dir, base.version))]
    if asked.add:
        dataset = yield from exported(context, asked.data)
        part = read_part(context.config.home_dir / dataset.folder / "train")
        arguments += _material(context, asked, part, base.facts.classes)
    for old, new in asked.rename.items():
        arguments += ["--rename", f"{old}={new}"]
    for name in asked.retire:
        arguments += ["--retire", name]
    for key, value in asked.settings.items():
        arguments += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    arguments += ["--set", f"{THREADS}={context.threads}", "--out", str(run), "--", *asked.add]
    yield Command("learn", tuple(arguments))
    made = [path for path in run.glob("*.safetensors") if path.name[0] != "." and path.stem != "state"]
    if len(made) != 1:
        raise JobFailedError(f"add-class left {len(made)} models, wanted 1; the log says why")
    table = _table(run / "table.json")
    stored = add_version(
        context.store.engine,
        context.config.home_dir,
        made[0],
        parent=base.version,
        actor=actor_of(context.row),
        report=table,
    )
    result = JobResult(version=stored.version, is_promoted=False, gate_result=None, gate=None, table=table)
    return Outcome(result)


def _material(
    context: JobContext, asked: RetrainRequest, part: LabelledPart, known: Sequence[str]
) -> list[str]:
    """Example boards and old boards, apart, so that what is measured on old boards was not learnt from."""
    classes = {*known, *asked.add, *asked.rename.values()}
    examples = part.boards_with(asked.add)
    folder = context.files.folder
    if not part.write(folder / "examples", known=classes, boards=examples):
        raise JobFailedError(f"no example of {', '.join(asked.add)} is left on verified boards to train on")
    options = ["--data", str(folder / "examples")]
    old = {str(image["group"]) for image in part.images} - examples
    if asked.replay == "verified" and len(old) >= LEAST_REPLAYED:
        part.write(folder / "old", known=classes, boards=old)
        options += ["--replay", str(folder / "old")]
    return options


def _table(path: Path) -> dict[str, Any] | None:
    """The figures before and after; None: nothing was learnt, classes have other names."""
    try:
        table: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    return table
