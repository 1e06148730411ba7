"""The samples of a training run: read, drawn where there are only good boards, quarantined, parted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from inspect_vit.console import say
from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from training.config import TrainConfig, data_root
from training.formats.dataset import DataSet
from training.formats.deeppcb import read_deeppcb
from training.formats.references import parse_groups, parse_references
from training.formats.registry import read_dataset
from training.formats.splits import split_as_stated, split_by_group
from training.pairs import DefectPlan
from training.quarantine import leave_out, read_quarantine
from training.synthesise import synthesise

PAIRS = "pairs"
"""Folder inside a run's, for pairs drawn from good boards."""
MAX_NAMED = 10


def draw_pairs(config: TrainConfig, out: Path) -> None:
    """For data.format good: draw defects into the good boards, once; a stopped run goes on.

    Raises:
        ConfigError, ImageError: no folder, or no picture in it in which copper is found.
    """
    if config.data.format != "good":
        return
    root, data = data_root(config.data), config.data
    plan = DefectPlan(kinds=dict.fromkeys(config.model.class_names, 1.0))
    say(f"drawing {data.drawn_pairs} pairs with defects from the good boards in {root}")
    made = synthesise(
        out / PAIRS, count=data.drawn_pairs, source=root, size=data.drawn_size, seed=config.seed, plan=plan
    )
    for line in made.refused[:MAX_NAMED]:
        say(f"left out {line}")


def load_samples(config: TrainConfig, *, out: Path) -> tuple[list[Sample], list[Sample]]:
    """(training, validation) samples, parted by board group; what is in quarantine is in neither.

    Sets of `data.also` are learnt from whole.

    Args:
        out: folder of the run, where `draw_pairs` wrote.
    """
    samples, _ = read_samples(config, out=out)
    data = config.data
    if not data.val_groups and data.val_share is None:
        training, validation = split_as_stated(samples)
    else:
        training, validation = split_by_group(
            samples, groups=data.val_groups, fraction=data.val_share, seed=config.seed
        )
    return [*training[: data.limit], *_also(config)], validation[: data.limit]


def read_samples(config: TrainConfig, *, out: Path) -> tuple[list[Sample], dict[Path, str]]:
    """(samples, picture -> reason of those left out by the quarantine list).

    Raises:
        ConfigError: nothing to read, or a class that the model does not have.
    """
    data = config.data
    if data.format == "deeppcb":
        samples = read_deeppcb(data_root(data), "trainval")
    else:
        found = read_dataset(
            out / PAIRS if data.format == "good" else data_root(data),
            format="coco" if data.format == "good" else data.format,
            references=None if data.references is None else parse_references(data.references),
            groups=None if data.groups is None else parse_groups(data.groups),
        )
        _tell_faults(found)
        samples = list(found.samples)
    _check_classes(samples, config)
    reasons = read_quarantine(data.quarantine) if data.quarantine else {}
    kept, left_out = leave_out(samples, reasons)
    if reasons and not left_out:
        raise ConfigError(
            f"none of the {len(reasons)} pictures that {data.quarantine} names is in the set; "
            "was the set moved? run inspect-vit data check again"
        )
    return kept, left_out


def _also(config: TrainConfig) -> list[Sample]:
    samples: list[Sample] = []
    for root in config.data.also:
        found = read_dataset(root)
        _tell_faults(found)
        _check_classes(found.samples, config)
        samples += found.samples
    return samples


def _tell_faults(found: DataSet) -> None:
    for fault in found.faults[:MAX_NAMED]:
        say(f"{fault.where}: {fault.message}")
    if len(found.faults) > MAX_NAMED:
        say(f"... and {len(found.faults) - MAX_NAMED} more faults; inspect-vit data check lists them")


def good_boards(samples: Sequence[Sample]) -> list[Sample]:
    """The golden references as boards of their own, without a reference: every call on them is false."""
    return [
        Sample(sample.reference, np.zeros((0, 4), np.float32), (), group=sample.group, origin=sample.origin)
        for sample in samples
        if sample.reference is not None
    ]


def _check_classes(samples: Sequence[Sample], config: TrainConfig) -> None:
    known = set(config.model.class_names)
    for sample in samples:
        for label, is_ignored in zip(sample.labels, sample.is_ignored, strict=True):
            if not is_ignored and label not in known:
                raise ConfigError(
                    f"{sample.origin}: class {label!r} is none of model.class_names, "
                    f"{', '.join(config.model.class_names)}; add it there, or rename it in the labels"
                )
