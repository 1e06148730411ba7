"""What steps draw their crops from: with the encoder frozen, features prepared once; else fresh crops.

Shape letters: N crops, c picture channels, S side in px, C channels, s = S / 4 cells, K classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from inspect_vit.model import HierarchicalViT
from inspect_vit.results import Sample
from training.config import DataConfig, TrainConfig
from training.data import DefectDataset
from training.incremental_config import IncrementalConfig
from training.state import bf16_is_native

CACHED_PARTS = ("branch", "head", "refine")
"""What is trained lies behind the encoder, so that its features serve every step."""
HALF = ("centres", "masks", "distances", "box_weights", "counted", "fused")
"""Kept as fp16; 0 and 1 stay exact."""
ENCODED = 8
"""Crops that go through the encoder at a time."""


FRESH = 1_000_000
"""Crops of a pool that makes them when they are asked for: hardly any is seen twice."""


class Pool(Protocol):
    """Crops of one kind of boards."""

    @property
    def is_complete(self) -> bool:
        """Every old defect on these boards has its label; else what has none may be one."""

    def __len__(self) -> int: ...

    def take(self, rows: Sequence[int]) -> dict[str, Tensor]:
        """A batch: targets as `DefectDataset` gives them, float32; and fused (B, C, s, s), or the pictures
        board, reference (B, c, S, S) and has_reference (B,)."""


@dataclass(frozen=True)
class Fresh:
    """Crops made when they are taken; crop i is always the same."""

    dataset: DefectDataset
    is_complete: bool

    def __len__(self) -> int:
        return FRESH

    def take(self, rows: Sequence[int]) -> dict[str, Tensor]:
        """See `Pool`."""
        crops = [self.dataset[row] for row in rows]
        return {key: torch.stack([crop[key] for crop in crops]) for key in crops[0]}


@dataclass(frozen=True)
class Prepared:
    """Crops that went through the encoder."""

    tensors: dict[str, Tensor]
    """(N, ...): targets as `DefectDataset` gives them, and fused (N, C, s, s)."""
    is_complete: bool

    def __len__(self) -> int:
        return len(self.tensors["centres"])

    def take(self, rows: Sequence[int]) -> dict[str, Tensor]:
        """See `Pool`."""
        batch = {key: value[list(rows)] for key, value in self.tensors.items()}
        return {key: value.float() if key in HALF else value for key, value in batch.items()}


def make_pool(
    samples: Sequence[Sample],
    model: HierarchicalViT,
    class_names: Sequence[str],
    config: IncrementalConfig,
    *,
    count: int,
    is_complete: bool,
    on_defects: float,
    good_share: float,
    seed: int,
    tick: Callable[[int], None],
) -> Pool:
    """Crops of those boards; crop i is a function of the settings and i alone.

    Args:
        model: the old model, whose encoder gives the features where it is frozen.
        count: of the crops that are prepared then.
        on_defects: share of crops that are placed on a labelled defect.
        good_share: share of crops and tiles whose board is the reference.
        tick: called with the number of crops prepared.
    """
    run = _crop_settings(model, class_names, config, on_defects=on_defects, good_share=good_share, seed=seed)
    if config.part not in CACHED_PARTS:
        return Fresh(DefectDataset(samples, run, total_crops=FRESH), is_complete)
    dataset = DefectDataset(samples, run, total_crops=count)
    columns: dict[str, list[Tensor]] = {}
    waiting: list[dict[str, Tensor]] = []
    for index in range(count):
        waiting.append(dataset[index])
        if len(waiting) == ENCODED or index == count - 1:
            batch = {key: torch.stack([crop[key] for crop in waiting]) for key in waiting[0]}
            pictures = (batch.pop(key) for key in ("board", "reference", "has_reference"))
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16_is_native()):
                batch["fused"] = fused_tokens(model, *pictures)
            for key, value in batch.items():
                columns.setdefault(key, []).append(value.half() if key in HALF else value)
            waiting = []
            tick(index + 1)
    return Prepared({key: torch.cat(parts) for key, parts in columns.items()}, is_complete)


@torch.no_grad()
def fused_tokens(model: HierarchicalViT, board: Tensor, reference: Tensor, has_reference: Tensor) -> Tensor:
    """Pictures as `HierarchicalViT.forward` takes them to what goes into `refine`, (B, C, h, w)."""
    fine, middle, coarse = model.encode(model.embed(board, reference, has_reference)).tokens
    fused16, _ = model.fuse16(middle, coarse)
    fused: Tensor = model.fuse4(fine, fused16)[0]
    return fused


def _crop_settings(
    model: HierarchicalViT,
    class_names: Sequence[str],
    config: IncrementalConfig,
    *,
    on_defects: float,
    good_share: float,
    seed: int,
) -> TrainConfig:
    step = model.config.size_multiple
    side = -(-config.data.crop_size // step) * step
    change = {"crop_size": side, "defect_share": on_defects, "good_share": good_share, "format": "auto"}
    data = DataConfig.model_validate(config.data.model_dump() | change)
    network = model.config.model_copy(update={"class_names": tuple(class_names)})
    return TrainConfig(
        name="add-class",
        model=network,
        data=data,
        augment=config.augment,
        epochs=1,
        batch_size=1,
        devices=1,
        seed=int(np.random.default_rng((config.seed, seed)).integers(2**31)),
    )
