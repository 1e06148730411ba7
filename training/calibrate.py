"""Calibrate a checkpoint: inspect labelled boards and choose thresholds that keep the targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Unpack

import numpy as np

from inspect_vit.board_evidence import gather
from inspect_vit.calibration import Calibration, FoundBy, Mode, Target, Unit, save_calibration
from inspect_vit.checkpoint import CheckpointMetadata
from inspect_vit.config import AttentionBackend
from inspect_vit.errors import ConfigError
from inspect_vit.guarantee import Choice, choose
from inspect_vit.inspector import Inspector
from inspect_vit.matching import IOU_ABOVE
from inspect_vit.results import Sample
from training.calibration_plot import draw_calibration
from training.evaluate import MIN_SCORE, evenly, inspect_all, paired_alone, truths_of
from training.measured_set import MeasuredSet, ReadOptions, known_class, read_measured_set
from training.poses import passes


@dataclass(frozen=True)
class Calibrated:
    """The document, and the files that were written."""

    calibration: Calibration
    written: tuple[Path, Path]


def calibrate(
    checkpoint: Path,
    data: Path,
    *,
    targets: Sequence[Target],
    out: Path,
    with_reference: bool | None = None,
    unit: Unit = "group",
    found_by: FoundBy = "own class",
    recipe: str | None = None,
    camera: str | None = None,
    limit: int | None = None,
    device: str = "auto",
    attention_backend: AttentionBackend = "auto",
    **reading: Unpack[ReadOptions],
) -> Calibrated:
    """Write a calibration and, beside it, the plot of misses against false calls. One inspection a picture.

    Args:
        data: labelled boards that the model was not trained on, as evaluate_checkpoint takes them.
        with_reference: the mode; None: with, where every picture has its reference.
        unit: what one board is. Pictures of one board must never count as several.
        limit: inspect this many pictures, evenly spaced, instead of all.
        reading: how the set is read.

    Raises:
        ConfigError: no target, a class that is unknown, unreadable data, or a mode that cannot be.
    """
    inspector = Inspector(checkpoint, device=device, attention_backend=attention_backend)
    metadata = inspector.metadata
    names = metadata.model.class_names
    targets = known_targets(targets, names)
    measured = read_measured_set(data, names, **reading)
    if limit is not None:
        measured = replace(measured, samples=evenly(measured.samples, limit))
    measured, mode = _mode_of(measured, metadata.name, with_reference, metadata.needs_reference)
    own = np.array([metadata.thresholds[mode][name] for name in names])
    samples, pose = passes(
        measured, shifts=(), turns=(), seed=0, alone=mode == "without_reference", as_posted=False
    )[mode]
    lowest = min(MIN_SCORE, float(own.min()))
    run = inspect_all(inspector, samples, pose, label="calibrating", min_score=lowest)
    index = {name: label for label, name in enumerate(names)}
    kept = np.flatnonzero(~run.errors).tolist()
    if not len(kept):
        raise ConfigError(f"none of the {len(samples)} pictures could be inspected: all have verdict ERROR")
    evidence = gather(
        [run.detections[i] for i in kept],
        [truths_of(samples[i], index) for i in kept],
        [_board(samples[i], unit) for i in kept],
        len(names),
        lowest_score=lowest,
    )
    choice = choose(evidence, names, own, targets, found_by=found_by)
    calibration = as_document(
        choice,
        metadata,
        mode,
        recipe=recipe,
        camera=camera,
        data=f"{measured.name}, {measured.split}",
        data_fingerprint=measured.fingerprint,
        unit=unit,
        num_pictures=len(kept),
        num_boards=evidence.num_boards,
        not_inspected=int(run.errors.sum()),
        found_by=found_by,
    )
    save_calibration(out, calibration)
    plot = out.with_suffix(".png")
    draw_calibration(calibration, evidence, own, plot)
    return Calibrated(calibration, (out, plot))


def as_document(
    choice: Choice,
    metadata: CheckpointMetadata,
    mode: Mode,
    *,
    recipe: str | None,
    camera: str | None,
    data: str,
    data_fingerprint: str,
    unit: Unit,
    num_pictures: int,
    num_boards: int,
    not_inspected: int,
    found_by: FoundBy,
) -> Calibration:
    """The thresholds chosen, and everything on which they depend, as of now."""
    return Calibration(
        model_name=metadata.name,
        model_version=metadata.version,
        reference_mode=mode,
        recipe=recipe or None,
        camera=camera or None,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        data=data,
        data_fingerprint=data_fingerprint,
        unit=unit,
        num_pictures=num_pictures,
        num_boards=num_boards,
        not_inspected=not_inspected,
        found_by=found_by,
        min_iou=IOU_ABOVE,
        thresholds=dict(zip(metadata.model.class_names, choice.thresholds.tolist(), strict=True)),
        claims=choice.claims,
        joint_confidence=choice.joint_confidence,
        classes=choice.classes,
        false_calls=choice.false_calls,
    )


def _mode_of(
    measured: MeasuredSet, model: str, with_reference: bool | None, needs_reference: bool
) -> tuple[MeasuredSet, Mode]:
    """The pictures that can be inspected in the mode asked for, and the mode."""
    if with_reference is False and needs_reference:
        raise ConfigError(f"{model} inspects only against a golden reference; leave out --no-reference")
    if with_reference or needs_reference:
        return paired_alone(measured, model), "with_reference"
    if with_reference is None and measured.has_references:
        return measured, "with_reference"
    return measured, "without_reference"


def _board(sample: Sample, unit: Unit) -> object:
    """A picture that is listed twice is one board."""
    return ("group", sample.group) if unit == "group" and sample.group else ("picture", sample.image)


def known_targets(targets: Sequence[Target], class_names: Sequence[str]) -> list[Target]:
    """The targets with their classes as the checkpoint spells them.

    Raises:
        ConfigError: none, two of one class, or a class that the checkpoint does not know.
    """
    named = [_named(target, class_names) for target in targets]
    if len({target.label for target in named}) < len(named) or not named:
        raise ConfigError(f"{len(named)} targets; wanted one or more, and not two of one class")
    return named


def _named(target: Target, class_names: Sequence[str]) -> Target:
    """The target with the class as the checkpoint spells it."""
    if target.label is None:
        return target
    name = known_class(target.label, class_names)
    if name is None:
        raise ConfigError(
            f"target class {target.label!r} is unknown; the checkpoint knows {', '.join(class_names)}"
        )
    return target.model_copy(update={"label": name})
