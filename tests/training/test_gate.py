"""`inspect-vit evaluate --against` on small sets, against what the inspector says of each picture.

Over 300 lines: the promises of one command, which share their sets and their checkpoints.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch

from inspect_vit.calibration import Target
from inspect_vit.checkpoint import read_metadata, save_checkpoint
from inspect_vit.cli import main
from inspect_vit.config import ModelConfig, PatchLevelConfig
from inspect_vit.errors import ConfigError, ImageError
from inspect_vit.gate_report import Gate, load_gate
from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from inspect_vit.model import HierarchicalViT
from inspect_vit.results import Defect
from training.calibrate import calibrate
from training.formats.deeppcb import CLASS_NAMES
from training.gate import run_gate
from training.gate_set import match_classes

NEW_CLASS, OLD = "scratch", "spur"
STRICT = 0.6
NAMES = ("a_1.png", "a_2.png", "b_1.png")


def saved(path: Path, model: HierarchicalViT, threshold: float, **settings: Any) -> Path:
    limits = dict.fromkeys(model.config.class_names, threshold)
    both = {"with_reference": limits, "without_reference": limits}
    save_checkpoint(path, model, name=path.stem, thresholds=both, training={}, **settings)
    return path


def talkative(names: Sequence[str], seed: int) -> HierarchicalViT:
    """A small network with random weights, whose head calls something on every picture."""
    torch.manual_seed(seed)
    levels = (
        PatchLevelConfig(patch_size=4, embed_dim=16, depth=1, head_dim=16, window=8),
        PatchLevelConfig(patch_size=16, embed_dim=32, depth=1, head_dim=32, window=10),
        PatchLevelConfig(patch_size=32, embed_dim=32, depth=1, head_dim=32, window=0),
    )
    model = HierarchicalViT(ModelConfig(class_names=tuple(names), levels=levels, size_multiple=160))
    with torch.no_grad():
        model.head.out.weight.mul_(40.0)
        model.head.out.bias[: len(names)] = -3.0
    return model.eval()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """base. strict: the same, with a threshold that only some of its calls reach. needy: the same, but it
    needs a reference. other: other weights, one class under another name, one class more."""
    folder = tmp_path_factory.mktemp("models")
    model = talkative(CLASS_NAMES, 0)
    other = talkative([*("gap" if name == OLD else name for name in CLASS_NAMES), NEW_CLASS], 5)
    return {
        "base": saved(folder / "base.safetensors", model, 0.3),
        "strict": saved(folder / "strict.safetensors", model, STRICT),
        "needy": saved(folder / "needy.safetensors", model, 0.3, needs_reference=True),
        "other": saved(folder / "other.safetensors", other, 0.3),
    }


def some(calls: Sequence[Defect]) -> list[Defect]:
    """The best calls of some classes, and the best of those that the base alone has."""
    chosen = {}
    for call in calls:
        left, top, right, bottom = call.box_xyxy
        if min(right - left, bottom - top) >= 6:
            chosen.setdefault((call.label, call.score >= STRICT), call)
    sure, unsure = ([call for key, call in chosen.items() if key[1] is is_sure] for is_sure in (True, False))
    return [*unsure[:4], *sure[:3]]


@pytest.fixture(scope="module")
def boards(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pictures of two boards, COCO labels: some of the base's calls on each are its defects."""
    folder = tmp_path_factory.mktemp("boards") / "line 3"
    folder.mkdir()
    inspector = Inspector(models["base"], device="cpu")
    names = list(inspector.metadata.model.class_names)
    images, annotations = [], []
    for number, name in enumerate(NAMES):
        cells = np.random.default_rng(number).integers(0, 2, (10, 10)).astype(np.uint8) * 255
        cv2.imwrite(str(folder / name), np.kron(cells, np.ones((16, 16), np.uint8)))
        images.append({"id": number, "file_name": name, "width": 160, "height": 160})
        for call in some(inspector.inspect(read_image(folder / name)[0], min_score=0.02).defects):
            left, top, right, bottom = call.box_xyxy
            box = [left, top, right - left, bottom - top]
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": names.index(call.label),
                    "bbox": box,
                    "area": box[2] * box[3],
                    "iscrowd": 0,
                }
            )
    categories = [{"id": label, "name": name} for label, name in enumerate(names)]
    tree = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "annotations.coco.json").write_text(json.dumps(tree))
    return folder


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the models said, for all gates here that may know it already."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pictures of good boards in a plain folder."""
    folder = tmp_path_factory.mktemp("good") / "good boards"
    folder.mkdir()
    for number in (7, 8):
        cells = np.random.default_rng(number).integers(0, 2, (5, 5)).astype(np.uint8) * 255
        cv2.imwrite(str(folder / f"g{number}.png"), np.kron(cells, np.ones((32, 32), np.uint8)))
    return folder


def gate_of(candidate: Path, base: Path, folders: list[Path], out: Path, **options: Any) -> Gate:
    from training.formats.references import parse_groups

    if len(folders) == 1:
        options["groups"] = parse_groups("name:([ab])_")
    run_gate(candidate, base, folders, out=out, device="cpu", **options)
    return load_gate(out / "gate.json")


def overlap(one: Any, other: Any) -> float:
    across = max(0.0, min(one[2], other[2]) - max(one[0], other[0]))
    down = max(0.0, min(one[3], other[3]) - max(one[1], other[1]))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return across * down / (sum(areas) - across * down)


def test_the_gate_counts_what_the_inspector_says_of_each_picture(
    models: dict[str, Path], boards: Path, kept: Path, tmp_path: Path
) -> None:
    gate = gate_of(models["strict"], models["base"], [boards], tmp_path, cache=kept)
    tree = json.loads((boards / "annotations.coco.json").read_text())
    names = {category["id"]: category["name"] for category in tree["categories"]}
    lost: dict[str, list[tuple[str, list[float]]]] = {}
    have: dict[str, set[str]] = {}
    stopped: dict[str, set[str]] = {"base": set(), "strict": set()}
    for image in tree["images"]:
        marked = [a for a in tree["annotations"] if a["image_id"] == image["id"]]
        boxes = [[x, y, x + w, y + h] for x, y, w, h in (a["bbox"] for a in marked)]
        calls = {}
        for side in ("base", "strict"):
            inspector = Inspector(models[side], device="cpu")
            calls[side] = inspector.inspect(read_image(boards / image["file_name"])[0]).defects
            if any(all(overlap(call.box_xyxy, box) == 0.0 for box in boxes) for call in calls[side]):
                stopped[side].add(image["file_name"][0])
        for annotation, box in zip(marked, boxes, strict=True):
            label = names[annotation["category_id"]]
            have.setdefault(label, set()).add(image["file_name"][0])
            found = [
                any(call.label == label and overlap(call.box_xyxy, box) > 0.33 for call in calls[side])
                for side in ("base", "strict")
            ]
            if found == [True, False]:
                lost.setdefault(label, []).append((image["file_name"], box))
    assert lost
    assert gate.result == "fail"
    assert (gate.data.pictures, gate.data.boards, gate.data.defects) == (3, 2, len(tree["annotations"]))
    for one in gate.classes:
        mine = lost.get(one.label, [])
        assert one.num_boards == len(have.get(one.label, ()))
        assert (one.newly_missed, one.boards_newly_missed) == (len(mine), len({name[0] for name, _ in mine}))
        assert [missed.picture for missed in one.missed] == [name for name, _ in mine]
        for missed, (name, box) in zip(one.missed, mine, strict=True):
            assert missed.group == name[0]
            assert missed.box_xyxy == pytest.approx(box, abs=0.02)
            assert missed.size_px == pytest.approx(max(box[2] - box[0], box[3] - box[1]), abs=0.01)
            assert missed.candidate_score is not None
            assert missed.candidate_score < STRICT
        assert sum(bucket.n for bucket in one.by_size) == one.num_defects
        assert sum(bucket.newly_missed for bucket in one.by_size) == one.newly_missed
    false = gate.false_calls
    assert (false.base_boards, false.candidate_boards) == (len(stopped["base"]), len(stopped["strict"]))
    assert (false.newly, false.cleared) == (0, len(stopped["base"] - stopped["strict"]))


def test_a_refusal_names_class_size_and_board(
    models: dict[str, Path], boards: Path, kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*options: object) -> int:
        arguments = ["evaluate", "--out", tmp_path, "--device", "cpu", "--cache", kept, *options]
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        return int(caught.value.code or 0)

    both = ["--checkpoint", models["strict"], "--against", models["base"], "--groups", "name:([ab])_"]
    assert run(*both, "--acceptance", boards) == 1
    gate = load_gate(tmp_path / "gate.json")
    page = (tmp_path / "gate.md").read_text()
    assert page.startswith("# FAIL: may strict replace base?")
    assert page in capsys.readouterr().out
    failed = [one for one in gate.classes if one.result == "fail"]
    for one in failed:
        (words,) = [sentence for sentence in gate.words if sentence.startswith(f"{one.label}: ")]
        first = one.missed[0]
        assert f"{one.boards_newly_missed} of {one.num_boards} boards newly missed" in words
        assert f"{first.size_px:.0f} px on {first.picture} (board {first.group})" in words
    # The candidate is fine, the boards are too few: how many more, of which class.
    same = ["--checkpoint", models["base"], "--against", models["base"], "--groups", "name:([ab])_"]
    assert run(*same, "--acceptance", boards) == 3
    gate = load_gate(tmp_path / "gate.json")
    for one in gate.classes:
        wanted = f"needs {149 - one.num_boards} more boards with a confirmed {one.label}"
        (words,) = [sentence for sentence in gate.words if sentence.startswith(f"{one.label}: 0 of ")]
        assert wanted in words
    assert run(*same, "--acceptance", boards, "--margin", "0.98", "--confidence", "0.6") == (
        0 if all(one.num_boards for one in gate.classes) else 3
    )
    capsys.readouterr()
    for options, words in (
        (both, "--acceptance"),
        ([*both, "--acceptance", tmp_path / "nowhere"], "nowhere"),
        ([*both, "--acceptance", boards, "--margin", "2"], "0.02 for 2 %"),
        ([*both, "--acceptance", boards, "--faithfulness"], "--faithfulness does not go with --against"),
        (["--acceptance", boards], "--acceptance goes with --against"),
        ([*both, "--acceptance", boards, "--retired", "gap"], "no class 'gap'"),
        ([*both, "--acceptance", boards, "--target", "scratch: 1% @ 95%"], "scratch"),
    ):
        assert run(*options) == 2
        assert words in capsys.readouterr().err


def test_renamed_new_and_retired_classes(
    models: dict[str, Path], boards: Path, kept: Path, tmp_path: Path
) -> None:
    names = read_metadata(models["base"]).model.class_names
    rest = [name for name in names if name != OLD]
    with pytest.raises(ConfigError, match=f"--renamed {OLD}=CLASS.*--retired {OLD}"):
        gate_of(models["other"], models["base"], [boards], tmp_path, cache=kept)
    renamed = gate_of(models["other"], models["base"], [boards], tmp_path, renamed={OLD: "gap"}, cache=kept)
    assert [one.label for one in renamed.classes] == ["gap" if name == OLD else name for name in names]
    assert [one.label for one in renamed.new_classes] == [NEW_CLASS]
    assert renamed.data.defects == sum(one.num_defects for one in renamed.classes)
    (gap,) = [one for one in renamed.classes if one.label == "gap"]
    assert gap.base_missed < gap.num_defects
    retired = gate_of(models["other"], models["base"], [boards], tmp_path, retired=[OLD], cache=kept)
    assert [one.label for one in retired.classes] == rest
    assert retired.retired_classes == (OLD,)
    assert [one.label for one in retired.new_classes] == ["gap", NEW_CLASS]
    assert retired.data.defects == renamed.data.defects - gap.num_defects
    assert any("retired" in sentence and OLD in sentence for sentence in retired.words)
    assert [one.newly_missed for one in retired.classes] == [
        one.newly_missed for one in renamed.classes if one.label != "gap"
    ]


def test_classes_that_fit_nowhere_are_refused(models: dict[str, Path]) -> None:
    base = read_metadata(models["base"]).model

    def named(*names: str) -> ModelConfig:
        return base.model_copy(update={"class_names": names})

    spelt = match_classes(named("pin_hole", "short"), named("short", "Pin-hole"), renamed={}, retired=[])
    assert spelt.of_base == (1, 0)
    merged = match_classes(named("a", "b"), named("b"), renamed={"a": "b"}, retired=[])
    assert merged.of_base == (0, 0)
    for olds, news, renamed, retired, words in (
        (("a", "b"), ("b",), {"a": "c"}, [], "candidate has no class 'c'"),
        (("a", "b"), ("a", "b"), {"a": "b"}, [], "still knows a"),
        (("a", "b"), ("a", "b"), {}, ["a"], "still knows it"),
        (("a",), ("b",), {}, ["a"], "nothing to compare"),
    ):
        with pytest.raises(ConfigError, match=words):
            match_classes(named(*olds), named(*news), renamed=renamed, retired=retired)


def test_a_board_that_only_the_base_can_inspect_is_newly_missed(
    models: dict[str, Path], boards: Path, kept: Path, tmp_path: Path
) -> None:
    gate = gate_of(models["needy"], models["base"], [boards], tmp_path, cache=kept)
    for one in gate.classes:
        assert one.newly_missed == one.num_defects - one.base_missed
        assert one.candidate_missed == one.num_defects
    assert gate.result == "fail"
    assert gate.false_calls.candidate_boards == 2
    assert any(
        "verdict ERROR on 0 pictures by the base, on 3 by the candidate" in words for words in gate.words
    )
    with pytest.raises(ConfigError, match="could inspect none of the 3 pictures"):
        gate_of(
            models["needy"],
            models["base"],
            [boards],
            tmp_path,
            targets=[Target(max_miss_rate=0.5)],
            cache=kept,
        )


def test_targets_move_the_candidates_thresholds_as_calibrate_does(
    models: dict[str, Path], boards: Path, kept: Path, tmp_path: Path
) -> None:
    from training.formats.references import parse_groups

    target = Target(max_miss_rate=0.7, confidence=0.5)
    path = tmp_path / "c.json"
    made = calibrate(
        models["base"],
        boards,
        targets=[target],
        out=path,
        groups=parse_groups("name:([ab])_"),
        recipe="panel 7",
        device="cpu",
    ).calibration
    asked: dict[str, Any] = {"recipe": "panel 7", "cache": kept}
    gate = gate_of(models["base"], models["strict"], [boards], tmp_path, targets=[target], **asked)
    assert gate.calibration is not None
    assert gate.thresholds == gate.calibration.thresholds == made.thresholds
    assert gate.calibration.claims == made.claims
    assert made.claims[0].kept
    assert (gate.recipe, gate.calibration.recipe) == ("panel 7", "panel 7")
    # What the base's calibration kept is asked of the candidate, and the base is judged at its thresholds.
    gate = gate_of(models["strict"], models["base"], [boards], tmp_path, thresholds_of=path, **asked)
    assert gate.base_thresholds == made.thresholds
    assert gate.calibration is not None
    assert [claim.max_miss_rate for claim in gate.calibration.claims] == [0.7]
    # Of another recipe the calibration is void: production takes the lower of both thresholds.
    gate = gate_of(models["strict"], models["base"], [boards], tmp_path, thresholds_of=path, cache=kept)
    assert gate.base_thresholds == {label: min(0.3, limit) for label, limit in made.thresholds.items()}
    with pytest.raises(ConfigError, match="wanted the calibration of the base"):
        gate_of(models["base"], models["other"], [boards], tmp_path, thresholds_of=path, renamed={"gap": OLD},
                retired=[NEW_CLASS], cache=kept)  # fmt: skip


def test_sets_are_merged_and_a_picture_counts_once(
    models: dict[str, Path],
    boards: Path,
    kept: Path,
    good: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    again = tmp_path / "again" / "line 3"
    shutil.copytree(boards, again)
    gate = gate_of(models["strict"], models["base"], [boards, good], tmp_path / "out", cache=kept)
    assert (gate.data.pictures, gate.data.boards) == (5, 5)
    assert gate.false_calls.num_boards == 5
    assert [name.split(",")[0] for name in gate.data.sets] == ["line 3 (coco)", "good boards (good)"]
    pictures = {missed.picture for one in gate.classes for missed in one.missed}
    assert pictures <= {f"line 3/{name}" for name in NAMES}
    capsys.readouterr()
    twice = gate_of(models["strict"], models["base"], [boards, good, again], tmp_path / "out", cache=kept)
    said = capsys.readouterr().err
    assert "3 pictures are in the acceptance set twice and count once: line 3-2/a_1.png" in said
    assert "5 of 5 pictures were inspected before" in said
    assert twice.data.fingerprint == gate.data.fingerprint
    assert twice.classes == gate.classes
    # The answers follow the pictures wherever they lie.
    moved = gate_of(models["strict"], models["base"], [again, good], tmp_path / "out", cache=kept)
    assert "5 of 5 pictures were inspected before" in capsys.readouterr().err
    assert moved.data.fingerprint == gate.data.fingerprint


def test_an_interrupted_gate_goes_on_where_it_was(
    models: dict[str, Path], boards: Path, kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "line 3"
    shutil.copytree(boards, broken)
    (broken / "b_1.png").write_bytes((boards / "b_1.png").read_bytes()[:200])
    out = tmp_path / "out"
    with pytest.raises(ImageError, match=r"b_1\.png"):
        gate_of(models["strict"], models["base"], [broken], out)
    assert not (out / "gate.json").exists()
    told = json.loads((out / "progress.json").read_text())
    assert (told["stage"], told["total"]) == ("inspecting", 3)
    shutil.copy(boards / "b_1.png", broken / "b_1.png")
    capsys.readouterr()
    gate = gate_of(models["strict"], models["base"], [broken], out)
    assert "2 of 3 pictures were inspected before" in capsys.readouterr().err
    whole = gate_of(models["strict"], models["base"], [boards], tmp_path / "whole", cache=kept)
    changing = {"created"}
    assert gate.model_dump(exclude=changing) == whole.model_dump(exclude=changing)
    assert json.loads((out / "progress.json").read_text())["done"] == 1
    # A damaged file of answers costs time and nothing else.
    for path in (out / "looks").glob("*.npz"):
        path.write_bytes(path.read_bytes()[:100])
    gate = gate_of(models["strict"], models["base"], [broken], out)
    assert "inspected again" in capsys.readouterr().err
    assert gate.model_dump(exclude=changing) == whole.model_dump(exclude=changing)


def test_what_the_recipe_ignores_is_neither_missed_nor_called_in_vain(
    models: dict[str, Path], boards: Path, kept: Path, tmp_path: Path
) -> None:
    """The right halves of all pictures are ignored: labels and calls of the other half make the answer."""
    middle = 80
    zone = [(middle, -10), (200, -10), (200, 200), (middle, 200)]
    settings = tmp_path / "recipe.json"
    settings.write_text(json.dumps({"ignore": [{"name": "edge", "polygon": zone}]}))
    plain = gate_of(models["strict"], models["base"], [boards], tmp_path / "all", cache=kept)
    options: dict[str, Any] = {"cache": kept, "recipe": "r", "recipe_settings": settings}
    gate = gate_of(models["strict"], models["base"], [boards], tmp_path / "half", **options)
    tree = json.loads((boards / "annotations.coco.json").read_text())

    def is_right(left: float, right: float) -> bool:
        cells = np.arange(np.floor(left / 4), np.ceil(right / 4))
        return bool((cells >= middle / 4).mean() > 0.5)

    ignored = [a for a in tree["annotations"] if is_right(a["bbox"][0], a["bbox"][0] + a["bbox"][2])]
    assert 0 < len(ignored) < len(tree["annotations"])
    assert gate.data.left_out == len(ignored)
    assert gate.data.defects == len(tree["annotations"]) - len(ignored) == plain.data.defects - len(ignored)
    assert any(f"{len(ignored)} labelled defects do not count" in words for words in gate.words)
    missed = [[one.box_xyxy for each in part.classes for one in each.missed] for part in (plain, gate)]
    assert missed[1] == [box for box in missed[0] if not is_right(box[0], box[2])]
    assert len(missed[1]) < len(missed[0])
    everything = settings.with_name("everything.json")
    board = [(-10, -10), (200, -10), (200, 200), (-10, 200)]
    everything.write_text(json.dumps({"ignore": [{"polygon": board}]}))
    options["recipe_settings"] = everything
    none = gate_of(models["base"], models["strict"], [boards], tmp_path / "none", **options)
    assert (none.data.defects, plain.false_calls.base_boards > 0) == (0, True)
    assert not [call for call in none.false_calls.calls if call.label is not None]
    with pytest.raises(ConfigError, match="--golden goes with --recipe-settings"):
        gate_of(models["base"], models["strict"], [boards], tmp_path / "x", goldens=[boards / NAMES[0]])
