"""The thresholds that a recipe's boards are inspected with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspect_vit.calibration import CalibrationReport, Mode, thresholds_in_force
from serving.recipes import StoredRecipe

if TYPE_CHECKING:
    from inspect_vit.inspector import Inspector


def in_force(
    inspector: Inspector, stored: StoredRecipe, mode: Mode, *, camera: str | None
) -> tuple[dict[str, float], CalibrationReport | None]:
    """By class, and what they promise; None where they were never calibrated.

    Args:
        camera: the recipe's, else the server's; None: none is stated.

    Raises:
        ConfigError: a calibration of other classes than the model's.
    """
    return thresholds_in_force(
        stored.recipe.calibration or inspector.calibration,
        inspector.metadata.thresholds[mode],
        model_version=inspector.metadata.version,
        mode=mode,
        recipe=stored.name,
        camera=camera,
    )
