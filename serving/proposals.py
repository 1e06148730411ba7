"""A new threshold for one class of a recipe: examined on reviewed boards, then stored or refused."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from inspect_vit.calibration import Calibration, FoundBy
from serving.errors import FieldError
from serving.explanations import ClientGone
from serving.in_force import in_force
from serving.parts import part_of
from serving.preview import ReviewedBoard, gather, mode_of, read_reviewed
from serving.recipes import StoredRecipe, get_recipe, put_recipe
from serving.registry import production
from serving.roles import Actor
from serving.threshold_calibration import recalibrated
from serving.threshold_gate import Examined, decide
from serving.threshold_schemas import ThresholdReport, ThresholdRequest
from serving.threshold_trials import Trials, try_lower, with_trials

if TYPE_CHECKING:
    from serving.backend import Backend


async def propose(
    backend: Backend, name: str, asked: ThresholdRequest, actor: Actor, client_gone: ClientGone
) -> ThresholdReport:
    """Put a threshold into force as a new revision of the recipe.

    Raises:
        NotFoundError: no such recipe.
        FieldError: a class that the model does not know, or the threshold that is in force.
        ThresholdRefusedError: the reviewed boards of the acceptance part do not support it.
        RevisionConflictError: the recipe was changed meanwhile.
        BusyError, ClientGoneError: while boards were inspected again.
    """
    engine, models = backend.store.engine, backend.engine.models
    stored = await asyncio.to_thread(get_recipe, engine, name)
    version = await asyncio.to_thread(production, engine, name)
    inspector = await models.get(version)
    served = models.default.calibration
    reviewed = await asyncio.to_thread(read_reviewed, engine, name, version)
    has_references = bool(stored.references) or inspector.metadata.needs_reference
    mode = mode_of(reviewed, has_references=has_references)
    camera = stored.recipe.camera or backend.config.camera or None
    thresholds, promise = in_force(inspector.metadata, stored, mode, served=served, camera=camera)
    _check(asked, thresholds)
    share, with_reference = backend.config.acceptance_share, mode == "with_reference"
    boards = [
        board
        for board in reviewed
        if board.has_reference == with_reference and part_of(board.board, share) == "acceptance"
    ]
    old, trials = thresholds[asked.label], Trials()
    if asked.threshold < old:
        boards = with_trials(boards, asked.threshold)
        with backend.engine.admitted():
            trials = await try_lower(
                backend,
                boards,
                stored,
                asked.label,
                version=version,
                threshold=asked.threshold,
                in_force=old,
                client_gone=client_gone,
            )
    examined = await asyncio.to_thread(_examined, backend, boards, trials, asked.label)
    targets = stored.recipe.targets
    points, gate = decide(examined, asked, old, targets)
    calibration = recalibrated(
        examined,
        thresholds={**thresholds, asked.label: asked.threshold},
        own_thresholds=inspector.metadata.thresholds[mode],
        changed=asked.label,
        is_raised=asked.threshold > old,
        targets=targets,
        before=promise,
        found_by=_found_by(stored.recipe.calibration or served),
        model=(inspector.metadata.name, version),
        mode=mode,
        recipe=name,
        camera=camera,
    )
    revision = await asyncio.to_thread(_store, backend, stored, calibration, asked, old, actor)
    # The class's own target, or else that of all classes together.
    wanted = (one for label in (asked.label, None) for one in calibration.claims if one.label == label)
    return ThresholdReport(
        recipe=name, revision=revision, label=asked.label, points=points, claim=next(wanted, None), gate=gate
    )


def _check(asked: ThresholdRequest, thresholds: dict[str, float]) -> None:
    if not asked.reason.strip():
        raise FieldError("reason: wanted why, in words")
    if asked.label not in thresholds:
        raise FieldError(
            f"label: {asked.label[:80]!r} is not known to the model; it knows {', '.join(thresholds)}",
            hint="a class that it does not know takes examples and a retraining, no threshold",
        )
    if asked.threshold == thresholds[asked.label]:
        raise FieldError(f"threshold: {asked.threshold:g} is in force already for class {asked.label}")


def _found_by(calibration: Calibration | None) -> FoundBy:
    return "own class" if calibration is None else calibration.found_by


def _examined(backend: Backend, boards: list[ReviewedBoard], trials: Trials, label: str) -> Examined:
    seen = [board for board in boards if board.inspection not in trials.not_inspected]
    classes = gather(backend.store.engine, seen, scores=trials.found)
    for board, score in trials.false_calls:
        classes[label].add_false_call(board, score)
    return Examined(seen, classes, trials)


def _store(
    backend: Backend,
    stored: StoredRecipe,
    calibration: Calibration,
    asked: ThresholdRequest,
    old: float,
    actor: Actor,
) -> int:
    recipe = stored.recipe.model_copy(update={"calibration": calibration})
    because = {
        "threshold": {"label": asked.label, "before": old, "after": asked.threshold},
        "reason": asked.reason,
        "accept_false_calls": asked.accept_false_calls,
    }
    return put_recipe(
        backend.store.engine,
        stored.name,
        recipe,
        stored.references,
        actor,
        expected=stored.revision,
        model_version=calibration.model_version,
        because=because,
    ).revision
