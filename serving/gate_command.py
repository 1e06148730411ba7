"""The gate as a process: `inspect-vit evaluate --against`, with what a recipe says of its boards."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from inspect_vit.calibration import Calibration, Target, load_calibration, save_calibration
from inspect_vit.documents import save_document
from inspect_vit.errors import ConfigError
from inspect_vit.gate_report import EXIT_CODES, JSON_NAME, REFUSAL_NAME, load_gate
from inspect_vit.recipe import Recipe
from serving.config import ServingConfig
from serving.goldens import FOLDER
from serving.lineage import class_changes
from serving.recipes import get_recipe
from serving.registry import production, version_file
from serving.scrubbing import scrubbed

BASE_CALIBRATION, RECIPE = "base-calibration.json", "recipe.json"


@dataclass(frozen=True)
class GateAnswer:
    """What the gate said."""

    document: dict[str, Any] | None
    """Its gate.json; None: it could not judge."""
    unjudged: str = ""
    """Then: why, in words."""


def gate_command(
    database: Engine,
    config: ServingConfig,
    version: str,
    *,
    recipe: str | None,
    acceptance: Sequence[Path],
    out: Path,
    renamed: Mapping[str, str] | None = None,
    retired: Sequence[str] = (),
) -> list[str]:
    """Command line that holds a version against the one in production; it ends with gate.json in `out`.

    The version in production is measured at the thresholds that are in force, and the candidate's are chosen
    for the recipe's targets. Writes the calibration in force into `out`.

    Args:
        renamed, retired: new name by the old one, and classes that the version need not know any more, where
            neither the name nor the lineage tells.

    Raises:
        FieldError: a renamed or retired class that is none.
        NotFoundError, ModelMismatchError: no such recipe, or nothing to hold the version against.
        ModelRefusedError, VersionGoneError: the files of either version are damaged or gone.
    """
    home, base = config.home_dir, production(database, recipe)
    stored = None if recipe is None else get_recipe(database, recipe)
    settings = None if stored is None else stored.recipe
    command = [sys.executable, "-m", "inspect_vit.cli", "evaluate", "--out", str(out)]
    command += ["--checkpoint", str(version_file(home, version)), "--against", str(version_file(home, base))]
    for folder in acceptance:
        command += ["--acceptance", str(folder)]
    calibration = None if settings is None else settings.calibration
    if calibration is None and config.calibration is not None:
        calibration = load_calibration(config.calibration)
    if calibration is not None and calibration.model_version == base:
        command += ["--thresholds-of", str(_write(calibration, out))]
    if recipe is not None:
        command += ["--recipe", recipe]
    if stored is not None and _counts_less(stored.recipe):
        save_document(out / RECIPE, stored.recipe)
        command += ["--recipe-settings", str(out / RECIPE)]
        for reference in stored.references:
            command += ["--golden", str(home / "recipes" / FOLDER / reference.sha256)]
    for target in () if settings is None else settings.targets:
        command += ["--target", target_text(target)]
    if camera := (settings and settings.camera) or config.camera:
        command += ["--camera", camera]
    changes = class_changes(database, home, base, version, renamed=renamed or {}, retired=retired)
    for old, new in changes.renamed.items():
        command += ["--renamed", f"{old}={new}"]
    for old in changes.retired:
        command += ["--retired", old]
    return command


def unjudged(words: str, config: ServingConfig) -> GateAnswer:
    """Of a gate that could not judge, or not even start: why, without the server's folders."""
    return GateAnswer(None, scrubbed(words, config))


def gate_answer(out: Path, code: int, config: ServingConfig) -> GateAnswer:
    """What the gate left in `out`, by its exit code; a document beside another code is none."""
    if code in EXIT_CODES.values():
        try:
            gate = load_gate(out / JSON_NAME)
        except ConfigError as error:
            return unjudged(f"its answer cannot be read: {error}", config)
        if EXIT_CODES[gate.result] == code:
            return GateAnswer(gate.model_dump(mode="json"))
    with suppress(FileNotFoundError):
        return unjudged((out / REFUSAL_NAME).read_text(encoding="utf-8").strip(), config)
    return unjudged(f"it ended with exit code {code}", config)


def target_text(target: Target) -> str:
    """A target as `parse_target` reads it."""
    rates = f"{100 * target.max_miss_rate:.10g}% @ {100 * target.confidence:.10g}%"
    return rates if target.label is None else f"{target.label}: {rates}"


def _counts_less(recipe: Recipe) -> bool:
    """Whether a part of what is on a board does not count."""
    return bool(recipe.ignore or recipe.regions or recipe.min_defect_mm)


def _write(calibration: Calibration, out: Path) -> Path:
    path = out / BASE_CALIBRATION
    save_calibration(path, calibration)
    return path
