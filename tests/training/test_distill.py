"""Old objects without a label are not learnt as background, and what the old model says is held."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from inspect_vit.heads import HeadOutput
from inspect_vit.model import ModelOutput
from training.distill import Columns, holding_terms, learning_loss
from training.incremental_config import IncrementalConfig

SIDE = 24
COLUMNS = Columns(new=[2], kept=[0, 1], before=[0, 1])
LABELLED, SEEN = (4, 4), (16, 16)
"""Cells of the new defect with a label, and of an old one without."""


def _output(centres: Tensor) -> ModelOutput:
    distances = torch.full((1, 4, SIDE, SIDE), 12.0)
    return ModelOutput(HeadOutput(centres, distances, centres.clone()), torch.full((1, 3, 1, 1), 1 / 3), None)


def _old(logit: float = 4.0) -> ModelOutput:
    centres = torch.full((1, 2, SIDE, SIDE), -8.0)
    centres[0, 0, SEEN[0], SEEN[1]] = logit
    centres[0, 1, LABELLED[0], LABELLED[1]] = logit
    return _output(centres)


def _batch(complete: float) -> dict[str, Tensor]:
    centres = torch.zeros(1, 3, SIDE, SIDE)
    centres[0, 2, LABELLED[0], LABELLED[1]] = 1
    weights = centres[:, 2:].clone()
    return {
        "centres": centres,
        "masks": torch.zeros_like(centres),
        "distances": torch.full((1, 4, SIDE, SIDE), 12.0),
        "box_weights": weights,
        "counted": torch.ones(1, 1, SIDE, SIDE),
        "complete": torch.tensor([complete]),
    }


def _push(complete: float) -> Tensor:
    """Gradient of the centre logits, where the learner says of old classes what the old model says."""
    centres = torch.full((1, 3, SIDE, SIDE), -8.0)
    centres[:, :2] = _old().head.centre_logits
    centres[0, 2, SEEN[0], SEEN[1]] = 4.0
    centres.requires_grad_()
    config = IncrementalConfig()
    learning_loss(_output(centres), _old(), _batch(complete), COLUMNS, config)["loss"].backward()  # type: ignore[no-untyped-call]
    assert centres.grad is not None
    return centres.grad[0]


def test_an_old_object_without_a_label_is_left_alone_on_example_boards() -> None:
    push = _push(complete=0)
    assert push[0, SEEN[0], SEEN[1]] == 0
    assert push[2, SEEN[0], SEEN[1]] == 0  # it may be one of the new class that was not labelled


def test_on_boards_with_all_labels_it_is_background() -> None:
    push = _push(complete=1)
    assert push[0, SEEN[0], SEEN[1]] > 0
    assert push[2, SEEN[0], SEEN[1]] > 0


@pytest.mark.parametrize("complete", [0, 1])
def test_a_labelled_new_defect_is_no_longer_called_by_its_old_name(complete: float) -> None:
    push = _push(complete)
    assert push[1, LABELLED[0], LABELLED[1]] > 0
    assert push[2, LABELLED[0], LABELLED[1]] < 0


def test_holding_costs_nothing_at_the_old_answer_and_pulls_back_to_it() -> None:
    old = _old(logit=0.0)
    free = torch.zeros(1, 1, SIDE, SIDE, dtype=torch.bool)
    weights = IncrementalConfig().distil
    same = torch.cat([old.head.centre_logits, torch.zeros(1, 1, SIDE, SIDE)], 1)
    held = holding_terms(_output(same), old, COLUMNS, free=free, weights=weights)
    assert {name: float(value) for name, value in held.items()} == pytest.approx(
        {"loss": 0, "centre": 0, "box": 0, "mask": 0}, abs=1e-6
    )
    moved = same.clone()
    moved[0, 0, SEEN[0], SEEN[1]] = 2.0
    centre = holding_terms(_output(moved), old, COLUMNS, free=free, weights=weights)["centre"]
    p = 1 / (1 + math.exp(-2))
    divergence = -0.5 * math.log(p) - 0.5 * math.log(1 - p) - math.log(2)
    mass = float(old.head.centre_logits.sigmoid().sum())
    assert float(centre) == pytest.approx(divergence / mass, rel=1e-3)
