"""`inspect-vit models`: what a person at the server does with versions, and what a refusal says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspect_vit.calibration import parse_target
from inspect_vit.checkpoint import load_checkpoint, save_checkpoint
from inspect_vit.cli import main
from serving.config import ServingConfig
from serving.gate_command import gate_command, target_text


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INSPECT_VIT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def made(tiny_checkpoint: Path, tmp_path: Path) -> Path:
    """A checkpoint whose training record names tiny as its parent."""
    import torch

    model, metadata = load_checkpoint(tiny_checkpoint)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    training = {"parent": {"name": metadata.name, "version": metadata.version}}
    path = tmp_path / "made.safetensors"
    save_checkpoint(path, model, name="made", thresholds=metadata.thresholds, training=training)
    return path


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(("models", *arguments))
    return int(str(done.value.code or 0))


def test_a_version_is_added_promoted_compared_rolled_back_and_retired(
    tiny_checkpoint: Path, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "table.json").write_text('{"classes": [{"label": "open", "before": 0.5, "after": 0.75}]}')
    assert run("add", str(tiny_checkpoint)) == 0
    old = capsys.readouterr().out.split()[0]
    assert run("add", str(made), "--table", str(tmp_path / "table.json")) == 0
    new = capsys.readouterr().out.split()[0]
    assert run("promote", old, "--override", "the first one") == 0
    assert run("promote", new) == 2
    assert "give --acceptance FOLDER, or --override REASON" in capsys.readouterr().err
    assert run("promote", new, "--override", " ") == 2
    assert run("promote", new, "--override", "seen on 20 boards") == 0
    assert run("promote", new) == 0
    assert "already; nothing was changed" in capsys.readouterr().out

    assert run("list") == 0
    shown = capsys.readouterr().out
    assert old in shown and new in shown and "production" in shown
    assert run("list", "--json") == 0
    listed = {each["version"]: each for each in json.loads(capsys.readouterr().out)}
    assert (listed[new]["stage"], listed[new]["parent"], listed[old]["stage"]) == (
        "production",
        old,
        "candidate",
    )
    assert run("show", new) == 0
    shown = capsys.readouterr().out
    assert "seen on 20 boards" in shown and "promoted (override)" in shown
    assert run("show", new, "--json") == 0
    assert json.loads(capsys.readouterr().out)["history"][1]["override"] is True
    assert run("compare", old, new, "--json") == 0
    rows = {row["figure"]: (row["a"], row["b"]) for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["AP of open, after"] == (None, 0.75)
    assert run("compare", old, new) == 0
    assert "AP of open, after" in capsys.readouterr().out

    assert run("retire", new) == 2
    assert run("rollback", new, "--reason", "false calls") == 0
    assert f"{old} is in production" in capsys.readouterr().out
    assert run("rollback", new) == 2
    assert f"{new} is not in production" in capsys.readouterr().err
    assert run("retire", new) == 0
    assert run("promote", new, "--override", "all the same") == 2
    assert "is retired" in capsys.readouterr().err
    assert run("show", "0123456789ab") == 2
    assert "there is no model version" in capsys.readouterr().err


def test_the_gate_is_asked_with_what_the_recipe_says(tiny_checkpoint: Path, made: Path, home: Path) -> None:
    from contextlib import closing

    from inspect_vit.recipe import Recipe
    from serving.model_start import start_with
    from serving.recipes import put_recipe
    from serving.registry import add_version
    from serving.roles import ANYONE
    from serving.store import Store

    config = ServingConfig(home=home)
    with closing(Store(config)) as store:
        old = start_with(store.engine, home, tiny_checkpoint)
        new = add_version(store.engine, home, made, actor=ANYONE).version
        targets = tuple(map(parse_target, ("short: 1% @ 95%", "0.125% @ 99.9%")))
        put_recipe(store.engine, "r", Recipe(targets=targets, camera="line 3"), (), ANYONE)
        command = gate_command(
            store.engine, config, new, recipe="r", acceptance=[Path("x"), Path("y")], out=Path("z")
        )
    options = list(zip(command[4::2], command[5::2], strict=True))
    assert [value for name, value in options if name == "--acceptance"] == ["x", "y"]
    told = dict(options)
    assert (Path(told["--checkpoint"]).parent.name, Path(told["--against"]).parent.name) == (new, old)
    assert (told["--recipe"], told["--camera"], told["--out"]) == ("r", "line 3", "z")
    assert tuple(parse_target(value) for name, value in options if name == "--target") == targets
    assert [target_text(target) for target in targets] == ["short: 1% @ 95%", "0.125% @ 99.9%"]


def test_an_override_goes_ahead_where_the_gate_could_not_judge_and_an_old_answer_is_none(
    tiny_checkpoint: Path, made: Path, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from contextlib import closing

    from serving.audit import read_audit
    from serving.store import Store
    from tests.serving.model_versions import gate

    versions = []
    for path in (tiny_checkpoint, made):
        assert run("add", str(path)) == 0
        versions.append(capsys.readouterr().out.split()[0])
    old, new = versions
    assert run("promote", old, "--override", "the first one") == 0
    out = tmp_path / "gate"
    out.mkdir()
    (out / "gate.json").write_text(json.dumps(gate(old, new)))
    asked = ("promote", new, "--acceptance", str(tmp_path / "nowhere"), "--out", str(out))
    assert run(*asked) == 2
    assert "could not judge" in capsys.readouterr().err
    assert not (out / "gate.json").exists(), "what an earlier run said is not taken for this one's answer"
    assert run(*asked, "--renamed", "nothing=open") == 2
    assert "'nothing' is no class of" in capsys.readouterr().err
    assert run(*asked, "--override", "the boards are gone") == 0
    told = capsys.readouterr()
    assert "the gate could not judge: no acceptance set" in told.err
    assert "by override: the gate did not pass" in told.out
    with closing(Store(ServingConfig(home=home))) as store:
        entry, _ = read_audit(store.engine, limit=5, action="model_promoted")
    (said,) = entry.details["gate_words"]
    assert said.startswith("no acceptance set")
    assert str(tmp_path) not in said
    assert run("show", new) == 0
    assert "the boards are gone" in capsys.readouterr().out
