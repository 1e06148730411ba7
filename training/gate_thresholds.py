"""The thresholds at which the gate compares: the base's in production, the candidate's as they would be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from inspect_vit.board_evidence import gather
from inspect_vit.calibration import Calibration, FoundBy, Mode, Target, Unit, load_calibration
from inspect_vit.checkpoint import CheckpointMetadata
from inspect_vit.errors import ConfigError
from inspect_vit.guarantee import choose
from inspect_vit.matching import FloatArray
from training.calibrate import as_document, known_targets
from training.gate_compare import Truth, calls_of
from training.gate_runs import Look
from training.gate_set import Acceptance, Classes


def calibration_of_base(path: Path, base: CheckpointMetadata, mode: Mode) -> Calibration:
    """Read it.

    Raises:
        ConfigError: no calibration, or one of another model version or reference mode.
    """
    calibration = load_calibration(path)
    stated = (calibration.model_version, calibration.reference_mode)
    if stated != (base.version, mode):
        raise ConfigError(
            f"--thresholds-of {path} is for model {stated[0]} {stated[1].replace('_', ' ')}; wanted the "
            f"calibration of the base, {base.version} {mode.replace('_', ' ')}"
        )
    return calibration


def targets_for(
    targets: Sequence[Target], before: Calibration | None, classes: Classes, base_names: Sequence[str]
) -> list[Target]:
    """What the candidate's thresholds must keep: what is asked, else what the base's calibration kept.

    Raises:
        ConfigError: a target's class that the candidate does not know, or two targets of one class.
    """
    if targets:
        return known_targets(targets, classes.names)
    found: dict[str | None, Target] = {}
    for claim in before.claims if before is not None else ():
        place = None if claim.label is None else classes.of_base[list(base_names).index(claim.label)]
        if claim.kept and place != len(classes.names):
            label = None if place is None else classes.names[place]
            target = Target(label=label, max_miss_rate=claim.max_miss_rate, confidence=claim.confidence)
            found.setdefault(label, target)
    return list(found.values())


def recalibrate(
    looks: Sequence[Look],
    truth: Truth,
    metadata: CheckpointMetadata,
    targets: Sequence[Target],
    found: Acceptance,
    *,
    mode: Mode,
    unit: Unit,
    found_by: FoundBy,
    lowest_score: float,
    recipe: str | None,
    camera: str | None,
) -> Calibration:
    """The candidate's thresholds for the targets, chosen on the acceptance boards as `calibrate` does.

    Raises:
        ConfigError: every picture has verdict ERROR.
    """
    names = metadata.model.class_names
    kept = [number for number, look in enumerate(looks) if not look.is_error]
    if not kept:
        raise ConfigError(
            f"{metadata.name} could inspect none of the {len(looks)} pictures {mode.replace('_', ' ')}: "
            "all have verdict ERROR"
        )
    calls = calls_of(looks, truth)
    evidence = gather(
        [calls[i] for i in kept],
        [truth.truths[i] for i in kept],
        [int(truth.numbers[i]) for i in kept],
        len(names),
        lowest_score=lowest_score,
    )
    own = in_order(metadata.thresholds[mode], metadata)
    return as_document(
        choose(evidence, names, own, targets, found_by=found_by),
        metadata,
        mode,
        recipe=recipe,
        camera=camera,
        data="; ".join(found.sets),
        data_fingerprint=found.fingerprint,
        unit=unit,
        num_pictures=len(kept),
        num_boards=evidence.num_boards,
        not_inspected=len(looks) - len(kept),
        found_by=found_by,
    )


def in_order(thresholds: Mapping[str, float], metadata: CheckpointMetadata) -> FloatArray:
    """(K,) by the model's classes."""
    return np.array([thresholds[name] for name in metadata.model.class_names], np.float64)
