"""Loss terms against values worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from training.losses import box_loss, centre_loss, cross_entropy, mask_loss, softplus


def test_centre_loss_by_hand() -> None:
    logits = torch.tensor([[[[0.0, 2.0], [-1.0, 3.0]]]])
    heat = torch.tensor([[[[1.0, 0.5], [0.0, 0.0]]]])
    counted = torch.tensor([[[[1.0, 1.0], [1.0, 0.0]]]])
    p = [1 / (1 + math.exp(-v)) for v in (0.0, 2.0, -1.0)]
    wanted = -((1 - p[0]) ** 2 * math.log(p[0]))
    wanted -= p[1] ** 2 * 0.5**4 * math.log(1 - p[1])
    wanted -= p[2] ** 2 * math.log(1 - p[2])
    assert centre_loss(logits, heat, counted).item() == pytest.approx(wanted, rel=1e-5)


def test_box_loss_is_one_minus_giou() -> None:
    # around one cell: 10x10 against a 10x10 box moved right by 5: inter 50, union 150, hull 150
    distances = torch.tensor([5.0, 5.0, 5.0, 5.0]).view(1, 4, 1, 1)
    wanted = torch.tensor([0.0, 5.0, 10.0, 5.0]).view(1, 4, 1, 1)
    one = torch.ones(1, 1, 1, 1)
    assert box_loss(distances, wanted, one).item() == pytest.approx(1 - 50 / 150)
    # 10x10 inside 20x20: hull = union
    assert box_loss(distances, 2 * distances, one).item() == pytest.approx(1 - 100 / 400)
    assert box_loss(distances, distances, one).item() == pytest.approx(0)
    assert box_loss(distances, wanted, 0 * one).item() == 0


def test_mask_loss_by_hand() -> None:
    logits = torch.tensor([[[[1.0, -2.0]]]])
    shares = torch.tensor([[[[1.0, 0.0]]]])
    p = [1 / (1 + math.exp(-v)) for v in (1.0, -2.0)]
    wanted = -math.log(p[0]) * (1 - p[0]) ** 2 - math.log(1 - p[1]) * p[1] ** 2
    assert mask_loss(logits, shares, torch.ones(1, 1, 1, 2)).item() == pytest.approx(wanted, rel=1e-5)


def test_losses_are_finite_without_any_defect_and_at_extreme_logits() -> None:
    empty = torch.zeros(1, 2, 4, 4)
    counted = torch.ones(1, 1, 4, 4)
    for value in (-200.0, 200.0):
        logits = torch.full((1, 2, 4, 4), value, requires_grad=True)
        total = centre_loss(logits, empty, counted) + mask_loss(logits, empty, counted)
        distances = logits.clamp(max=6)[:, :1].exp().expand(1, 4, 4, 4)
        total = total + box_loss(distances, torch.zeros(1, 4, 4, 4), counted * 0)
        total.backward()
        assert torch.isfinite(total)
        assert logits.grad is not None and torch.isfinite(logits.grad).all()


def test_softplus_and_cross_entropy_are_the_usual_ones() -> None:
    logits = torch.linspace(-90, 79, 400, requires_grad=True)
    shares = torch.linspace(0, 1, 400)
    pairs = (
        (softplus(logits), functional.softplus(logits)),
        (
            cross_entropy(logits, shares),
            functional.binary_cross_entropy_with_logits(logits, shares, reduction="none"),
        ),
    )
    for mine, usual in pairs:
        assert torch.allclose(mine, usual, rtol=1e-5, atol=1e-6)
        slope, wanted = (torch.autograd.grad(value.sum(), logits)[0] for value in (mine, usual))
        assert torch.allclose(slope, wanted, rtol=1e-4, atol=1e-6)
    far = torch.tensor([300.0, -300.0], requires_grad=True)
    assert torch.isfinite(cross_entropy(far, torch.tensor([1.0, 0.0]))).all()
    assert cross_entropy(far, torch.tensor([1.0, 0.0])).abs().max() < 1e-6
