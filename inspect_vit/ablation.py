"""What each level contributes to a call, found by taking the level away; the check of the gate share.

A level's tokens are replaced, where the levels meet in the fusion, by what carries no evidence of a defect:
the tokens that the golden reference gives when it is posted as the board, or their mean over the picture
where there is no reference. What falls is the logit of the call's centre score. Tokens that the finer
levels have already handed up stay: this asks what the fusion takes from a level, as the gate share does,
not what the level was ever good for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inspect_vit.cells import label_index
from inspect_vit.close_up import close_up
from inspect_vit.inspector import LEVEL_NAMES, Inspector
from inspect_vit.results import Defect
from inspect_vit.trace import Trace, called_cell, trace

CONTEXT = ("16", "32")


@dataclass(frozen=True)
class Evidence:
    """Logits of a call's centre score: positive where a level speaks for the call, negative where against."""

    logit: float
    """Of the call as it is."""
    drop: dict[str, float]
    """{"4", "16", "32"}: what is lost without that level alone."""
    context_drop: float
    """What is lost without the 16 and 32 px levels together."""

    @property
    def score_drop(self) -> dict[str, float]:
        """`drop` on the scale of the score, 0..1."""
        return {
            level: _sigmoid(self.logit) - _sigmoid(self.logit - lost) for level, lost in self.drop.items()
        }

    @property
    def disagreement(self) -> float:
        """How much one scale speaks against a call, logits: minus the lesser of the fine level's and the
        context's drop. Above 0 the scales disagree; far below 0 each of them carries the call.
        """
        return -min(self.drop["4"], self.context_drop)

    @property
    def disagrees(self) -> str:
        """Which alarm the other scale contradicts: "fine alarm, context against", the reverse, or nothing."""
        if self.disagreement <= 0:
            return ""
        fine = self.drop["4"] >= self.context_drop
        return "fine alarm, context against" if fine else "context alarm, fine against"


def evidence(
    inspector: Inspector,
    image: NDArray[np.uint8],
    *,
    reference: NDArray[np.uint8] | None,
    defects: Sequence[Defect],
) -> list[Evidence]:
    """The evidence of every level for each defect, in their order. Takes and raises as `Inspector.inspect`.

    Costs two runs of the levels (one without reference) and five of fusion and head, whatever the number of
    defects; on a board in tiles that for each defect, in the tile around it.
    """
    close_ups = [close_up(inspector, image, reference=reference, box=defect.box_xyxy) for defect in defects]
    if all(seen.is_whole for seen in close_ups):
        return _evidence(inspector, image, reference=reference, defects=defects)
    return [
        _evidence(inspector, seen.image, reference=seen.reference, defects=[seen.defect(defect)])[0]
        for seen, defect in zip(close_ups, defects, strict=True)
    ]


@torch.inference_mode()
def _evidence(
    inspector: Inspector,
    image: NDArray[np.uint8],
    *,
    reference: NDArray[np.uint8] | None,
    defects: Sequence[Defect],
) -> list[Evidence]:
    traced = trace(inspector, image, reference=reference)
    labels = [label_index(defect, inspector.metadata.model.class_names) for defect in defects]
    size = {"height": traced.height, "width": traced.width}
    cells = [
        (label, *called_cell(traced.output.head, label, defect, **size))
        for label, defect in zip(labels, defects, strict=True)
    ]
    return evidence_at(inspector, traced, cells, reference=reference)


@torch.inference_mode()
def evidence_at(
    inspector: Inspector,
    traced: Trace,
    cells: Sequence[tuple[int, int, int]],
    *,
    reference: NDArray[np.uint8] | None,
) -> list[Evidence]:
    """The evidence of every level for centres, whether or not they reach a threshold.

    Args:
        cells: (class index, row, column) of each, cells of 4 px of the traced picture.
        reference: the one that the picture was traced with.
    """
    blank = _blank_tokens(inspector, traced, reference)

    def logits(without: tuple[str, ...]) -> list[float]:
        fine, middle, coarse = (
            empty if level in without else full
            for level, full, empty in zip(LEVEL_NAMES, traced.encoded.tokens, blank, strict=True)
        )
        centre = inspector.model.fuse((fine, middle, coarse)).head.centre_logits
        return [float(centre[(0, *cell)]) for cell in cells]

    whole, context = logits(()), logits(CONTEXT)
    alone = {level: logits((level,)) for level in LEVEL_NAMES}
    return [
        Evidence(
            logit=whole[i],
            drop={level: whole[i] - alone[level][i] for level in LEVEL_NAMES},
            context_drop=whole[i] - context[i],
        )
        for i in range(len(cells))
    ]


def ablation_drop(
    inspector: Inspector,
    image: NDArray[np.uint8],
    *,
    reference: NDArray[np.uint8] | None,
    defect: Defect,
) -> dict[str, float]:
    """{"4", "16", "32"}: logits of one defect's centre score lost without that level. As `evidence`."""
    return evidence(inspector, image, reference=reference, defects=[defect])[0].drop


def _blank_tokens(
    inspector: Inspector, traced: Trace, reference: NDArray[np.uint8] | None
) -> tuple[Tensor, ...]:
    """Tokens of the levels without evidence of a defect, of the shapes of the trace's."""
    if reference is not None:
        return trace(inspector, reference, reference=reference).encoded.tokens
    return tuple(tokens.mean((2, 3), keepdim=True).expand_as(tokens) for tokens in traced.encoded.tokens)


def _sigmoid(logit: float) -> float:
    return float(1 / (1 + np.exp(-logit)))
