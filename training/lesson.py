"""From labelled boards to a model that knows the new classes; writes no files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from inspect_vit.model import HierarchicalViT
from inspect_vit.results import Sample
from training.distill import Columns
from training.grow_head import grow, new_columns, old_columns, out_row
from training.incremental_config import IncrementalConfig
from training.incremental_loop import Learner, Share, build_learner
from training.pools import Pool, make_pool
from training.prototypes import imprint

Tick = Callable[[int, int], None]
"""Called with the crops done and their total."""


@dataclass(frozen=True)
class Material:
    """What is learnt from. Labels are classes of the new model, but for ignored ones."""

    examples: Sequence[Sample]
    """Boards with labelled new defects; old ones on them may have no label."""
    pasted: Sequence[Sample]
    """Boards that examples were pasted into; every defect has its label."""
    replay: Sequence[Sample]
    replay_is_complete: bool
    """Every old defect on the replay boards has its label, drawn as the old model learnt it."""


def prepare(
    material: Material,
    old: HierarchicalViT,
    names: Mapping[str, str | None],
    config: IncrementalConfig,
    *,
    tick: Tick,
    replay: Pool | None = None,
) -> list[Share]:
    """The pools, and their shares of a batch: `replay_share` of it shows old boards, the rest new defects.

    Args:
        replay: the pool of the old boards where it is known already.
    """
    plans = [(material.examples, config.new_crops, False, 1.0, 0.1)]
    if material.pasted:
        plans.append((material.pasted, config.pasted_crops, True, 0.9, 0.0))
    if config.protect and replay is None:
        plans.append(
            (
                material.replay,
                config.replay_crops,
                material.replay_is_complete,
                config.data.defect_share,
                config.data.good_share,
            )
        )
    total, done = sum(count for _, count, *_ in plans), 0
    pools = []
    for number, (samples, count, is_complete, on_defects, good) in enumerate(plans):
        pools.append(
            make_pool(
                samples,
                old,
                tuple(names),
                config,
                count=count,
                is_complete=is_complete,
                on_defects=on_defects,
                good_share=good,
                seed=number,
                tick=partial(_after, tick, done, total),
            )
        )
        done += count
    if not config.protect:
        return _shared(pools, config.batch_size)
    if replay is not None:
        pools.append(replay)
    old_crops = min(max(round(config.batch_size * config.replay_share), 1), config.batch_size - 1)
    return [*_shared(pools[:-1], config.batch_size - old_crops), Share(pools[-1], old_crops)]


def _after(tick: Tick, before: int, total: int, now: int) -> None:
    tick(before + now, total)


def _shared(pools: Sequence[Pool], crops: int) -> list[Share]:
    """That many crops over the pools; pasted boards, the last, get what is over."""
    least = crops // len(pools)
    counts = [least] * (len(pools) - 1) + [crops - least * (len(pools) - 1)]
    return [Share(pool, count) for pool, count in zip(pools, counts, strict=True) if count]


def start_learner(
    old: HierarchicalViT, names: Mapping[str, str | None], shares: Sequence[Share], config: IncrementalConfig
) -> tuple[Learner, Columns]:
    """The grown model before its first step, new rows at their prototypes."""
    torch.manual_seed(config.seed)
    model = grow(old, names, widen=config.widen if config.part == "branch" else 0)
    columns = columns_of(old, names)
    if columns.new:
        imprint(model, columns.new, [share.pool for share in shares])
    return build_learner(model, config, old=old, kept=columns.kept), columns


@torch.no_grad()
def settle(model: HierarchicalViT, columns: Columns, config: IncrementalConfig) -> None:
    """Lower the new classes' centre logits after the last step, in place: logit adjustment by the prior
    (Menon et al., ICLR 2021). The crops show new defects more often than boards do, and of two names for one
    spot the likelier is called."""
    bias = model.head.out.bias
    assert bias is not None
    bias[[out_row(model.head, label, mask=False) for label in columns.new]] -= config.new_bias


def columns_of(old: HierarchicalViT, names: Mapping[str, str | None]) -> Columns:
    """Which classes are new, and where the others were."""
    return Columns(new_columns(names), *old_columns(names, old.config.class_names))
