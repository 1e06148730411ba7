"""Which cells of the board made a call: its centre logit's gradient times the difference from the reference.

Gradient x (input - baseline) is the first-order estimate of what the logit loses when a patch is set to its
baseline (Shrikumar et al. 2017, section 2; Ancona et al. 2018, section 3). The gradient is taken half way to
the baseline, since at the board itself the score is saturated; with more steps it is the mean along the
straight way, integrated gradients (Sundararajan et al. 2017, section 3), whose parts sum to the whole
difference. The baseline is what an inspector compares with: the golden reference in the board's place, or an
even grey board where there is none. So a cell where board and reference are alike has relevance 0.

Shape letters: H, W pixels, h, w = ceil(H / 4), ceil(W / 4) cells, C planes of the network's input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from inspect_vit.cells import CELL_PX, cells_of, label_index, to_cells
from inspect_vit.close_up import close_up
from inspect_vit.inspector import LEVEL_NAMES, Inspector
from inspect_vit.layers import PatchEmbed
from inspect_vit.model import HierarchicalViT, stack_pictures
from inspect_vit.results import Defect
from inspect_vit.trace import called_cell, cells_per_token

Embedded = tuple[Tensor, Tensor, Tensor]
"""Patch embeddings of the three levels, fine to coarse."""


@dataclass(frozen=True)
class Relevance:
    """Logits of the call's centre score: positive cells speak for the call, negative ones against it."""

    levels: dict[str, NDArray[np.float32]]
    """{"4", "16", "32"}: (h, w), what was read in patches of that size, spread evenly over a patch's cells.
    It is not what that level decided: fine tokens reach the decision through the coarser levels too."""
    total: NDArray[np.float32]
    """(h, w), their sum."""
    pixels: NDArray[np.float32]
    """(H, W), the same per pixel of the board: the patches' values, split exactly."""
    logit: float
    """Logit of the call's centre score."""
    baseline_logit: float
    """The same with the baseline as the board."""


def relevance(
    inspector: Inspector,
    image: NDArray[np.uint8],
    *,
    reference: NDArray[np.uint8] | None,
    defect: Defect,
    steps: int = 1,
) -> Relevance:
    """Relevance of every cell for one call. Takes and raises as `Inspector.inspect`.

    Costs two forward passes and `steps` forward and backward ones; as steps grow it sums to
    logit - baseline_logit. On a board in tiles it is that in the tile around the defect, 0 elsewhere.
    """
    model = inspector.model
    seen = close_up(inspector, image, reference=reference, box=defect.box_xyxy)
    image, reference, defect = seen.image, seen.reference, seen.defect(defect)
    board, other, flag = inspector.tensors(image, reference)
    grey = round(255 * model.config.image_mean)
    baseline_board = torch.full_like(board, grey) if reference is None else other
    height, width = image.shape[:2]
    with torch.no_grad():
        planes, baseline_planes = (
            _planes(model, picture, other, flag) for picture in (board, baseline_board)
        )
        actual, baseline = model.embed(board, other, flag), model.embed(baseline_board, other, flag)
        head = model.fuse(model.encode(actual).tokens).head
        label = label_index(defect, model.config.class_names)
        row, column = called_cell(head, label, defect, height=height, width=width)
        below = model.fuse(model.encode(baseline).tokens).head.centre_logits[0, label, row, column]
    gradients = patch_gradients(model, actual, baseline, cell=(label, row, column), steps=steps)
    by_pixel = torch.zeros(board.shape[2:], device=board.device)
    with torch.no_grad():
        for module, gradient, high, low in zip(model.embeds, gradients, planes, baseline_planes, strict=True):
            proj = cast(PatchEmbed, module).proj
            back = functional.conv_transpose2d(gradient, proj.weight, stride=proj.kernel_size)
            by_pixel += (back * (high - low)).sum(1)[0]
    cells = cells_of(height, width)
    levels = {}
    for name, gradient, high, low in zip(LEVEL_NAMES, gradients, actual, baseline, strict=True):
        factor = cells_per_token(model, name)
        by_token = (gradient * (high - low)).sum(1)[0] / factor**2
        levels[name] = seen.place(to_cells(by_token.float().cpu().numpy(), cells, factor), CELL_PX)
    return Relevance(
        levels=levels,
        total=np.sum(list(levels.values()), axis=0, dtype=np.float32),
        pixels=seen.place(by_pixel[:height, :width].cpu().numpy(), 1),
        logit=float(head.centre_logits[0, label, row, column]),
        baseline_logit=float(below),
    )


def patch_gradients(
    model: HierarchicalViT,
    actual: Embedded,
    baseline: Embedded,
    *,
    cell: tuple[int, int, int],
    steps: int = 1,
) -> list[Tensor]:
    """Gradient of one centre logit by the patch embeddings, (1, C_l, h_l, w_l) each.

    cell: (class, row, column). The mean over the midpoints of `steps` equal pieces of the straight way from
    `baseline` to `actual`.
    """
    label, row, column = cell
    total = [torch.zeros_like(high) for high in actual]
    for step in range(steps):
        part = (step + 0.5) / steps
        points = [
            torch.lerp(low, high, part).requires_grad_() for low, high in zip(baseline, actual, strict=True)
        ]
        with torch.enable_grad():
            fine, middle, coarse = points
            head = model.fuse(model.encode((fine, middle, coarse)).tokens).head
            gradients = torch.autograd.grad(head.centre_logits[0, label, row, column], points)
        for summed, gradient in zip(total, gradients, strict=True):
            summed += gradient / steps
    return total


def _planes(
    model: HierarchicalViT, board: Tensor, reference: Tensor, flag: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The network's input planes as each level's patches read them, (1, C, H, W) each."""
    pair, with_envelopes = stack_pictures(board, reference, flag.view(-1, 1, 1, 1), model.config)
    return with_envelopes, pair, pair
