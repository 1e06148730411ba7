"""A whole run: configuration in, checkpoint out. Killed at any moment it goes on where it was."""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from lightning_fabric import Fabric
from torch.utils.data import DataLoader

from inspect_vit.allocator import KEEP_FREED_MEMORY
from inspect_vit.checkpoint import ReferenceMode, read_metadata, round_to_fp16, save_checkpoint
from inspect_vit.console import say
from inspect_vit.errors import ConfigError, ImageError
from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from inspect_vit.model import HierarchicalViT, ModelOutput
from inspect_vit.results import Sample
from inspect_vit.thresholds import choose_thresholds
from training.checkup import CHECKUP_EVERY, Checkup
from training.config import TrainConfig, data_root
from training.curves import plot_curves
from training.data import DefectDataset, fingerprint
from training.loading import draw_pairs, good_boards, load_samples, read_samples
from training.loop import build_model, build_trainee, evaluate, train_steps
from training.metrics import summarise
from training.plain_vit import PlainViT
from training.progress import track
from training.quarantine import note_unreadable, read_notes
from training.state import bf16_is_native, check_state, load_state, save_state

LOG_EVERY = 20
STATE, LOG, CURVES = "state.safetensors", "metrics.jsonl", "curves.png"
UNCALIBRATED = "uncalibrated.safetensors"
"""The model while its thresholds are chosen: under the name of the run it would pass for finished."""
UNREADABLE = "unreadable.jsonl"
"""Pictures that could not be read on the way; another stood in for each."""


def fit(config: TrainConfig, *, out: Path, fresh: bool = False) -> Path:
    """Train, choose thresholds on the validation groups, save and measure.

    Args:
        out: folder of the run: state, log, curves, checkpoint.
        fresh: drop a state that is there instead of going on from it.

    Returns:
        The checkpoint, out/NAME.safetensors.

    Raises:
        ConfigError: a data set that is not there, or a state of another configuration in `out`.
    """
    if config.plain_vit is not None:
        raise ConfigError("plain_vit is the baseline of benchmarks/hierarchy.py and makes no checkpoint")
    if config.ablation is not None:
        raise ConfigError("ablation is for benchmarks/ablations.py and makes no checkpoint")
    return _finish(config, run_training(config, out=out, fresh=fresh), out)


@dataclass(frozen=True)
class TrainingRun:
    """What a run was trained on, how, and how long this time."""

    training: list[Sample]
    validation: list[Sample]
    minutes: float
    precision: str


def run_training(config: TrainConfig, *, out: Path, fresh: bool = False) -> TrainingRun:
    """Train up to the last step and leave the state in `out`. Arguments and errors as `fit`."""
    if config.init_from is not None:
        read_metadata(config.init_from)
    reached = 0 if fresh else check_state(out / STATE, config)
    out.mkdir(parents=True, exist_ok=True)
    draw_pairs(config, out)
    training, validation = load_samples(config, out=out)
    if fresh:
        for name in (STATE, LOG, UNREADABLE):
            (out / name).unlink(missing_ok=True)
    use_gpu = torch.cuda.is_available()
    if use_gpu and config.devices > torch.cuda.device_count():
        raise ConfigError(f"devices is {config.devices}, found {torch.cuda.device_count()} GPUs")
    if not use_gpu:
        for name, value in KEEP_FREED_MEMORY.items():
            os.environ.setdefault(name, value)
    precision = config.precision
    if precision == "auto":
        precision = "bf16-mixed" if bf16_is_native() else "32-true"
    fabric = Fabric(
        accelerator="cuda" if use_gpu else "cpu",
        devices=config.devices,
        strategy="ddp_spawn" if config.devices > 1 else "auto",
        precision=precision,
    )
    start = time.monotonic()
    say(
        f"{len(training)} training and {len(validation)} validation pictures; {config.devices} x "
        f"{'GPU' if use_gpu else 'CPU'}, {precision}"
    )
    if reached:
        say(f"going on from step {reached} of {_total_steps(config, len(training))}")
    fabric.launch(cast(Any, _train), config, out)
    return TrainingRun(training, validation, (time.monotonic() - start) / 60, precision)


def averaged_model(config: TrainConfig, *, out: Path) -> HierarchicalViT | PlainViT:
    """The network of a run with the averaged weights (EMA) of the state in `out`, in evaluation mode."""
    trainee = build_trainee(config, total_steps=1)
    load_state(out / STATE, trainee, config)
    model = build_model(config.model_copy(update={"init_from": None}))
    model.load_state_dict(_plain_names(trainee.ema.module.state_dict()))
    return model.eval()


def _train(fabric: Fabric, config: TrainConfig, out: Path) -> None:
    """The work of one training process."""
    samples, _ = load_samples(config, out=out)
    if fabric.device.type == "cpu":
        torch.set_num_threads(max((os.cpu_count() or 1) // fabric.world_size, 1))
    total_steps = _total_steps(config, len(samples))
    trainee = build_trainee(config, total_steps=total_steps)
    trainee.model.to(fabric.device)
    trainee.ema.to(fabric.device)
    if (out / STATE).exists():
        load_state(out / STATE, trainee, config)
    forward, optimizer = fabric.setup(trainee.model, trainee.optimizer)
    dataset = DefectDataset(
        samples, config, total_crops=total_steps * config.batch_size, notes=out / UNREADABLE
    )
    share = config.batch_size // fabric.world_size
    first = fabric.global_rank * share
    order = [
        list(range(step * config.batch_size + first, step * config.batch_size + first + share))
        for step in range(trainee.step, total_steps)
    ]
    loader = fabric.setup_dataloaders(
        DataLoader(dataset, batch_sampler=order, num_workers=config.data.workers, pin_memory=False),
        use_distributed_sampler=False,
    )
    lead = fabric.is_global_zero
    log = _Log(out / LOG, trainee.step) if lead else None

    checkup, is_whole = Checkup(), config.ablation is None

    def after_step(terms: dict[str, float], output: ModelOutput) -> None:
        if log is not None:
            log.add(trainee.step, terms)
            if trainee.step % CHECKUP_EVERY == 0 and is_whole and isinstance(trainee.model, HierarchicalViT):
                checkup.look(trainee.model, output, step=trainee.step)
            if trainee.step % config.save_every_steps == 0 or trainee.step == total_steps:
                save_state(out / STATE, trainee, config)

    batches: Any = track(loader, total=len(order), label="train") if lead and order else loader
    train_steps(trainee, batches, config, fabric, forward, cast(Any, optimizer), after_step=after_step)
    if log is not None:
        log.close()
    fabric.barrier()


class _Log:
    """Owns the JSON-lines file: the mean of the terms over LOG_EVERY steps, one line each."""

    def __init__(self, path: Path, step: int) -> None:
        lines = [line for line in _log_lines(path) if line["step"] <= step]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        self.file = path.open("a", encoding="utf-8")
        self.terms: list[dict[str, float]] = []

    def add(self, step: int, terms: dict[str, float]) -> None:
        self.terms.append(terms)
        if step % LOG_EVERY == 0:
            means = {key: sum(t[key] for t in self.terms) / len(self.terms) for key in terms}
            self.file.write(
                json.dumps({"step": step} | {k: float(f"{v:.5g}") for k, v in means.items()}) + "\n"
            )
            self.file.flush()
            self.terms = []

    def close(self) -> None:
        self.file.close()


def _log_lines(path: Path) -> Iterator[dict[str, float]]:
    if path.exists():
        for text in path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(text)
            except json.JSONDecodeError:  # the line that a kill cut off
                return


def _finish(config: TrainConfig, run: TrainingRun, out: Path) -> Path:
    """EMA weights as fp16, thresholds from the validation groups, the checkpoint and its figures."""
    training = run.training
    validation = [sample for sample in run.validation if _is_readable(sample, out / UNREADABLE)]
    if not validation:
        raise ConfigError(f"no validation picture can be read; see {out / UNREADABLE}")
    left_out = read_samples(config, out=out)[1] | read_notes(out / UNREADABLE)
    named = {_shown(image, data_root(config.data)): reason for image, reason in left_out.items()}
    model = averaged_model(config, out=out)
    assert isinstance(model, HierarchicalViT)
    round_to_fp16(model)
    path = out / f"{config.name}.safetensors"
    names = config.model.class_names
    record = {
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "config": config.model_dump(mode="json"),
        "minutes_of_this_run": round(run.minutes, 1),
        "precision": run.precision,
        "pictures": {"training": len(training), "validation": len(validation)},
    } | ({"left_out": named} if named else {})
    if config.init_from is not None:
        start = read_metadata(config.init_from)
        record["started_from"] = {"name": start.name, "version": start.version}
    common: dict[str, Any] = {
        "name": config.name,
        "needs_reference": config.needs_reference,
        "data_fingerprint": fingerprint(training),
        "git_revision": git_revision(),
    }
    modes: tuple[ReferenceMode, ReferenceMode] = ("with_reference", "without_reference")
    thresholds: dict[ReferenceMode, dict[str, float]] = {mode: dict.fromkeys(names, 0.5) for mode in modes}
    uncalibrated = out / UNCALIBRATED
    save_checkpoint(uncalibrated, model, thresholds=thresholds, training=record, **common)
    inspector = Inspector(uncalibrated)
    uncalibrated.unlink()
    figures = {}
    for mode in modes[:1] if config.needs_reference else modes:
        boards = validation if mode == "with_reference" else validation + good_boards(validation)
        found = evaluate(inspector, boards, with_reference=mode == "with_reference", label=f"validate {mode}")
        thresholds[mode] = choose_thresholds(*found, names)
        figures[mode] = _headline(summarise(*found, names, thresholds=thresholds[mode]))
    save_checkpoint(path, model, thresholds=thresholds, training=record | {"validation": figures}, **common)
    plot_curves(out / LOG, out / CURVES)
    say(json.dumps(figures, indent=2))
    if named:
        lines = "".join(f"\n  {image}: {reason}" for image, reason in named.items())
        say(f"left out {len(named)} pictures:{lines}")
    return path


def _is_readable(sample: Sample, notes: Path) -> bool:
    try:
        for path in (sample.image, sample.reference):
            if path is not None:
                read_image(path)
    except ImageError as error:
        note_unreadable(notes, sample.image, str(error))
        return False
    return True


def _shown(image: Path, root: Path) -> str:
    """The path inside the data set: a checkpoint travels, folders of a machine do not."""
    root = root.resolve()
    return image.relative_to(root).as_posix() if image.is_relative_to(root) else image.name


def _headline(report: dict[str, Any]) -> dict[str, float]:
    return {
        "ap_shipped": round(report["shipped"]["ap"], 4),
        "f_deployed": round(report["shipped"]["deployed"]["f_score"], 4),
        "mean_ap_same_class": round(report["same_class"]["mean_ap"], 4),
    }


def _plain_names(state: dict[str, Any]) -> dict[str, Any]:
    """Names without the wrapper that recomputing activations adds."""
    return {key.replace("_checkpoint_wrapped_module.", ""): value for key, value in state.items()}


def _total_steps(config: TrainConfig, num_samples: int) -> int:
    crops = num_samples * config.data.crops_per_image * config.epochs
    return max(math.ceil(crops / config.batch_size), 1)


def git_revision() -> str:
    """Of the source, or "" outside a git checkout."""
    try:
        root = Path(__file__).resolve().parent
        run = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return run.stdout.strip()
