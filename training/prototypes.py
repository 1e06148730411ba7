"""A first guess for the rows of a new class: what its labelled cells have and others have not.

Weight imprinting (Qi, Brown and Lowe, CVPR 2018) with the background taken into account: the row points from
the mean features of all other cells to the mean of the labelled ones, whitened by their scatter as in linear
discriminants (Fisher 1936), and is scaled so that both means get the logits that a trained head gives them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from inspect_vit.model import HierarchicalViT
from training.grow_head import out_row
from training.pools import Pool, fused_tokens

LABELLED_LOGIT, OTHER_LOGIT = 1.0, -math.log(99.0)
"""What the means of labelled and other cells get: 0.73 and 0.01 after the sigmoid."""
SHRINKAGE = 0.1
"""Part of the scatter that is taken as equal in all directions."""
NUM_CROPS = 128
"""Crops of each pool that are looked at."""


@torch.no_grad()
def imprint(model: HierarchicalViT, labels: Sequence[int], pools: Sequence[Pool]) -> None:
    """Set the rows of those classes, in place, from crops that carry them and crops that do not."""
    out = model.head.out
    assert out.bias is not None
    sums = _Sums(out.in_channels, len(labels))
    for pool in pools:
        for start in range(0, min(len(pool), NUM_CROPS), 8):
            batch = pool.take(range(start, min(start + 8, len(pool), NUM_CROPS)))
            fused = batch["fused"] if "fused" in batch else fused_tokens(model, *_pictures(batch))
            features = model.head.trunk(model.refine(fused)).movedim(1, -1)  # (B, s, s, C)
            sums.add(features, batch, labels)
    for i, label in enumerate(labels):
        for mask, part in ((False, sums.centres), (True, sums.masks)):
            if part.count[i]:
                row = out_row(model.head, label, mask=mask)
                weight, bias = _discriminant(part.total[i] / part.count[i], sums)
                out.weight[row] = weight[:, None, None]
                out.bias[row] = bias


class _Mean:
    def __init__(self, channels: int, classes: int) -> None:
        self.total, self.count = torch.zeros(classes, channels), torch.zeros(classes)


class _Cells:
    """Sums over cells of one kind, from which their mean and scatter follow."""

    def __init__(self, channels: int) -> None:
        self.total, self.square, self.count = torch.zeros(channels), torch.zeros(channels, channels), 0

    def add(self, cells: Tensor) -> None:
        self.total += cells.sum(0)
        self.square += cells.T @ cells
        self.count += len(cells)


class _Sums:
    """The labelled cells by class, and the others: background, and defects of other classes."""

    def __init__(self, channels: int, classes: int) -> None:
        self.centres, self.masks = _Mean(channels, classes), _Mean(channels, classes)
        self.others = _Cells(channels), _Cells(channels)

    def add(self, features: Tensor, batch: dict[str, Tensor], labels: Sequence[int]) -> None:
        is_new = torch.zeros_like(features[..., 0], dtype=torch.bool)
        for i, label in enumerate(labels):
            for mean, cells in (
                (self.centres, batch["centres"][:, label] > 0.5),
                (self.masks, batch["masks"][:, label] > 0.5),
            ):
                mean.total[i] += features[cells].sum(0)
                mean.count[i] += int(cells.sum())
            is_new |= batch["centres"][:, label] > 0.02
        is_other = ~is_new & (batch["counted"][:, 0] > 0)
        is_defect = batch["centres"].amax(1) > 0.5
        background, defects = self.others
        background.add(features[is_other & ~is_defect])
        defects.add(features[is_other & is_defect])


def _discriminant(mean: Tensor, sums: _Sums) -> tuple[Tensor, float]:
    """Row and bias that give the labelled mean LABELLED_LOGIT and the mean of the others OTHER_LOGIT.

    Background and other defects count alike, though cells of the latter are few: they are what a new class is
    most easily taken for.
    """
    kinds = [cells for cells in sums.others if cells.count]
    other = torch.stack([cells.total / cells.count for cells in kinds]).mean(0)
    square = torch.stack([cells.square / cells.count for cells in kinds]).mean(0)
    scatter = square - torch.outer(other, other)
    level = SHRINKAGE * scatter.diagonal().mean().clamp(min=1e-6)
    scatter = (1 - SHRINKAGE) * scatter + level * torch.eye(len(other))
    direction = torch.linalg.solve(scatter, mean - other)
    gap = float(direction @ (mean - other))
    weight = direction * ((LABELLED_LOGIT - OTHER_LOGIT) / max(gap, 1e-6))
    return weight, OTHER_LOGIT - float(weight @ other)


def _pictures(batch: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    return batch["board"], batch["reference"], batch["has_reference"]
