"""A checkpoint comes back bit for bit, or says what is wrong with it."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from inspect_vit.checkpoint import HEADER_KEY, load_checkpoint, read_metadata, round_to_fp16, save_checkpoint
from inspect_vit.config import ModelConfig
from inspect_vit.errors import CheckpointError
from inspect_vit.model import HierarchicalViT


def rewritten(path: Path, target: Path, *, drop: str = "", change: str = "", version: str = "") -> Path:
    """The same file with a tensor dropped or changed, or another version in its metadata."""
    tensors, metadata = load_file(path), read_metadata(path)
    tensors.pop(drop, None)
    if change:
        tensors[change] = tensors[change] + 1
    if version:
        metadata = metadata.model_copy(update={"version": version})
    save_file(tensors, target, metadata={HEADER_KEY: metadata.model_dump_json()})
    return target


def test_round_trip_is_bit_identical(tiny_checkpoint: Path, tmp_path: Path) -> None:
    torch.manual_seed(1)
    model = HierarchicalViT(read_metadata(tiny_checkpoint).model)
    round_to_fp16(model)
    thresholds = {"with_reference": {"open": 0.25}, "without_reference": {"open": 0.5}}
    saved = save_checkpoint(
        tmp_path / "a.safetensors",
        model,
        name="a",
        thresholds=thresholds,
        training={"epochs": 3, "note": "µ"},
    )  # type: ignore[arg-type]
    loaded, metadata = load_checkpoint(tmp_path / "a.safetensors")
    assert metadata == saved
    assert metadata.thresholds == thresholds
    assert metadata.training == {"epochs": 3, "note": "µ"}
    for (key, want), (other, got) in zip(
        model.state_dict().items(), loaded.state_dict().items(), strict=True
    ):
        assert key == other
        assert torch.equal(want, got), key
    assert not loaded.training
    assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors"]


def test_version_follows_the_weights(tiny_checkpoint: Path, tmp_path: Path) -> None:
    model, metadata = load_checkpoint(tiny_checkpoint)
    with torch.no_grad():
        model.head.out.bias[0] += 0.5
    again = save_checkpoint(
        tmp_path / "b.safetensors", model, name="b", thresholds=metadata.thresholds, training={}
    )
    assert again.version != metadata.version
    assert len(again.version) == 12


def test_what_does_not_fit_is_named(tiny_checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"head\.out\.bias is missing"):
        load_checkpoint(rewritten(tiny_checkpoint, tmp_path / "a.safetensors", drop="head.out.bias"))
    with pytest.raises(CheckpointError, match="is damaged or was edited"):
        load_checkpoint(rewritten(tiny_checkpoint, tmp_path / "b.safetensors", change="head.out.bias"))
    with pytest.raises(CheckpointError, match="its metadata says 0123456789ab"):
        load_checkpoint(rewritten(tiny_checkpoint, tmp_path / "c.safetensors", version="0123456789ab"))


def test_a_wrong_shape_names_both(tiny_checkpoint: Path, tmp_path: Path) -> None:
    metadata = read_metadata(tiny_checkpoint)
    wider = ModelConfig.model_validate(metadata.model.model_dump() | {"head_width": 96})
    save_file(
        load_file(tiny_checkpoint),
        tmp_path / "w.safetensors",
        metadata={HEADER_KEY: metadata.model_copy(update={"model": wider}).model_dump_json()},
    )
    with pytest.raises(
        CheckpointError, match=r"head\.trunk\.0\.weight has shape \(64, 32, 3, 3\), wanted \(96,"
    ):
        load_checkpoint(tmp_path / "w.safetensors")


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", pickle.dumps({"weights": 1})])
def test_other_files_are_refused_and_never_unpickled(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="cannot read the checkpoint"):
        load_checkpoint(path)


def test_missing_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="nowhere"):
        read_metadata(tmp_path / "nowhere.safetensors")
    save_file({"a": torch.zeros(1)}, tmp_path / "foreign.safetensors")
    with pytest.raises(CheckpointError, match="without inspect-vit metadata"):
        read_metadata(tmp_path / "foreign.safetensors")


def test_a_truncated_file_is_refused(tiny_checkpoint: Path, tmp_path: Path) -> None:
    whole = tiny_checkpoint.read_bytes()
    path = tmp_path / "t.safetensors"
    for share in (0.001, 0.5, 0.999):
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(CheckpointError):
            load_checkpoint(path)
