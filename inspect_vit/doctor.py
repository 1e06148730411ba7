"""Health checks of a model's attention, each with a value, a limit, a verdict and a remedy.

Every check is a function in a `doctor_*.py` beside this file; its docstring and those of its limits say
what is measured, what fresh and shipped models show, and why the limit stands where it does. A limit is
not moved so that a checkpoint is well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from inspect_vit.doctor_attention import (
    check_backends,
    check_duplicates,
    check_masks,
    check_scores,
    check_weights,
)
from inspect_vit.doctor_findings import Finding, Health, Place, skipped, worst
from inspect_vit.doctor_heads import check_dead_heads, check_removal
from inspect_vit.doctor_maps import (
    check_gates,
    check_level_shares,
    check_outlier_tokens,
    check_patterns,
    check_positions,
)
from inspect_vit.doctor_numbers import (
    check_finite_answer,
    check_gradients,
    check_half_precision,
    check_margin,
    surrogate_gradients,
)
from inspect_vit.doctor_stats import BlockStats, block_stats
from inspect_vit.doctor_trace import Board, Trace, trace_board
from inspect_vit.doctor_weights import (
    check_finite_weights,
    check_output_projections,
    check_projection_rows,
    check_projection_spread,
    check_sizes,
)
from inspect_vit.errors import ConfigError
from inspect_vit.model import HierarchicalViT, ModelOutput

ON_BOARDS = (
    "masks",
    "score spread",
    "attention entropy",
    "top-1 weight",
    "saturated rows",
    "duplicate heads",
    "dead heads",
    "removing a head",
    "level share",
    "gate saturation",
    "gate spread",
    "patch pattern",
    "outlier tokens",
    "position code",
    "finite answer",
    "fp16 range",
    "half precision",
    "gradients",
    "backends",
)
"""Checks that need pictures, in the order of the report."""


@dataclass(frozen=True)
class Examination:
    """Everything found on one model; `stats` and `traces` are what the page draws."""

    findings: tuple[Finding, ...]
    stats: tuple[BlockStats, ...]
    traces: tuple[Trace, ...]

    @property
    def health(self) -> Health:
        return worst(self.findings)

    def by_check(self) -> dict[str, list[Finding]]:
        """In the order in which they were made."""
        groups: dict[str, list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault(finding.check, []).append(finding)
        return groups

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON, all finite."""
        counts = {str(h): sum(finding.health is h for finding in self.findings) for h in Health}
        return {
            "verdict": str(self.health),
            "counts": counts,
            "findings": [finding.as_json() for finding in self.findings],
        }


def examine(model: HierarchicalViT, boards: Sequence[Board]) -> Examination:
    """Make every check; the model is left as it was, in evaluation mode.

    It costs one forward pass per board and head, one backward pass, and two passes in half precision.

    Raises:
        ConfigError: no board is given.
    """
    if not boards:
        raise ConfigError("the doctor needs at least one board; name a folder with pictures by --data")
    model.eval()
    findings = check_weights_alone(model)
    if any(finding.health is Health.ILL for finding in check_finite_weights(model)):
        reason = "weights are not finite, so nothing that is computed with them means anything"
        return Examination((*findings, *(skipped(name, Place(), reason) for name in ON_BOARDS)), (), ())
    traces = [trace_board(model, board) for board in boards]
    stats = block_stats(model, traces)
    gradients = surrogate_gradients(model, boards[0])
    findings += [
        *check_masks(model, traces, stats),
        *check_scores(stats),
        *check_weights(model, stats),
        *check_duplicates(model, stats),
        *check_dead_heads(model, stats),
        *check_removal(model, boards, traces),
        *check_level_shares(model.config, [trace.output.gate_shares for trace in traces]),
        *check_gates(model.config, traces),
        *check_patterns(model.config, traces),
        *check_outlier_tokens(model.config, traces),
        *check_positions(model, traces),
        *check_finite_answer(traces[0].output.head),
        *check_margin(traces, stats),
        *check_half_precision(model, boards[0], traces[0]),
        *check_gradients(model, gradients, source="the summed highest centre logits of one board"),
        *check_backends(model, traces),
    ]
    return Examination(tuple(findings), tuple(stats), tuple(traces))


def check_weights_alone(model: HierarchicalViT) -> list[Finding]:
    """The checks that need no picture."""
    return [
        *check_finite_weights(model),
        *check_projection_spread(model),
        *check_projection_rows(model),
        *check_output_projections(model),
        *check_sizes(model.config),
    ]


@torch.no_grad()
def quick_checks(model: HierarchicalViT, output: ModelOutput) -> list[Finding]:
    """The cheap ones for a training loop: weights, answer, level shares and, after a backward pass,
    gradients.

    Args:
        output: what the model answered to the last batch.
    """
    gradients = {name: p.grad for name, p in model.named_parameters()}
    reached = any(gradient is not None for gradient in gradients.values())
    return [
        *check_weights_alone(model),
        *check_finite_answer(output.head),
        *check_level_shares(model.config, [output.gate_shares]),
        *(check_gradients(model, gradients, source="the last backward pass") if reached else []),
    ]
