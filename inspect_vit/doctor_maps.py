"""Checks of what comes out of the levels: gates, patterns at the patch period, outlier tokens, position
codes.

Shape letters: B batch, K channels of a map, C channels, h, w rows and columns, P period in cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from inspect_vit.config import ModelConfig
from inspect_vit.doctor_findings import Finding, Limits, Place, judged, skipped
from inspect_vit.doctor_trace import Trace, levels_of
from inspect_vit.model import HierarchicalViT
from inspect_vit.positions import alibi_2d

SHARE = Limits(warn_below=0.05, ill_below=0.01)
"""Mean share of a level in the fused tokens. Fresh models have 0.5, 0.25, 0.25, the shipped one 0.78,
0.12, 0.10. A level below a hundredth is paid for and not used."""
GATE_ENDS = (0.01, 0.99)
SATURATED = Limits(warn_above=0.5, ill_above=0.9)
"""Share of gate values outside GATE_ENDS, where a sigmoid passes less than a hundredth of its gradient.
The shipped model has 0.04 to 0.08, fresh ones under 0.01."""
GATE_SPREAD = Limits(warn_below=0.02)
"""Standard deviation of a gate over tokens, mean over channels. A gate that is the same everywhere is a
fixed mix, to which W_o could be scaled. Shipped and fresh models have 0.1 to 0.2."""
PERIODIC = Limits(warn_above=0.1, ill_above=0.25)
"""Share of a map's variance explained by the place within a patch. Over four boards fresh models have up to
0.015, the shipped one 0.0015; of a single board its own tracks show through, up to 0.17. At a quarter the
grid is what one sees first."""
OUTLIER = Limits(warn_above=4.0, ill_above=10.0)
"""Largest over median norm of a level's tokens. Darcet et al. 2024, "Vision transformers need registers",
find tokens of about ten times the usual norm that hold no local content; fresh and shipped models have 1.0
to 1.8."""
FADING = Limits(warn_below=0.2, ill_below=-0.2)
"""Correlation of the distance between two position codes with the distance between their tokens; 1 fades
evenly. A table that has learned nothing has about 0; far tokens that look near mislead."""
STRENGTH = Limits(warn_below=0.01, ill_below=0.001)
"""Spread of the code over the size of the tokens it is added to: under a thousandth, fp16 rounds it away."""
ALIBI_RANGE = Limits(warn_below=0.5, ill_below=0.05)
"""Largest difference that the ALiBi bias makes to a score within a window, over heads: at 0.05 no weight
changes by more than a twentieth, and position is not seen."""
CODE_GRID = 20
"""Rows and columns of tokens whose codes are compared."""


def check_level_shares(config: ModelConfig, shares: Sequence[Tensor]) -> list[Finding]:
    """Whether every level has a say; shares: (B, 3, h, w) each, as `ModelOutput.gate_shares`."""
    cells = torch.cat([share.detach().float().flatten(2).transpose(1, 2).flatten(0, 1) for share in shares])
    spread = cells.std(0, unbiased=False)
    findings = []
    for i, (level, value) in enumerate(zip(config.levels, cells.mean(0).tolist(), strict=True)):
        findings.append(
            judged(
                "level share",
                Place(level.patch_size),
                value,
                SHARE,
                detail=f"mean share of the level in the fused tokens; it varies by {float(spread[i]):.3f} "
                "over cells",
                remedy="the level is not used: train again with a lower optim.lr or a longer "
                "optim.warmup_steps; if it "
                f"stays, save its cost: lower model.levels.{i}.depth",
            )
        )
    return findings


def check_gates(config: ModelConfig, traces: Sequence[Trace]) -> list[Finding]:
    """Saturation and spread of g4 and g16 by token and channel."""
    findings = []
    for index, name in enumerate(("fuse4", "fuse16")):
        cells = torch.cat(
            [trace.gates[index].float().flatten(2).transpose(1, 2).flatten(0, 1) for trace in traces]
        )
        # NaN is neither below nor above; it must not pass for a gate that is open.
        inside = (cells >= GATE_ENDS[0]) & (cells <= GATE_ENDS[1])
        place = Place(config.levels[index].patch_size, part=f"gate of {name}")
        cure = "train again with a lower optim.lr or more optim.weight_decay"
        findings += [
            judged(
                "gate saturation",
                place,
                float((~inside).float().mean()),
                SATURATED,
                detail=f"share of values below {GATE_ENDS[0]} or above {GATE_ENDS[1]}",
                remedy=f"a shut gate learns no more: {cure}",
            ),
            judged(
                "gate spread",
                place,
                float(cells.std(0, unbiased=False).mean()),
                GATE_SPREAD,
                detail="standard deviation over tokens, mean over channels",
                remedy=f"the gate does not look at the tokens: {cure}",
            ),
        ]
    return findings


def check_patterns(config: ModelConfig, traces: Sequence[Trace]) -> list[Finding]:
    """Patterns that repeat with the patches of the coarser levels, in the maps that a user sees."""
    fine = config.levels[0].patch_size
    maps = {
        "centre logits": [trace.output.head.centre_logits for trace in traces],
        "defect map logits": [trace.output.head.mask_logits for trace in traces],
        "gate shares": [trace.output.gate_shares for trace in traces],
    }
    findings = []
    for level in config.levels[1:]:
        for name, grids in maps.items():
            findings.append(
                judged(
                    "patch pattern",
                    Place(level.patch_size, part=name),
                    float(periodic_share(grids, level.patch_size // fine).max()),
                    PERIODIC,
                    detail=f"share of the variance that repeats every {level.patch_size} px, worst channel",
                    remedy="the grid of patches shows: train on more shifts of the boards (data.zoom_share, "
                    "data.crops_per_image), and take position conv for levels that use another "
                    "(model.levels.N.position)",
                )
            )
    return findings


def check_outlier_tokens(config: ModelConfig, traces: Sequence[Trace]) -> list[Finding]:
    """Tokens whose norm stands out, before a level's last norm."""
    findings = []
    for i, level in enumerate(config.levels):
        norms = torch.cat([trace.tokens[i].float().norm(dim=1).flatten() for trace in traces])
        ratio = float(norms.max() / norms.median())
        many = float((norms > (OUTLIER.warn_above or 0) * norms.median()).float().mean())
        findings.append(
            judged(
                "outlier tokens",
                Place(level.patch_size),
                ratio,
                OUTLIER,
                detail=f"largest over median norm; {many:.2%} of tokens are above {OUTLIER.warn_above:g} "
                "times",
                remedy="some tokens are used as a store: train with model.qk_norm: true and more "
                "optim.weight_decay, or "
                f"fewer blocks (model.levels.{i}.depth)",
            )
        )
    return findings


@torch.no_grad()
def check_positions(model: HierarchicalViT, traces: Sequence[Trace]) -> list[Finding]:
    """Whether codes of near tokens are alike, of far ones less, and large enough to be seen."""
    findings = []
    for i, level in enumerate(levels_of(model)):
        place, kind = Place(level.config.patch_size), level.config.position
        key = f"model.levels.{i}.position"
        if kind in ("conv", "none"):
            why = "a convolution over neighbours, no code by place" if kind == "conv" else "no position code"
            findings.append(skipped("position code", place, f"{kind}: {why}"))
            continue
        grid = traces[0].tokens[i]
        rows, columns = (min(side, CODE_GRID) for side in grid.shape[2:])
        if kind == "alibi":
            side = level.config.window or min(rows, columns)
            bias = alibi_2d(level.config.num_heads, side, side)
            findings.append(
                judged(
                    "position code",
                    place,
                    float(bias.amax() - bias.amin()),
                    ALIBI_RANGE,
                    detail=f"alibi: largest difference it makes to a score within {side} x {side} tokens",
                    remedy=f"too weak to be seen: use more heads (model.levels.{i}.head_dim), or {key}: conv",
                )
            )
            continue
        code = level.position(torch.zeros_like(grid)).float()
        tokens = [b.stream for b in traces[0].blocks if b.level == i][:1] or [grid]
        varying = code - code.mean((2, 3), keepdim=True)
        findings += [
            judged(
                "position code",
                place,
                _fading(code[0, :, :rows, :columns]),
                FADING,
                detail=f"{kind}: correlation of code distance with token distance",
                remedy=f"the code does not tell near from far: set {key}: conv or sincos",
            ),
            judged(
                "position strength",
                place,
                float(varying.square().mean().sqrt() / tokens[0].float().square().mean().sqrt()),
                STRENGTH,
                detail=f"{kind}: spread of the code over the size of the tokens",
                remedy=f"the code drowns: set {key}: conv or sincos",
            ),
        ]
    return findings


def periodic_share(maps: Sequence[Tensor], period: int) -> Tensor:
    """(K,): share of the variance of maps (1, K, h, w) explained by the place within a square of P cells,
    0..1.

    The means of the P x P places are energy at multiples of 1 / P and nothing else. They are compared
    between the quarters of all maps: what belongs to the model is in all of them, what a board happens to
    show is not.
    """
    parts = [part for grid in maps for part in _quarters(grid[0].double().cpu(), period)]
    if len(parts) < 2:
        return torch.zeros(maps[0].shape[1])
    total = torch.stack([part.square().mean((1, 2)) for part in parts]).mean(0)
    means = torch.stack(
        [part.unflatten(2, (-1, period)).unflatten(1, (-1, period)).mean((1, 3)) for part in parts]
    )  # (parts, K, P, P)
    together = means.sum(0).square() - means.square().sum(0)
    share = together.mean((1, 2)) / (len(parts) * (len(parts) - 1)) / total
    return torch.where(total > 0, share.clamp(min=0), total)


def _quarters(grid: Tensor, period: int) -> list[Tensor]:
    """(K, h, w) in four parts, each less its mean, of whole periods; in one if it is too small for four."""
    rows, columns = (side // 2 // period * period for side in grid.shape[1:])
    corners = [(y, x) for y in (0, rows) for x in (0, columns)]
    if not rows or not columns:
        rows, columns = (side // period * period for side in grid.shape[1:])
        corners = [(0, 0)] if rows and columns else []
    parts = [grid[:, y : y + rows, x : x + columns] for y, x in corners]
    return [part - part.mean((1, 2), keepdim=True) for part in parts]


def _fading(code: Tensor) -> float:
    """code: (C, h, w). Pearson correlation over all pairs of tokens; NaN where all codes are equal."""
    rows, columns = code.shape[1:]
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    points = torch.stack([y.flatten(), x.flatten()], 1).double()
    first, second = torch.triu_indices(rows * columns, rows * columns, 1)
    flat = code.flatten(1).T.double().cpu()
    apart = (points[first] - points[second]).norm(dim=1)
    unlike = (flat[first] - flat[second]).norm(dim=1)
    apart, unlike = apart - apart.mean(), unlike - unlike.mean()
    scale = float(apart.norm() * unlike.norm())
    return float(apart @ unlike) / scale if scale > 1e-9 else math.nan
