"""Inspect a whole split with one checkpoint, as a customer's pictures would be, and report on it.

Pictures are read one by one. Every pass over the split is kept on disk when it is done, so that an evaluation
that was interrupted goes on with the next one; the detections stay beside the report.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspect_vit.config import AttentionBackend
from inspect_vit.console import say
from inspect_vit.errors import ConfigError, ImageError
from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from inspect_vit.matching import Truths, as_detections, leave_out_ignored
from inspect_vit.results import IntakeReport, Sample, Verdict
from training.formats.references import GroupRule, ReferenceRule
from training.locking import held
from training.measured_set import MeasuredSet, read_measured_set
from training.progress import track
from training.protocols import CLEAN_RUN, SHIFT_RUN, build_report
from training.record import Record, Run, load_record, save_record
from training.reimage import reimage
from training.report import write_report
from training.true_size import UNKNOWN_SIZE, true_size_px

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
    format: str = "auto",
    references: ReferenceRule | None = None,
    groups: GroupRule | None = None,
    rename: Mapping[str, str] | None = None,
    px_per_mm: float | None = None,
    redraw_px: int | None = None,
    limit: int | None = None,
    split: str | None = None,
    shifts: Sequence[int] = (),
    device: str = "auto",
    attention_backend: AttentionBackend = "auto",
    seed: int = 0,
    command: Sequence[str] = (),
) -> dict[str, Any]:
    """Measure a checkpoint on a labelled set and write report.json, report.md, plots and detections.npz.

    Costs two inspections a picture, two for each golden reference, and one a picture for each shift; one a
    picture alone where not every picture has a reference.

    Args:
        data: the set's folder, or label file; for DeepPCB the folder that holds PCBData/.
        format, references, groups: as `read_dataset` takes them.
        rename: class of the set -> class of the checkpoint.
        px_per_mm: scale of the pictures, for false calls per area; known for DeepPCB.
        redraw_px: draw the boxes anew by what differs from the reference, this much wider on each side.
        limit: inspect this many pictures, evenly spaced over the split, instead of all.
        split: part of the set; default DeepPCB's test split, of other sets everything.
        shifts: measure again with the reference moved by each of these, in px.
        seed: of the re-imaged references and the bootstrap.
        command: how it was called, for the report.

    Returns:
        The report as written to report.json, except that figures without an n are NaN.

    Raises:
        ConfigError: unreadable data, a class that the checkpoint does not know, or an impossible option.
    """
    if any(shift < 1 for shift in shifts):
        raise ConfigError(f"shifts {list(shifts)}: wanted whole pixels of 1 or more")
    inspector = Inspector(checkpoint, device=device, attention_backend=attention_backend)
    measured = read_measured_set(
        data,
        inspector.metadata.model.class_names,
        format=format,
        references=references,
        groups=groups,
        rename=rename,
        split=split,
        px_per_mm=px_per_mm,
        redraw_px=redraw_px,
    )
    split_size = len(measured.samples)
    if limit is not None:
        measured = replace(measured, samples=_evenly(measured.samples, limit))
    if not measured.has_references:
        if inspector.metadata.needs_reference:
            raise ConfigError(
                f"{inspector.metadata.name} inspects only against a golden reference; {data} lacks some"
            )
        without = sum(sample.reference is None for sample in measured.samples)
        say(f"{without} of {len(measured.samples)} pictures have no reference: measured without references")
        if shifts:
            raise ConfigError(f"shifts {list(shifts)} need a reference for every picture")
    out.mkdir(parents=True, exist_ok=True)
    with held(out):
        return _measure(
            inspector, measured, shifts, out=out, split_size=split_size, seed=seed, command=command
        )


def _measure(
    inspector: Inspector,
    measured: MeasuredSet,
    shifts: Sequence[int],
    *,
    out: Path,
    split_size: int,
    seed: int,
    command: Sequence[str],
) -> dict[str, Any]:
    """The passes that are not done yet, one after another, and the report."""
    record = _describe(inspector, measured, split_size=split_size, seed=seed, command=shlex.join(command))
    partial = out / _PARTIAL_NAME
    if partial.is_file() and (earlier := load_record(partial)).describes_same_work(record):
        record.runs.update(earlier.runs)
        say(f"going on with an interrupted evaluation; already done: {', '.join(record.runs)}")
    for name, (samples, pose) in _passes(
        measured, shifts, seed, alone=not inspector.metadata.needs_reference
    ).items():
        if name not in record.runs:
            record.runs[name] = _inspect_all(inspector, samples, pose, label=name.replace("_", " "))
            save_record(partial, record)
    save_record(out / RECORD_NAME, record)
    partial.unlink(missing_ok=True)
    report = build_report(record)
    write_report(report, record, out)
    return report


def _evenly(samples: Sequence[Sample], limit: int) -> tuple[Sample, ...]:
    if not 1 <= limit <= len(samples):
        raise ConfigError(f"limit {limit}: the split has {len(samples)} pictures; wanted 1 to that many")
    return tuple(samples[index] for index in np.linspace(0, len(samples) - 1, limit).round().astype(int))


def _describe(
    inspector: Inspector, measured: MeasuredSet, *, split_size: int, seed: int, command: str
) -> Record:
    """The record before any run: who is measured on what."""
    metadata, samples = inspector.metadata, measured.samples
    class_names = metadata.model.class_names
    sizes, true_sizes = [], []
    for sample in track(samples, total=len(samples), label="true sizes"):
        image = _read(sample.image)[0]
        sizes.append(image.shape[:2])
        boxes = sample.boxes[~sample.is_ignored]
        if sample.reference is None:
            true_sizes += [UNKNOWN_SIZE] * len(boxes)
        else:
            reference = _read(sample.reference)[0]
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
        seed=seed,
        command=command,
        images=tuple(sample.image.name for sample in samples),
        groups=tuple(sample.group for sample in samples),
        truths=[_truths(sample, index) for sample in samples],
        sizes_px=np.array(sizes, np.int64).reshape(-1, 2),
        true_sizes_px=np.array(true_sizes, np.int64).reshape(-1, 2),
    )


def _truths(sample: Sample, index: Mapping[str, int]) -> Truths:
    counted = np.flatnonzero(~sample.is_ignored)
    return Truths(sample.boxes[counted], np.array([index[sample.labels[i]] for i in counted], np.int64))


def _passes(
    measured: MeasuredSet, shifts: Sequence[int], seed: int, *, alone: bool
) -> dict[str, tuple[Sequence[Sample], Callable[[int, Sample], Posed]]]:
    """Each pass: over which samples, and what is shown to the inspector for number i of them.

    alone: boards are inspected without their references too.
    """
    samples = measured.samples

    def with_reference(number: int, sample: Sample) -> Posed:
        image, intake = _read(sample.image)
        return image, _read_reference(sample), intake

    def without_reference(number: int, sample: Sample) -> Posed:
        image, intake = _read(sample.image)
        return image, None, intake

    def template(number: int, sample: Sample) -> Posed:
        return _read_reference(sample), None, None

    def reimaged_template(number: int, sample: Sample) -> Posed:
        reference = _read_reference(sample)
        return reimage(reference, np.random.default_rng((seed, number)))[0], reference, None

    def shifted(shift: int) -> Callable[[int, Sample], Posed]:
        def pose(number: int, sample: Sample) -> Posed:
            image, intake = _read(sample.image)
            return image, shift_picture(_read_reference(sample), shift, number), intake

        return pose

    if not measured.has_references:
        return {"without_reference": (samples, without_reference)}
    # Boards of one product share a reference, which is one good board however many are inspected with it.
    good = list({sample.reference: sample for sample in samples}.values())
    blind: dict[str, tuple[Sequence[Sample], Callable[[int, Sample], Posed]]] = {
        "without_reference": (samples, without_reference),
        CLEAN_RUN["without_reference"]: (good, template),
    }
    aided: dict[str, tuple[Sequence[Sample], Callable[[int, Sample], Posed]]] = {
        "with_reference": (samples, with_reference),
        CLEAN_RUN["with_reference"]: (good, reimaged_template),
    }
    return (
        aided
        | (blind if alone else {})
        | {SHIFT_RUN.format(shift): (samples, shifted(shift)) for shift in shifts}
    )


def shift_picture(picture: Pixels, shift_px: int, turn: int) -> Pixels:
    """Move a picture right, down, left or up (turn modulo 4); what comes in repeats the border."""
    axis, sign = ((1, 1), (0, 1), (1, -1), (0, -1))[turn % 4]
    size = picture.shape[axis]
    source = (np.arange(size) - sign * shift_px).clip(0, size - 1)
    return np.take(picture, source, axis=axis)


def _inspect_all(
    inspector: Inspector, samples: Sequence[Sample], pose: Callable[[int, Sample], Posed], *, label: str
) -> Run:
    detections, errors, timings = [], [], []
    for number, sample in track(enumerate(samples), total=len(samples), label=label):
        image, reference, intake = pose(number, sample)
        result = inspector.inspect(image, reference=reference, min_score=MIN_SCORE, intake=intake)
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


def _read(path: Path) -> tuple[Pixels, IntakeReport]:
    """A picture of the set; an error names it."""
    try:
        return read_image(path)
    except ImageError as error:
        raise type(error)(f"{path}: {error}") from error


def _read_reference(sample: Sample) -> Pixels:
    assert sample.reference is not None
    return _read(sample.reference)[0]
