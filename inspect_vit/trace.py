"""One picture's pass through the network, kept so that several questions about it cost one pass.

Shape letters: h, w = ceil(H / 4), ceil(W / 4) cells of the picture, h_l, w_l tokens of a level.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from inspect_vit.alignment import LaidReference
from inspect_vit.cells import CELL_PX, cells_of
from inspect_vit.errors import ConfigError, ImageTooLargeError
from inspect_vit.heads import HeadOutput, boxes_from_distances, vote
from inspect_vit.inspector import LEVEL_NAMES, Inspector, laid_reference
from inspect_vit.model import Encoded, HierarchicalViT, ModelOutput
from inspect_vit.results import Defect, InspectionResult

MAX_TRACED_PIXELS = 16_000_000
"""Largest picture whose tokens are kept, about 0.5 GB for nano; on larger boards ask `close_up`."""
SAME_BOX_PX = 4.0
"""Sum of the differences of four edges up to which two boxes are the same call, give or take a rounding."""


@dataclass(frozen=True)
class Trace:
    """What went into the levels and came out of them, and the answer. Tensors cover the padded picture."""

    encoded: Encoded
    output: ModelOutput
    height: int
    width: int
    """Size of the picture, px."""

    @property
    def cells(self) -> tuple[int, int]:
        """(h, w) of the picture."""
        return cells_of(self.height, self.width)


@torch.inference_mode()
def trace(
    inspector: Inspector, image: NDArray[np.uint8], *, reference: NDArray[np.uint8] | None = None
) -> Trace:
    """Run the network on one board and keep its tokens. Takes and raises as `Inspector.inspect`.

    The picture is one piece, whatever its size; a nano model's trace takes 27 bytes a pixel.

    Raises:
        ImageTooLargeError: more than MAX_TRACED_PIXELS.
    """
    if image.shape[0] * image.shape[1] > MAX_TRACED_PIXELS:
        raise ImageTooLargeError(
            f"image has {image.shape[1]}x{image.shape[0]} px, the limit of a trace is "
            f"{MAX_TRACED_PIXELS / 1e6:.0f} megapixels; trace the `close_up` of the place in question"
        )
    model = inspector.model
    encoded = model.encode(model.embed(*inspector.tensors(image, reference)))
    return Trace(encoded, model.fuse(encoded.tokens), *image.shape[:2])


def inspect_traced(
    inspector: Inspector,
    image: NDArray[np.uint8],
    *,
    reference: NDArray[np.uint8] | LaidReference | None = None,
    **settings: Any,
) -> tuple[InspectionResult, Trace]:
    """One pass for the verdict and for questions about it, of a board in one piece.

    Takes and raises as `Inspector.inspect`.
    """
    laid = laid_reference(image, reference)
    start = time.perf_counter()
    traced = trace(inspector, image, reference=None if laid is None else laid.picture)
    spent_ms = 1e3 * (time.perf_counter() - start)
    result = inspector.inspect(image, reference=laid, output=traced.output, **settings)
    return replace(result, timings_ms={**result.timings_ms, "model": spent_ms}), traced


def level_index(level: str) -> int:
    """ "4", "16" or "32" to 0, 1 or 2.

    Raises:
        ConfigError: another level.
    """
    if level not in LEVEL_NAMES:
        raise ConfigError(f"level {level!r}, wanted one of {', '.join(LEVEL_NAMES)}")
    return LEVEL_NAMES.index(level)


def cells_per_token(model: HierarchicalViT, level: str) -> int:
    """Side of a level's token in cells of 4 px."""
    levels = model.config.levels
    return levels[level_index(level)].patch_size // levels[0].patch_size


def to_tokens(query: NDArray[np.float32], grid: Tensor, factor: int) -> Tensor:
    """Weights of cells (h, w) as weights of a level's tokens (1, h_l, w_l): sums over each token's cells.

    Raises:
        ConfigError: a query that does not lie on the picture.
    """
    rows, columns = grid.shape[2] * factor, grid.shape[3] * factor
    if query.ndim != 2 or query.shape[0] > rows or query.shape[1] > columns:
        raise ConfigError(f"query of shape {query.shape}, wanted cells of 4 px on {rows} x {columns}")
    weights = torch.from_numpy(np.ascontiguousarray(query, np.float32)).to(grid.device)[None, None]
    weights = functional.pad(weights, (0, columns - query.shape[1], 0, rows - query.shape[0]))
    return functional.avg_pool2d(weights, factor)[0] * factor**2


def called_cell(head: HeadOutput, label: int, defect: Defect, *, height: int, width: int) -> tuple[int, int]:
    """(row, column) of the cell that called a defect: of those around which its box is voted, the nearest in
    score.

    A box drawn by hand, of score 1, gets the likeliest centre of those that come nearest to it. The cell may
    lie in the border beyond the picture. height, width: of the picture, px, which boxes were cut to.
    """
    limit = head.distances.new_tensor([width, height, width, height]).view(4, 1, 1)
    scores = head.centre_logits[0].float().sigmoid()
    row, column = (place.flatten() for place in torch.ones_like(scores[0]).nonzero().T)
    distances = head.distances[0].float()
    voted = vote(scores, distances, torch.full_like(row, label), row, column, stride=CELL_PX)
    predicted = boxes_from_distances(voted.view(1, *distances.shape), CELL_PX)[0].clamp(min=0)
    predicted = torch.minimum(predicted, limit)
    apart = (predicted - predicted.new_tensor(defect.box_xyxy).view(4, 1, 1)).abs().sum(0)
    same = apart <= apart.min() + SAME_BOX_PX
    misses = (scores[label] - defect.score).abs()
    return divmod(int(misses.masked_fill(~same, math.inf).argmin()), misses.shape[1])
