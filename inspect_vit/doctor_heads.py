"""Heads that do nothing: how much each adds to the tokens, and what the answer loses when it is taken
away."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import torch

from inspect_vit.doctor_findings import Finding, Limits, Place, judged
from inspect_vit.doctor_stats import BlockStats
from inspect_vit.doctor_trace import Board, Trace, blocks_of
from inspect_vit.model import HierarchicalViT

CONTRIBUTION = Limits(warn_below=0.005, ill_below=0.0005)
"""What a head adds over what was there, root mean squares. Fresh models have 0.05 to 2, the shipped one
0.02 to 0.3; 0.0005 is below half a step of fp16, so the sum rounds it away."""
COST = Limits(warn_below=0.01, ill_below=0.0005)
"""Change of the centre logits without the head over their spread on the board, root mean squares. Fresh
models have 0.3 to 2.5, the shipped one's 4 and 16 px levels 0.15 to 0.27; at 0.01 no call moves by more
than a hundredth."""


def check_dead_heads(model: HierarchicalViT, stats: Sequence[BlockStats]) -> list[Finding]:
    """What each head adds to the tokens."""
    keys = _keys(model)
    return [
        judged(
            "dead heads",
            Place(stat.place.level_px, stat.place.block, head),
            added,
            CONTRIBUTION,
            detail="what the head adds to the tokens over what was there",
            remedy=f"take it away: raise {keys[stat.place.level_px]}.head_dim (fewer heads); or train "
            "again with "
            "model.init: orthogonal",
        )
        for stat in stats
        for head, added in enumerate(stat.contribution.tolist())
    ]


@torch.no_grad()
def check_removal(model: HierarchicalViT, boards: Sequence[Board], traces: Sequence[Trace]) -> list[Finding]:
    """Run the boards without each head (its columns of W_o at 0); one forward pass per head and board."""
    keys = _keys(model)
    patch = [level.patch_size for level in model.config.levels]
    trial = copy.deepcopy(model)
    findings = []
    for level, index, block in blocks_of(trial):
        weight, size = block.attn.w_o.weight, block.attn.head_dim
        for head in range(block.attn.num_heads):
            columns = slice(head * size, (head + 1) * size)
            kept = weight[:, columns].clone()
            weight[:, columns] = 0
            cost, moved = _cost(trial, boards, traces)
            weight[:, columns] = kept
            findings.append(
                judged(
                    "removing a head",
                    Place(patch[level], index, head),
                    cost,
                    COST,
                    detail="change of the centre logits over their spread; no score moves by more than "
                    f"{moved:.3f}",
                    remedy=f"the answer does not need it: raise {keys[patch[level]]}.head_dim (fewer "
                    "heads), or heal "
                    "what the other checks say of it",
                )
            )
    return findings


def _cost(trial: HierarchicalViT, boards: Sequence[Board], traces: Sequence[Trace]) -> tuple[float, float]:
    """Change over spread of the centre logits, and the largest change of a score."""
    changed, spread, moved = 0.0, 0.0, 0.0
    for board, trace in zip(boards, traces, strict=True):
        whole = trace.output.head.centre_logits.float()
        without = trial(board.board, board.reference, board.has_reference).head.centre_logits.float()
        changed += float((without - whole).square().mean())
        # By class: what the classes' means differ by is no spread.
        spread += float(whole.var((2, 3), unbiased=False).mean())
        moved = max(moved, float((without.sigmoid() - whole.sigmoid()).abs().max()))
    return math.sqrt(changed / spread) if spread > 0 else math.nan, moved


def _keys(model: HierarchicalViT) -> dict[int | None, str]:
    return {level.patch_size: f"model.levels.{i}" for i, level in enumerate(model.config.levels)}
