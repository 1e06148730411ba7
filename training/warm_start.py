"""Start a run from the weights of a checkpoint instead of from chance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from inspect_vit.checkpoint import load_checkpoint
from inspect_vit.errors import ConfigError
from inspect_vit.model import HierarchicalViT

MAX_NAMED = 3
NEW_PARTS = (".q_norm.", ".k_norm.")
"""A checkpoint without `model.qk_norm` lacks these; they start as initialised."""


def start_from(model: HierarchicalViT, checkpoint: Path) -> None:
    """Copy the checkpoint's weights into the model, in place; classes are matched by name.

    Rows of the head for classes that the checkpoint does not know stay as they were initialised; classes that
    the model does not know are dropped. The norms of q and k may be new.

    Raises:
        ConfigError: a network of another shape, named with the first tensors that differ.
        CheckpointError: the file is missing or damaged.
    """
    source, metadata = load_checkpoint(checkpoint)
    wanted, found = model.state_dict(), source.state_dict()
    names = model.config.class_names
    rows = _shared_rows(names, metadata.model.class_names)
    for key in ("head.out.weight", "head.out.bias"):
        if wanted[key].shape[1:] == found[key].shape[1:]:
            found[key] = _placed(found[key], wanted[key], rows)
    found.update(
        {key: wanted[key] for key in wanted if key not in found and any(part in key for part in NEW_PARTS)}
    )
    faults = [f"{key} is missing" for key in wanted if key not in found]
    faults += [
        f"{key} has shape {tuple(found[key].shape)}, wanted {tuple(value.shape)}"
        for key, value in wanted.items()
        if key in found and found[key].shape != value.shape
    ]
    faults += [f"{key} is not part of this model" for key in found if key not in wanted]
    if faults:
        more = f" and {len(faults) - MAX_NAMED} more" if len(faults) > MAX_NAMED else ""
        raise ConfigError(
            f"init_from {checkpoint} is another network: {'; '.join(faults[:MAX_NAMED])}{more}; "
            "take its `model` section (inspect-vit model-info) or drop init_from"
        )
    model.load_state_dict(found)


def _shared_rows(names: Sequence[str], known: Sequence[str]) -> list[tuple[int, int]]:
    """(row of the model, row of the checkpoint) of the head for what both have: centres, box, defect map."""
    new, old = len(names), len(known)
    shared = [(i, known.index(name)) for i, name in enumerate(names) if name in known]
    box = [(new + i, old + i) for i in range(4)]
    return [*shared, *box, *((new + 4 + i, old + 4 + j) for i, j in shared)]


def _placed(found: Tensor, wanted: Tensor, rows: list[tuple[int, int]]) -> Tensor:
    out = wanted.clone()
    to, origin = (torch.tensor(part) for part in zip(*rows, strict=True))
    out[to] = found[origin]
    return out
