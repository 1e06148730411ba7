"""A small model of random weights whose scores hang on places; random weights of nano's don't."""

from __future__ import annotations

from pathlib import Path

import torch

from inspect_vit.checkpoint import save_checkpoint
from inspect_vit.config import ModelConfig, PatchLevelConfig
from inspect_vit.model import HierarchicalViT

NAMES = ("a", "b")
THRESHOLD = 0.3
"""Of both classes, with and without a reference."""
LEVELS = (
    PatchLevelConfig(patch_size=4, embed_dim=8, depth=1, head_dim=8, window=4, mlp_ratio=2),
    PatchLevelConfig(patch_size=16, embed_dim=16, depth=2, head_dim=8, window=2, mlp_ratio=2),
    PatchLevelConfig(patch_size=32, embed_dim=16, depth=1, head_dim=8, window=0, mlp_ratio=2),
)


def save_loud(path: Path, *, needs_reference: bool = False) -> Path:
    """Write its checkpoint; the same one every time."""
    torch.manual_seed(0)
    model = HierarchicalViT(
        ModelConfig(class_names=NAMES, levels=LEVELS, head_width=8, size_multiple=32, envelope_radii=(1,))
    )
    torch.nn.init.normal_(model.head.out.weight, std=0.8)
    limits = dict.fromkeys(NAMES, THRESHOLD)
    thresholds = {"with_reference": limits, "without_reference": limits}
    save_checkpoint(
        path, model, name="loud", thresholds=thresholds, training={}, needs_reference=needs_reference
    )
    return path
