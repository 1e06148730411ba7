"""The baseline is a fair one: the hierarchy's size, its input, its head, and it learns."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspect_vit.config import load_config
from inspect_vit.errors import ConfigError
from inspect_vit.model import HierarchicalViT
from training.config import TrainConfig
from training.fit import fit
from training.loop import build_model
from training.plain_vit import PlainViT


@pytest.fixture(scope="module")
def config(project: Path) -> TrainConfig:
    return load_config(
        project / "configs" / "deeppcb_nano.yaml",
        TrainConfig,
        ["plain_vit.embed_dim=192", "plain_vit.depth=4"],
    )


def test_it_has_the_hierarchys_parameters_within_5_percent(config: TrainConfig) -> None:
    plain = build_model(config)
    assert isinstance(plain, PlainViT)
    counts = [sum(p.numel() for p in m.parameters()) for m in (plain, HierarchicalViT(config.model))]
    assert abs(counts[0] / counts[1] - 1) <= 0.05


def test_it_answers_in_the_hierarchys_form_and_reads_the_reference(config: TrainConfig) -> None:
    torch.manual_seed(0)
    model = build_model(config).eval()
    torch.nn.init.normal_(model.head.out.weight)
    board, reference = torch.randint(256, (2, 1, 1, 320, 640), dtype=torch.uint8)
    with torch.inference_mode():
        output = model(board, reference, torch.ones(1))
        blind = model(board, torch.zeros_like(reference), torch.zeros(1))
        blind_too = model(board, reference, torch.zeros(1))
    hierarchy = HierarchicalViT(config.model).eval()
    with torch.inference_mode():
        wanted = hierarchy(board, reference, torch.ones(1))
    assert [part.shape for part in output.head] == [part.shape for part in wanted.head]
    assert output.gate_shares.shape == wanted.gate_shares.shape
    assert torch.equal(output.gate_shares[:, 1], torch.ones_like(output.gate_shares[:, 1]))
    torch.testing.assert_close(blind.head.centre_logits, blind_too.head.centre_logits)
    assert not torch.allclose(output.head.centre_logits, blind.head.centre_logits)


def test_every_parameter_gets_a_gradient(config: TrainConfig) -> None:
    model = build_model(config)
    board, reference = torch.randint(256, (2, 2, 1, 64, 64), dtype=torch.uint8)
    head = model(board, reference, torch.tensor([1.0, 0.0])).head
    sum(part.float().square().sum() for part in head).backward()  # type: ignore[union-attr]
    assert [name for name, p in model.named_parameters() if p.grad is None] == []


def test_it_makes_no_checkpoint(config: TrainConfig, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"baseline of benchmarks/hierarchy\.py"):
        fit(config, out=tmp_path)
