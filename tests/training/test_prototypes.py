"""A new row starts as its labelled cells' prototype, with logits of the size that a trained head gives."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from inspect_vit.checkpoint import load_checkpoint
from training.grow_head import grow, new_names
from training.pools import Prepared
from training.prototypes import LABELLED_LOGIT, OTHER_LOGIT, imprint


def test_means_of_labelled_and_other_cells_get_the_stated_logits(tiny_checkpoint: Path) -> None:
    old, _ = load_checkpoint(tiny_checkpoint)
    model = grow(old, new_names(old.config.class_names, add=["scratch"]))
    label, rows = 6, model.config.class_names
    assert rows[label] == "scratch"
    generator = torch.manual_seed(5)
    fused = torch.randn(4, 32, 20, 20, generator=generator)
    centres = torch.zeros(4, 7, 20, 20)
    centres[:, label, 10, 10] = 1
    fused[:, :8, 9:12, 9:12] += 3
    tensors = {"fused": fused, "centres": centres, "masks": centres, "counted": torch.ones(4, 1, 20, 20)}
    before = model.head.out.weight.clone()
    imprint(model, [label], [Prepared(tensors, True)])
    with torch.no_grad():
        logits = model.head(model.refine(fused))
    for found in (logits.centre_logits[:, label], logits.mask_logits[:, label]):
        at = centres[:, label] > 0
        assert float(found[at].mean()) == pytest.approx(LABELLED_LOGIT, abs=1e-3)
        assert float(found[~at].mean()) == pytest.approx(OTHER_LOGIT, abs=1e-3)
        assert float(found[at].min()) > float(found[~at].mean())
    assert pytest.approx(math.log(99)) == -OTHER_LOGIT
    changed = (model.head.out.weight != before).flatten(1).any(1).nonzero()[:, 0].tolist()
    assert changed == [label, 7 + 4 + label]
