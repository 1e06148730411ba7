"""`inspect-vit doctor`: exit codes a script can trust, JSON on stdout, a page that stands alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from inspect_vit.checkpoint import save_checkpoint
from inspect_vit.cli import main
from inspect_vit.config import ModelConfig, PatchLevelConfig
from inspect_vit.model import HierarchicalViT


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


def write_checkpoint(path: Path, *, gate_bias: float) -> Path:
    torch.manual_seed(0)
    levels = (
        PatchLevelConfig(patch_size=4, embed_dim=16, depth=1, head_dim=8, window=4),
        PatchLevelConfig(patch_size=16, embed_dim=32, depth=1, head_dim=16, window=5),
        PatchLevelConfig(patch_size=32, embed_dim=32, depth=1, head_dim=16, window=0),
    )
    model = HierarchicalViT(
        ModelConfig(class_names=("a", "<b>"), levels=levels, size_multiple=160, init="orthogonal")
    )
    torch.nn.init.constant_(model.fuse4.w_g_high.bias, gate_bias)  # type: ignore[arg-type]
    limits = {"a": 0.3, "<b>": 0.3}
    save_checkpoint(
        path,
        model,
        name="<tiny>",
        thresholds={"with_reference": limits, "without_reference": limits},
        training={},
    )
    return path


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("boards")
    cells = np.random.default_rng(0).integers(0, 2, (20, 20)).astype(np.uint8) * 255
    for name in ("a_temp", "a_test"):
        assert cv2.imwrite(str(folder / f"{name}.png"), np.kron(cells, np.ones((8, 8), np.uint8)))
        cells[3, 4:6] = 255 - cells[3, 4:6]
    return folder


def test_a_healthy_checkpoint_exits_0_and_leaves_a_page(
    boards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = write_checkpoint(tmp_path / "well.safetensors", gate_bias=0.0)
    code = run("doctor", checkpoint, "--data", boards, "--out", tmp_path / "new" / "doctor")
    shown = capsys.readouterr()
    assert code == 0, shown.out
    assert "1 board of 1" in shown.err
    assert "1 with reference" in shown.err
    for check in ("masks", "score spread", "removing a head", "backends"):
        assert check in shown.out
    assert re.search(r"^(ok|warn): \d+ ok", shown.out, flags=re.MULTILINE)
    page = (tmp_path / "new" / "doctor" / "doctor.html").read_text(encoding="utf-8")
    assert "&lt;tiny&gt;" in page
    assert "<tiny>" not in page
    assert page.count("data:image/svg+xml;base64,") == 7
    assert not re.search(r'(src|href)="(?!data:|#)', page)


def test_an_ill_checkpoint_exits_1_and_names_place_and_remedy(
    boards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = write_checkpoint(tmp_path / "ill.safetensors", gate_bias=50.0)
    assert run("doctor", checkpoint, "--data", boards, "--out", tmp_path, "--json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report == json.loads((tmp_path / "doctor.json").read_text(encoding="utf-8"))
    assert report["verdict"] == "ill"
    assert report["model"]["name"] == "<tiny>"
    ill = {(f["check"], f["place"]): f for f in report["findings"] if f["verdict"] == "ill"}
    found = ill["level share", "16 px"]
    assert found["level_px"] == 16
    assert found["value"] == pytest.approx(0.0, abs=1e-6)
    assert "model.levels.1.depth" in found["remedy"]
    assert found["limit"] == "warn below 0.05, ill below 0.01"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("none.safetensors",), "none.safetensors"),
        (("{well}", "--data", "nowhere"), "--data nowhere is not a folder"),
        (("{well}", "--device", "abacus"), "abacus"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(
    arguments: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    well = write_checkpoint(tmp_path / "well.safetensors", gate_bias=0.0)
    assert run("doctor", *(argument.format(well=well) for argument in arguments)) == 2
    shown = capsys.readouterr()
    (line,) = (text for text in shown.err.splitlines() if text.startswith("error: "))
    assert words in line
    assert shown.out == ""
    assert not (tmp_path / "doctor").exists()
