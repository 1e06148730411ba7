"""The forward pass once more, step by step, with everything kept that the doctor looks at.

Shape letters: B batch, c picture channels, C channels, h, w token rows and columns, G windows, N tokens of a
window, H heads, D head_dim.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from inspect_vit.attention import attend
from inspect_vit.layers import Block, GatedOutputFusion, Level, join_windows
from inspect_vit.model import HierarchicalViT, ModelOutput, gate_shares


@dataclass(frozen=True)
class Board:
    """One picture as the model takes it."""

    name: str
    board: Tensor
    """(1, c, H, W) uint8, both sides multiples of the model's size."""
    reference: Tensor
    """The same; zeros where there is none."""
    has_reference: Tensor
    """(1,) float, 0 or 1."""


@dataclass(frozen=True)
class BlockTrace:
    """What one block's attention works with."""

    level: int
    """Index of the level, 0 the finest."""
    block: int
    q: Tensor
    """(G, H, N, D), as k and v; q and k after their norms, before the scale."""
    k: Tensor
    v: Tensor
    bias: Tensor | None
    """(1, H, N, N) or None, added to the scaled scores."""
    stream: Tensor
    """(G, N, C): the tokens that the attention's answer is added to."""
    heads: Tensor
    """(G, H, N, D): weights times values, before W_o."""
    hidden_top: float
    """Largest absolute value inside the MLP, before its activation."""


@dataclass(frozen=True)
class Trace:
    """One board's way through the network."""

    blocks: tuple[BlockTrace, ...]
    tokens: tuple[Tensor, Tensor, Tensor]
    """Tokens of each level after its blocks and before its norm, (1, C, h, w)."""
    gates: tuple[Tensor, Tensor]
    """g4 and g16, (1, C, h, w) of the 4 px and of the 16 px grid."""
    output: ModelOutput


def blocks_of(model: HierarchicalViT) -> Iterator[tuple[int, int, Block]]:
    """(index of the level, index of the block, block), fine to coarse."""
    for i, level in enumerate(levels_of(model)):
        for j, block in enumerate(level.blocks):
            yield i, j, cast(Block, block)


def levels_of(model: HierarchicalViT) -> list[Level]:
    return [cast(Level, level) for level in model.levels]


def fusions_of(model: HierarchicalViT) -> dict[str, GatedOutputFusion]:
    """By name, in the order in which they run."""
    return {"fuse16": model.fuse16, "fuse4": model.fuse4}


@torch.no_grad()
def trace_board(model: HierarchicalViT, board: Board) -> Trace:
    """Run the model in evaluation mode; the answer is that of `model(...)` up to rounding (a test holds
    it)."""
    embedded4, embedded16, embedded32 = model.embed(board.board, board.reference, board.has_reference)
    levels = levels_of(model)
    blocks: list[BlockTrace] = []

    fine, tokens4 = _run(levels[0], embedded4, 0, blocks)
    middle, tokens16 = _run(levels[1], embedded16 + model.merge_fine(fine), 1, blocks)
    coarse, tokens32 = _run(levels[2], embedded32 + model.merge_middle(middle), 2, blocks)

    fused16, gate16 = model.fuse16(middle, coarse)
    fused4, gate4 = model.fuse4(fine, fused16)
    head = model.head(model.refine(fused4))
    return Trace(
        tuple(blocks),
        (tokens4, tokens16, tokens32),
        (gate4, gate16),
        ModelOutput(head, gate_shares(gate4, gate16), None),
    )


def _run(level: Level, grid: Tensor, index: int, blocks: list[BlockTrace]) -> tuple[Tensor, Tensor]:
    """grid: (1, C, h, w). Returns the level's answer and its tokens before the norm, both of that shape."""
    rows, columns = grid.shape[2:]
    window = level.config.window
    x, bias = level._cut(grid)
    for j, module in enumerate(level.blocks):
        block = cast(Block, module)
        attn = block.attn
        q, k, v = attn._project(block.norm1(x), attn.w_q, attn.w_k, attn.w_v)
        q, k = attn.q_norm(q), attn.k_norm(k)
        heads = attend(q, k, v, bias=bias, backend="eager")
        answered = x + attn.w_o(heads.transpose(1, 2).flatten(2))
        hidden = block.mlp[0](block.norm2(answered))
        blocks.append(BlockTrace(index, j, q, k, v, bias, x, heads, float(hidden.abs().max())))
        x = answered + block.mlp[1:](hidden)
    answer, tokens = (
        join_windows(part, window, rows, columns).permute(0, 3, 1, 2) for part in (level.norm(x), x)
    )
    return answer, tokens
