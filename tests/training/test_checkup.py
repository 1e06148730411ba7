"""A model that falls ill while it trains is named, once."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from inspect_vit.checkpoint import load_checkpoint
from inspect_vit.model import HierarchicalViT
from training.checkup import Checkup


def look(checkup: Checkup, model: HierarchicalViT, step: int) -> None:
    board, reference = torch.randint(256, (2, 1, 1, 320, 320), dtype=torch.uint8)
    output = model(board, reference, torch.ones(1))
    (output.head.centre_logits.sum() + output.head.distances.sum() + output.head.mask_logits.sum()).backward()
    checkup.look(model, output, step=step)


def test_a_shut_gate_is_said_once(tiny_checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, _ = load_checkpoint(tiny_checkpoint)
    checkup = Checkup()
    look(checkup, model, 500)
    assert "ill" not in capsys.readouterr().err
    with torch.no_grad():
        model.fuse4.w_g_high.bias.fill_(50.0)
    look(checkup, model, 1000)
    said = capsys.readouterr().err
    assert "step 1000, ill: " in said
    assert "16 px" in said
    look(checkup, model, 1500)
    assert "level" not in capsys.readouterr().err
