"""`inspect-vit add-class`, whole runs: what it writes, that it resumes, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inspect_vit.checkpoint import load_checkpoint, read_metadata
from inspect_vit.cli import main
from training.formats.coco import read_coco
from training.formats.dataset import DataSet
from training.formats.registry import write_dataset
from training.samples import SampleBoard, write_samples

QUICK = ["steps=8", "pasted_boards=3", "new_crops=4", "pasted_crops=4", "replay_crops=4", "measured_boards=2"]
SETTINGS = [word for setting in QUICK for word in ("--set", setting)]


@pytest.fixture(scope="module")
def old_boards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old")
    write_samples(folder, [SampleBoard(f"board_{i}", 100 + i) for i in range(6)], size=320)
    return folder


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two boards on which only copper has labels, under the name "scratch"."""
    made = tmp_path_factory.mktemp("made")
    write_samples(made, [SampleBoard(f"new_{i}", 200 + i) for i in range(4)], defects=(8, 10), size=320)
    kept = []
    for sample in read_coco(made).samples:
        rows = [i for i, label in enumerate(sample.labels) if label == "copper"]
        if rows:
            masks = None if sample.masks is None else tuple(sample.masks[i] for i in rows)
            boxes = np.ascontiguousarray(sample.boxes[rows])
            kept.append(
                replace(sample, boxes=boxes, labels=("scratch",) * len(rows), masks=masks, ignored=())
            )
    out = tmp_path_factory.mktemp("examples") / "set"
    write_dataset(DataSet(tuple(kept[:2]), ("scratch",), (), "coco", made), out, "coco")
    return out


def _run(*words: str | Path) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["add-class", *map(str, words)])
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize("part", ["whole", "branch"])
def test_a_run_stopped_by_sigterm_goes_on_to_the_same_model(
    part: str,
    tiny_checkpoint: Path,
    examples: Path,
    old_boards: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["scratch", "--from", tiny_checkpoint, "--data", examples, "--replay", old_boards, *SETTINGS]
    words += ["--set", f"part={part}"]
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    assert _run(*words, "--out", whole) == 0
    begun = re.findall(r"^(\w+): \d+/(\d+)", capsys.readouterr().err, re.MULTILINE)
    stages = list(dict.fromkeys(begun))
    wanted = ["boards", "features", "learning"] if part == "branch" else ["boards", "learning", "measuring"]
    assert [stage for stage, _ in stages[:3]] == wanted
    assert len(dict(stages)) == len(stages), f"a stage counts once, to one total: {stages}"

    def stop() -> None:
        while not (parted / "metrics.jsonl").exists():  # it appears with the first step
            time.sleep(0.002)
        os.kill(os.getpid(), signal.SIGTERM)

    stopper = threading.Thread(target=stop)
    stopper.start()
    assert _run(*words, "--out", parted) == 143
    stopper.join()
    assert not list(parted.glob("*-scratch.safetensors"))
    assert _run(*words, "--out", parted) == 0
    one, other = (read_metadata(folder / "tiny-scratch.safetensors") for folder in (whole, parted))
    assert one.version == other.version

    model, old = load_checkpoint(tiny_checkpoint)
    taught, _ = load_checkpoint(whole / "tiny-scratch.safetensors")
    width = old.model.head_width
    if part == "branch":
        for key, value in model.state_dict().items():  # what was there is there
            if key.startswith("head.trunk"):
                assert taught.state_dict()[key][:width].equal(value), key
            elif not key.startswith("head.out"):
                assert taught.state_dict()[key].equal(value), key
        assert taught.head.out.weight[:6, :width].equal(model.head.out.weight[:6])
    else:
        moved = [not taught.state_dict()[key].equal(value) for key, value in model.state_dict().items()]
        assert np.mean(moved) > 0.5, "the encoder learns too"
    assert not taught.head.out.weight[6].eq(0).any()
    assert one.model.class_names == (*old.model.class_names, "scratch")
    assert one.training["parent"] == {"name": "tiny", "version": old.version}
    assert one.training["added"] == ["scratch"]
    table = json.loads((whole / "table.json").read_text())
    assert (table["base"], table["version"]) == ("tiny", one.version)
    assert [(row["label"], row["is_new"]) for row in table["classes"]][-2:] == [
        ("pin-hole", False),
        ("scratch", True),
    ]
    assert table["classes"][-1]["n"] == 0  # so few examples are all learnt from
    assert table["examples"]["scratch"] >= 2
    assert set(table["false_calls"]) == {"before", "after", "boards"}
    progress = json.loads((whole / "progress.json").read_text())
    assert set(progress) == {"stage", "done", "total", "eta_s"}
    assert (whole / "curves.png").exists() or not (whole / "metrics.jsonl").read_text()


def test_another_run_in_the_same_folder_is_refused(
    tiny_checkpoint: Path, old_boards: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--from", tiny_checkpoint, "--out", tmp_path]
    assert _run("--rename", "spur=burr", *words) == 0
    assert _run("--rename", "spur=barb", *words) == 2
    assert "another rename" in capsys.readouterr().err


def test_renaming_and_retiring_need_no_pictures(tiny_checkpoint: Path, tmp_path: Path) -> None:
    words = ["--rename", "spur=burr", "--retire", "open", "--from", tiny_checkpoint, "--name", "v2"]
    assert _run(*words, "--out", tmp_path) == 0
    model, metadata = load_checkpoint(tmp_path / "v2.safetensors")
    assert metadata.model.class_names == ("short", "mousebite", "burr", "copper", "pin-hole")
    assert metadata.thresholds["with_reference"] == dict.fromkeys(metadata.model.class_names, 0.3)
    old, _ = load_checkpoint(tiny_checkpoint)
    assert model.head.out.weight[2].equal(old.head.out.weight[3])


def test_long_names_and_many_renamings_still_make_a_file(tiny_checkpoint: Path, tmp_path: Path) -> None:
    """A file name may have 255 bytes; a letter takes up to four."""
    base, name = tiny_checkpoint, "spur"
    for number in range(3):
        new = f"{number}" + "\U0001d4b6" * 199
        assert _run("--rename", f"{name}={new}", "--from", base, "--out", tmp_path / new[0]) == 0
        (base,) = (tmp_path / new[0]).glob("*.safetensors")
        assert load_checkpoint(base)[1].model.class_names[3] == new
        name = new


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["scratch"], "no examples of scratch"),
        ([], "nothing to do"),
        (["dent", "--data", "EXAMPLES", "--replay", "OLD"], "hold class 'scratch'"),
        (["scratch", "dent", "--data", "EXAMPLES", "--replay", "OLD"], "no example of 'dent'"),
        (["scratch", "steps=20", "--data", "EXAMPLES", "--replay", "OLD"], "needs a --set of its own"),
        (["scratch", "--data", "EXAMPLES", "--set", "part=all"], "part"),
        (["--rename", "spur"], "wanted OLD=NEW"),
    ],
)
def test_what_cannot_work_says_why(
    words: list[str],
    said: str,
    tiny_checkpoint: Path,
    examples: Path,
    old_boards: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"EXAMPLES": str(examples), "OLD": str(old_boards)}
    given = [places.get(word, word) for word in words]
    assert _run(*given, "--from", tiny_checkpoint, "--out", tmp_path / "run") == 2
    assert said in capsys.readouterr().err
