"""What is in quarantine is not trained on, and one picture that cannot be read does not stop a run."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from inspect_vit.errors import ConfigError, ImageError
from inspect_vit.results import Sample
from training.config import TrainConfig
from training.data import DefectDataset
from training.quarantine import leave_out, note_unreadable, read_notes, read_quarantine, write_quarantine

from .conftest import draw_board


def config() -> TrainConfig:
    levels = [{"patch_size": p, "embed_dim": 8, "depth": 1, "head_dim": 8, "window": 0} for p in (4, 16, 32)]
    return TrainConfig.model_validate(
        {
            "name": "t",
            "model": {"class_names": ["speck"], "levels": levels, "size_multiple": 32},
            "data": {"val_groups": ["v"], "crop_size": 64, "workers": 0, "mosaic_share": 0.5, "cache_mb": 0},
            "epochs": 1,
        }
    )


def make_samples(folder: Path, count: int) -> list[Sample]:
    samples = []
    for seed in range(count):
        image, reference = folder / f"{seed}.png", folder / f"{seed}_ref.png"
        cv2.imwrite(str(image), draw_board(seed))
        cv2.imwrite(str(reference), draw_board(seed))
        box = np.array([[50, 50, 70, 70]], np.float32)
        samples.append(Sample(image, box, ("speck",), reference=reference, group=str(seed)))
    return samples


def test_a_list_comes_back_with_resolved_paths(tmp_path: Path) -> None:
    path = tmp_path / "quarantine.json"
    reasons = {tmp_path / "\u5b54 1.png": ("corrupt-image", "cut short")}
    write_quarantine(path, reasons)
    assert read_quarantine(path) == {tmp_path / "\u5b54 1.png": "corrupt-image: cut short"}
    path.write_text(json.dumps([{"image": "sub/../b.png", "kind": "mine", "message": "I say so"}]))
    assert read_quarantine(path) == {tmp_path / "b.png": "mine: I say so"}


@pytest.mark.parametrize("text", ["", "{}x", '{"image": "a"}', '[{"image": "a.png"}]', "[1]"])
def test_what_is_no_list_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "quarantine.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"quarantine\.json is no quarantine list"):
        read_quarantine(path)
    with pytest.raises(ConfigError, match="cannot read the quarantine list"):
        read_quarantine(tmp_path / "nowhere.json")


def test_a_sample_goes_with_its_picture_or_its_reference(tmp_path: Path) -> None:
    samples = make_samples(tmp_path, 4)
    assert samples[3].reference is not None
    kept, left_out = leave_out(samples, {samples[1].image: "black", samples[3].reference: "torn"})
    assert kept == [samples[0], samples[2]]
    assert list(left_out) == [samples[1].image, samples[3].image]
    assert left_out[samples[1].image] == "black"
    assert "torn" in left_out[samples[3].image] and "3_ref.png" in left_out[samples[3].image]


def test_notes_survive_a_line_that_was_cut_off(tmp_path: Path) -> None:
    notes = tmp_path / "unreadable.jsonl"
    assert read_notes(notes) == {}
    for name in ("a.png", "b.png", "a.png"):
        note_unreadable(notes, tmp_path / name, f"{name} is torn")
    with notes.open("a") as file:
        file.write('{"image": "c.p')
    assert read_notes(notes) == {tmp_path / "a.png": "a.png is torn", tmp_path / "b.png": "b.png is torn"}


def test_another_sample_stands_in_for_one_that_cannot_be_read(tmp_path: Path) -> None:
    samples = make_samples(tmp_path, 4)
    samples[1].image.write_bytes(samples[1].image.read_bytes()[:-200])
    assert samples[2].reference is not None
    samples[2].reference.write_bytes(b"")
    notes = tmp_path / "unreadable.jsonl"
    dataset = DefectDataset(samples, config(), total_crops=40, notes=notes)
    crops = [dataset[i] for i in range(40)]
    assert set(read_notes(notes)) == {samples[1].image, samples[2].image}
    # Whoever makes crop i, and whenever, makes the same one.
    later = DefectDataset(samples, config(), total_crops=40, notes=notes)
    for i in (39, 17, 3):
        assert all(torch.equal(value, crops[i][key]) for key, value in later[i].items())
    # Without a place for notes nothing is skipped unsaid.
    with pytest.raises(ImageError):
        [DefectDataset(samples, config(), total_crops=40)[i] for i in range(40)]


def test_a_reference_of_another_size_counts_as_unreadable(tmp_path: Path) -> None:
    samples = make_samples(tmp_path, 2)
    cv2.imwrite(str(samples[0].reference), draw_board(9)[:-1])
    notes = tmp_path / "unreadable.jsonl"
    dataset = DefectDataset(samples, config(), total_crops=8, notes=notes)
    for i in range(8):
        dataset[i]
    assert list(read_notes(notes)) == [samples[0].image]


def test_a_set_without_any_readable_picture_is_refused(tmp_path: Path) -> None:
    samples = make_samples(tmp_path, 2)
    for sample in samples:
        sample.image.write_bytes(b"no picture")
    with pytest.raises(ImageError, match="no picture of the training set can be read"):
        DefectDataset(samples, config(), total_crops=8, notes=tmp_path / "notes")[0]
