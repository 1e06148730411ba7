"""What the network looked at: exact attention of a board, a defect or a point, and all maps of one defect.

None of these maps is an explanation by itself. A row of attention says what a block mixed into a token, not
what the answer would be without it; `ablation` and `relevance` ask that.

Shape letters: h, w = ceil(H / 4), ceil(W / 4) cells of the picture, h_l, w_l tokens of a level, K classes.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from inspect_vit.cells import defect_query, label_index, to_cells
from inspect_vit.errors import ConfigError
from inspect_vit.inspector import LEVEL_NAMES, Inspector
from inspect_vit.relevance import relevance
from inspect_vit.results import Defect, InspectionResult, IntakeReport
from inspect_vit.trace import Trace, cells_per_token, inspect_traced, level_index, to_tokens, trace


@torch.inference_mode()
def attention_heads(
    inspector: Inspector,
    traced: Trace,
    level: str,
    *,
    query: NDArray[np.float32] | None = None,
    block: int = -1,
) -> NDArray[np.float32]:
    """Exact attention of one level by head: (num_heads, h_l, w_l), in multiples of uniform.

    Computed for the asked rows only, memory linear in tokens. The last block of the level is the default:
    it is what the level hands on. See `layers.Level.attention` for what a row does not say.

    Args:
        query: (h, w) weights of 4 px cells, as `point_query` and `defect_query` give them: the mean of their
            tokens' rows, 0 outside their windows. None: the attention each token receives, mean over all
            rows.
        block: index of the block in the level.

    Raises:
        ConfigError: an unknown level or block, or a query that asks no token.
    """
    index, factor = level_index(level), cells_per_token(inspector.model, level)
    grid = traced.encoded.grids[index]
    asked = None if query is None else to_tokens(query, grid, factor)
    heads = inspector.model.levels[index].attention(grid, asked, block=block)[0]  # type: ignore[operator]
    rows, columns = (-(-side // factor) for side in traced.cells)
    answer: NDArray[np.float32] = heads[:, :rows, :columns].float().cpu().numpy()
    return answer


def attention_cells(
    inspector: Inspector,
    traced: Trace,
    level: str,
    *,
    query: NDArray[np.float32] | None = None,
    head: int | None = None,
    block: int = -1,
) -> NDArray[np.float32]:
    """`attention_heads` on cells (h, w): of one head, or their mean.

    Raises:
        ConfigError: as there, or a head that the level does not have.
    """
    heads = attention_heads(inspector, traced, level, query=query, block=block)
    if head is not None and not 0 <= head < len(heads):
        raise ConfigError(f"head: {head}, wanted 0 to {len(heads) - 1} on the {level} px level")
    chosen = heads.mean(0) if head is None else heads[head]
    return to_cells(chosen, traced.cells, cells_per_token(inspector.model, level))


def inspect_with_attention(
    inspector: Inspector,
    image: NDArray[np.uint8],
    *,
    reference: NDArray[np.uint8] | None = None,
    min_score: float | None = None,
    intake: IntakeReport | None = None,
) -> tuple[InspectionResult, dict[str, NDArray[np.float32]]]:
    """Verdict and `attention_heads` of each level for all of the board, by one pass.

    Takes and raises as `Inspector.inspect`.
    """
    result, traced = inspect_traced(inspector, image, reference=reference, min_score=min_score, intake=intake)
    return result, {level: attention_heads(inspector, traced, level) for level in LEVEL_NAMES}


@torch.inference_mode()
def rollout(
    inspector: Inspector, traced: Trace, defect: Defect, query: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Attention roll-out (Abnar and Zuidema 2020) of one defect: (h, w), >= 0, sums to at most 1.

    The levels are rolled out each on its own grid and added by the defect's gate share, as the fusion adds
    them; a token's weight spreads evenly over its cells. What a level got from the finer one is not followed
    further. A baseline: it knows no class, and takes attention for use.
    """
    total = np.zeros(traced.cells, np.float32)
    for name, level, grid in zip(LEVEL_NAMES, inspector.model.levels, traced.encoded.grids, strict=True):
        factor = cells_per_token(inspector.model, name)
        rolled = level.rollout(grid, to_tokens(query, grid, factor))[0]  # type: ignore[operator]
        share = defect.gate_share[name] / factor**2
        total += share * to_cells(rolled.float().cpu().numpy(), traced.cells, factor)
    return total


def explanation_maps(
    inspector: Inspector,
    image: NDArray[np.uint8],
    *,
    reference: NDArray[np.uint8] | None,
    defect: Defect,
) -> dict[str, NDArray[np.float32]]:
    """Every map of one defect on cells, (h, w), >= 0, for comparing them with each other.

    Keys: "attention 4", "attention 16", "attention 32": what its tokens attended to, mean over heads, in
    multiples of uniform. "gate": the gate map of the level with the highest share in this defect, as it is:
    it knows the place, not the class. "rollout": `rollout`. "relevance": the part of `relevance` that
    speaks for the call, logits. "defect map": probability of its class. Takes and raises as
    `Inspector.inspect`."""
    traced = trace(inspector, image, reference=reference)
    rows, columns = traced.cells
    names = inspector.metadata.model.class_names
    logits = traced.output.head.mask_logits[0, :, :rows, :columns]
    defect_map: NDArray[np.float32] = logits.float().sigmoid().cpu().numpy()
    query = defect_query(defect_map, names, defect)
    maps = {
        f"attention {level}": attention_cells(inspector, traced, level, query=query) for level in LEVEL_NAMES
    }
    top = max(defect.gate_share, key=lambda level: defect.gate_share[level])
    shares = traced.output.gate_shares[0, level_index(top), :rows, :columns].float().cpu().numpy()
    relevant = relevance(inspector, image, reference=reference, defect=defect).total
    return maps | {
        "gate": shares,
        "rollout": rollout(inspector, traced, defect, query),
        "relevance": relevant.clip(min=0),
        "defect map": defect_map[label_index(defect, names)],
    }
