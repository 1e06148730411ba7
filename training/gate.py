"""The promotion gate: may a candidate replace its base, by boards that neither was trained on?

Both inspect the same acceptance boards, each at the thresholds that it has or would have in production; what
the candidate newly misses and newly calls in vain decides. docs/promotion.md has the mathematics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Unpack

from inspect_vit.calibration import Calibration, FoundBy, Target, Unit, thresholds_in_force
from inspect_vit.checkpoint import CheckpointMetadata
from inspect_vit.config import AttentionBackend
from inspect_vit.errors import ConfigError
from inspect_vit.files import write_atomically
from inspect_vit.gate_report import JSON_NAME, PAGE_NAME, AcceptanceSet, Gate, Side, save_gate
from inspect_vit.inspector import Inspector
from training.evaluate import MIN_SCORE
from training.gate_compare import (
    Question,
    Truth,
    as_truth,
    at_thresholds,
    compare_classes,
    compare_false_calls,
    count_new_classes,
)
from training.gate_page import as_markdown
from training.gate_product import read_product
from training.gate_runs import Look, counted_boards, inspect_with, keep
from training.gate_set import Classes, in_mode, match_classes, read_acceptance
from training.gate_thresholds import calibration_of_base, in_order, recalibrate, targets_for
from training.gate_words import gate_words, overall
from training.locking import held
from training.measured_set import ReadOptions

LOOKS_NAME = "looks"
DEFAULT_MARGIN, DEFAULT_CONFIDENCE = 0.02, 0.95


@dataclass(frozen=True)
class Gated:
    """The document, and the files that were written."""

    gate: Gate
    written: tuple[Path, Path]


def run_gate(
    candidate: Path,
    base: Path,
    acceptance: Sequence[Path],
    *,
    out: Path,
    targets: Sequence[Target] = (),
    thresholds_of: Path | None = None,
    with_reference: bool | None = None,
    unit: Unit = "group",
    found_by: FoundBy | None = None,
    margin: float = DEFAULT_MARGIN,
    false_call_margin: float | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    renamed: Mapping[str, str] | None = None,
    retired: Sequence[str] = (),
    recipe: str | None = None,
    recipe_settings: Path | None = None,
    goldens: Sequence[Path] = (),
    camera: str | None = None,
    cache: Path | None = None,
    limit: int | None = None,
    device: str = "auto",
    attention_backend: AttentionBackend = "auto",
    **reading: Unpack[ReadOptions],
) -> Gated:
    """Compare two checkpoints on labelled boards and write gate.json and gate.md. Two inspections a picture.

    Args:
        acceptance: folders (or label files) of boards that neither was trained on; merged.
        targets: the candidate's thresholds are chosen for them on these boards, as `calibrate` does. None:
            for what the base's calibration kept; without one the candidate's own thresholds are taken.
        thresholds_of: the base's calibration; None: the base has its own thresholds.
        with_reference: the mode; None: with, where every picture has its reference.
        unit: what one board is.
        found_by: which calls find a defect; None: as in the base's calibration, else of its own class.
        margin: share of the boards with a defect of a class on which one may be newly missed.
        false_call_margin: share of all boards that may be newly stopped for nothing; None: as `margin`.
        renamed: class of the base -> the same class of the candidate.
        retired: classes of the base that the candidate need not know.
        recipe, camera: as stated in production, for both calibrations.
        recipe_settings, goldens: JSON of the recipe's settings, pictures of its references: what lies in its
            ignore zones or is smaller than its smallest defects does not count. None: everything counts.
        cache: folder where both models' answers are kept for the next gate; None: in `out`.
        limit: use this many pictures, evenly spaced.
        reading: how each folder is read.

    Raises:
        ConfigError: classes without a counterpart, an unreadable set, a target or calibration of another
            model, or a mode that cannot be.
    """
    if not 0.0 < margin < 1.0 or not 0.0 < (false_call_margin or margin) < 1.0:
        raise ConfigError(
            f"margins {margin:g} and {false_call_margin or margin:g}; wanted shares, as 0.02 for 2 %"
        )
    if not 0.5 <= confidence < 1.0:
        raise ConfigError(f"confidence {confidence:g}; wanted 0.5 to under 1, as 0.95 for 95 %")
    if goldens and recipe_settings is None:
        raise ConfigError("--golden goes with --recipe-settings only; leave it out, or give both")
    product = None if recipe_settings is None else read_product(recipe_settings, goldens)
    inspectors = [
        Inspector(path, device=device, attention_backend=attention_backend) for path in (base, candidate)
    ]
    old, new = (inspector.metadata for inspector in inspectors)
    classes = match_classes(old.model, new.model, renamed=renamed or {}, retired=retired)
    found, mode = in_mode(
        read_acceptance(acceptance, classes, unit=unit, limit=limit, **reading),
        with_reference,
        name=old.name,
        needs_reference=old.needs_reference,
        has_references=product is not None and bool(product.references),
    )
    before = None if thresholds_of is None else calibration_of_base(thresholds_of, old, mode)
    wanted = targets_for(targets, before, classes, old.model.class_names)
    found_by = found_by or ("own class" if before is None else before.found_by)
    deployed, _ = thresholds_in_force(
        before, old.thresholds[mode], model_version=old.version, mode=mode, recipe=recipe, camera=camera
    )
    lowest = min(MIN_SCORE, *deployed.values(), *new.thresholds[mode].values())
    out.mkdir(parents=True, exist_ok=True)
    folder = cache or out / LOOKS_NAME
    folder.mkdir(parents=True, exist_ok=True)
    with held(out):
        both = [
            keep(folder, inspector, mode, lowest_score=lowest, product=product) for inspector in inspectors
        ]
        if both[0].path == both[1].path:
            both[1] = both[0]
        sizes = inspect_with(both, found.boards, mode, out=out, product=product)
        boards, counted = counted_boards(found.boards, sizes)
        was, now = ([kept.looks[board.digest] for board in found.boards] for kept in both)
        truth = as_truth(boards, classes, counted)
        calibration = None
        if wanted:
            calibration = recalibrate(
                now,
                truth,
                new,
                wanted,
                found,
                mode=mode,
                unit=unit,
                found_by=found_by,
                lowest_score=lowest,
                recipe=recipe,
                camera=camera,
            )
        gate = _judge(
            was,
            now,
            truth,
            classes,
            Question(margin, false_call_margin or margin, confidence, found_by),
            base=old,
            candidate=new,
            deployed=deployed,
            chosen=new.thresholds[mode] if calibration is None else calibration.thresholds,
            data=AcceptanceSet(
                sets=found.sets,
                fingerprint=found.fingerprint,
                pictures=len(found.boards),
                boards=found.num_boards,
                defects=len(truth.labels),
                left_out=sum(size is None for board in boards for size in sizes[board.digest]),
            ),
            mode=mode,
            unit=unit,
            recipe=recipe or None,
            before=before,
            calibration=calibration,
        )
        written = out / JSON_NAME, out / PAGE_NAME
        save_gate(written[0], gate)
        write_atomically(written[1], as_markdown(gate).encode())
    return Gated(gate, written)


def _judge(
    was: Sequence[Look],
    now: Sequence[Look],
    truth: Truth,
    classes: Classes,
    question: Question,
    *,
    base: CheckpointMetadata,
    candidate: CheckpointMetadata,
    deployed: Mapping[str, float],
    chosen: Mapping[str, float],
    before: Calibration | None,
    **fields: object,
) -> Gate:
    """Both models at their thresholds, compared; `fields` go into the document as they are."""
    num_classes = len(classes.names)
    base_side, new_side = (
        at_thresholds(
            looks,
            truth,
            in_order(thresholds, metadata),
            places,
            num_classes=num_classes,
            found_by=question.found_by,
        )
        for looks, thresholds, metadata, places in (
            (was, deployed, base, classes.of_base),
            (now, chosen, candidate, range(num_classes)),
        )
    )
    results = compare_classes(
        base_side, new_side, truth, classes, question, base_looks=was, candidate_looks=now
    )
    false_calls = compare_false_calls(base_side, new_side, truth, classes, question)
    gate = Gate.model_validate(
        fields
        | {
            "result": overall([*(one.result for one in results), false_calls.result]),
            "words": (),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "base": Side(name=base.name, version=base.version),
            "candidate": Side(name=candidate.name, version=candidate.version),
            "found_by": question.found_by,
            "margin": question.margin,
            "false_call_margin": question.false_call_margin,
            "confidence": question.confidence,
            "thresholds": dict(chosen),
            "base_thresholds": dict(deployed),
            "classes": results,
            "false_calls": false_calls,
            "new_classes": count_new_classes(new_side, truth, classes),
            "retired_classes": classes.retired,
        }
    )
    errors = [int(side.errors.sum()) for side in (base_side, new_side)]
    return gate.model_copy(update={"words": gate_words(gate, errors=errors, before=before)})
