"""Checks of the arithmetic: finite answers, room in half precision, gradients that reach every level."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from inspect_vit.doctor_findings import Finding, Limits, Place, judged, stated
from inspect_vit.doctor_stats import BlockStats
from inspect_vit.doctor_trace import Board, Trace
from inspect_vit.heads import HeadOutput
from inspect_vit.model import HierarchicalViT

FP16_MAX = torch.finfo(torch.float16).max
MARGIN = Limits(warn_below=8.0, ill_below=1.0)
"""Largest fp16 number over the largest value met. Other boards, and sums inside a product, need a few bits
of room."""
MOVED = Limits(warn_above=0.05, ill_above=0.2)
"""Largest change of a centre score (0 to 1) in half precision. The rounding of inputs and weights alone
moves fresh models by under 0.001; 0.05 moves calls near a threshold, 0.2 changes verdicts."""
GRADIENT = Limits(warn_below=0.01, warn_above=100.0, ill_below=1e-4, ill_above=1e4)
"""Gradient over weight (norms) of a part, against the median part. Fresh models have 0.1 to 25 with these
parts, the shipped one 0.1 to 27 but for q and k of its 32 px level."""
EXPLODING = "exploding: lower optim.lr or optim.clip_grad"
FROZEN = (
    "frozen: let its parameters require gradients; if they do, heal saturated attention or gates first "
    "(model.qk_norm: true)"
)
NUM_CENTRES = 50
"""Centre logits that are summed for the surrogate."""

Parts = Mapping[Place, Sequence[str]]


def check_finite_answer(head: HeadOutput) -> list[Finding]:
    """Any NaN or infinity in what the model answers."""
    bad = [name for name, value in head._asdict().items() if not torch.isfinite(value).all()]
    return [
        stated(
            "finite answer",
            Place(),
            not bad,
            limit="ill where an answer is NaN or infinite",
            detail=f"NaN or infinite values in {', '.join(bad)}"
            if bad
            else "every answer is a finite number",
            remedy="train again with a lower optim.lr or optim.clip_grad, or precision: 32-true",
        )
    ]


def check_margin(traces: Sequence[Trace], stats: Sequence[BlockStats]) -> list[Finding]:
    """How far the largest value on the way is from the largest fp16 number; bf16 has the range of float32."""
    largest = {
        "tokens": [_top(tokens) for trace in traces for tokens in trace.tokens],
        "values": [_top(b.v) for trace in traces for b in trace.blocks],
        "MLP": [b.hidden_top for trace in traces for b in trace.blocks],
        "scores": [stat.score_top for stat in stats],
        "logits": [_top(part) for trace in traces for part in trace.output.head],
    }
    # max() of a list drops a NaN that does not come first.
    tops = {name: math.nan if any(map(math.isnan, v)) else max(v, default=0.0) for name, v in largest.items()}
    name = max(tops, key=lambda key: math.inf if math.isnan(tops[key]) else tops[key])
    top = tops[name]
    return [
        judged(
            "fp16 range",
            Place(),
            FP16_MAX / max(top, 1e-30) if math.isfinite(top) else 0.0,
            MARGIN,
            detail=f"{FP16_MAX:.0f} over the largest value, {top:.3g} in {name}",
            remedy="train and run with precision: bf16-mixed or 32-true, not 16-mixed; model.qk_norm: true "
            "if it is the "
            "scores, more optim.weight_decay if it is tokens",
        )
    ]


@torch.no_grad()
def check_half_precision(model: HierarchicalViT, board: Board, trace: Trace) -> list[Finding]:
    """What fp16 and bf16 autocast change in the scores of one board."""
    whole = trace.output.head.centre_logits.float()
    findings = []
    for name, dtype in (("fp16", torch.float16), ("bf16", torch.bfloat16)):
        with torch.autocast(board.board.device.type, dtype):
            half = model(board.board, board.reference, board.has_reference).head.centre_logits.float()
        change = float((half - whole).square().mean().sqrt())
        findings.append(
            judged(
                "half precision",
                Place(part=f"{name} autocast"),
                float((half.sigmoid() - whole.sigmoid()).abs().max()),
                MOVED,
                detail=f"largest change of a centre score; logits change by {change:.3g} (root mean square)",
                remedy=f"do not run this checkpoint in {name} (precision: 32-true); to train one that "
                "stands it, set "
                "model.qk_norm: true and more optim.weight_decay, which keep values small",
            )
        )
    return findings


def surrogate_gradients(model: HierarchicalViT, board: Board) -> dict[str, Tensor | None]:
    """Gradients of the sum of the board's NUM_CENTRES highest centre logits, by parameter; nothing is left
    behind.

    It stands for the training loss, which the library does not know. None: no gradient came, or it is frozen.
    """
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    empty: dict[str, Tensor | None] = dict.fromkeys(name for name, _ in model.named_parameters())
    if not named:
        return empty
    with torch.enable_grad():
        logits = model(board.board, board.reference, board.has_reference).head.centre_logits.flatten()
        target = logits.topk(min(NUM_CENTRES, len(logits))).values.sum()
        gradients = torch.autograd.grad(target, list(named.values()), allow_unused=True)
    return empty | dict(zip(named, gradients, strict=True))


def check_gradients(
    model: HierarchicalViT, gradients: Mapping[str, Tensor | None], *, source: str
) -> list[Finding]:
    """Every part learns at about the same pace; `source` says what the gradients are of."""
    weights = dict(model.named_parameters())
    pace = {}
    for place, names in parts_of(model).items():
        size = math.sqrt(sum(float(weights[name].detach().double().square().sum()) for name in names))
        found = [gradients.get(name) for name in names]
        slope = math.sqrt(sum(float(g.double().square().sum()) for g in found if g is not None))
        pace[place] = slope / size if size else math.nan
    usual = statistics.median(value if math.isfinite(value) else math.inf for value in pace.values())
    if not usual > 0 or not math.isfinite(usual):
        usual = 1.0
    return [
        judged(
            "gradients",
            place,
            value / usual,
            GRADIENT,
            detail=f"gradient over weight, against the median part ({usual:.3g}); of {source}",
            remedy=EXPLODING if value > usual else FROZEN,
        )
        for place, value in pace.items()
    ]


def parts_of(model: HierarchicalViT) -> Parts:
    """Names of parameters by part: of each level its patches, W_q with W_k (blind when softmax saturates)
    and the rest, then merges, fusions and head."""
    patch = [level.patch_size for level in model.config.levels]
    parts: dict[Place, list[str]] = {}
    for name, _ in model.named_parameters():
        words = name.split(".")
        if words[0] == "embeds":
            place = Place(patch[int(words[1])], part="patches")
        elif words[0] == "levels":
            scores = words[-2] in ("w_q", "w_k", "q_norm", "k_norm")
            place = Place(patch[int(words[1])], part="W_q, W_k" if scores else "blocks")
        else:
            place = Place(part={"refine": "head"}.get(words[0], words[0].split("_")[0]))
        parts.setdefault(place, []).append(name)
    return parts


def _top(x: Tensor) -> float:
    return float(x.abs().max())
