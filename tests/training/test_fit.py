"""Whole runs on a tiny set: learns it, resumes to the same weights, leaves a checkpoint that inspects."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
import yaml
from lightning_fabric import Fabric
from safetensors.torch import load_file, save_file
from torch.utils.data import DataLoader

from inspect_vit.checkpoint import read_metadata
from inspect_vit.config import validate
from inspect_vit.errors import ConfigError
from inspect_vit.inspector import Inspector
from inspect_vit.results import Verdict
from training.config import TrainConfig
from training.data import DefectDataset
from training.fit import CURVES, LOG, STATE, fit
from training.loading import load_samples
from training.loop import build_trainee, evaluate, train_steps
from training.metrics import summarise
from training.state import check_state, load_state, save_state


@pytest.fixture
def tree(tmp_path: Path) -> dict[str, object]:
    """A run on four 128 px boards laid out as DeepPCB: tracks, with bridges (short) and cuts (open)."""
    rng = np.random.default_rng(0)
    data = tmp_path / "deeppcb" / "PCBData"
    lines = []
    for i in range(6):
        group = "1" if i < 4 else "2"
        folder = data / f"group{group}" / group
        folder.mkdir(parents=True, exist_ok=True)
        (data / f"group{group}" / f"{group}_not").mkdir(exist_ok=True)
        reference = np.zeros((128, 128), np.uint8)
        for x in range(8, 128, 24):
            reference[:, x : x + 10] = 255
        board, labels = reference.copy(), []
        for kind, (column, y) in enumerate(
            zip((8 + 24, 18 + 48), rng.integers(20, 100, 2).tolist(), strict=True)
        ):
            if kind == 0:
                board[y : y + 8, column : column + 10] = 0
                labels.append(f"{column - 6} {y - 8} {column + 16} {y + 16} 1")
            else:
                board[y : y + 8, column : column + 14] = 255
                labels.append(f"{column - 4} {y - 8} {column + 18} {y + 16} 2")
        for kind_name, picture in (("test", board), ("temp", reference)):
            cv2.imwrite(str(folder / f"{i}_{kind_name}.png"), picture)
        (data / f"group{group}" / f"{group}_not" / f"{i}.txt").write_text("\n".join(labels))
        lines.append(f"group{group}/{group}/{i}.png group{group}/{group}_not/{i}.txt")
    for split in ("trainval", "test"):
        (data / f"{split}.txt").write_text("\n".join(lines))
    levels = [
        {"patch_size": 4, "embed_dim": 16, "depth": 1, "head_dim": 16, "window": 8, "attn_drop": 0.1},
        {"patch_size": 16, "embed_dim": 32, "depth": 1, "head_dim": 16, "window": 2, "attn_drop": 0.1},
        {"patch_size": 32, "embed_dim": 32, "depth": 1, "head_dim": 32, "window": 0, "attn_drop": 0.1},
    ]
    names = ["open", "short", "mousebite", "spur", "copper", "pin-hole"]
    return {
        "name": "four-boards",
        "model": {"class_names": names, "levels": levels, "head_width": 32, "size_multiple": 64},
        "data": {
            "root": str(data.parent),
            "val_groups": ["2"],
            "crop_size": 128,
            "workers": 0,
            "mosaic_share": 0.2,
        },
        "augment": {"reference_drop": 0.2, "misalign_px": 1, "photometric_share": 0.1},
        "optim": {"lr": 4e-3, "warmup_steps": 5, "ema_decay": 0.95},
        "epochs": 8,
        "batch_size": 4,
        "devices": 1,
        "save_every_steps": 5,
    }


def config_of(tree: dict[str, object], **changes: object) -> TrainConfig:
    return validate(tree | changes, TrainConfig, source="test")


def test_overfits_four_boards_and_the_checkpoint_inspects(tree: dict[str, object], tmp_path: Path) -> None:
    config = config_of(tree, epochs=60)
    path = fit(config, out=tmp_path / "run")
    training, _ = load_samples(config, out=Path())
    found = evaluate(Inspector(path), training, with_reference=True, label="measure")
    report = summarise(*found, config.model.class_names)
    assert report["shipped"]["ap"] > 0.95
    board, reference = (
        cv2.cvtColor(cv2.imread(str(p)), cv2.COLOR_BGR2RGB)
        for p in (training[0].image, training[0].reference)
    )
    result = Inspector(path).inspect(board, reference=reference)
    assert result.verdict == Verdict.FAIL
    assert sorted(d.label for d in result.defects) == ["open", "short"]
    again = reference.copy()
    again[:2] = 0  # another picture of the same good board
    assert Inspector(path).inspect(again, reference=reference).verdict == Verdict.PASS
    metadata = read_metadata(path)
    assert metadata.training["config"]["epochs"] == 60
    assert 0 < metadata.thresholds["with_reference"]["open"] < 1
    log = [json.loads(line) for line in (tmp_path / "run" / LOG).read_text().splitlines()]
    assert log[-1]["loss"] < log[0]["loss"] / 3
    assert cv2.imread(str(tmp_path / "run" / CURVES)) is not None


def steps(config: TrainConfig, out: Path, *, stop_after: int, total: int) -> dict[str, torch.Tensor]:
    """Train up to a step from the state in `out`, if there is one; leave the state there."""
    fabric = Fabric(accelerator="cpu", devices=1)
    trainee = build_trainee(config, total_steps=total)
    if (out / STATE).exists():
        load_state(out / STATE, trainee, config)
    model, optimizer = fabric.setup(trainee.model, trainee.optimizer)
    samples, _ = load_samples(config, out=Path())
    dataset = DefectDataset(samples, config, total_crops=total * config.batch_size)
    size = config.batch_size
    order = [list(range(s * size, (s + 1) * size)) for s in range(trainee.step, stop_after)]
    train_steps(
        trainee,
        DataLoader(dataset, batch_sampler=order),
        config,
        fabric,
        model,
        optimizer,
        after_step=lambda *_: None,
    )
    save_state(out / STATE, trainee, config)
    return {
        k: v.clone()
        for k, v in (
            trainee.model.state_dict() | {f"ema.{k}": v for k, v in trainee.ema.module.state_dict().items()}
        ).items()
    }


def test_an_interrupted_run_equals_an_unbroken_one(tree: dict[str, object], tmp_path: Path) -> None:
    config = config_of(tree)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    unbroken = steps(config, tmp_path / "a", stop_after=12, total=12)
    steps(config, tmp_path / "b", stop_after=5, total=12)
    resumed = steps(config, tmp_path / "b", stop_after=12, total=12)
    for key, value in unbroken.items():
        assert torch.equal(value, resumed[key]), key


def test_kill_9_and_the_same_command_go_on(tree: dict[str, object], project: Path, tmp_path: Path) -> None:
    tree |= {"epochs": 20, "devices": 2}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(tree))
    out = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "inspect_vit.cli",
        "train",
        "--config",
        str(tmp_path / "run.yaml"),
        "--out",
        str(out),
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    first = subprocess.Popen(
        command,
        cwd=project,
        env=environment,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 240
    while not (out / STATE).exists() and time.monotonic() < deadline and first.poll() is None:
        time.sleep(0.1)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert (out / STATE).exists()
    assert not (out / "four-boards.safetensors").exists()
    second = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=280
    )
    assert second.returncode == 0, second.stderr
    assert "four-boards.safetensors" in second.stdout
    logged = [json.loads(line)["step"] for line in (out / LOG).read_text().splitlines()]
    assert logged == sorted(set(logged))
    assert logged[-1] == 80


def test_a_run_stopped_while_thresholds_are_chosen_leaves_no_model_that_looks_finished(
    tree: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("training.fit.evaluate", stop)
    with pytest.raises(KeyboardInterrupt):
        fit(config_of(tree), out=tmp_path)
    assert not [path for path in tmp_path.glob("*.safetensors") if path.name != STATE]
    monkeypatch.undo()
    metadata = read_metadata(fit(config_of(tree), out=tmp_path))
    assert "validation" in metadata.training


def test_a_state_of_another_configuration_is_refused(tree: dict[str, object], tmp_path: Path) -> None:
    config = config_of(tree, epochs=1)
    fit(config, out=tmp_path / "run")
    with pytest.raises(
        ConfigError, match=r"another configuration \(epochs: 1 -> 2\); use another --out, or --fresh"
    ):
        fit(config_of(tree, epochs=2), out=tmp_path / "run")
    fit(config_of(tree, epochs=2), out=tmp_path / "run", fresh=True)


def test_a_state_from_before_a_setting_existed_is_gone_on_from(
    tree: dict[str, object], tmp_path: Path
) -> None:
    config, path = config_of(tree), tmp_path / STATE
    save_state(path, build_trainee(config, total_steps=1), config)
    known = config.model_dump(mode="json")
    del known["ablation"], known["data"]["retake_share"]
    tensors, metadata = load_file(path), {"step": "7", "config": json.dumps(known)}
    save_file(tensors, path, metadata=metadata)
    assert check_state(path, config) == 7
    with pytest.raises(ConfigError, match=r"another configuration \(ablation: None -> sum\)"):
        check_state(path, config.model_copy(update={"ablation": "sum"}))


def test_a_set_that_is_not_there_is_named(tree: dict[str, object], tmp_path: Path) -> None:
    config = config_of(tree, data={"root": str(tmp_path / "nowhere"), "val_groups": ["2"], "crop_size": 128})
    with pytest.raises(ConfigError, match=r"no data set at .*nowhere; set --data, data\.root"):
        fit(config, out=tmp_path / "run")


def test_recomputed_activations_train_to_the_same_weights(tree: dict[str, object], tmp_path: Path) -> None:
    weights = []
    for recompute in (False, True):
        out = tmp_path / str(recompute)
        out.mkdir()
        config = config_of(tree, checkpoint_activations=recompute)
        state = steps(config, out, stop_after=3, total=6)
        weights.append({k.replace("_checkpoint_wrapped_module.", ""): v for k, v in state.items()})
    for key, value in weights[0].items():
        torch.testing.assert_close(value, weights[1][key], msg=key)


def test_unreadable_and_quarantined_pictures_stop_no_run_and_are_named_at_its_end(
    tree: dict[str, object], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "deeppcb" / "PCBData"
    torn = [data / "group1" / "1" / "1_test.png", data / "group2" / "2" / "5_test.png"]
    for path in torn:
        path.write_bytes(path.read_bytes()[:-60])
    black = data / "group1" / "1" / "2_test.png"
    entries = [{"image": str(black), "kind": "unfit-image", "message": "black frame"}]
    (tmp_path / "quarantine.json").write_text(json.dumps(entries))
    settings = tree["data"] | {"quarantine": str(tmp_path / "quarantine.json")}  # type: ignore[operator]
    config = config_of(tree, data=settings, epochs=2)
    assert len(load_samples(config, out=Path())[0]) == 3
    path = fit(config, out=tmp_path / "run")
    told = capfd.readouterr().err.split("left out 3 pictures:")[1]
    for image in (*torn, black):
        assert image.relative_to(data.parent).as_posix() in told
    assert "black frame" in told
    assert set(read_metadata(path).training["left_out"]) == {
        image.relative_to(data.parent).as_posix() for image in (*torn, black)
    }
