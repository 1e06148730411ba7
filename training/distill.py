"""What a step is judged by: the labels where they speak, the old model's answers elsewhere.

Shape letters: B batch, K classes of the new model, O classes that both have, s cells of 4 px per side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from inspect_vit.heads import HeadOutput
from inspect_vit.model import ModelOutput
from training.config import LossConfig
from training.incremental_config import IncrementalConfig
from training.losses import box_loss, cross_entropy, in_planes, softplus, total_loss

SETTLED = 0.02
"""A cell where a labelled centre's heat is above this belongs to that defect, about as far as its box."""
SURE = 0.1
"""An old score from here on says that something may be there."""
BOX_SURE = 0.3
"""An old score from here on has a box worth keeping."""


@dataclass(frozen=True)
class Columns:
    """Which classes of the new model are new, and where the others were in the old model."""

    new: Sequence[int]
    kept: Sequence[int]
    """O indices into the new model's classes."""
    before: Sequence[int]
    """O indices into the old model's."""


def learning_loss(
    answer: ModelOutput,
    old: ModelOutput | None,
    batch: dict[str, Tensor],
    columns: Columns,
    config: IncrementalConfig,
) -> dict[str, Tensor]:
    """The terms and their sum under "loss".

    Args:
        old: what the old model says of the same crops; None learns from the labels alone.
        batch: targets as `DefectDataset` gives them, and "complete" (B,): 1 where every old defect has its
            label. Elsewhere old classes learn no background outside labels, and new ones none where the old
            model sees something, which may be one of theirs.
    """
    answer = answer._replace(head=in_planes(answer.head))
    if old is None:
        return total_loss(answer.head, batch, config.loss)
    old = old._replace(head=in_planes(old.head))
    centres = batch["centres"]
    settled = centres.amax(1, keepdim=True) > SETTLED  # (B, 1, s, s)
    old_scores = old.head.centre_logits.sigmoid().amax(1, keepdim=True)
    complete = batch["complete"].view(-1, 1, 1, 1) > 0
    taken = settled & ~complete
    for label in columns.new:
        taken = taken | (centres[:, label : label + 1] > SETTLED)
    counted = batch["counted"].expand_as(centres).clone()
    counted[:, list(columns.kept)] *= complete | settled
    seen = functional.max_pool2d(old_scores, 5, stride=1, padding=2) > SURE
    counted[:, list(columns.new)] *= complete | settled | ~seen
    terms = total_loss(answer.head, batch | {"counted": counted}, config.loss)
    held = holding_terms(answer, old, columns, free=taken, weights=config.distil)
    wrong = config.old_name * _wrong_names(answer.head.centre_logits, centres, columns)
    gate = config.distil_gate * (answer.gate_shares - old.gate_shares).square().sum(1).mean()
    loss = terms["loss"] + held["loss"] + gate + wrong
    named = {f"old_{name}": value for name, value in held.items() if name != "loss"}
    return terms | named | {"old_gate": gate, "old_name": wrong, "loss": loss}


def _wrong_names(logits: Tensor, centres: Tensor, columns: Columns) -> Tensor:
    """Plain cross-entropy of old classes at labelled new defects, per such cell.

    The focal loss hardly moves scores of 0.3, and of two calls on one spot only the better one is listed.
    """
    at = centres[:, list(columns.new)].amax(1) > 0.5 if columns.new else centres[:, 0] > 1
    old = logits.float()[:, list(columns.kept)].movedim(1, -1)[at]
    return softplus(old).sum() / at.sum().clamp(min=1)


def holding_terms(
    answer: ModelOutput, old: ModelOutput, columns: Columns, *, free: Tensor, weights: LossConfig
) -> dict[str, Tensor]:
    """Distance from the old model's logits and boxes (Li and Hoiem 2017; for detectors Shmelkov et al. 2017).

    Per object that the old model sees.

    Args:
        free: (B, 1, s, s), cells of labelled examples, about which the old model may be wrong.
    """
    counted = (~free).float()
    kept, before = torch.tensor(columns.kept), torch.tensor(columns.before)

    def entropy(logits: Tensor, old_logits: Tensor) -> Tensor:
        return _entropy(logits.index_select(1, kept), old_logits.index_select(1, before), counted)

    centre = entropy(answer.head.centre_logits, old.head.centre_logits)
    mask = entropy(answer.head.mask_logits, old.head.mask_logits)
    score = old.head.centre_logits.index_select(1, before).float().sigmoid().amax(1, keepdim=True)
    trust = score * (score > BOX_SURE) * counted
    box = box_loss(answer.head.distances, old.head.distances.float(), trust)
    loss = weights.centre * centre + weights.box * box + weights.mask * mask
    return {"loss": loss, "centre": centre, "box": box, "mask": mask}


def _entropy(logits: Tensor, old_logits: Tensor, counted: Tensor) -> Tensor:
    """Cross-entropy above its least value, over the old probability mass."""
    logits, target = logits.float(), old_logits.float().sigmoid()
    above_least = cross_entropy(logits, target) - cross_entropy(old_logits.float(), target)
    return (above_least * counted).sum() / (target * counted).sum().clamp(min=1)


def as_output(head: HeadOutput, gate_shares: Tensor | None = None) -> ModelOutput:
    """A head's answer alone; with the encoder frozen the gates are the old ones."""
    shares = torch.zeros(1, 3, 1, 1) if gate_shares is None else gate_shares
    return ModelOutput(head, shares, None)
