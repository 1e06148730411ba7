"""The defect head and the peaks of its answer.

Shape letters: B batch, C channels, h, w cells of `stride` px, r rows of them, K defect classes, n calls.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

TYPICAL_SIDE_PX = 30.0
"""Boxes start training at this size; a hand-labelled defect box is about this wide."""


class HeadOutput(NamedTuple):
    centre_logits: Tensor
    """(B, K, h, w): is this cell the centre of a defect of class k."""
    distances: Tensor
    """(B, 4, h, w): from the cell's centre to the left, top, right and bottom of its box, px, >= 0."""
    mask_logits: Tensor
    """(B, K, h, w): is this cell part of a defect of class k; the defect map before the sigmoid."""


class Calls(NamedTuple):
    """Calls of one picture, highest score first."""

    boxes: Tensor
    """(n, 4) box_xyxy, px."""
    scores: Tensor
    """(n,) 0..1."""
    labels: Tensor
    """(n,) int64 class index."""


class DefectHead(nn.Module):
    """Centre heat maps with box distances (Zhou et al. 2019, Tian et al. 2019) and defect-map logits."""

    def __init__(self, in_dim: int, width: int, num_classes: int, stride: int) -> None:
        super().__init__()
        self.num_classes, self.stride = num_classes, stride
        self.trunk = nn.Sequential(nn.Conv2d(in_dim, width, 3, padding=1), nn.GELU())
        self.out = nn.Conv2d(width, 2 * num_classes + 4, 1)

    def initialise(self) -> None:
        """Rare-class bias of Lin et al. 2017, section 4.1, and boxes of a typical size."""
        nn.init.normal_(self.out.weight, std=0.01)
        assert self.out.bias is not None
        with torch.no_grad():
            self.out.bias.fill_(-math.log(99.0))
            self.out.bias[self.num_classes : self.num_classes + 4] = math.log(
                TYPICAL_SIDE_PX / 2 / self.stride
            )

    def forward(self, x: Tensor) -> HeadOutput:
        """x: (B, C, h, w)."""
        return self.read(self.trunk(x))

    def read(self, features: Tensor) -> HeadOutput:
        """What the last layer makes of the trunk's features, (B, width, h, w)."""
        centre, box, mask = self.out(features).split((self.num_classes, 4, self.num_classes), 1)
        return HeadOutput(centre, box.clamp(max=6.0).exp() * self.stride, mask)


def boxes_from_distances(distances: Tensor, stride: int) -> Tensor:
    """(B, 4, h, w) distances, px, to (B, 4, h, w) box_xyxy, px."""
    rows, columns = distances.shape[2:]
    y = (torch.arange(rows, device=distances.device, dtype=distances.dtype) + 0.5) * stride
    x = (torch.arange(columns, device=distances.device, dtype=distances.dtype) + 0.5) * stride
    left, top, right, bottom = distances.unbind(1)
    return torch.stack([x - left, y[:, None] - top, x + right, y[:, None] + bottom], 1)


def vote(
    scores: Tensor, distances: Tensor, label: Tensor, row: Tensor, column: Tensor, *, stride: int
) -> Tensor:
    """(4, n) distances of the box around each peak, px: the mean of the boxes that 3x3 cells give, by squares
    of their scores of its class.

    All these cells learn the same box (`training.targets.BOX_REACH`), each errs in its own way. It is the box
    voting of Gidaris and Komodakis (ICCV 2015), section 3.3, among cells. What is not finite has no vote.

    Args:
        scores: (K, r, w), 0..1. distances: (4, r, w), px. label, row, column: (n,) the peaks.
    """
    is_known = scores.isfinite() & distances.isfinite().all(0)
    weights = functional.pad((scores.square() * is_known).nan_to_num(0.0), (1, 1, 1, 1))
    padded = functional.pad(distances.nan_to_num(0.0, 0.0, 0.0), (1, 1, 1, 1))
    total, votes = distances.new_zeros(4, len(label)), distances.new_zeros(len(label))
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            place = row + 1 + down, column + 1 + right
            weight = weights[label, place[0], place[1]]
            nearer = stride * distances.new_tensor([right, down, -right, -down])[:, None]
            total += weight * (padded[:, place[0], place[1]] - nearer)
            votes += weight
    return total / votes


class PeakFinder:
    """Peaks of the centre maps, given from top to bottom in bands of rows; of each band the best are kept.

    A peak is a cell with no higher score of its class in its 3x3 neighbours, so the last row of a band waits
    for the next one. Its box is the vote of these cells.
    """

    def __init__(self, *, stride: int, min_score: float, sure_score: float, num_unsure: int) -> None:
        """Peaks below min_score are dropped; of those below sure_score a band keeps the num_unsure best, or
        fewer where more of them are sure."""
        self.stride, self.min_score = stride, min_score
        self.sure_score, self.num_unsure = sure_score, num_unsure
        self._before: tuple[Tensor, Tensor] | None = None
        self._found: list[Calls] = []

    def add(self, top: int, centre_logits: Tensor, distances: Tensor, *, is_last: bool) -> None:
        """Rows from `top` on. centre_logits: (K, r, w). distances: (4, r, w)."""
        scores, distances = centre_logits.float().sigmoid(), distances.float()
        first = 0
        if self._before is not None:
            waiting, first = self._before[0].shape[1], 1
            top -= waiting
            first = waiting - 1
            scores = torch.cat([self._before[0], scores], 1)
            distances = torch.cat([self._before[1], distances], 1)
        end = scores.shape[1] if is_last else scores.shape[1] - 1
        pooled = functional.max_pool2d(scores[None], 3, stride=1, padding=1)[0]
        peaks = (scores * (scores == pooled))[:, first:end]
        self._found.append(self._best(peaks, scores, distances, first, top))
        self._before = scores[:, -2:].clone(), distances[:, -2:].clone()

    def _best(self, peaks: Tensor, scores: Tensor, distances: Tensor, first: int, top: int) -> Calls:
        """peaks: the rows of scores from `first` on. top: the picture's row that scores begin with."""
        flat = peaks.flatten()
        num_sure = int((flat >= self.sure_score).sum())
        score, index = flat.topk(min(max(self.num_unsure, num_sure), flat.numel()))
        index, score = index[score >= self.min_score], score[score >= self.min_score]
        cells, width = peaks[0].numel(), peaks.shape[2]
        label, row, column = index // cells, first + index % cells // width, index % width
        left, up, right, down = vote(scores, distances, label, row, column, stride=self.stride)
        x, y = (column + 0.5) * self.stride, (row + top + 0.5) * self.stride
        return Calls(torch.stack([x - left, y - up, x + right, y + down], 1), score, label)

    def best(self) -> Calls:
        """All that were kept, highest score first."""
        boxes, scores, labels = (torch.cat(part) for part in zip(*self._found, strict=True))
        order = scores.argsort(descending=True, stable=True)
        order = order[: max(self.num_unsure, int((scores >= self.sure_score).sum()))]
        return Calls(boxes[order], scores[order], labels[order])
