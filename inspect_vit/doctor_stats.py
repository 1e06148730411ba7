"""What the attention of each block did on all boards, in a few numbers per head.

Shape letters: G windows, N queries, M keys, H heads, D head_dim, C channels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inspect_vit.attention import attention_weights
from inspect_vit.doctor_findings import Place
from inspect_vit.doctor_trace import BlockTrace, Trace, blocks_of
from inspect_vit.layers import LevelAttention
from inspect_vit.model import HierarchicalViT

MAX_WEIGHTS = 2**23
"""Attention weights held at a time."""
SATURATED_ABOVE = 0.999
"""A row whose best key has more weight passes less than a thousandth of the gradient to its scores: p (1 -
p)."""


@dataclass(frozen=True)
class BlockStats:
    """Means over all rows (queries) of all boards; one entry per head where the shape is (H,)."""

    place: Place
    num_keys: int
    head_dim: int
    score_spread: Tensor
    """(H,) standard deviation of a row's scaled scores, bias included."""
    score_top: float
    """Largest absolute scaled score."""
    entropy: Tensor
    """(H,) entropy of a row over log M: 0 one key, 1 uniform."""
    top_weight: Tensor
    """(H,) weight of a row's best key."""
    saturated: Tensor
    """(H,) share of rows whose best key has more than SATURATED_ABOVE."""
    empty_rows: float
    """Share of rows whose weights do not sum to 1: masked in full, or not a number."""
    pattern_cosine: Tensor
    """(H, H) between the heads' weights less 1 / M; 0 where a head is uniform."""
    answer_cosine: Tensor
    """(H, H) between the heads' answers (weights times values) less their means; 0 where one is constant."""
    contribution: Tensor
    """(H,) what a head adds to the tokens through W_o, less its mean, over what was there; root mean
    squares."""


def block_stats(model: HierarchicalViT, traces: Sequence[Trace]) -> list[BlockStats]:
    """One entry per block, fine to coarse."""
    patch = [level.patch_size for level in model.config.levels]
    return [
        _of_block(Place(patch[level], index), block.attn, [trace.blocks[i] for trace in traces])
        for i, (level, index, block) in enumerate(blocks_of(model))
    ]


@torch.no_grad()
def _of_block(place: Place, attn: LevelAttention, seen: Sequence[BlockTrace]) -> BlockStats:
    num_heads, num_keys = attn.num_heads, seen[0].k.shape[2]
    zeros = torch.zeros(num_heads, dtype=torch.float64)
    spread, entropy, top, saturated, added, empty = (zeros.clone() for _ in range(6))
    pattern, answers = (torch.zeros(num_heads, num_heads, dtype=torch.float64) for _ in range(2))
    rows, score_top = 0, 0.0
    for b in seen:
        num_windows, _, num_queries, head_dim = b.q.shape
        rows += num_windows * num_queries
        step = max(MAX_WEIGHTS // (num_heads * num_queries * num_keys), 1)
        for start in range(0, num_windows, step):
            q, k = b.q[start : start + step], b.k[start : start + step]
            scores = (q * head_dim**-0.5) @ k.transpose(-2, -1)
            scores = scores if b.bias is None else scores + b.bias
            weights = attention_weights(q, k, bias=b.bias)  # (G, H, N, M)
            best = weights.amax(-1)
            score_top = _larger(score_top, float(scores.abs().max()))
            spread += _total(scores.std(-1, unbiased=False))
            entropy += _total(torch.special.entr(weights).sum(-1)) / max(math.log(num_keys), 1e-9)
            top += _total(best)
            saturated += _total(best > SATURATED_ABOVE)
            empty += _total(~((weights.sum(-1) - 1).abs() < 1e-3))
            pattern += _gram(weights - 1 / num_keys)
        varying = b.heads - b.heads.mean((0, 2), keepdim=True)  # (G, H, N, D)
        answers += _gram(varying)
        by_head = attn.w_o.weight.unflatten(1, (num_heads, head_dim)).transpose(0, 1)  # (H, C, D)
        through = torch.einsum("ghnd,hcd->ghnc", varying, by_head).square().mean((0, 2, 3))
        added += (through / b.stream.square().mean()).sqrt().double().cpu()
    return BlockStats(
        place=place,
        num_keys=num_keys,
        head_dim=attn.head_dim,
        score_spread=spread / rows,
        score_top=score_top,
        entropy=entropy / rows,
        top_weight=top / rows,
        saturated=saturated / rows,
        empty_rows=float(empty.sum()) / (rows * num_heads),
        pattern_cosine=_cosines(pattern),
        answer_cosine=_cosines(answers),
        contribution=added / len(seen),
    )


def _total(x: Tensor) -> Tensor:
    """(G, H, N) summed to (H,)."""
    return x.sum((0, 2), dtype=torch.float64).cpu()


def _gram(x: Tensor) -> Tensor:
    """(G, H, N, M) to the inner products of its heads, (H, H)."""
    flat = x.transpose(0, 1).flatten(1)
    return (flat @ flat.T).double().cpu()


def _cosines(gram: Tensor) -> Tensor:
    norms = gram.diagonal().clamp(min=0).sqrt()
    scale = norms[:, None] * norms
    return torch.where(scale > 0, gram / scale.clamp(min=1e-300), 0.0)


def _larger(a: float, b: float) -> float:
    """The larger one; a value that is not a number stays."""
    return b if math.isnan(b) or b > a else a
