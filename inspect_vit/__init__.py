"""inspect-vit: PCB inspection with a hierarchical-patch Vision Transformer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspect_vit.errors import (
    CheckpointError,
    ConfigError,
    ImageError,
    ImageTooLargeError,
    InspectionError,
    OutOfMemoryError,
    RegistrationError,
    UnsupportedImageError,
)
from inspect_vit.results import Defect, InspectionResult, IntakeReport, Sample, Verdict

if TYPE_CHECKING:
    from inspect_vit.image_io import read_image
    from inspect_vit.inspector import Inspector

__all__ = [
    "CheckpointError",
    "ConfigError",
    "Defect",
    "ImageError",
    "ImageTooLargeError",
    "InspectionError",
    "InspectionResult",
    "Inspector",
    "IntakeReport",
    "OutOfMemoryError",
    "RegistrationError",
    "Sample",
    "UnsupportedImageError",
    "Verdict",
    "read_image",
]


def __getattr__(name: str) -> Any:
    """Import torch and OpenCV only when they are asked for: `inspect-vit --help` answers at once."""
    if name == "Inspector":
        from inspect_vit.inspector import Inspector

        return Inspector
    if name == "read_image":
        from inspect_vit.image_io import read_image

        return read_image
    raise AttributeError(f"module 'inspect_vit' has no attribute {name!r}")
