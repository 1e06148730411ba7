"""Checks of what attention does on boards: masks, scores, weights, heads, and that its backends agree."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from inspect_vit.attention import attend
from inspect_vit.config import AttentionBackend
from inspect_vit.doctor_findings import Finding, Health, Limits, Place, judged, skipped, stated
from inspect_vit.doctor_stats import SATURATED_ABOVE, BlockStats
from inspect_vit.doctor_trace import Trace
from inspect_vit.errors import ConfigError
from inspect_vit.model import HierarchicalViT

ENTROPY = Limits(warn_below=0.2, warn_above=0.999, ill_below=0.05)
"""Entropy over log(keys). Fresh models have 0.93 to 0.98, the shipped one's working levels 0.77 to 0.85.
At 0.05 a row rests on exp(0.05 log 400) = 1.3 of 400 keys; above 0.999 attention is an average."""
TOP_WEIGHT = Limits(warn_above=0.8, ill_above=0.95)
"""Mean weight of a row's best key. Above 0.95 a head is sharp: it copies one token, and its scores learn
no more. Fresh models have 0.01 to 0.05."""
SATURATED = Limits(warn_above=0.1, ill_above=0.5)
"""Share of rows without gradient to their scores. Fresh models have none."""
FLASH_ERROR = Limits(warn_above=2.0, ill_above=10.0)
"""Error of flash-attn in fp16 over that of the plain product in fp16, both against float32: the yardstick
of the backends' own tests is twice."""
COMPARED: tuple[AttentionBackend, ...] = ("eager", "sdpa")
DUPLICATE = 0.95
"""Cosine above which two heads look at the same places."""
BACKENDS = Limits(warn_above=1e-3, ill_above=1e-2)
"""Largest difference of two backends' answers over the largest answer, float32. Rounding gives 1e-6 where
scores are below 10 and grows with them: scores of 1000 are known to 6e-5, and so are, relatively, their
weights. Of seven digits, a hundredth leaves two."""


def check_masks(
    model: HierarchicalViT, traces: Sequence[Trace], stats: Sequence[BlockStats]
) -> list[Finding]:
    """Masks are refused unless bool, biases are float, and no row is masked in full."""
    findings = [_mask_contract(next(model.parameters()).device)]
    for stat, block in zip(stats, traces[0].blocks, strict=True):
        bias = block.bias
        kind = "no mask and no bias: every token takes part" if bias is None else f"bias of {bias.dtype}"
        is_float = bias is None or bias.is_floating_point()
        findings.append(
            stated(
                "masks",
                stat.place,
                is_float and stat.empty_rows == 0,
                limit="ill where a bias is not float, or a row of weights does not sum to 1",
                detail=f"{kind}; {stat.empty_rows:.1%} of rows do not sum to 1",
                remedy=f"choose another code: model.levels.{block.level}.position; one that is conv needs "
                "no bias",
            )
        )
    return findings


def check_scores(stats: Sequence[BlockStats]) -> list[Finding]:
    """Spread of the scores that go into softmax, with and without the scale.

    The limits are in units of sqrt(2 log keys): a softmax of Gaussian scores that are wider rests on a
    handful of keys, however many there are (Derrida 1981, the random energy model). Fresh models are at
    0.2 of it, the shipped one's working levels at 0.4 to 1.1; learned scores are not Gaussian, so the
    warning waits for twice that.
    """
    findings = []
    for stat in stats:
        critical = math.sqrt(2 * math.log(max(stat.num_keys, 2)))
        limits = Limits(
            warn_below=0.05,
            ill_below=0.005,
            warn_above=round(2 * critical, 1),
            ill_above=round(4 * critical, 1),
        )
        for head, spread in enumerate(stat.score_spread.tolist()):
            before = spread * math.sqrt(stat.head_dim)
            findings.append(
                judged(
                    "score spread",
                    _head(stat, head),
                    spread,
                    limits,
                    detail=f"standard deviation in a row of {stat.num_keys} scores; {before:.3g} without the "
                    f"1 / sqrt({stat.head_dim}) scale",
                    remedy="train with model.qk_norm: true, which bounds scores by sqrt(head_dim) times "
                    "two gains",
                )
            )
    return findings


def check_weights(model: HierarchicalViT, stats: Sequence[BlockStats]) -> list[Finding]:
    """Entropy, top-1 weight and saturation of softmax, by head."""
    keys = {level.patch_size: f"model.levels.{i}" for i, level in enumerate(model.config.levels)}
    findings = []
    for stat in stats:
        key = keys[stat.place.level_px or 0]
        sharp = f"train with model.qk_norm: true; raising {key}.attn_drop may spread weights too"
        for head in range(len(stat.entropy)):
            place = _head(stat, head)
            entropy, top = float(stat.entropy[head]), float(stat.top_weight[head])
            flat = f"the head averages: lower {key}.attn_drop, or use fewer heads ({key}.head_dim)"
            findings += [
                judged(
                    "attention entropy",
                    place,
                    entropy,
                    ENTROPY,
                    detail=f"mean over log({stat.num_keys}); 0 one key, 1 uniform",
                    remedy=flat if entropy > 0.5 else sharp,
                ),
                judged(
                    "top-1 weight", place, top, TOP_WEIGHT, detail="mean weight of the best key", remedy=sharp
                ),
                judged(
                    "saturated rows",
                    place,
                    float(stat.saturated[head]),
                    SATURATED,
                    detail=f"share of rows whose best key has more than {SATURATED_ABOVE}",
                    remedy=sharp,
                ),
            ]
    return findings


def check_duplicates(model: HierarchicalViT, stats: Sequence[BlockStats]) -> list[Finding]:
    """The pair of heads of each block that is most alike: a warning if they look at the same places, ill
    if they also bring the same answer."""
    keys = {level.patch_size: f"model.levels.{i}" for i, level in enumerate(model.config.levels)}
    findings = []
    for stat in stats:
        num_heads = len(stat.entropy)
        if num_heads < 2:
            findings.append(skipped("duplicate heads", stat.place, "one head"))
            continue
        pattern, answer = (c - 2 * torch.eye(num_heads) for c in (stat.pattern_cosine, stat.answer_cosine))
        twins = torch.where(pattern > DUPLICATE, 1 + answer, torch.nan_to_num(pattern) - 1)
        a, b = divmod(int(twins.argmax()), num_heads)
        same_places, same_answer = float(pattern[a, b]), float(answer[a, b])
        is_copy = same_places > DUPLICATE and same_answer > DUPLICATE
        place = Place(stat.place.level_px, stat.place.block, part=f"heads {min(a, b)} and {max(a, b)}")
        health = Health.ILL if is_copy else Health.WARN if same_places > DUPLICATE else Health.OK
        key = keys[stat.place.level_px or 0]
        findings.append(
            Finding(
                "duplicate heads",
                place,
                same_places,
                f"warn above {DUPLICATE}; ill if the answers' cosine is too",
                health,
                f"cosine of their weights; of their answers {same_answer:.2f}",
                ""
                if health is Health.OK
                else f"one head does the work of two: raise {key}.head_dim (fewer heads), or train with "
                "model.init: orthogonal",
            )
        )
    return findings


def check_backends(model: HierarchicalViT, traces: Sequence[Trace]) -> list[Finding]:
    """eager against sdpa, and flash where it can run, on the queries, keys and values of the first board."""
    patch = [level.patch_size for level in model.config.levels]
    remedy = "scores are too large to be computed the same way twice: train with model.qk_norm: true"
    findings = []
    for b in traces[0].blocks:
        plain = attend(b.q, b.k, b.v, bias=b.bias, backend="eager")
        fused = attend(b.q, b.k, b.v, bias=b.bias, backend="sdpa")
        findings.append(
            judged(
                "backends",
                Place(patch[b.level], b.block, part="eager and sdpa"),
                _difference(plain, fused),
                BACKENDS,
                detail="largest difference over the largest answer",
                remedy=remedy,
            )
        )
        at = Place(patch[b.level], b.block, part="eager and flash")
        half = [part.half() if part.is_cuda else part for part in (b.q, b.k, b.v)]
        try:
            flash = attend(half[0], half[1], half[2], bias=b.bias, backend="flash")
        except ConfigError as error:
            findings.append(skipped("backends", at, str(error)))
            continue
        rounding = _difference(plain, attend(half[0], half[1], half[2], bias=b.bias, backend="eager"))
        findings.append(
            judged(
                "backends",
                at,
                _difference(plain, flash) / max(rounding, 1e-6),
                FLASH_ERROR,
                detail="error in fp16 over that of the plain product in fp16",
                remedy=remedy,
            )
        )
    return findings


def _mask_contract(device: torch.device) -> Finding:
    """attend() itself: a float mask is refused, and a row without any key gives zeros on each backend."""
    q = torch.ones(1, 1, 2, 8, device=device)
    mask = torch.tensor([[True, True], [False, False]], device=device)
    faults = []
    for backend in COMPARED:
        out = attend(q, q, q, mask=mask, backend=backend)
        if not torch.isfinite(out).all() or out[0, 0, 1].any():
            faults.append(f"{backend} does not answer zeros to a row that is masked in full")
        try:
            attend(q, q, q, mask=mask.float(), backend=backend)
            faults.append(f"{backend} takes a mask of float")
        except ConfigError:
            pass
    return stated(
        "masks",
        Place(part="attend()"),
        not faults,
        limit="ill unless masks must be bool and a row that is masked in full gives zeros",
        detail="; ".join(faults) or "masks must be bool; a row that is masked in full gives zeros",
        remedy="this installation of torch attends wrongly: install the versions of pyproject.toml",
    )


def _difference(a: Tensor, b: Tensor) -> float:
    return float((a.float() - b.float()).abs().max() / a.float().abs().max().clamp(min=1e-30))


def _head(stat: BlockStats, head: int) -> Place:
    return Place(stat.place.level_px, stat.place.block, head)
