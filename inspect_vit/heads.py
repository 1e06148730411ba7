"""The defect head and its decoding.

Shape letters: B batch, C channels, h, w cells of `stride` px, K defect classes, n calls.
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
    """Decoded calls of one picture, highest score first."""

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
        centre, box, mask = self.out(self.trunk(x)).split((self.num_classes, 4, self.num_classes), 1)
        return HeadOutput(centre, box.clamp(max=6.0).exp() * self.stride, mask)


def boxes_from_distances(distances: Tensor, stride: int) -> Tensor:
    """(B, 4, h, w) distances, px, to (B, 4, h, w) box_xyxy, px."""
    rows, columns = distances.shape[2:]
    y = (torch.arange(rows, device=distances.device, dtype=distances.dtype) + 0.5) * stride
    x = (torch.arange(columns, device=distances.device, dtype=distances.dtype) + 0.5) * stride
    left, top, right, bottom = distances.unbind(1)
    return torch.stack([x - left, y[:, None] - top, x + right, y[:, None] + bottom], 1)


def decode(
    head: HeadOutput, *, stride: int, min_score: float, max_calls: int = 300, max_iou: float = 0.5
) -> list[Calls]:
    """Peaks of the centre maps with their boxes; of calls of any class that overlap, the best one stays.

    Args:
        min_score: peaks below are dropped.
        max_calls: most calls per picture.
        max_iou: a call that overlaps a better one by more is the same defect.
    """
    scores = head.centre_logits.float().sigmoid()
    peaks = scores * (scores == functional.max_pool2d(scores, 3, stride=1, padding=1))
    boxes = boxes_from_distances(head.distances.float(), stride)
    calls = []
    for score_map, box_map in zip(peaks, boxes, strict=True):
        flat = score_map.flatten()
        top, index = flat.topk(min(4 * max_calls, flat.numel()))
        index, top = index[top >= min_score], top[top >= min_score]
        cells = score_map[0].numel()
        chosen = box_map.flatten(1)[:, index % cells].T
        keep = suppress(chosen, max_iou)[:max_calls]
        calls.append(Calls(chosen[keep], top[keep], index[keep] // cells))
    return calls


def suppress(boxes: Tensor, max_iou: float) -> Tensor:
    """Greedy suppression. boxes: (n, 4), best first. Returns the indices kept, in order."""
    left_top = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    right_bottom = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    inter = (right_bottom - left_top).clamp(min=0).prod(-1)
    area = (boxes[:, 2:] - boxes[:, :2]).clamp(min=0).prod(-1)
    overlaps = inter > max_iou * (area[:, None] + area[None, :] - inter)
    keep: list[int] = []
    alive = torch.ones(len(boxes), dtype=torch.bool, device=boxes.device)
    for i in range(len(boxes)):
        if alive[i]:
            keep.append(i)
            alive &= ~overlaps[i]
    return torch.tensor(keep, dtype=torch.int64, device=boxes.device)
