"""A threshold for a recipe from question to revision, with a real model and stored pictures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspect_vit.calibration import Calibration
from inspect_vit.inspector import Inspector
from inspect_vit.recipe import Recipe
from serving.audit import read_audit
from serving.backend import Backend
from serving.config import ServingConfig
from serving.errors import FieldError, NotFoundError, ThresholdRefusedError
from serving.parts import part_of
from serving.proposals import propose
from serving.recipes import get_recipe, list_revisions, put_recipe
from serving.roles import Actor, Role
from serving.schemas import InspectionReport, InspectOptions
from serving.threshold_schemas import ThresholdRequest
from serving.uploads import Upload
from tests.loud import NAMES, save_loud
from tests.serving.conftest import encode
from tests.serving.reviewing import dispose, verify

ENGINEER = Actor("eve", Role.ENGINEER)
HIGH = 0.999
"""A threshold that no score reaches: every board passes."""
SERIALS = [name for name in (f"SN-{n}" for n in range(40)) if part_of(name, 0.5) == "acceptance"][:4]
TRAINED = next(name for name in (f"SN-{n}" for n in range(40)) if part_of(name, 0.5) == "train")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_loud(tmp_path_factory.mktemp("loud") / "loud.safetensors")


def picture(seed: int) -> np.ndarray:
    blocks = np.random.default_rng(seed).integers(0, 2, (12, 16), np.uint8) * 200 + 20
    return np.repeat(np.kron(blocks, np.ones((8, 8), np.uint8))[..., None], 3, axis=2)


async def here() -> bool:
    return False


def served(checkpoint: Path, home: Path, ask: Callable[[Backend], Awaitable[Any]], **settings: Any) -> Any:
    """What `ask` answers on a backend of its own, by whose recipe "panel" every board passes."""

    async def run() -> Any:
        config = ServingConfig(
            home=home, checkpoint=checkpoint, device="cpu", min_free_mb=0, audit_share=1.0,
            acceptance_share=0.5, **settings,
        )  # fmt: skip
        backend = Backend(config)
        try:
            if not (home / "made").exists():
                recipe = Recipe(calibration=strict(backend, dict.fromkeys(NAMES, HIGH)))
                put_recipe(backend.store.engine, "panel", recipe, (), ENGINEER)
                (home / "made").touch()
            return await ask(backend)
        finally:
            backend.close()

    return asyncio.run(run())


def strict(backend: Backend, thresholds: dict[str, float]) -> Calibration:
    metadata = backend.engine.models.default.metadata
    return Calibration.model_validate(
        {
            "model_name": metadata.name, "model_version": metadata.version, "date": "2026-01-01",
            "reference_mode": "without_reference", "recipe": "panel", "data": "none", "data_fingerprint": "",
            "unit": "picture", "num_pictures": 1, "num_boards": 1, "found_by": "own class", "min_iou": 0.33,
            "thresholds": thresholds, "claims": [], "joint_confidence": 1.0, "classes": [],
            "false_calls": {
                "num_calls": 0, "num_boards": 1, "boards_with": 0, "per_board": 0.0, "per_board_own": 0.0
            },
        }
    )  # fmt: skip


async def inspect(backend: Backend, serial: str, seed: int) -> InspectionReport:
    data = encode(".png", picture(seed))
    report, _ = await backend.inspect(
        Upload(data, None, serial, "panel", InspectOptions(), None), ENGINEER, here
    )
    return report


def ask(label: str, threshold: float, **more: Any) -> ThresholdRequest:
    return ThresholdRequest(label=label, threshold=threshold, reason="missed on SN-17", **more)


def test_a_lower_threshold_is_tried_on_the_pictures_of_reviewed_boards(
    checkpoint: Path, tmp_path: Path
) -> None:
    inspector = Inspector(checkpoint, device="cpu")
    calls = [inspector.inspect(picture(seed), min_score=0.02).defects for seed in range(5)]
    label = max(NAMES, key=lambda name: min(max(c.score for c in of if c.label == name) for of in calls))
    tops = [max((c for c in of if c.label == label), key=lambda c: c.score) for of in calls]
    # One board's best call is a defect that people drew; of the others each score is known.
    threshold = min(sorted(top.score for top in tops[1:4])[1], tops[0].score) - 1e-3
    wanted = sum(any(c.score >= threshold for c in of if c.label == label) for of in calls[1:4])

    async def run(backend: Backend) -> Any:
        for seed, serial in enumerate([*SERIALS, TRAINED]):
            report = await inspect(backend, serial, seed)
            assert report.verdict == "PASS"
            drawn = {"label": label, "box_xyxy": tops[0].box_xyxy, "polygon": None}
            verify(backend.store, report.id, 0, missed=[] if seed else [drawn])
            if not seed:
                dispose(backend.store, report.id, 1, "rework")
        with pytest.raises(ThresholdRefusedError) as told:
            await propose(backend, "panel", ask(label, threshold), ENGINEER, here)
        assert get_recipe(backend.store.engine, "panel").revision == 1, "nothing was stored"
        asked = ask(label, threshold, accept_false_calls=True)
        report = await propose(backend, "panel", asked, ENGINEER, here)
        again = await inspect(backend, SERIALS[0], 0)
        return (
            told.value,
            report,
            again,
            get_recipe(backend.store.engine, "panel"),
            read_audit(backend.store.engine, limit=1, action="recipe_replaced"),
        )

    refused, report, again, stored, (entry,) = served(checkpoint, tmp_path, run)
    assert wanted >= 2
    assert f"{wanted} of 3 good boards that passed would be called" in str(refused)
    gate = report.gate
    assert (gate.boards, gate.num_good_boards, gate.boards_newly_called) == (4, 3, wanted)
    assert (gate.num_defect_boards, gate.boards_newly_found, gate.boards_newly_missed) == (1, 1, 0)
    assert (report.points.before.misses, report.points.after.misses) == (1, 0)
    in_vain = sum(c.score >= threshold for of in calls[1:4] for c in of if c.label == label)
    assert (report.points.before.false_calls, report.points.after.false_calls >= in_vain) == (0, True)
    assert (stored.revision, report.revision) == (2, 2)
    assert stored.recipe.calibration is not None
    assert stored.recipe.calibration.thresholds[label] == threshold
    assert {name: stored.recipe.calibration.thresholds[name] for name in NAMES if name != label} == {
        name: HIGH for name in NAMES if name != label
    }
    assert {defect.label for defect in again.defects} == {label}, "it is in force for the next board"
    assert again.calibration is not None and again.calibration.valid
    assert entry.actor == "eve"
    assert entry.details["threshold"] == {"label": label, "before": HIGH, "after": threshold}
    assert (entry.details["reason"], entry.details["revision"]) == ("missed on SN-17", 2)


def test_a_threshold_of_a_model_that_wants_references_is_for_boards_with_one(tmp_path: Path) -> None:
    """The recipe has none of its own, and no board was reviewed: each board brings its reference."""

    async def run(backend: Backend) -> Calibration | None:
        put_recipe(backend.store.engine, "bare", Recipe(), (), ENGINEER)
        await propose(backend, "bare", ask("a", 0.05, accept_false_calls=True), ENGINEER, here)
        return get_recipe(backend.store.engine, "bare").recipe.calibration

    checkpoint = save_loud(tmp_path / "loud.safetensors", needs_reference=True)
    calibration = served(checkpoint, tmp_path / "home", run)
    assert calibration is not None
    assert calibration.reference_mode == "with_reference"


def test_what_cannot_be_meant_is_refused_and_stores_nothing(checkpoint: Path, tmp_path: Path) -> None:
    async def run(backend: Backend) -> list[str]:
        told = []
        for name, asked, error in (
            ("none", ask("a", 0.5), NotFoundError),
            ("panel", ask("scratch", 0.5), FieldError),
            ("panel", ask("a", HIGH), FieldError),
            # Higher without a single reviewed board, and lower without one.
            ("panel", ask("a", 0.9995), ThresholdRefusedError),
            ("panel", ask("a", 0.5), ThresholdRefusedError),
            ("panel", ask("a", 0.5).model_copy(update={"reason": " \n"}), FieldError),
        ):
            with pytest.raises(error) as refused:
                await propose(backend, name, asked, ENGINEER, here)
            told.append(str(refused.value))
        assert len(list_revisions(backend.store.engine, "panel")) == 1
        return told

    told = served(checkpoint, tmp_path, run)
    assert told[1] == "label: 'scratch' is not known to the model; it knows a, b"
    assert told[2] == "threshold: 0.999 is in force already for class a"
    # 0.98^149 < 0.05: the margin of 2 % takes 149 boards.
    assert "needs 149 more boards with a confirmed defect of class a, all found" in told[3]
    assert "nothing is known" in told[4]


def test_over_http_by_an_engineer_alone(guarded: Any) -> None:
    guarded.call("PUT", "/v1/recipes/thresholds", "engineer", json={}).raise_for_status()
    path = "/v1/recipes/thresholds/thresholds"
    body = {"label": "short", "threshold": 0.999, "reason": "try"}
    assert guarded.call("POST", path, "operator", json=body).status_code == 403
    refused = guarded.call("POST", path, "engineer", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "threshold_refused"), refused.text
    for wrong in (
        {"threshold": 1.5},
        {"threshold": "0.5"},
        {"reason": ""},
        {"label": "scratch"},
        {"more": 1},
    ):
        answer = guarded.call("POST", path, "engineer", json={**body, **wrong})
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_field"), wrong
        assert answer.json()["error"]["message"].startswith(next(iter(wrong))), answer.text
    taken = {**body, "threshold": 0.0001, "accept_false_calls": True}
    answer = guarded.call("POST", path, "engineer", json=taken)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["revision"], told["claim"], told["gate"]["bound"]) == (2, None, None)
    recipe = guarded.call("GET", "/v1/recipes/thresholds", "engineer").json()["recipe"]
    assert recipe["calibration"]["thresholds"]["short"] == 0.0001
    guarded.call("DELETE", "/v1/recipes/thresholds", "engineer")
