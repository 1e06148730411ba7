"""Where a model runs."""

from __future__ import annotations

import torch

from inspect_vit.errors import ConfigError


def resolve_device(device: str) -> torch.device:
    """auto, cpu, cuda or cuda:N as a torch device.

    Raises:
        ConfigError: a device that is unknown or not there.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise ConfigError(f"unknown device {device!r}; use auto, cpu, cuda or cuda:N") from error
    if chosen.type not in ("cpu", "cuda"):
        raise ConfigError(f"device {device!r} is not supported; use auto, cpu, cuda or cuda:N")
    if chosen.type == "cuda" and (chosen.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"device {device!r} is not there: {torch.cuda.device_count()} CUDA devices found; use auto"
        )
    return chosen
