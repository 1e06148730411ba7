"""Checks that need the weights alone: finite, well spread, of full rank, of sizes that hardware likes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from inspect_vit.config import ModelConfig
from inspect_vit.doctor_findings import Finding, Health, Limits, Place, judged, stated
from inspect_vit.doctor_trace import blocks_of, fusions_of
from inspect_vit.model import HierarchicalViT

SPREAD = Limits(warn_below=0.25, warn_above=3.0, ill_below=0.05, ill_above=10.0)
"""Standard deviation of W_q, W_k, W_v over 1 / sqrt(C), which both ways to initialise give.

Fresh models lie between 0.97 and 1.03, the shipped one between 0.5 and 1.5. Scores go with the product of two
such matrices, so that 3 makes them nine times as wide and 10 a hundred times; at 0.05 they are gone.
"""
ALIGNED = Limits(warn_above=0.5, ill_above=0.8)
"""Root mean square cosine between the rows of one head's W_q, W_k or W_v: 0 orthogonal, 1 all rows the same.

Random rows give 1 / sqrt(C): 0.06 to 0.18 in the shapes of configs/, 0.35 at 8 channels. Above 0.5 a head
sees few directions, above 0.8 hardly more than one. The shipped model has 0.2 to 0.33 but for its 32 px
level.
"""
CONDITION = Limits(warn_above=1000.0)
"""Largest over smallest singular value of W_o. Checkpoints hold fp16, whose step is 1/1024 of the value:
what is below a thousandth of the largest is lost in rounding.

A warning only: the condition of a random square matrix grows with its side and has a long tail (Edelman
1988, "Eigenvalues and condition numbers of random matrices"), so one direction that is lost in 128 or more
is common: fresh xavier models of configs/ show 37 to 7000, orthogonal ones 1.
"""
RANK = Limits(warn_below=0.4, ill_below=0.25)
"""Effective rank of W_o as a share of its full rank: exp of the entropy of the normalised singular values
(Roy and Vetterli 2007). Fresh models have 0.80 or more, the shipped one 0.54 or more; a quarter says that
three quarters of the width carry next to nothing."""
ALIGNMENT = 8
"""Channels: half-precision tensor cores and flash-attn work on multiples of 8."""
FLASH_HEAD_DIM = 256
"""Largest head_dim of flash-attn 2."""


def check_finite_weights(model: HierarchicalViT) -> list[Finding]:
    """Any NaN or infinity among the weights."""
    bad = [name for name, value in model.state_dict().items() if not torch.isfinite(value).all()]
    named = ", ".join(bad[:5]) + (", ..." if len(bad) > 5 else "")
    return [
        stated(
            "finite weights",
            Place(),
            not bad,
            limit="ill where a weight is NaN or infinite",
            detail=f"NaN or infinite values in {named}" if bad else "every weight is a finite number",
            remedy="train again from a state before they appeared, with a lower optim.lr or optim.clip_grad, "
            "and precision: 32-true if it was 16-mixed",
        )
    ]


def check_projection_spread(model: HierarchicalViT) -> list[Finding]:
    """W_q, W_k, W_v: spread against what they were initialised with."""
    findings = []
    for place, _, weight, _ in _projections(model):
        findings.append(
            judged(
                "projection spread",
                place,
                float(weight.std() * math.sqrt(weight.shape[1])),
                SPREAD,
                detail="standard deviation of the weights over 1 / sqrt(embed_dim)",
                remedy="set model.qk_norm: true, which takes their size out of the scores, and lower "
                "optim.lr or "
                "raise optim.weight_decay if they grew; train again with model.init: xavier if they vanished",
            )
        )
    return findings


def check_projection_rows(model: HierarchicalViT) -> list[Finding]:
    """W_q, W_k, W_v: how far the rows of a head point the same way; the worst head of each matrix."""
    findings = []
    for place, _, weight, head_dim in _projections(model):
        if head_dim < 2:
            continue
        rows = functional.normalize(weight.unflatten(0, (-1, head_dim)), dim=-1)  # (H, D, C)
        cosines = rows @ rows.transpose(1, 2) - torch.eye(head_dim, device=rows.device)
        aligned = (cosines.square().sum((1, 2)) / (head_dim * (head_dim - 1))).sqrt()
        head = int(aligned.argmax())
        findings.append(
            judged(
                "projection rows",
                Place(place.level_px, place.block, head, place.part),
                float(aligned[head]),
                ALIGNED,
                detail="root mean square cosine between the rows of the head; random rows give "
                f"{weight.shape[1] ** -0.5:.2f}",
                remedy="train again with model.init: orthogonal and model.qk_norm: true, or make heads "
                "smaller "
                f"({_key(model, place.level_px)}.head_dim)",
            )
        )
    return findings


def check_output_projections(model: HierarchicalViT) -> list[Finding]:
    """W_o of every block and of the gated fusion: condition number and effective rank."""
    findings = []
    for place, weight in output_projections(model):
        values = singular_values(weight)
        condition = float(values[0] / values[-1]) if values[-1] > 0 else math.inf
        findings.append(
            judged(
                "W_o condition",
                place,
                # A matrix of zeros in one direction is as far gone as float32 can tell.
                min(condition, 1 / torch.finfo(torch.float32).eps) if values[0] > 0 else math.nan,
                CONDITION,
                detail="largest over smallest singular value",
                remedy="train again with model.init: orthogonal, and more optim.weight_decay if it grew on "
                "the way",
            )
        )
        findings.append(
            judged(
                "W_o rank",
                place,
                effective_rank(values) / len(values),
                RANK,
                detail=f"effective rank over full rank {len(values)}",
                remedy="train again with model.init: orthogonal; if it collapses again the level is wider "
                "than it "
                f"needs to be: lower {_key(model, place.level_px)}.embed_dim",
            )
        )
    return findings


def check_sizes(config: ModelConfig) -> list[Finding]:
    """head_dim, embed_dim and window tokens against what tensor cores and flash-attn work on."""
    findings = []
    for i, level in enumerate(config.levels):
        for name, value in (("head_dim", level.head_dim), ("embed_dim", level.embed_dim)):
            fits = value % ALIGNMENT == 0 and not (name == "head_dim" and value > FLASH_HEAD_DIM)
            lower, upper = max(value // ALIGNMENT, 1) * ALIGNMENT, -(-value // ALIGNMENT) * ALIGNMENT
            nearest = (
                min((lower, upper), key=lambda v: abs(v - value))
                if value <= FLASH_HEAD_DIM
                else FLASH_HEAD_DIM
            )
            findings.append(
                stated(
                    "sizes",
                    Place(level.patch_size, part=name),
                    fits,
                    limit=f"warn unless a multiple of {ALIGNMENT}; head_dim at most {FLASH_HEAD_DIM}",
                    detail=f"{value} channels" + ("" if fits else ": padded or refused by fast kernels"),
                    remedy=f"set model.levels.{i}.{name} to {nearest} (embed_dim must stay a multiple of "
                    "head_dim)",
                    health=Health.WARN,
                )
            )
    return findings


def output_projections(model: HierarchicalViT) -> Iterator[tuple[Place, Tensor]]:
    """Every W_o as a matrix, (out, in)."""
    patch = [level.patch_size for level in model.config.levels]
    for level, index, block in blocks_of(model):
        yield Place(patch[level], index, part="W_o"), block.attn.w_o.weight.detach()
    for (name, fusion), level_px in zip(fusions_of(model).items(), (patch[1], patch[0]), strict=True):
        for side in ("high", "low"):
            weight = getattr(fusion, f"w_o_{side}").weight.detach().flatten(1)
            yield Place(level_px, part=f"{name} W_o_{side}"), weight


def singular_values(weight: Tensor) -> Tensor:
    """Falling, float32; all NaN where the matrix is not finite."""
    if not torch.isfinite(weight).all():
        return torch.full((min(weight.shape),), math.nan)
    values: Tensor = torch.linalg.svdvals(weight.float())
    return values.cpu()


def effective_rank(values: Tensor) -> float:
    """exp of the entropy of the normalised singular values: n for n equal ones, 1 for a single one."""
    share = values.double() / values.double().sum()
    return float(torch.special.entr(share).sum().exp())


def _projections(model: HierarchicalViT) -> Iterator[tuple[Place, str, Tensor, int]]:
    """W_q, W_k and W_v of every block with the block's head_dim."""
    patch = [level.patch_size for level in model.config.levels]
    for level, index, block in blocks_of(model):
        for name in ("q", "k", "v"):
            weight = getattr(block.attn, f"w_{name}").weight.detach()
            yield Place(patch[level], index, part=f"W_{name}"), name, weight, block.attn.head_dim


def _key(model: HierarchicalViT, level_px: int | None) -> str:
    """The configuration's key of a level."""
    return f"model.levels.{[level.patch_size for level in model.config.levels].index(level_px or 0)}"
