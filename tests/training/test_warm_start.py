"""A run that starts from a checkpoint starts as that checkpoint, class by class."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspect_vit.checkpoint import load_checkpoint
from inspect_vit.config import ModelConfig
from inspect_vit.errors import CheckpointError, ConfigError
from inspect_vit.model import HierarchicalViT
from training.warm_start import start_from


def run(model: HierarchicalViT) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    board, reference = (torch.randint(256, (1, 1, 320, 320), generator=generator).byte() for _ in range(2))
    with torch.inference_mode():
        head = model.eval()(board, reference, torch.ones(1)).head
    return head.centre_logits, head.distances, head.mask_logits


def other(config: ModelConfig, **changes: object) -> HierarchicalViT:
    torch.manual_seed(5)
    return HierarchicalViT(ModelConfig.model_validate(config.model_dump() | changes))


def test_classes_keep_what_they_learnt_wherever_they_stand(tiny_checkpoint: Path) -> None:
    source, metadata = load_checkpoint(tiny_checkpoint)
    torch.nn.init.normal_(source.head.out.weight)
    known = metadata.model.class_names
    model = other(metadata.model, class_names=("scratch", known[3], known[0]))
    start_from(model, tiny_checkpoint)
    centres, distances, masks = run(model)
    expected = run(load_checkpoint(tiny_checkpoint)[0])
    torch.testing.assert_close(distances, expected[1])
    for found, wanted in ((centres, expected[0]), (masks, expected[2])):
        torch.testing.assert_close(found[:, 1:], wanted[:, [3, 0]])
        assert not torch.allclose(found[:, 0], wanted[:, 0])


def test_another_network_is_refused_by_the_tensor_that_differs(tiny_checkpoint: Path, tmp_path: Path) -> None:
    config = load_checkpoint(tiny_checkpoint)[1].model
    with pytest.raises(ConfigError, match=r"embeds\.0\.proj\.weight has shape .* wanted \(32, 6, 4, 4\)"):
        start_from(other(config, in_chans=3), tiny_checkpoint)
    with pytest.raises(CheckpointError, match="cannot read the checkpoint"):
        start_from(other(config), tmp_path / "none.safetensors")
