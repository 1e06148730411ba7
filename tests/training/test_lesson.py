"""After the last step the new classes' centre logits are lower by the prior, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import torch

from inspect_vit.checkpoint import load_checkpoint
from training.grow_head import grow, new_names
from training.incremental_config import IncrementalConfig
from training.lesson import columns_of, settle


def test_only_centre_logits_of_new_classes_are_lowered(tiny_checkpoint: Path) -> None:
    old, _ = load_checkpoint(tiny_checkpoint)
    names = new_names(old.config.class_names, add=["scratch", "stain"])
    model, settled = grow(old, names), grow(old, names)
    settled.load_state_dict(model.state_dict())
    settle(settled, columns_of(old, names), IncrementalConfig(new_bias=1.25))
    generator = torch.manual_seed(3)
    board = torch.randint(0, 256, (1, old.config.in_chans, 320, 320), generator=generator, dtype=torch.uint8)
    with torch.inference_mode():
        was = model(board, board.flip(2), torch.ones(1)).head
        now = settled(board, board.flip(2), torch.ones(1)).head
    moved = (was.centre_logits - now.centre_logits).amax((0, 2, 3))
    assert torch.allclose(moved, torch.tensor([0.0] * 6 + [1.25] * 2), atol=1e-4)
    assert torch.equal(was.mask_logits, now.mask_logits)
    assert torch.equal(was.distances, now.distances)
