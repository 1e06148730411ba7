"""Inspect a whole split with one checkpoint, as a customer's pictures would be, and report on it.

Pictures are read one by one. Every pass over the split is kept on disk when it is done, so that an evaluation
that was interrupted goes on with the next one; the detections stay beside the report.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from inspect_vit.config import AttentionBackend
from inspect_vit.errors import ConfigError
from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from inspect_vit.matching import Truths, as_detections
from inspect_vit.results import IntakeReport, Sample, Verdict
from training.formats.deeppcb import Split, read_deeppcb
from training.progress import track
from training.protocols import CLEAN_RUN, SHIFT_RUN
from training.record import Record, Run, load_record, save_record
from training.reimage import reimage
from training.report import report_record
from training.true_size import true_size_px

MIN_SCORE = 0.02
"""Calls are listed from this score on: low enough for the whole precision-recall curve."""
RECORD_NAME = "detections.npz"
_PARTIAL_NAME = "detections.partial.npz"

Pixels = NDArray[np.uint8]
Posed = tuple[Pixels, Pixels | None, IntakeReport | None]
"""Picture, reference, and the intake of the picture where it came from a file."""


def evaluate_checkpoint(
    checkpoint: Path,
    data: Path,
    *,
    out: Path,
    limit: int | None = None,
    split: Split = "test",
    shifts: Sequence[int] = (),
    device: str = "auto",
    attention_backend: AttentionBackend = "auto",
    seed: int = 0,
) -> dict[str, Any]:
    """Measure a checkpoint on DeepPCB and write report.json, report.md, plots and detections.npz into `out`.

    Costs four inspections a pair and one more for each shift.

    Args:
        data: the folder that holds PCBData/.
        limit: inspect this many pairs, evenly spaced over the split, instead of all.
        shifts: measure again with the reference moved by each of these, in px.
        seed: of the re-imaged templates and the bootstrap.

    Returns:
        The report as written to report.json, except that figures without an n are NaN.

    Raises:
        ConfigError: unreadable data, a class that the checkpoint does not know, or an impossible option.
    """
    if any(shift < 1 for shift in shifts):
        raise ConfigError(f"shifts {list(shifts)}: wanted whole pixels of 1 or more")
    samples = read_deeppcb(data, split)
    split_size = len(samples)
    if limit is not None:
        samples = _evenly(samples, limit)
    inspector = Inspector(checkpoint, device=device, attention_backend=attention_backend)
    out.mkdir(parents=True, exist_ok=True)
    options = {"--limit": limit, "--split": split, "--seed": seed}
    command = [
        "inspect-vit",
        "evaluate",
        "--checkpoint",
        str(checkpoint),
        "--data",
        str(data),
        "--out",
        str(out),
    ]
    command += [part for name, value in options.items() if value is not None for part in (name, str(value))]
    command += [part for shift in shifts for part in ("--shift", str(shift))]
    record = _describe(
        inspector, samples, split=split, split_size=split_size, seed=seed, command=shlex.join(command)
    )
    partial = out / _PARTIAL_NAME
    if partial.is_file() and (earlier := load_record(partial)).describes_same_work(record):
        record.runs.update(earlier.runs)
        done = ", ".join(record.runs)
        Console(stderr=True).print(
            f"going on with an interrupted evaluation; already done: {done}", highlight=False
        )
    for name, pose in _passes(shifts, seed).items():
        if name not in record.runs:
            record.runs[name] = _inspect_all(inspector, samples, pose, label=name.replace("_", " "))
            save_record(partial, record)
    save_record(out / RECORD_NAME, record)
    partial.unlink(missing_ok=True)
    return report_record(out / RECORD_NAME, out=out)


def _evenly(samples: list[Sample], limit: int) -> list[Sample]:
    if not 1 <= limit <= len(samples):
        raise ConfigError(f"limit {limit}: the split has {len(samples)} pairs; wanted 1 to that many")
    return [samples[index] for index in np.linspace(0, len(samples) - 1, limit).round().astype(int)]


def _describe(
    inspector: Inspector, samples: list[Sample], *, split: str, split_size: int, seed: int, command: str
) -> Record:
    """The record before any run: who is measured on what."""
    metadata = inspector.metadata
    class_names = metadata.model.class_names
    if unknown := {label for sample in samples for label in sample.labels} - set(class_names):
        raise ConfigError(
            f"the labels hold classes {', '.join(sorted(unknown))} that the checkpoint does not know; "
            f"it knows {', '.join(class_names)}"
        )
    sizes, true_sizes = [], []
    for sample in track(samples, total=len(samples), label="true sizes"):
        image, reference = read_image(sample.image)[0], _read_reference(sample)
        sizes.append(image.shape[:2])
        true_sizes += [true_size_px(image, reference, box) for box in sample.boxes]
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
        split=split,
        split_size=split_size,
        seed=seed,
        command=command,
        images=tuple(sample.image.name for sample in samples),
        groups=tuple(sample.group for sample in samples),
        truths=[
            Truths(sample.boxes, np.array([index[label] for label in sample.labels], np.int64))
            for sample in samples
        ],
        sizes_px=np.array(sizes, np.int64).reshape(-1, 2),
        true_sizes_px=np.array(true_sizes, np.int64).reshape(-1, 2),
    )


def _passes(shifts: Sequence[int], seed: int) -> dict[str, Callable[[int, Sample], Posed]]:
    """Each pass over the split: what is shown to the inspector for sample number i."""

    def with_reference(number: int, sample: Sample) -> Posed:
        image, intake = read_image(sample.image)
        return image, _read_reference(sample), intake

    def without_reference(number: int, sample: Sample) -> Posed:
        image, intake = read_image(sample.image)
        return image, None, intake

    def template(number: int, sample: Sample) -> Posed:
        return _read_reference(sample), None, None

    def reimaged_template(number: int, sample: Sample) -> Posed:
        reference = _read_reference(sample)
        return reimage(reference, np.random.default_rng((seed, number)))[0], reference, None

    def shifted(shift: int) -> Callable[[int, Sample], Posed]:
        def pose(number: int, sample: Sample) -> Posed:
            image, intake = read_image(sample.image)
            return image, shift_picture(_read_reference(sample), shift, number), intake

        return pose

    passes = {"with_reference": with_reference, "without_reference": without_reference}
    passes |= {CLEAN_RUN["without_reference"]: template, CLEAN_RUN["with_reference"]: reimaged_template}
    return passes | {SHIFT_RUN.format(shift): shifted(shift) for shift in shifts}


def shift_picture(picture: Pixels, shift_px: int, turn: int) -> Pixels:
    """Move a picture right, down, left or up (turn modulo 4); what comes in repeats the border."""
    axis, sign = ((1, 1), (0, 1), (1, -1), (0, -1))[turn % 4]
    size = picture.shape[axis]
    source = (np.arange(size) - sign * shift_px).clip(0, size - 1)
    return np.take(picture, source, axis=axis)


def _inspect_all(
    inspector: Inspector, samples: list[Sample], pose: Callable[[int, Sample], Posed], *, label: str
) -> Run:
    detections, errors, timings = [], [], []
    for number, sample in track(enumerate(samples), total=len(samples), label=label):
        image, reference, intake = pose(number, sample)
        result = inspector.inspect(image, reference=reference, min_score=MIN_SCORE, intake=intake)
        detections.append(as_detections(result))
        errors.append(result.verdict is Verdict.ERROR)
        timings.append(result.timings_ms)
    stages = dict.fromkeys(stage for timing in timings for stage in timing)
    return Run(
        detections=detections,
        errors=np.array(errors, np.bool_),
        timings_ms={stage: np.array([timing.get(stage, 0.0) for timing in timings]) for stage in stages},
    )


def _read_reference(sample: Sample) -> Pixels:
    assert sample.reference is not None  # every DeepPCB pair has a template
    return read_image(sample.reference)[0]
