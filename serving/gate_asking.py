"""The gate of `inspect-vit models promote`: a process of its own that shows its progress."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy import Engine

from inspect_vit.cli_gate import EXIT_INTERRUPTED
from inspect_vit.errors import ConfigError
from inspect_vit.gate_report import JSON_NAME, REFUSAL_NAME
from serving.config import from_environment
from serving.errors import ModelMismatchError, ModelRefusedError, NotFoundError, VersionGoneError
from serving.gate_command import GateAnswer, gate_answer, gate_command, unjudged
from serving.recipes import get_recipe
from serving.registry import production


def to_replace(database: Engine, recipe: str | None, version: str) -> str | None:
    """The version that would be replaced; None: there is none to compare with, or it is this one."""
    pins = None if recipe is None else get_recipe(database, recipe).recipe.model_version
    try:
        base = production(database, recipe)
    except (NotFoundError, ModelMismatchError):
        return None
    return None if version == (base if recipe is None else pins) else base


def ask_gate(
    database: Engine,
    version: str,
    *,
    recipe: str | None,
    acceptance: Sequence[Path],
    out: Path,
    renamed: Mapping[str, str],
    retired: Sequence[str],
    is_override: bool,
) -> GateAnswer:
    """What the gate says of a version.

    Raises:
        ServingError: it cannot be held against what is in production; with an override that is an answer.
    """
    config = from_environment(os.environ)
    try:
        command = gate_command(
            database,
            config,
            version,
            recipe=recipe,
            acceptance=acceptance,
            out=out,
            renamed=renamed,
            retired=retired,
        )
    except (ConfigError, ModelRefusedError, VersionGoneError) as error:
        if not is_override:
            raise
        return unjudged(str(error), config)
    return gate_answer(out, _run_gate(command, out), config)


def _run_gate(command: Sequence[str], out: Path) -> int:
    """Run the gate in a process of its own that shows its progress; its exit code."""
    # The answer of an earlier run is none of this one.
    for name in (JSON_NAME, REFUSAL_NAME):
        (out / name).unlink(missing_ok=True)
    done = subprocess.run(command, check=False)
    if done.returncode == EXIT_INTERRUPTED:
        raise KeyboardInterrupt
    return done.returncode
