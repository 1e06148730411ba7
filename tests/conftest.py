"""Fixtures shared by all tests.

Tests on real data read it from the folder named by INSPECT_VIT_DATA (default: ../shared/data) and
skip with a reason where it is absent. Under CI the only other reasons to skip are a missing CUDA device and a
container that allows no mount namespace.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from inspect_vit.calibration import Calibration

PROJECT = Path(__file__).resolve().parents[1]
ACCEPTED_SKIPS = ("INSPECT_VIT_DATA", "CUDA", "unshare")


@pytest.fixture(scope="session")
def project() -> Path:
    return PROJECT


@pytest.fixture(scope="session")
def deeppcb_root() -> Path:
    """The folder that holds PCBData/."""
    data = Path(os.environ.get("INSPECT_VIT_DATA", PROJECT.parent / "shared" / "data"))
    root = data / "deeppcb"
    if not (root / "PCBData").is_dir():
        pytest.skip(f"INSPECT_VIT_DATA: no deeppcb/PCBData in {data}")
    return root


@pytest.fixture(scope="session")
def sample_pair() -> tuple[Path, Path]:
    """A board with defects and its golden reference, from data_samples/."""
    image = sorted((PROJECT / "data_samples").glob("*_test.png"))[0]
    return image, image.with_name(image.name.replace("_test", "_temp"))


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of nano's shape with random weights (seed 0)."""
    import torch

    from inspect_vit.checkpoint import save_checkpoint
    from inspect_vit.config import ModelConfig, PatchLevelConfig
    from inspect_vit.model import HierarchicalViT
    from training.formats.deeppcb import CLASS_NAMES

    torch.manual_seed(0)
    levels = (
        PatchLevelConfig(
            patch_size=4, embed_dim=32, depth=1, head_dim=32, window=8, attn_drop=0.5, mlp_ratio=2
        ),
        PatchLevelConfig(patch_size=16, embed_dim=128, depth=3, head_dim=64, window=20, attn_drop=0.2),
        PatchLevelConfig(patch_size=32, embed_dim=256, depth=1, head_dim=128, window=0, attn_drop=0.1),
    )
    model = HierarchicalViT(ModelConfig(class_names=CLASS_NAMES, levels=levels))
    path = tmp_path_factory.mktemp("checkpoint") / "tiny.safetensors"
    thresholds = dict.fromkeys(CLASS_NAMES, 0.3)
    save_checkpoint(
        path,
        model,
        name="tiny",
        thresholds={"with_reference": thresholds, "without_reference": thresholds},
        training={"seed": 0},
    )
    return path


@pytest.fixture(scope="session")
def make_calibration() -> Callable[..., Calibration]:
    """make_calibration(thresholds, version, **changes): 59 boards on which the first class is found, 5 %
    asked for and kept; with a golden reference, recipe "panel 7", camera "line 3"."""
    import numpy as np

    from inspect_vit.board_evidence import Evidence
    from inspect_vit.calibration import Calibration, Target
    from inspect_vit.guarantee import choose

    def make(thresholds: dict[str, float], version: str, **changes: Any) -> Calibration:
        first, n = next(iter(thresholds)), 59
        evidence = Evidence(
            num_boards=n,
            defect_boards=np.arange(n),
            defect_labels=np.zeros(n, np.int64),
            finding_scores=np.full((n, 1), 0.9),
            false_boards=np.zeros(0, np.int64),
            false_labels=np.zeros(0, np.int64),
            false_scores=np.zeros(0),
            lowest_score=0.01,
        )
        choice = choose(evidence, [first], np.array([0.5]), [Target(label=first, max_miss_rate=0.05)])
        fields: dict[str, Any] = {
            "model_name": "m",
            "model_version": version,
            "reference_mode": "with_reference",
            "recipe": "panel 7",
            "camera": "line 3",
            "date": "2026-11-30T10:00:00+00:00",
            "data": "boards, all",
            "data_fingerprint": "0123456789ab",
            "unit": "group",
            "num_pictures": n,
            "num_boards": n,
            "found_by": "own class",
            "min_iou": 0.33,
            "thresholds": thresholds,
            "claims": choice.claims,
            "joint_confidence": choice.joint_confidence,
            "classes": choice.classes,
            "false_calls": choice.false_calls,
        }
        return Calibration(**fields | changes)

    return make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if (
        report.skipped
        and os.environ.get("CI")
        and not any(word in str(report.longrepr) for word in ACCEPTED_SKIPS)
    ):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, where it must run: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def strict_calibration(
    make_calibration: Callable[..., Calibration], tiny_checkpoint: Path
) -> Callable[..., dict[str, Any]]:
    """strict_calibration(recipe, reference_mode): as a recipe takes it, with thresholds so low that the tiny
    checkpoint's random weights call something on every board; of any camera."""
    from inspect_vit.checkpoint import read_metadata

    metadata = read_metadata(tiny_checkpoint)

    def make(recipe: str, reference_mode: str) -> dict[str, Any]:
        thresholds = dict.fromkeys(metadata.model.class_names, 0.0101)
        changes = {"reference_mode": reference_mode, "recipe": recipe}
        calibration = make_calibration(thresholds, metadata.version, **changes)
        return calibration.model_copy(update={"camera": None}).model_dump(mode="json")

    return make
