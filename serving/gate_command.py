"""The gate as a process: `inspect-vit evaluate --against`, with what a recipe says of its boards."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Engine

from inspect_vit.calibration import Calibration, Target, load_calibration, save_calibration
from serving.config import ServingConfig
from serving.recipes import get_recipe
from serving.registry import production, version_file

BASE_CALIBRATION = "base-calibration.json"


def gate_command(
    database: Engine,
    config: ServingConfig,
    version: str,
    *,
    recipe: str | None,
    acceptance: Sequence[Path],
    out: Path,
    renamed: Sequence[str] = (),
    retired: Sequence[str] = (),
) -> list[str]:
    """Command line that holds a version against the one in production; it ends with gate.json in `out`.

    The version in production is measured at the thresholds that are in force, and the candidate's are chosen
    for the recipe's targets. Writes the calibration in force into `out`.

    Args:
        renamed, retired: OLD=NEW, and classes that the version need not know any more.

    Raises:
        NotFoundError, ModelMismatchError: no such recipe, or nothing to hold the version against.
        ModelRefusedError, VersionGoneError: the files of either version are damaged or gone.
    """
    home, base = config.home_dir, production(database, recipe)
    settings = None if recipe is None else get_recipe(database, recipe).recipe
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
    for target in () if settings is None else settings.targets:
        command += ["--target", target_text(target)]
    if camera := (settings and settings.camera) or config.camera:
        command += ["--camera", camera]
    for option, values in (("--renamed", renamed), ("--retired", retired)):
        for value in values:
            command += [option, value]
    return command


def target_text(target: Target) -> str:
    """A target as `parse_target` reads it."""
    rates = f"{100 * target.max_miss_rate:.10g}% @ {100 * target.confidence:.10g}%"
    return rates if target.label is None else f"{target.label}: {rates}"


def _write(calibration: Calibration, out: Path) -> Path:
    path = out / BASE_CALIBRATION
    save_calibration(path, calibration)
    return path
