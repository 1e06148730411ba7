"""What the inspector answered on a whole split, as compact arrays: every figure can be recomputed from it."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inspect_vit.errors import ConfigError
from inspect_vit.matching import BoolArray, Detections, Truths

FORMAT = 4
_META = (
    "model",
    "class_names",
    "thresholds",
    "data_set",
    "px_per_mm",
    "split",
    "split_size",
    "fingerprint",
    "as_posted",
    "seed",
    "command",
    "images",
    "groups",
)


@dataclass(frozen=True)
class Run:
    """One pass over I pictures, or over the golden references alone."""

    detections: list[Detections]
    errors: BoolArray
    """(I,) pictures with verdict ERROR; they have no detections."""
    timings_ms: dict[str, NDArray[np.float64]]
    """(I,) each: milliseconds of every stage the inspector names."""


@dataclass(frozen=True)
class Record:
    """The pictures, their labels, and the runs over them."""

    model: dict[str, Any]
    """name, version, data_fingerprint, git_revision, created, training: as in the checkpoint."""
    class_names: tuple[str, ...]
    thresholds: dict[str, dict[str, float]]
    """{"with_reference", "without_reference"}: score threshold of each class."""
    data_set: str
    """Name of the labelled set."""
    px_per_mm: float | None
    """Scale of its pictures; None where it is not known."""
    split: str
    split_size: int
    """Pictures in the whole split, of which I were inspected."""
    fingerprint: str
    """Of the pictures, references and labels that were inspected."""
    as_posted: bool
    """Whether references were taken as aligned."""
    seed: int
    command: str
    images: tuple[str, ...]
    """(I,) name of each picture."""
    groups: tuple[str, ...]
    """(I,) board group of each picture."""
    truths: list[Truths]
    sizes_px: NDArray[np.int64]
    """(I, 2) height and width."""
    true_sizes_px: NDArray[np.int64]
    """(T, 2) true size of each defect of all pictures, after a 2x2 and a 3x3 opening; 0: nothing left,
    -1: no reference to tell it by."""
    runs: dict[str, Run] = field(default_factory=dict)

    def describes_same_work(self, other: Record) -> bool:
        """Whether the runs of one may stand in the other: all that they depend on agrees."""
        names = ("model", "thresholds", "fingerprint", "as_posted", "seed")
        return all(getattr(self, name) == getattr(other, name) for name in names)


def save_record(path: Path, record: Record) -> None:
    """Write the record as one .npz of plain arrays and JSON text, whole or not at all."""
    meta = {name: getattr(record, name) for name in _META}
    meta |= {"format": FORMAT, "runs": {name: list(run.timings_ms) for name, run in record.runs.items()}}
    arrays: dict[str, NDArray[Any]] = {
        "meta": np.array(json.dumps(meta)),
        "sizes_px": record.sizes_px,
        "true_sizes_px": record.true_sizes_px,
        "truth_counts": np.array([len(t) for t in record.truths], np.int64),
        "truth_boxes": np.concatenate([np.zeros((0, 4), np.float32), *(t.boxes for t in record.truths)]),
        "truth_labels": np.concatenate([np.zeros(0, np.int64), *(t.labels for t in record.truths)]),
    }
    for name, run in record.runs.items():
        calls = run.detections
        arrays |= {
            f"{name}.counts": np.array([len(d) for d in calls], np.int64),
            f"{name}.boxes": np.concatenate([np.zeros((0, 4), np.float32), *(d.boxes for d in calls)]),
            f"{name}.scores": np.concatenate([np.zeros(0, np.float32), *(d.scores for d in calls)]),
            f"{name}.labels": np.concatenate([np.zeros(0, np.int64), *(d.labels for d in calls)]),
            f"{name}.errors": run.errors,
        }
        arrays |= {f"{name}.ms.{stage}": values for stage, values in run.timings_ms.items()}
    temporary = path.with_name(path.name + ".part")
    with temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    temporary.replace(path)


def load_record(path: Path) -> Record:
    """Read what `save_record` wrote.

    Raises:
        ConfigError: the file is missing, damaged, or of another format.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return _decode(arrays)
    except (KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ConfigError(
            f"{path} does not hold the detections of an evaluation: {error}; delete it to start again"
        ) from error
    except OSError as error:
        raise ConfigError(f"cannot read the detections {path}: {error}") from error


def _decode(arrays: Any) -> Record:
    meta = json.loads(str(arrays["meta"]))
    if meta["format"] != FORMAT:
        raise ValueError(f"format {meta['format']}, wanted {FORMAT}")
    truths = [
        Truths(boxes, labels)
        for boxes, labels in zip(
            _cut(arrays["truth_boxes"], arrays["truth_counts"]),
            _cut(arrays["truth_labels"], arrays["truth_counts"]),
            strict=True,
        )
    ]
    runs = {}
    for name, stages in meta["runs"].items():
        counts = arrays[f"{name}.counts"]
        columns = (_cut(arrays[f"{name}.{column}"], counts) for column in ("boxes", "scores", "labels"))
        runs[name] = Run(
            detections=[Detections(*row) for row in zip(*columns, strict=True)],
            errors=arrays[f"{name}.errors"],
            timings_ms={stage: arrays[f"{name}.ms.{stage}"] for stage in stages},
        )
    fields: dict[str, Any] = {
        name: tuple(meta[name]) if isinstance(meta[name], list) else meta[name] for name in _META
    }
    return Record(
        **fields, truths=truths, sizes_px=arrays["sizes_px"], true_sizes_px=arrays["true_sizes_px"], runs=runs
    )


def _cut(values: NDArray[Any], counts: NDArray[np.int64]) -> list[NDArray[Any]]:
    """Part rows of all pictures into those of each."""
    return np.split(values, np.cumsum(counts)[:-1]) if len(counts) else []
