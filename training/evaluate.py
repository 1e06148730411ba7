"""Inspect a whole split with one checkpoint, as a customer's pictures would be, and report on it.

Pictures are read one by one. Every pass over the split is kept on disk when it is done, so that an evaluation
that was interrupted goes on with the next one; the detections stay beside the report.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from inspect_vit.config import AttentionBackend
from inspect_vit.console import say
from inspect_vit.errors import ConfigError
from inspect_vit.inspector import Inspector
from inspect_vit.matching import Truths, as_detections, leave_out_ignored
from inspect_vit.registration_checks import MAX_TURN_DEGREES
from inspect_vit.results import Sample, Verdict
from training.locking import held
from training.measured_set import MeasuredSet, ReadOptions, read_measured_set
from training.poses import Pose, passes, read_picture
from training.progress import track
from training.protocols import build_report
from training.record import Record, Run, load_record, save_record
from training.report import write_report
from training.true_size import UNKNOWN_SIZE, true_size_px

MIN_SCORE = 0.02
"""Calls are listed from this score on: low enough for the whole precision-recall curve."""
RECORD_NAME = "detections.npz"
MAX_NAMED = 5
_PARTIAL_NAME = "detections.partial.npz"


def evaluate_checkpoint(
    checkpoint: Path,
    data: Path,
    *,
    out: Path,
    limit: int | None = None,
    shifts: Sequence[int] = (),
    turns: Sequence[float] = (),
    as_posted: bool = False,
    device: str = "auto",
    attention_backend: AttentionBackend = "auto",
    seed: int = 0,
    command: Sequence[str] = (),
    **reading: Unpack[ReadOptions],
) -> dict[str, Any]:
    """Measure a checkpoint on a labelled set and write report.json, report.md, plots and detections.npz.

    Costs two inspections a picture, two for each golden reference, and one a picture for each shift and turn;
    one a picture alone where not every picture has a reference.

    Args:
        data: the set's folder, or label file; for DeepPCB the folder that holds PCBData/.
        limit: inspect this many pictures, evenly spaced over the split, instead of all.
        shifts: measure again with the reference moved by each of these, in px.
        turns: measure again with the reference turned by each of these, in degrees.
        as_posted: take references as aligned instead of aligning them.
        seed: of the re-imaged references and the bootstrap.
        command: how it was called, for the report.
        reading: how the set is read.

    Returns:
        The report as written to report.json, except that figures without an n are NaN.

    Raises:
        ConfigError: unreadable data, a class that the checkpoint does not know, or an impossible option.
    """
    if any(shift < 1 for shift in shifts):
        raise ConfigError(f"shifts {list(shifts)}: wanted whole pixels of 1 or more")
    if any(not 0 < turn <= MAX_TURN_DEGREES for turn in turns):
        raise ConfigError(f"turns {list(turns)}: wanted degrees above 0 and up to {MAX_TURN_DEGREES:g}")
    inspector = Inspector(checkpoint, device=device, attention_backend=attention_backend)
    measured = read_measured_set(data, inspector.metadata.model.class_names, **reading)
    split_size = len(measured.samples)
    if limit is not None:
        measured = replace(measured, samples=evenly(measured.samples, limit))
    if inspector.metadata.needs_reference:
        measured = paired_alone(measured, inspector.metadata.name)
    if not measured.has_references:
        without = sum(sample.reference is None for sample in measured.samples)
        say(f"{without} of {len(measured.samples)} pictures have no reference: measured without references")
        if shifts or turns:
            raise ConfigError(f"shifts and turns {[*shifts, *turns]} need a reference for every picture")
    out.mkdir(parents=True, exist_ok=True)
    todo = passes(
        measured,
        shifts=shifts,
        turns=turns,
        seed=seed,
        alone=not inspector.metadata.needs_reference,
        as_posted=as_posted,
    )
    with held(out):
        record = _describe(
            inspector,
            measured,
            split_size=split_size,
            as_posted=as_posted,
            seed=seed,
            command=shlex.join(command),
        )
        return _measure(inspector, record, todo, out=out)


def _measure(
    inspector: Inspector, record: Record, todo: Mapping[str, tuple[Sequence[Sample], Pose]], *, out: Path
) -> dict[str, Any]:
    """The passes that are not done yet, one after another, and the report."""
    partial = out / _PARTIAL_NAME
    if partial.is_file() and (earlier := load_record(partial)).describes_same_work(record):
        record.runs.update(earlier.runs)
        say(f"going on with an interrupted evaluation; already done: {', '.join(record.runs)}")
    for name, (samples, pose) in todo.items():
        if name not in record.runs:
            record.runs[name] = inspect_all(inspector, samples, pose, label=name.replace("_", " "))
            save_record(partial, record)
    save_record(out / RECORD_NAME, record)
    partial.unlink(missing_ok=True)
    report = build_report(record)
    write_report(report, record, out)
    return report


def paired_alone(measured: MeasuredSet, model: str) -> MeasuredSet:
    """The set without pictures that have no reference; says how many these are."""
    paired = tuple(sample for sample in measured.samples if sample.reference is not None)
    lacking = [sample.image.name for sample in measured.samples if sample.reference is None]
    if not paired:
        raise ConfigError(
            f"{model} inspects only against a golden reference, and none of the {len(lacking)} pictures has "
            "one; name them with --references or pairs.csv, or take another --checkpoint"
        )
    if lacking:
        named = ", ".join(lacking[:MAX_NAMED]) + (", ..." if len(lacking) > MAX_NAMED else "")
        say(f"{len(lacking)} of {len(measured.samples)} pictures have no reference and are left out: {named}")
    return replace(measured, samples=paired)


def evenly(samples: Sequence[Sample], limit: int) -> tuple[Sample, ...]:
    """That many of the samples, spread over all; ConfigError where there are not so many."""
    if not 1 <= limit <= len(samples):
        raise ConfigError(f"limit {limit}: the split has {len(samples)} pictures; wanted 1 to that many")
    return tuple(samples[index] for index in np.linspace(0, len(samples) - 1, limit).round().astype(int))


def _describe(
    inspector: Inspector,
    measured: MeasuredSet,
    *,
    split_size: int,
    as_posted: bool,
    seed: int,
    command: str,
) -> Record:
    """The record before any run: who is measured on what."""
    metadata, samples = inspector.metadata, measured.samples
    class_names = metadata.model.class_names
    sizes, true_sizes = [], []
    for sample in track(samples, total=len(samples), label="true sizes"):
        image = read_picture(sample.image)[0]
        sizes.append(image.shape[:2])
        boxes = sample.boxes[~sample.is_ignored]
        if sample.reference is None:
            true_sizes += [UNKNOWN_SIZE] * len(boxes)
        else:
            reference = read_picture(sample.reference)[0]
            true_sizes += [true_size_px(image, reference, box) for box in boxes]
    index = {name: label for label, name in enumerate(class_names)}
    return Record(
        model={
            "name": metadata.name,
            "version": metadata.version,
            "created": metadata.created,
            "git_revision": metadata.git_revision,
            "data_fingerprint": metadata.data_fingerprint,
        },
        class_names=tuple(class_names),
        thresholds={str(mode): dict(limits) for mode, limits in metadata.thresholds.items()},
        data_set=measured.name,
        px_per_mm=measured.px_per_mm,
        split=measured.split,
        split_size=split_size,
        fingerprint=measured.fingerprint,
        as_posted=as_posted,
        seed=seed,
        command=command,
        images=tuple(sample.image.name for sample in samples),
        groups=tuple(sample.group for sample in samples),
        truths=[truths_of(sample, index) for sample in samples],
        sizes_px=np.array(sizes, np.int64).reshape(-1, 2),
        true_sizes_px=np.array(true_sizes, np.int64).reshape(-1, 2),
    )


def truths_of(sample: Sample, index: Mapping[str, int]) -> Truths:
    """The defects that count; index: class name -> label."""
    counted = np.flatnonzero(~sample.is_ignored)
    return Truths(sample.boxes[counted], np.array([index[sample.labels[i]] for i in counted], np.int64))


def inspect_all(
    inspector: Inspector, samples: Sequence[Sample], pose: Pose, *, label: str, min_score: float = MIN_SCORE
) -> Run:
    """Inspect all samples as posed, calls from `min_score` up; shows progress under `label`."""
    detections, errors, timings = [], [], []
    for number, sample in track(enumerate(samples), total=len(samples), label=label):
        image, reference, intake = pose(number, sample)
        result = inspector.inspect(image, reference=reference, min_score=min_score, intake=intake)
        ignored = sample.is_ignored
        counted = Truths(sample.boxes[~ignored], np.zeros(np.count_nonzero(~ignored), np.int64))
        detections.append(leave_out_ignored(as_detections(result), counted, sample.boxes[ignored]))
        errors.append(result.verdict is Verdict.ERROR)
        timings.append(result.timings_ms)
    stages = dict.fromkeys(stage for timing in timings for stage in timing)
    return Run(
        detections=detections,
        errors=np.array(errors, np.bool_),
        timings_ms={stage: np.array([timing.get(stage, 0.0) for timing in timings]) for stage in stages},
    )
