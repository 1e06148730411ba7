"""What model-info says of a model is true: counted here another way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from inspect_vit.cli import main
from inspect_vit.config import ModelConfig, load_config
from inspect_vit.model import HierarchicalViT
from inspect_vit.model_info import describe_checkpoint, describe_config


def multiply_adds(config: ModelConfig, side_px: int) -> int:
    """Linear and convolution products seen by hooks, attention products by formula."""
    model = HierarchicalViT(config, attention_backend="eager").eval()
    total = 0

    def count(module: nn.Module, _: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal total
        if isinstance(module, nn.Linear):
            total += output.numel() * module.in_features
        elif isinstance(module, nn.Conv2d):
            taps = module.kernel_size[0] * module.kernel_size[1]
            total += output.numel() * module.in_channels // module.groups * taps

    handles = [
        module.register_forward_hook(count)
        for module in model.modules()
        if isinstance(module, nn.Linear | nn.Conv2d)
    ]
    picture = torch.zeros(1, config.in_chans, side_px, side_px)
    with torch.inference_mode():
        model(picture, picture, torch.ones(1))
    for handle in handles:
        handle.remove()
    for level in config.levels:
        tokens = (side_px // level.patch_size) ** 2
        keys = level.window**2 or tokens
        total += level.depth * 2 * tokens * keys * level.embed_dim  # q k and weights v, over all heads
        total += level.depth * tokens * 3 * level.embed_dim**2  # W_q, W_k, W_v, one product without a module
    return total


def test_operations_of_nano(project: Path) -> None:
    path = project / "configs" / "nano.yaml"
    config = load_config(path, ModelConfig)
    info = describe_config(path)
    assert info["gflops"] == pytest.approx(2 * multiply_adds(config, 640) / 1e9, rel=0.01)
    assert info["gflops"] <= 6.5
    assert info["parameters"] == sum(p.numel() for p in HierarchicalViT(config).parameters())
    assert [level["tokens"] for level in info["levels"]] == [160**2, 40**2, 20**2]


def test_a_checkpoint_tells_thresholds_and_how_it_was_made(
    tiny_checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    info = describe_checkpoint(tiny_checkpoint)
    assert (info["name"], info["training"]) == ("tiny", {"seed": 0})
    assert info["thresholds"]["with_reference"]["open"] == 0.3
    assert info["file_bytes"] == tiny_checkpoint.stat().st_size
    with pytest.raises(SystemExit) as caught:
        main(["model-info", str(tiny_checkpoint), "--json"])
    assert caught.value.code == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(info))


def test_tables_show_the_same_figures(tiny_checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    info = describe_checkpoint(tiny_checkpoint)
    with pytest.raises(SystemExit):
        main(["model-info", str(tiny_checkpoint)])
    shown = capsys.readouterr().out
    for words in (f"{info['parameters']:,}", str(info["gflops"]), info["version"], "0.300", "mousebite"):
        assert words in shown
