"""What a model costs and what a checkpoint says of itself, as plain values for a table or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict
from torch.utils.flop_counter import FlopCounterMode

from inspect_vit.checkpoint import load_checkpoint
from inspect_vit.config import ModelConfig, load_config, validate
from inspect_vit.model import HierarchicalViT

FLOPS_SIDE_PX = 640
"""Operations are counted for one square picture of this side with its reference."""


def describe_checkpoint(path: Path) -> dict[str, Any]:
    """Model, thresholds and training record of a checkpoint. Raises CheckpointError."""
    model, metadata = load_checkpoint(path, attention_backend="eager")
    return {
        "name": metadata.name,
        "version": metadata.version,
        "created": metadata.created,
        "git_revision": metadata.git_revision,
        "data_fingerprint": metadata.data_fingerprint,
        "file_bytes": path.stat().st_size,
        **describe_model(model),
        "thresholds": {mode: dict(limits) for mode, limits in metadata.thresholds.items()},
        "needs_reference": metadata.needs_reference,
        "training": dict(metadata.training),
    }


def describe_config(path: Path) -> dict[str, Any]:
    """The model of a YAML file: a model's own, or a training run's. Raises ConfigError."""
    tree = load_config(path, _AnyTree).model_extra or {}
    config = validate(tree.get("model", tree), ModelConfig, source=str(path))
    return {"name": path.stem, **describe_model(HierarchicalViT(config, attention_backend="eager"))}


def describe_model(model: HierarchicalViT) -> dict[str, Any]:
    """Parameters, GFLOPs at FLOPS_SIDE_PX (2 per multiply-add, reference included) and one entry per level.

    The model must attend eagerly: torch counts plain products on every device, fused attention only on some.
    """
    config = model.config
    levels = []
    for level, embed, blocks in zip(config.levels, model.embeds, model.levels, strict=True):
        side = FLOPS_SIDE_PX // level.patch_size
        levels.append(
            {
                "patch_px": level.patch_size,
                "tokens": side * side,
                "embed_dim": level.embed_dim,
                "depth": level.depth,
                "num_heads": level.num_heads,
                "head_dim": level.head_dim,
                "window": level.window or "global",
                "position": level.position,
                "attn_drop": level.attn_drop,
                "parameters": _count(embed) + _count(blocks),
            }
        )
    return {
        "class_names": list(config.class_names),
        "parameters": _count(model),
        "gflops": round(_flops(model) / 1e9, 3),
        "gflops_side_px": FLOPS_SIDE_PX,
        "levels": levels,
    }


class _AnyTree(BaseModel):
    model_config = ConfigDict(extra="allow")


def _count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _flops(model: HierarchicalViT) -> int:
    picture = torch.zeros(1, model.config.in_chans, FLOPS_SIDE_PX, FLOPS_SIDE_PX)
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        model.eval()(picture, picture, torch.ones(1))
    return int(counter.get_total_flops())
