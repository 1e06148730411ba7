"""A model small enough that tests of attribution can ask it many times."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from inspect_vit.checkpoint import save_checkpoint
from inspect_vit.config import ModelConfig, PatchLevelConfig
from inspect_vit.inspector import Inspector
from inspect_vit.model import HierarchicalViT


@pytest.fixture(scope="session")
def small_inspector(tmp_path_factory: pytest.TempPathFactory) -> Inspector:
    """Random weights, two classes, windows on two levels, two blocks on the middle one, a loud head."""
    torch.manual_seed(0)
    levels = (
        PatchLevelConfig(patch_size=4, embed_dim=8, depth=1, head_dim=8, window=4, mlp_ratio=2),
        PatchLevelConfig(patch_size=16, embed_dim=16, depth=2, head_dim=8, window=2, mlp_ratio=2),
        PatchLevelConfig(patch_size=32, embed_dim=16, depth=1, head_dim=8, window=0, mlp_ratio=2),
    )
    model = HierarchicalViT(
        ModelConfig(
            class_names=("a", "b"), levels=levels, head_width=8, size_multiple=32, envelope_radii=(1,)
        )
    )
    torch.nn.init.normal_(model.head.out.weight, std=0.8)
    path = tmp_path_factory.mktemp("small") / "small.safetensors"
    thresholds = {"a": 0.3, "b": 0.3}
    save_checkpoint(
        path,
        model,
        name="small",
        thresholds={"with_reference": thresholds, "without_reference": thresholds},
        training={},
    )
    return Inspector(path)


@pytest.fixture(scope="session")
def board_pair() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """A board of 90 x 118 px and its reference; they differ in rows 32 to 48, columns 64 to 76."""
    rng = np.random.default_rng(1)
    coarse = rng.integers(0, 2, (12, 15), np.uint8) * 200 + 20
    reference = np.repeat(np.kron(coarse, np.ones((8, 8), np.uint8))[:90, :118, None], 3, axis=2)
    board = reference.copy()
    board[32:48, 64:76] = 255 - board[32:48, 64:76]
    return np.ascontiguousarray(board), np.ascontiguousarray(reference)
