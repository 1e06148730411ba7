"""Thresholds and figures of a model that learnt, from boards that it did not learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inspect_vit.checkpoint import CheckpointMetadata, ReferenceMode, save_checkpoint
from inspect_vit.inspector import Inspector
from inspect_vit.model import HierarchicalViT
from inspect_vit.results import Sample
from training.before_after import ClassRow, FalseCalls, class_rows, flagged, measure
from training.job_files import Progress
from training.loading import good_boards
from training.new_thresholds import Measured, kept_thresholds, new_threshold, usual_threshold

Thresholds = dict[ReferenceMode, dict[str, float]]


@dataclass(frozen=True)
class Boards:
    """What is measured on."""

    old: Sequence[Sample]
    examples: Sequence[Sample]
    is_drawn: bool
    """The old boards were drawn: their boxes are not as the old model learnt them, so its thresholds stay."""


@dataclass(frozen=True)
class Verdicts:
    thresholds: Thresholds
    rows: list[ClassRow]
    false_calls: FalseCalls


def judge(
    base: Path,
    model: HierarchicalViT,
    metadata: CheckpointMetadata,
    names: Mapping[str, str | None],
    boards: Boards,
    scratch: Path,
    progress: Progress,
    *,
    new_bias: float,
) -> Verdicts:
    """Inspect the boards held back with the old and the new model, in every mode in which the old one judges.

    Args:
        base: the old model's checkpoint. metadata: its own.
        scratch: file for the new model while it is measured; removed.
        new_bias: by how much the logits of new classes were lowered.
    """
    old_names = metadata.model.class_names
    renamed = {name: origin for name, origin in names.items() if origin is not None}
    usual = {
        mode: usual_threshold(
            [scores[origin] for origin in renamed.values()] or list(scores.values()), mode, new_bias=new_bias
        )
        for mode, scores in metadata.thresholds.items()
    }
    chosen: Thresholds = {
        mode: {name: usual[mode] if origin is None else scores[origin] for name, origin in names.items()}
        for mode, scores in metadata.thresholds.items()
    }
    every = [*boards.old, *boards.examples]
    if not every:
        return Verdicts(chosen, [_unmeasured(name, origin) for name, origin in names.items()], _no_boards())
    save_checkpoint(scratch, model, name="new", thresholds=chosen, training={})
    inspectors = Inspector(base), Inspector(scratch)
    scratch.unlink()
    has_references = all(sample.reference is not None for sample in every)
    modes: list[ReferenceMode] = ["with_reference"] if has_references else []
    if not metadata.needs_reference:
        modes.append("without_reference")
    results: dict[ReferenceMode, tuple[Measured, Measured]] = {}
    done = 0
    for mode in modes:
        old_boards = [*boards.old, *(good_boards(boards.old) if mode == "without_reference" else [])]
        pair = []
        for inspector, known, when in zip(
            inspectors, (renamed, {name: name for name in names}), ("before", "after"), strict=True
        ):
            progress.tell("measuring", done, 2 * len(modes))
            pair.append(
                measure(
                    inspector,
                    old_boards,
                    boards.examples,
                    known=known,
                    with_reference=mode == "with_reference",
                    label=f"measure {when}, {mode.replace('_', ' ')}",
                )
            )
            done += 1
        results[mode] = (pair[0], pair[1])
    for number, (mode, (before, after)) in enumerate(results.items()):
        progress.tell("thresholds", number, len(results))
        if not boards.is_drawn:
            chosen[mode] |= kept_thresholds(before, after, metadata.thresholds[mode], names, old_names)
        for label, (name, origin) in enumerate(names.items()):
            if origin is None:
                chosen[mode][name] = new_threshold(after, label, usual=usual[mode])
    progress.tell("thresholds", len(results), len(results))
    mode = modes[0]
    before, after = results[mode]
    calls: FalseCalls = {
        "before": flagged(before, old_names, metadata.thresholds[mode]),
        "after": flagged(after, tuple(names), chosen[mode]),
        "boards": sum(after.is_old),
    }
    return Verdicts(chosen, class_rows(before, after, names, old_names), calls)


def _unmeasured(name: str, origin: str | None) -> ClassRow:
    return {"label": name, "is_new": origin is None, "before": None, "after": None, "n": 0}


def _no_boards() -> FalseCalls:
    return {"before": 0, "after": 0, "boards": 0}
