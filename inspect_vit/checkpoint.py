"""One .safetensors file: weights as fp16 and, in its header, JSON with everything needed to infer."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from inspect_vit.config import AttentionBackend, Frozen, ModelConfig
from inspect_vit.errors import CheckpointError
from inspect_vit.files import write_atomically
from inspect_vit.model import HierarchicalViT

ReferenceMode = Literal["with_reference", "without_reference"]
HEADER_KEY = "inspect_vit"


class CheckpointMetadata(Frozen):
    """What a checkpoint says of itself."""

    name: str
    version: str = Field(description="first 12 hex digits of the sha256 of weights and configuration")
    model: ModelConfig
    thresholds: dict[ReferenceMode, dict[str, float]] = Field(
        description="score per class and reference mode"
    )
    needs_reference: bool = Field(
        False,
        description="boards without a golden reference get verdict ERROR: the model is no judge of them",
    )
    training: dict[str, Any] = Field(default_factory=dict, description="how it was made")
    data_fingerprint: str = ""
    git_revision: str = ""
    created: str = Field(description="UTC, ISO 8601")


def default_checkpoint() -> Path:
    """The checkpoint that is shipped with the package."""
    return Path(__file__).parent / "weights" / "generic-nano.safetensors"


def round_to_fp16(model: HierarchicalViT) -> None:
    """Round the weights in place to what a checkpoint stores, so that what is evaluated is what is loaded."""
    with torch.no_grad():
        for value in model.state_dict().values():
            value.copy_(value.to(torch.float16))


def save_checkpoint(
    path: str | Path,
    model: HierarchicalViT,
    *,
    name: str,
    thresholds: dict[ReferenceMode, dict[str, float]],
    training: dict[str, Any],
    needs_reference: bool = False,
    data_fingerprint: str = "",
    git_revision: str = "",
) -> CheckpointMetadata:
    """Write a checkpoint atomically, weights as fp16; `round_to_fp16` first if the model stays in use."""
    tensors = {
        key: value.detach().to("cpu", torch.float16).contiguous() for key, value in _state(model).items()
    }
    metadata = CheckpointMetadata(
        name=name,
        version=_version(tensors, model.config),
        model=model.config,
        thresholds=thresholds,
        needs_reference=needs_reference,
        training=training,
        data_fingerprint=data_fingerprint,
        git_revision=git_revision,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, save(tensors, metadata={HEADER_KEY: metadata.model_dump_json()}))
    return metadata


def read_metadata(path: str | Path) -> CheckpointMetadata:
    """The metadata alone; no weights are read.

    Raises:
        CheckpointError: no such file, not a safetensors file, or not one of ours.
    """
    path = Path(path)
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot read the checkpoint {path}: {error}") from error
    if HEADER_KEY not in header:
        raise CheckpointError(
            f"{path} is a safetensors file without inspect-vit metadata; give one made by train"
        )
    try:
        return CheckpointMetadata.model_validate(json.loads(header[HEADER_KEY]))
    except (ValidationError, json.JSONDecodeError) as error:
        raise CheckpointError(f"the metadata of {path} is not valid: {error}") from error


def load_checkpoint(
    path: str | Path, *, device: str | torch.device = "cpu", attention_backend: AttentionBackend = "auto"
) -> tuple[HierarchicalViT, CheckpointMetadata]:
    """Build the model and load its weights exactly, as float32 in evaluation mode.

    Raises:
        CheckpointError: as `read_metadata`, or tensors missing, left over, of another shape or damaged.
    """
    metadata = read_metadata(path)
    model = HierarchicalViT(
        metadata.model.model_copy(update={"drop_path": 0.0}), attention_backend=attention_backend
    )
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot read the weights of {path}: {error}") from error
    _compare(_state(model), tensors, path)
    found = _version(tensors, metadata.model)
    if found != metadata.version:
        raise CheckpointError(
            f"the weights of {path} have version {found}, its metadata says {metadata.version}: "
            "the file is damaged or was edited; copy it again"
        )
    model.load_state_dict(tensors)
    return model.to(device).eval(), metadata


def _state(model: HierarchicalViT) -> dict[str, Tensor]:
    return model.state_dict()


def _version(tensors: dict[str, Tensor], config: ModelConfig) -> str:
    digest = hashlib.sha256(config.model_dump_json().encode())
    for key in sorted(tensors):
        digest.update(key.encode())
        digest.update(tensors[key].contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:12]


def _compare(wanted: dict[str, Tensor], found: dict[str, Tensor], path: str | Path) -> None:
    faults = [f"{key} is missing" for key in sorted(wanted.keys() - found.keys())]
    faults += [f"{key} is not part of this model" for key in sorted(found.keys() - wanted.keys())]
    faults += [
        f"{key} has shape {tuple(found[key].shape)}, wanted {tuple(wanted[key].shape)}"
        for key in sorted(wanted.keys() & found.keys())
        if wanted[key].shape != found[key].shape
    ]
    if faults:
        more = f" and {len(faults) - 5} more faults" if len(faults) > 5 else ""
        raise CheckpointError(
            f"the weights of {path} do not fit its configuration: {'; '.join(faults[:5])}{more}"
        )
