"""Loss terms as pure functions. Shape letters: B batch, K defect classes, s cells of 4 px per side."""

from __future__ import annotations

import torch
from torch import Tensor

from inspect_vit.heads import HeadOutput
from training.config import LossConfig

HIGHEST = 80.0
"""A logit above it counts as it: beyond, float32 has no exp(-logit)."""


def softplus(logits: Tensor) -> Tensor:
    """log(1 + exp(logits)), to 1e-7. With AVX-512 all that builds on log1p takes some five times as long."""
    return -(-logits.clamp(max=HIGHEST)).sigmoid().log()


def cross_entropy(logits: Tensor, shares: Tensor) -> Tensor:
    """Of shares, 0 to 1, against the sigmoid of logits, element by element; in nats."""
    return softplus(logits) - logits.clamp(max=HIGHEST) * shares


def centre_loss(logits: Tensor, heat: Tensor, counted: Tensor) -> Tensor:
    """Penalty-reduced focal loss of CornerNet (Law and Deng 2018, equation 1, alpha 2, beta 4), per defect.

    logits, heat: (B, K, s, s), heat 1 at centres. counted: (B, 1, s, s) of 0 or 1.
    """
    logits = logits.float()
    p = logits.sigmoid()
    positive = heat == 1
    surprise = softplus(logits)  # -log(1 - p); -log(p) is that less the logit
    found = (surprise - logits.clamp(max=HIGHEST)) * (1 - p).square() * positive
    quiet = surprise * p.square() * (1 - heat).square().square() * counted * ~positive
    return (found + quiet).sum() / positive.sum().clamp(min=1)


def box_loss(distances: Tensor, wanted: Tensor, weights: Tensor) -> Tensor:
    """1 - GIoU (Rezatofighi et al. 2019) of boxes around the same cell, weighted mean.

    distances, wanted: (B, 4, s, s), px to left, top, right, bottom. weights: (B, 1, s, s).
    """
    chosen = weights[:, 0] > 0
    weight = weights[:, 0][chosen]
    a, b = distances.float().permute(0, 2, 3, 1)[chosen], wanted.permute(0, 2, 3, 1)[chosen]
    inner, outer = torch.minimum(a, b), torch.maximum(a, b)
    inter = (inner[:, 0] + inner[:, 2]) * (inner[:, 1] + inner[:, 3])
    hull = (outer[:, 0] + outer[:, 2]) * (outer[:, 1] + outer[:, 3])
    union = (a[:, 0] + a[:, 2]) * (a[:, 1] + a[:, 3]) + (b[:, 0] + b[:, 2]) * (b[:, 1] + b[:, 3]) - inter
    giou = inter / union - (hull - union) / hull
    return ((1 - giou) * weight).sum() / weight.sum().clamp(min=1)


def mask_loss(logits: Tensor, shares: Tensor, counted: Tensor) -> Tensor:
    """Focal cross-entropy (Lin et al. 2017, gamma 2) against the share of a cell that is defect, per cell.

    logits, shares: (B, K, s, s). counted: (B, 1, s, s) of 0 or 1.
    """
    logits = logits.float()
    entropy = cross_entropy(logits, shares)
    return (entropy * (logits.sigmoid() - shares).abs() ** 2 * counted).sum() / shares.sum().clamp(min=1)


def in_planes(head: HeadOutput) -> HeadOutput:
    """float32 with one plane after the other, as targets are: element by element over two layouts is slow."""
    return HeadOutput(*(part.float().contiguous() for part in head))


def total_loss(head: HeadOutput, batch: dict[str, Tensor], weights: LossConfig) -> dict[str, Tensor]:
    """The terms and their weighted sum under "loss"."""
    head = in_planes(head)
    terms = {
        "centre": centre_loss(head.centre_logits, batch["centres"], batch["counted"]),
        "box": box_loss(head.distances, batch["distances"], batch["box_weights"]),
        "mask": mask_loss(head.mask_logits, batch["masks"], batch["counted"]),
    }
    loss = weights.centre * terms["centre"] + weights.box * terms["box"] + weights.mask * terms["mask"]
    return {"loss": loss, **terms}
