"""The resumable state of a run as one safetensors file: model, EMA, optimiser moments, step. No pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from inspect_vit.errors import CheckpointError, ConfigError
from inspect_vit.files import write_atomically
from training.config import TrainConfig
from training.loop import Trainee


def save_state(path: Path, trainee: Trainee, config: TrainConfig) -> None:
    """Write the state atomically: a kill leaves the old file or the new one."""
    tensors = {f"model.{key}": value for key, value in trainee.model.state_dict().items()}
    tensors |= {f"ema.{key}": value for key, value in trainee.ema.module.state_dict().items()}
    for index, moments in trainee.optimizer.state_dict()["state"].items():
        tensors |= {f"optim.{index}.{key}": value for key, value in moments.items()}
    metadata = {"step": str(trainee.step), "config": config.model_dump_json()}
    write_atomically(
        path, save({k: v.detach().contiguous().cpu() for k, v in tensors.items()}, metadata=metadata)
    )


def check_state(path: Path, config: TrainConfig) -> int:
    """The step that the state in `path` is at, or 0 where there is none.

    Raises:
        ConfigError: the state belongs to another configuration; names the settings that differ.
        CheckpointError: the file is damaged.
    """
    if not path.exists():
        return 0
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot resume from {path}: {error}; start over with --fresh") from error
    differing = _differing(_completed(json.loads(metadata["config"])), config.model_dump(mode="json"))
    if differing:
        raise ConfigError(
            f"{path} was left by a run with another configuration ({', '.join(differing)}); "
            "use another --out, or --fresh"
        )
    return int(metadata["step"])


def _completed(config: dict[str, Any]) -> dict[str, Any]:
    """A stored configuration with today's defaults for settings that came later."""
    try:
        return TrainConfig.model_validate(config).model_dump(mode="json")
    except ValidationError:
        return config  # a setting that is gone; it is named among those that differ


def _differing(old: Any, new: Any, path: str = "") -> list[str]:
    """Paths of the settings that are not the same, as `epochs: 3 -> 4`."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return [] if old == new else [f"{path}: {old} -> {new}"]
    return [
        line
        for key in dict.fromkeys([*old, *new])
        for line in _differing(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    ]


def load_state(path: Path, trainee: Trainee, config: TrainConfig) -> None:
    """Restore what `save_state` wrote.

    Raises:
        ConfigError: the state belongs to another configuration.
        CheckpointError: the file is damaged.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            tensors: dict[str, Tensor] = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot resume from {path}: {error}; start over with --fresh") from error
    check_state(path, config)

    def part(prefix: str) -> dict[str, Tensor]:
        return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}

    trainee.model.load_state_dict(part("model."))
    trainee.ema.module.load_state_dict(part("ema."))
    state = trainee.optimizer.state_dict()
    moments: dict[int, dict[str, Tensor]] = {}
    for key, value in part("optim.").items():
        index, name = key.split(".", 1)
        moments.setdefault(int(index), {})[name] = value
    trainee.optimizer.load_state_dict({"state": moments, "param_groups": state["param_groups"]})
    trainee.step = int(metadata["step"])


def bf16_is_native() -> bool:
    """Whether this machine computes bf16 in hardware: elsewhere it is many times slower than float32."""
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
