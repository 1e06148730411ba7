"""The thresholds that a recipe's boards are inspected with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspect_vit.calibration import Calibration, CalibrationReport, Mode, thresholds_in_force
from serving.recipes import StoredRecipe

if TYPE_CHECKING:
    from inspect_vit.checkpoint import CheckpointMetadata


def in_force(
    model: CheckpointMetadata,
    stored: StoredRecipe,
    mode: Mode,
    *,
    served: Calibration | None,
    camera: str | None,
) -> tuple[dict[str, float], CalibrationReport | None]:
    """By class, and what they promise; None where they were never calibrated.

    Args:
        model: of the version that inspects the recipe's boards.
        served: the service's own calibration, for recipes without one.
        camera: the recipe's, else the server's; None: none is stated.

    Raises:
        ConfigError: a calibration of other classes than the model's.
    """
    return thresholds_in_force(
        stored.recipe.calibration or served,
        model.thresholds[mode],
        model_version=model.version,
        mode=mode,
        recipe=stored.name,
        camera=camera,
    )
