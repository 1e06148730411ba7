"""One training step after another, and the evaluation of a model on whole pictures; writes no files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from lightning_fabric import Fabric
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils.model_ema import ModelEmaV3
from torch import Tensor, nn

from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from inspect_vit.matching import Detections, Truths, as_detections, leave_out_ignored
from inspect_vit.model import HierarchicalViT, ModelOutput
from inspect_vit.results import Sample
from training.ablated import ablate
from training.config import TrainConfig
from training.losses import total_loss
from training.plain_vit import PlainViT
from training.progress import track
from training.warm_start import start_from

LOWEST_SCORE = 0.02


@dataclass
class Trainee:
    """Everything that changes while training; `fit` saves and restores it."""

    model: HierarchicalViT | PlainViT
    optimizer: torch.optim.Optimizer
    scheduler: CosineLRScheduler
    ema: ModelEmaV3
    step: int = 0


def build_trainee(config: TrainConfig, *, total_steps: int) -> Trainee:
    """Weights by seed or checkpoint, AdamW with decay on weights only, cosine schedule, warm-up, EMA."""
    torch.manual_seed(config.seed)
    model = build_model(config).to(memory_format=torch.channels_last)
    if config.checkpoint_activations:
        _recompute_activations(model)
    optim = config.optim
    optimizer = create_optimizer_v2(model, opt="adamw", lr=optim.lr, weight_decay=optim.weight_decay)
    scheduler = CosineLRScheduler(
        optimizer,
        t_initial=total_steps,
        lr_min=optim.min_lr,
        warmup_t=min(optim.warmup_steps, total_steps // 2),
        warmup_lr_init=optim.lr / 100,
        warmup_prefix=False,
        t_in_epochs=False,
    )
    return Trainee(model, optimizer, scheduler, ModelEmaV3(model, decay=optim.ema_decay, use_warmup=True))


def build_model(config: TrainConfig) -> HierarchicalViT | PlainViT:
    """The network of a run before its first step; with `init_from` that of the checkpoint."""
    if config.plain_vit is not None:
        return PlainViT(config.model, embed_dim=config.plain_vit.embed_dim, depth=config.plain_vit.depth)
    model = HierarchicalViT(config.model)
    if config.init_from is not None:
        start_from(model, config.init_from)
    if config.ablation is not None:
        ablate(model, config.ablation)
    return model


def _recompute_activations(model: nn.Module) -> None:
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing

    from inspect_vit.layers import Block

    apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, Block))


def train_steps(
    trainee: Trainee,
    batches: Iterable[dict[str, Tensor]],
    config: TrainConfig,
    fabric: Fabric,
    forward: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    after_step: Callable[[dict[str, float], ModelOutput], None],
) -> None:
    """Train on each batch in turn.

    Every step starts from a seed of its own: a run that goes on from step n draws what an unbroken one does.

    Args:
        forward, optimizer: the model and optimiser as Fabric wrapped them.
        after_step: gets the loss terms, learning rate and gradient norm of the step just done, and what
            the model had answered; the gradients are still there.
    """
    for batch in batches:
        torch.manual_seed((config.seed * 1_000_003 + trainee.step) * fabric.world_size + fabric.global_rank)
        trainee.scheduler.step_update(trainee.step)
        forward.train()
        output = forward(batch["board"], batch["reference"], batch["has_reference"])
        terms = total_loss(output.head, batch, config.loss)
        if not torch.isfinite(terms["loss"]):
            raise FloatingPointError(
                f"the loss is {terms['loss'].item()} at step {trainee.step}; lower optim.lr"
            )
        optimizer.zero_grad(set_to_none=True)
        fabric.backward(terms["loss"])
        norm = fabric.clip_gradients(
            forward, optimizer, max_norm=config.optim.clip_grad, error_if_nonfinite=False
        )
        optimizer.step()
        trainee.step += 1
        trainee.ema.update(trainee.model, step=trainee.step)
        after_step(
            {key: float(value.detach()) for key, value in terms.items()}
            | {"lr": trainee.optimizer.param_groups[0]["lr"], "grad_norm": float(norm)},  # type: ignore[arg-type]
            output,
        )


def evaluate(
    inspector: Inspector, samples: Sequence[Sample], *, with_reference: bool, label: str
) -> tuple[list[Detections], list[Truths]]:
    """Inspect whole pictures; all calls from LOWEST_SCORE up, for the metrics. Ignored boxes do not count."""
    names = inspector.metadata.model.class_names
    detections, truths = [], []
    for sample in track(samples, total=len(samples), label=label):
        board = read_image(sample.image)[0]
        reference = read_image(sample.reference)[0] if with_reference and sample.reference else None
        counted = np.flatnonzero(~sample.is_ignored)
        labels = np.array([names.index(sample.labels[i]) for i in counted], np.int64)
        truths.append(Truths(sample.boxes[counted], labels))
        found = as_detections(inspector.inspect(board, reference=reference, min_score=LOWEST_SCORE))
        detections.append(leave_out_ignored(found, truths[-1], sample.boxes[sample.is_ignored]))
    return detections, truths
