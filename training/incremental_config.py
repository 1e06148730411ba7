"""Settings of `inspect-vit add-class`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from inspect_vit.config import Frozen
from training.config import AugmentConfig, DataConfig, LossConfig, OptimConfig

Part = Literal["branch", "head", "refine", "fusion", "last-level", "whole"]


class IncrementalConfig(Frozen):
    """What is trained, for how long, and on how much of which pictures."""

    part: Part = Field(
        "whole",
        description="what is trained. whole: everything. branch: channels added to the head's trunk and what "
        "reads them; all that was there stays. head: the whole head; refine: and the convolution before it. "
        "With these the encoder is frozen and its features are cached. fusion: and the gates; last-level: "
        "and the coarse level",
    )
    widen: int = Field(32, gt=0, description="channels that part=branch adds to the head's trunk")
    steps: int = Field(2400, gt=0)
    batch_size: int = Field(8, ge=2, description="crops per step")
    replay_share: float = Field(
        0.625, gt=0.0, lt=1.0, description="share of a step's crops that are of old boards"
    )
    optim: OptimConfig = OptimConfig(lr=2e-3, min_lr=1e-5, weight_decay=0.01, warmup_steps=50)
    encoder_lr: float = Field(1.0, gt=0.0, description="rate of what lies before refine, times optim.lr")
    loss: LossConfig = LossConfig(box=2.0)
    distil: LossConfig = Field(
        LossConfig(centre=0.5, box=1.0, mask=0.25),
        description="weights of the terms that hold the old answers",
    )
    old_name: float = Field(
        1.0, ge=0.0, description="weight of the term that keeps old classes off labelled new defects"
    )
    distil_gate: float = Field(1.0, ge=0.0, description="weight of the squared change of the gate shares")
    protect: bool = Field(
        True,
        description="hold what was learnt by replay and distillation; off: fine-tune on the examples alone",
    )
    new_bias: float = Field(
        0.75,
        ge=0.0,
        description="by how much the logits of new classes are lowered in the end: the crops show them more "
        "often than boards do",
    )
    new_crops: int = Field(
        400, gt=0, description="crops of the example boards, prepared where the encoder is frozen"
    )
    pasted_crops: int = Field(800, gt=0, description="of boards that examples were pasted into")
    replay_crops: int = Field(1500, gt=0, description="of old boards")
    pasted_boards: int = Field(150, ge=0, description="boards that examples are pasted into")
    pastes: int = Field(4, gt=0, description="most examples pasted into one of those")
    replay_limit: int = Field(2000, gt=0, description="old boards that are used, drawn at random")
    drawn_boards: int = Field(120, gt=0, description="boards drawn where no old ones are given")
    measured_boards: int = Field(60, gt=0, description="old boards held back for thresholds and the table")
    held_back: float = Field(
        0.2,
        ge=0.0,
        lt=1.0,
        description="share of the examples held back for the new threshold, from MIN_HELD on",
    )
    augment: AugmentConfig = AugmentConfig(
        reference_drop=0.5, misalign_share=0.7, misalign_px=4.0, edge_share=0.5, etch_share=0.15
    )
    data: DataConfig = DataConfig(
        format="auto",
        crop_size=320,
        zoom_share=0.3,
        zoom=(0.8, 1.5),
        good_share=0.35,
        mosaic_until=1.0,
        cache_mb=300,
        workers=0,
    )
    threads: int | None = Field(None, gt=0, description="processor cores; default: all")
    save_every_s: float = Field(20.0, gt=0.0)
    seed: int = 0


MIN_HELD = 10
"""From this many examples of every new class on, some are held back."""
