"""The front door: what it refuses, what the verdict depends on, what maps cover."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from inspect_vit.alignment import as_posted
from inspect_vit.checkpoint import ReferenceMode, load_checkpoint, save_checkpoint
from inspect_vit.devices import resolve_device
from inspect_vit.errors import ConfigError, ImageError, ImageTooLargeError
from inspect_vit.inspector import Inspector
from inspect_vit.pictures import check_picture
from inspect_vit.results import IntakeReport, Verdict


@pytest.fixture(scope="module")
def inspector(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Inspector:
    """Random weights, and a head that answers loudly enough for some calls to pass the threshold."""
    model, metadata = load_checkpoint(tiny_checkpoint)
    torch.manual_seed(5)
    torch.nn.init.normal_(model.head.out.weight, std=0.35)
    path = tmp_path_factory.mktemp("loud") / "loud.safetensors"
    save_checkpoint(path, model, name="loud", thresholds=metadata.thresholds, training={})
    return Inspector(path)


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    coarse = np.random.default_rng(seed).integers(0, 2, (height // 8 + 1, width // 8 + 1, 1), np.uint8) * 255
    return np.ascontiguousarray(
        np.repeat(np.kron(coarse, np.ones((8, 8, 1), np.uint8)), 3, 2)[:height, :width]
    )


@pytest.mark.parametrize(("height", "width"), [(320, 320), (203, 411), (20, 20)])
def test_maps_cover_the_picture_and_boxes_stay_inside(inspector: Inspector, height: int, width: int) -> None:
    result = inspector.inspect(picture(height, width), min_score=0.01)
    cells = (-(-height // 4), -(-width // 4))
    assert (result.height, result.width) == (height, width)
    assert result.defect_map.shape == (6, *cells)
    assert result.defect_map.dtype == np.float32
    np.testing.assert_allclose(sum(result.gate_maps.values()), np.ones(cells), atol=1e-5)
    assert result.defects
    for defect in result.defects:
        left, top, right, bottom = defect.box_xyxy
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
        assert sum(defect.gate_share.values()) == pytest.approx(1)
    scores = [defect.score for defect in result.defects]
    assert scores == sorted(scores, reverse=True)


def test_min_score_changes_the_list_and_never_the_verdict(inspector: Inspector) -> None:
    board = picture(320, 320)
    low, deployed, high = (inspector.inspect(board, min_score=s) for s in (0.2, None, 0.9999))
    assert low.verdict == deployed.verdict == high.verdict == Verdict.FAIL
    assert len(low.defects) > len(deployed.defects) > len(high.defects) == 0
    assert low.reasons == deployed.reasons == high.reasons
    assert all(d.area_px >= 16 for d in low.defects)
    assert all(d.score >= deployed.thresholds[d.label] for d in deployed.defects)
    assert sum(int(reason.split()[0]) for reason in deployed.reasons) == len(deployed.defects)


def test_a_quiet_board_passes(tiny_checkpoint: Path) -> None:
    result = Inspector(tiny_checkpoint).inspect(picture(320, 320))
    assert result.verdict == Verdict.PASS
    assert result.reasons == ()
    assert 0 < result.score < 0.3


def test_faults_of_the_picture_make_the_verdict_error(inspector: Inspector) -> None:
    intake = IntakeReport("PNG", "L", 8, 320, 320, errors=("almost blank",))
    result = inspector.inspect(picture(320, 320), intake=intake)
    assert result.verdict == Verdict.ERROR
    assert result.reasons == ("almost blank",)
    assert result.defects == ()


def test_the_reference_is_used_and_named(inspector: Inspector) -> None:
    board = picture(320, 320)
    alone, same, other = (
        inspector.inspect(
            board, reference=None if seed is None else as_posted(board, picture(320, 320, seed))
        )
        for seed in (None, 8, 9)
    )
    assert (alone.with_reference, same.with_reference) == (False, True)
    assert np.abs(same.defect_map - other.defect_map).max() > 1e-4


def test_a_board_against_itself_is_no_inspection(inspector: Inspector) -> None:
    board = picture(320, 320)
    result = inspector.inspect(board, reference=board.copy())
    assert result.verdict == Verdict.ERROR
    assert "image and reference are the same picture" in result.reasons[0]


def test_the_same_picture_gives_the_same_answer(inspector: Inspector) -> None:
    board = picture(203, 411)
    first, second = inspector.inspect(board), inspector.inspect(board)
    assert first.defects == second.defects
    assert np.array_equal(first.defect_map, second.defect_map)


def test_attention_maps_average_to_uniform(inspector: Inspector) -> None:
    maps = inspector.attention(picture(320, 320))
    assert list(maps) == ["4", "16", "32"]
    for level in maps.values():
        assert level.shape == (80, 80)
        assert level.mean() == pytest.approx(1, abs=1e-3)
        assert level.std() > 0


def test_refuses_what_is_no_picture(inspector: Inspector) -> None:
    with pytest.raises(ImageError, match=r"float32 and shape \(8, 8, 3\), wanted uint8"):
        inspector.inspect(np.zeros((8, 8, 3), np.float32))  # type: ignore[arg-type]
    with pytest.raises(ImageError, match=r"shape \(8, 8\)"):
        inspector.inspect(np.zeros((8, 8), np.uint8))
    with pytest.raises(ImageError, match="reference has 321x320 px, the image 320x320"):
        inspector.tensors(picture(320, 320), picture(320, 321))
    with pytest.raises(ImageError, match="reference is an array of uint8 and shape"):
        inspector.inspect(picture(320, 320), reference=picture(320, 320)[..., 0])
    with pytest.raises(ImageTooLargeError, match="20000x16000 px, the limit is 300 megapixels"):
        check_picture(np.broadcast_to(np.zeros((1, 1, 3), np.uint8), (16000, 20000, 3)), "image")


def test_devices_that_are_not_there_are_named() -> None:
    assert resolve_device("cpu").type == "cpu"
    with pytest.raises(ConfigError, match="unknown device 'gpu'"):
        resolve_device("gpu")
    with pytest.raises(ConfigError, match=r"'cuda:99' is not there"):
        resolve_device("cuda:99")
    with pytest.raises(ConfigError, match="'meta' is not supported"):
        resolve_device("meta")


def test_a_model_that_needs_a_reference_passes_no_board_without_one(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    model, metadata = load_checkpoint(tiny_checkpoint)
    path = tmp_path / "needy.safetensors"
    # Thresholds that nothing reaches: all that keeps the board from PASS is the missing reference.
    limits = dict.fromkeys(metadata.model.class_names, 1.0)
    thresholds: dict[ReferenceMode, dict[str, float]] = {
        "with_reference": limits,
        "without_reference": limits,
    }
    save_checkpoint(path, model, name="needy", thresholds=thresholds, training={}, needs_reference=True)
    inspector = Inspector(path, device="cpu")
    rng = np.random.default_rng(0)
    board = (cv2.resize(rng.integers(0, 2, (40, 40), np.uint8), (320, 320), interpolation=0) * 255)[..., None]
    board = np.repeat(board, 3, axis=2)
    golden = board.copy()
    golden[:8] = 255 - golden[:8]
    alone, paired = inspector.inspect(board), inspector.inspect(board, reference=golden)
    assert alone.verdict is Verdict.ERROR
    assert alone.reasons == ("model needy inspects only against a golden reference; send one",)
    assert paired.verdict is Verdict.PASS
