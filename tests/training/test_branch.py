"""A branch shares the old model's channels: the answers and gradients are those of the whole network."""

from __future__ import annotations

from pathlib import Path

import torch

from inspect_vit.checkpoint import load_checkpoint
from training.grow_head import grow, new_names
from training.incremental_config import IncrementalConfig
from training.incremental_loop import answer, answers


def test_branch_answers_are_those_of_the_whole_networks(tiny_checkpoint: Path) -> None:
    old, _ = load_checkpoint(tiny_checkpoint)
    generator = torch.manual_seed(3)
    model = grow(old, new_names(old.config.class_names, add=["scratch"]), widen=16)
    with torch.no_grad():
        for parameter in model.head.out.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator)
    fused = torch.randn(2, old.refine.conv.in_channels, 20, 20, generator=generator)
    now, before = answers(model, old, {"fused": fused}, IncrementalConfig(part="branch"))
    assert before is not None
    width = old.config.head_width
    taught = model.head.trunk[0].weight, model.head.trunk[0].bias, model.head.out.weight, model.head.out.bias
    gradients = []
    for head in (now.head, answer(model, {"fused": fused}).head):
        model.zero_grad()
        sum(part.square().sum() for part in (head.centre_logits, head.mask_logits)).backward()  # type: ignore[union-attr]
        gradients.append([parameter.grad.clone() for parameter in taught])
    for mine, wanted in zip(now.head, answer(model, {"fused": fused}).head, strict=True):
        assert torch.allclose(mine, wanted, atol=1e-5)
    for mine, wanted in zip(before.head, answer(old, {"fused": fused}).head, strict=True):
        assert torch.allclose(mine, wanted, atol=1e-5)
    for mine, wanted in zip(gradients[0][:2], gradients[1][:2], strict=True):
        assert not mine[:width].any()  # what stays gets none
        assert torch.allclose(mine[width:], wanted[width:], rtol=1e-4, atol=1e-3)
        assert wanted[width:].any()
    for mine, wanted in zip(gradients[0][2:], gradients[1][2:], strict=True):
        assert torch.allclose(mine, wanted, rtol=1e-4, atol=1e-3)


def test_without_protection_nothing_is_held(tiny_checkpoint: Path) -> None:
    old, _ = load_checkpoint(tiny_checkpoint)
    model = grow(old, new_names(old.config.class_names, add=["scratch"]), widen=16)
    batch = {"fused": torch.zeros(1, old.refine.conv.in_channels, 8, 8)}
    for protect in (True, False):
        _, before = answers(model, old, batch, IncrementalConfig(part="branch", protect=protect))
        assert (before is not None) == protect
