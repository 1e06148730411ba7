"""The steps of learning a new class; writes no files but the state it resumes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from timm.scheduler import CosineLRScheduler
from torch import Tensor, nn
from torch.nn import functional

from inspect_vit.errors import CheckpointError, ConfigError
from inspect_vit.files import write_atomically
from inspect_vit.model import HierarchicalViT, ModelOutput
from training.distill import Columns, as_output, learning_loss
from training.incremental_config import IncrementalConfig, Part
from training.pools import Pool
from training.state import bf16_is_native

AfterStep = Callable[[int, dict[str, float]], None]


@dataclass(frozen=True)
class Share:
    """A pool and how many crops of it are in every batch."""

    pool: Pool
    count: int


@dataclass
class Learner:
    """Everything that changes while learning."""

    model: HierarchicalViT
    optimizer: torch.optim.Optimizer
    scheduler: CosineLRScheduler
    fixed: list[tuple[Tensor, Tensor, Tensor]]
    """Parameters, where they stay as they are (bool), and what they are."""
    step: int = 0


def taught_modules(model: HierarchicalViT, part: Part) -> list[nn.Module]:
    """What is trained, from the head back."""
    behind: list[nn.Module] = [model.head]
    if part in ("branch", "head"):
        return behind
    behind.append(model.refine)
    if part == "refine":
        return behind
    behind += [model.fuse4, model.fuse16]
    if part == "fusion":
        return behind
    behind += [model.levels[2], model.merge_middle]
    if part == "last-level":
        return behind
    return [*behind, *model.levels[:2], model.merge_fine, *model.embeds]


def build_learner(
    model: HierarchicalViT, config: IncrementalConfig, *, old: HierarchicalViT, kept: Sequence[int]
) -> Learner:
    """AdamW, cosine schedule, warm-up. What lies before `refine` learns at `encoder_lr` of the rate.

    kept: the model's classes that the old one has.
    """
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    modules = taught_modules(model, config.part)
    for module in modules:
        for parameter in module.parameters():
            parameter.requires_grad_(True)
    optim = config.optim
    groups = []
    for part, rate in ((modules[:2], 1.0), (modules[2:], config.encoder_lr)):
        decayed = [p for module in part for p in module.parameters() if p.ndim > 1]
        others = [p for module in part for p in module.parameters() if p.ndim <= 1]
        for parameters, decay in ((decayed, optim.weight_decay), (others, 0.0)):
            if parameters:
                groups.append({"params": parameters, "lr": optim.lr * rate, "weight_decay": decay})
    optimizer = torch.optim.AdamW(groups)
    scheduler = CosineLRScheduler(
        optimizer,
        t_initial=config.steps,
        lr_min=optim.min_lr,
        warmup_t=min(optim.warmup_steps, config.steps // 2),
        warmup_lr_init=optim.lr / 100,
        warmup_prefix=False,
        t_in_epochs=False,
    )
    fixed = _fixed(model, old.config.head_width, kept) if config.part == "branch" else []
    return Learner(model, optimizer, scheduler, fixed)


def _fixed(model: HierarchicalViT, width: int, kept: Sequence[int]) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Old channels of the trunk and what old rows read of them: side-tuning (Zhang et al. 2020) of a head."""
    head = model.head
    conv, out = head.trunk[0], head.out
    assert isinstance(conv, nn.Conv2d) and conv.bias is not None and out.bias is not None
    num = head.num_classes
    rows = [*kept, *range(num, num + 4), *(num + 4 + label for label in kept)]
    stays = [torch.zeros_like(p, dtype=torch.bool) for p in (conv.weight, conv.bias, out.weight, out.bias)]
    stays[0][:width], stays[1][:width], stays[3][rows] = True, True, True
    stays[2][rows, :width] = True
    parameters = (conv.weight, conv.bias, out.weight, out.bias)
    return [(p, mask, p.detach().clone()) for p, mask in zip(parameters, stays, strict=True)]


def learn(
    learner: Learner,
    old: HierarchicalViT,
    shares: Sequence[Share],
    columns: Columns,
    config: IncrementalConfig,
    *,
    after_step: AfterStep,
) -> None:
    """Run the steps that are left. Which crops a step sees is a function of the seed and the step alone.

    The network stays in evaluation mode: dropped attention would part the learner from what it is held to.

    Args:
        after_step: gets the number of steps done and the terms of the last one.
    """
    model = learner.model.eval()
    parameters = [p for p in model.parameters() if p.requires_grad]
    while learner.step < config.steps:
        learner.scheduler.step_update(learner.step)
        batch = draw_batch(shares, np.random.default_rng((config.seed, learner.step, 3)))
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16_is_native()):
            now, before = answers(model, old, batch, config)
        terms = learning_loss(now, before, batch, columns, config)
        if not torch.isfinite(terms["loss"]):
            raise ConfigError(
                f"the loss is {terms['loss'].item()} at step {learner.step}; lower it with --set optim.lr="
                f"{config.optim.lr / 3:.1g}"
            )
        learner.optimizer.zero_grad(set_to_none=True)
        terms["loss"].backward()
        norm = nn.utils.clip_grad_norm_(parameters, config.optim.clip_grad)
        learner.optimizer.step()
        with torch.no_grad():
            for parameter, mask, value in learner.fixed:
                parameter.copy_(torch.where(mask, value, parameter))
        learner.step += 1
        shown = {key: float(value.detach()) for key, value in terms.items()}
        rate = float(learner.optimizer.param_groups[0]["lr"])
        after_step(learner.step, shown | {"lr": rate, "grad_norm": float(norm)})


def draw_batch(shares: Sequence[Share], rng: np.random.Generator) -> dict[str, Tensor]:
    """Crops of every pool in their shares, and "complete" (B,)."""
    parts = [
        share.pool.take(rng.integers(len(share.pool), size=share.count).tolist())
        | {"complete": torch.full((share.count,), float(share.pool.is_complete))}
        for share in shares
    ]
    return {key: torch.cat([part[key] for part in parts]) for key in parts[0]}


def answers(
    model: HierarchicalViT, old: HierarchicalViT, batch: dict[str, Tensor], config: IncrementalConfig
) -> tuple[ModelOutput, ModelOutput | None]:
    """What the learner says of a batch, and what the old model says where that is held."""
    if config.part == "branch":
        now, before = branch_answers(model, old, batch["fused"])
        return now, before if config.protect else None
    if not config.protect:
        return answer(model, batch), None
    with torch.no_grad():
        before = answer(old, batch)
    return answer(model, batch), before


def branch_answers(
    model: HierarchicalViT, old: HierarchicalViT, fused: Tensor
) -> tuple[ModelOutput, ModelOutput]:
    """With a branch both read the same old channels: these are computed once, and no gradient goes there."""
    with torch.no_grad():
        refined = old.refine(fused)
        channels = old.head.trunk(refined)
        before = old.head.read(channels)
    conv, act = model.head.trunk
    assert isinstance(conv, nn.Conv2d) and conv.bias is not None
    width = old.config.head_width
    added = act(functional.conv2d(refined, conv.weight[width:], conv.bias[width:], padding=conv.padding))
    # A slice of the gradient of `cat` takes the slow way through the backward pass of GELU.
    added.register_hook(lambda gradient: gradient.contiguous(memory_format=torch.channels_last))
    return as_output(model.head.read(torch.cat([channels, added], 1))), as_output(before)


def answer(model: HierarchicalViT, batch: dict[str, Tensor]) -> ModelOutput:
    """What a model says of a batch of features or pictures."""
    if "fused" in batch:
        return as_output(model.head(model.refine(batch["fused"])))
    output: ModelOutput = model(batch["board"], batch["reference"], batch["has_reference"])
    return output


def save_learner(path: Path, learner: Learner, *, seconds: float) -> None:
    """Write the state atomically. `seconds`: time spent so far."""
    tensors = {f"model.{name}": value for name, value in learner.model.state_dict().items()}
    for index, moments in learner.optimizer.state_dict()["state"].items():
        tensors |= {f"optim.{index}.{name}": value for name, value in moments.items()}
    data = {name: value.detach().contiguous().cpu() for name, value in tensors.items()}
    write_atomically(path, save(data, metadata={"step": str(learner.step), "seconds": str(seconds)}))


def load_learner(path: Path, learner: Learner) -> float:
    """Restore what `save_learner` wrote, where there is something; returns the seconds spent until then.

    Raises:
        CheckpointError: the file is damaged.
    """
    if not path.exists():
        return 0.0
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot resume from {path}: {error}; remove it to start over") from error
    prefix = "model."
    learner.model.load_state_dict(
        {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    )
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("optim."):
            _, index, entry = name.split(".", 2)
            moments.setdefault(int(index), {})[entry] = value
    groups = learner.optimizer.state_dict()["param_groups"]
    learner.optimizer.load_state_dict({"state": moments, "param_groups": groups})
    learner.step = int(metadata["step"])
    return float(metadata["seconds"])
