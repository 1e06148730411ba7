"""What the network looked at: exact attention of a board, a defect or a point, and all maps of one defect.

None of these maps is an explanation by itself. A row of attention says what a block mixed into a token, not
what the answer would be without it; `ablation` and `relevance` ask that.

Shape letters: h, w = ceil(H / 4), ceil(W / 4) cells of the picture, h_l, w_l tokens of a level, K classes.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inspect_vit.alignment import LaidReference
from inspect_vit.cells import CELL_PX, cells_of, defect_query, label_index, to_cells
from inspect_vit.close_up import close_up, query_box
from inspect_vit.errors import ConfigError
from inspect_vit.fallback import release
from inspect_vit.inspector import LEVEL_NAMES, Inspector, laid_reference
from inspect_vit.relevance import relevance
from inspect_vit.results import Defect, InspectionResult
from inspect_vit.tiling import Plan, Tile, blend_rows
from inspect_vit.trace import Trace, cells_per_token, inspect_traced, level_index, to_tokens, trace

logger = logging.getLogger(__name__)


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


def board_attention(
    inspector: Inspector,
    image: NDArray[np.uint8],
    *,
    reference: NDArray[np.uint8] | None,
    query: NDArray[np.float32] | None = None,
) -> dict[str, NDArray[np.float32]]:
    """Attention of each level by head, {"4", "16", "32"}: (num_heads, h_l, w_l), of a board of any size.

    As `attention_heads` of the level's last block. On a board in tiles a query is asked of the tile around
    it, 0 elsewhere; without a query each tile is asked, and their maps are blended. Multiples of uniform
    attention over the tile. Raises as `Inspector.inspect` and `attention_heads`."""
    if query is not None:
        seen = close_up(inspector, image, reference=reference, box=query_box(query))
        traced = trace(inspector, seen.image, reference=seen.reference)
        return {
            name: seen.place(
                attention_heads(inspector, traced, name, query=seen.query(query)),
                CELL_PX * cells_per_token(inspector.model, name),
            )
            for name in LEVEL_NAMES
        }
    inspector.check(image, reference)
    factors = {name: cells_per_token(inspector.model, name) for name in LEVEL_NAMES}
    counts = [level.num_heads for level in inspector.model.config.levels]

    def run(tile: Tile) -> tuple[Tensor]:
        golden = None if reference is None else tile.of(reference)
        traced = trace(inspector, tile.of(image), reference=golden)
        cells = (tile.bottom - tile.top) // CELL_PX, (tile.right - tile.left) // CELL_PX
        heads = [
            to_cells(_padded_heads(inspector, traced, name), cells, factor)
            for name, factor in factors.items()
        ]
        return (torch.from_numpy(np.concatenate(heads)),)

    rows, columns = cells_of(*image.shape[:2])

    def look(plan: Plan) -> NDArray[np.float32]:
        bands = blend_rows(plan, run, cell_px=CELL_PX, weight_px=CELL_PX * factors[LEVEL_NAMES[-1]])
        return np.concatenate([band[:, :, :columns].numpy() for _, (band,) in bands], 1)[:, :rows]

    whole, _ = inspector.with_less_memory(look, image)
    parts = np.split(whole, np.cumsum(counts)[:-1])
    return {
        name: np.ascontiguousarray(part[:, ::factor, ::factor])
        for (name, factor), part in zip(factors.items(), parts, strict=True)
    }


@torch.inference_mode()
def _padded_heads(inspector: Inspector, traced: Trace, level: str) -> NDArray[np.float32]:
    index = level_index(level)
    heads = inspector.model.levels[index].attention(traced.encoded.grids[index])[0]  # type: ignore[operator]
    answer: NDArray[np.float32] = heads.float().cpu().numpy()
    return answer


def inspect_with_attention(
    inspector: Inspector,
    image: NDArray[np.uint8],
    *,
    reference: NDArray[np.uint8] | LaidReference | None = None,
    **settings: Any,
) -> tuple[InspectionResult, dict[str, NDArray[np.float32]]]:
    """Verdict and `board_attention` of all of the board; by one pass where the board is one piece.

    Takes and raises as `Inspector.inspect`.
    """
    laid = laid_reference(image, reference)
    if inspector.plan(image).num_tiles == 1:
        try:
            result, traced = inspect_traced(inspector, image, reference=laid, **settings)
            return result, {level: attention_heads(inspector, traced, level) for level in LEVEL_NAMES}
        except torch.OutOfMemoryError as error:
            # Two passes, each of which may take smaller tiles, need less at a time than the one for both.
            logger.warning("out of memory in one pass for verdict and attention: %s", str(error))
        release()
    result = inspector.inspect(image, reference=laid, **settings)
    golden = None if laid is None else laid.picture
    return result, board_attention(inspector, image, reference=golden)


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
    speaks for the call, logits. "defect map": probability of its class. On a board in tiles, those of the
    tile around the defect, 0 elsewhere. Takes and raises as `Inspector.inspect`."""
    seen = close_up(inspector, image, reference=reference, box=defect.box_xyxy)
    image, reference, defect = seen.image, seen.reference, seen.defect(defect)
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
    maps |= {
        "gate": shares,
        "rollout": rollout(inspector, traced, defect, query),
        "relevance": relevant.clip(min=0),
        "defect map": defect_map[label_index(defect, names)],
    }
    return {name: seen.place(cells, CELL_PX) for name, cells in maps.items()}
