"""The test of the evidence: measures by hand, maps whose worth is known, and a report that holds together."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr

from inspect_vit.checkpoint import default_checkpoint
from inspect_vit.errors import ConfigError
from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from inspect_vit.perturbation import difference_map
from inspect_vit.results import Defect, Sample
from training.faith_examine import DIFFERENCE, RANDOM, Explain, examine, randomise
from training.faith_measures import (
    FLIP_AT,
    SHARES,
    area_under,
    area_under_log,
    bootstrap_mean,
    cell_counts,
    energy_inside,
    rank_correlation,
)
from training.faith_sample import Found, pick_found, reference_under, true_cells
from training.faithfulness import measure
from training.formats.coco import read_coco
from training.formats.deeppcb import CLASS_NAMES

CHECKPOINT = default_checkpoint().with_name("deeppcb-nano.safetensors")


@pytest.fixture(scope="module")
def shipped() -> Inspector:
    return Inspector(CHECKPOINT, device="cpu")


@pytest.fixture(scope="module")
def samples(project: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Sample]:
    """The part of 320 x 320 px around the first defect of each sample board, with the labels inside it."""
    folder = tmp_path_factory.mktemp("parts")
    parts = []
    for sample in read_coco(project / "data_samples").samples:
        if not sample.image.name.startswith("board"):
            continue
        middle = (
            (sample.boxes[0, :2] + sample.boxes[0, 2:]) / 2 if len(sample.boxes) else np.array([320, 320])
        )
        left, top = np.clip(middle - 160, 0, 320).astype(int)
        boxes = sample.boxes - np.tile([left, top], 2)
        kept = ((boxes >= 0) & (boxes <= 320)).all(1)
        paths = [folder / f"{sample.image.stem}_{kind}.png" for kind in ("test", "temp")]
        board = read_image(sample.image)[0]
        for path, picture in zip(paths, (board, reference_under(board, sample)), strict=True):
            cv2.imwrite(str(path), picture[top : top + 320, left : left + 320])
        labels = tuple(np.array(sample.labels)[kept].tolist())
        parts.append(Sample(paths[0], boxes[kept].astype(np.float32), labels, reference=paths[1]))
    return parts


@pytest.fixture(scope="module")
def found(shipped: Inspector, samples: list[Sample]) -> list[Found]:
    return pick_found(shipped, samples, count=7, seed=3)


def known_maps(found: Found) -> Explain:
    """An explainer that knows what was drawn, one that says nothing, and one that points elsewhere."""
    board = read_image(found.sample.image)[0]
    differs = difference_map(board, reference_under(board, found.sample))
    left, top, right, bottom = (int(edge // 4) for edge in found.sample.boxes[found.truth])
    true = np.zeros((80, 80), np.float32)
    true[top : bottom + 1, left : right + 1] = differs[top : bottom + 1, left : right + 1]
    wrong = np.ones((80, 80), np.float32)
    wrong[max(top - 4, 0) : bottom + 5, max(left - 4, 0) : right + 5] = 0.0

    def explain(
        inspector: Inspector,
        image: NDArray[np.uint8],
        *,
        reference: NDArray[np.uint8] | None,
        defect: Defect,
    ) -> dict[str, NDArray[np.float32]]:
        return {"true": true, "constant": np.ones_like(true), "wrong": wrong}

    return explain


def test_areas_under_curves_by_hand() -> None:
    assert area_under([1.0] * len(SHARES)) == pytest.approx(1.0)
    assert area_under([1.0 - share for share in SHARES]) == pytest.approx(0.5)
    assert area_under_log([0.5] * len(SHARES)) == pytest.approx(0.5)
    logs = [0.0, *(np.log10(share) / 3 + 1 for share in SHARES[1:])]  # 0 at 0.1 %, 1 at 100 %
    assert area_under_log(logs) == pytest.approx(0.5)
    assert SHARES[FLIP_AT] == 0.01 and list(SHARES) == sorted(SHARES)
    assert cell_counts(6400, 5000)[FLIP_AT] == 64
    assert cell_counts(6400, 5000)[0] == 0 and cell_counts(6400, 5000)[-1] == 5000


def test_energy_and_correlation_by_hand() -> None:
    evidence = np.array([[1, 3], [0, 4]], np.float32)
    assert energy_inside(evidence, np.array([[False, True], [True, False]])) == pytest.approx(3 / 8)
    assert math.isnan(energy_inside(np.zeros((2, 2), np.float32), np.ones((2, 2), bool)))
    one, other = np.random.default_rng(0).integers(0, 5, (2, 60)).astype(np.float32)
    one += 1
    assert rank_correlation(one, other) == pytest.approx(spearmanr(one, other).statistic)
    beyond = np.zeros(500, np.float32)  # a window that both maps share must not make them alike
    padded = rank_correlation(np.append(one, beyond), np.append(other, beyond))
    assert padded == pytest.approx(rank_correlation(one, other))
    assert math.isnan(rank_correlation(one, np.ones_like(one)))
    assert math.isnan(rank_correlation(beyond, beyond))


def test_the_interval_of_a_mean_holds_the_mean_and_leaves_out_what_is_unknown() -> None:
    values = np.array([0.0, 1.0, np.nan, 1.0, 0.0])
    figure = bootstrap_mean(values, seed=0)
    assert (figure["value"], figure["n"]) == (0.5, 4)
    assert figure["low"] < 0.5 < figure["high"]
    assert bootstrap_mean(values, seed=0) == figure
    assert bootstrap_mean(np.array([np.nan]), seed=0)["n"] == 0


def test_the_true_defect_is_what_differs_in_its_box_widened_by_one_cell() -> None:
    reference = np.zeros((40, 42, 3), np.uint8)
    image = reference.copy()
    image[16:20, 12:16] = 255  # the defect, one cell
    image[13, 26] = 255  # jitter of an edge
    image[2:6, 2:6] = 255  # another defect
    sample = Sample(Path("x.png"), np.array([[8, 10, 30, 24]], np.float32), ("open",))
    one = Found(sample, 0, 0, Defect("open", 0.9, (8, 10, 30, 24), 16, {}))
    expected = np.zeros((10, 11), bool)
    expected[3:6, 2:5] = True
    np.testing.assert_array_equal(true_cells(one, image, reference), expected)


def test_defects_are_spread_over_pictures_and_classes(
    shipped: Inspector, samples: list[Sample], found: list[Found]
) -> None:
    with_defects = sum(bool(sample.labels) for sample in samples)
    assert len({one.number for one in found[:with_defects]}) == with_defects
    assert len({(one.number, one.truth) for one in found}) == len(found) == 7
    for one in found:
        assert one.defect.label == one.sample.labels[one.truth]
        assert one.sample is samples[one.number]
        left, top, right, bottom = one.defect.box_xyxy
        x1, y1, x2, y2 = one.sample.boxes[one.truth]
        assert left < x2 and x1 < right and top < y2 and y1 < bottom
    counts = Counter(one.defect.label for one in found)
    assert len(counts) >= 5 and max(counts.values()) <= 2
    again = pick_found(shipped, samples, count=7, seed=3)
    assert [(one.number, one.truth) for one in again] == [(one.number, one.truth) for one in found]


def test_a_set_without_references_is_refused(shipped: Inspector, samples: list[Sample]) -> None:
    alone = [Sample(sample.image, sample.boxes, sample.labels) for sample in samples[:1]]
    with pytest.raises(ConfigError, match="none of the defects on 1 pictures was found"):
        pick_found(shipped, alone, count=5, seed=0)


def test_a_true_map_passes_every_measure_and_a_wrong_one_none(shipped: Inspector, found: list[Found]) -> None:
    one = found[0]
    entry = examine(shipped, one, explain=known_maps(one), shifts=(2,), seed=(0, 1))
    maps = entry["alignments"]["0"]["maps"]
    assert set(maps) == {"true", "constant", "wrong", DIFFERENCE, RANDOM}
    true, wrong = maps["true"], maps["wrong"]
    assert true["flip"] and true["pointing"] and true["pointing_alone"]
    assert true["energy"] > 0.8  # edges fray inside the box too
    assert not wrong["flip"] and not wrong["pointing"]
    assert wrong["energy"] == pytest.approx(0.0)
    areas = {name: area_under(figures["deletion"]) for name, figures in maps.items()}
    assert areas["true"] < 0.1 < min(areas["constant"], areas["wrong"])
    gains = {name: area_under(figures["insertion"]) for name, figures in maps.items()}
    assert gains["true"] > max(gains["constant"], gains["wrong"])
    assert true["deletion"][0] == true["insertion"][-1] == wrong["deletion"][0]
    assert true["deletion"][-1] == true["insertion"][0] == wrong["deletion"][-1]
    assert maps["constant"]["energy"] == pytest.approx(entry["alignments"]["0"]["area"], abs=1e-4)
    moved = entry["alignments"]["2"]["maps"]
    assert moved["true"]["pointing"] and "insertion" not in moved["true"]
    assert moved[DIFFERENCE]["energy"] < 0.5 * maps[DIFFERENCE]["energy"]  # edges differ everywhere now


def test_randomising_shuffles_values_and_leaves_the_inspector_alone(shipped: Inspector) -> None:
    before = {name: value.clone() for name, value in shipped.model.state_dict().items()}
    head = randomise(shipped, "head", seed=1).model.state_dict()
    model = randomise(shipped, "model", seed=1).model.state_dict()
    for name, value in shipped.model.state_dict().items():
        assert value.equal(before[name])
        assert head[name].flatten().sort().values.equal(value.flatten().sort().values)
        assert head[name].equal(value) != (name.startswith("head.") and value.unique().numel() > 1)
        if value.unique().numel() > 8:
            assert not model[name].equal(value)
    again = randomise(shipped, "model", seed=1).model.state_dict()
    assert all(again[name].equal(value) for name, value in model.items())


def test_an_interrupted_run_goes_on_to_the_same_result(
    shipped: Inspector, samples: list[Sample], tmp_path: Path
) -> None:
    calls = []

    def explain(
        inspector: Inspector,
        image: NDArray[np.uint8],
        *,
        reference: NDArray[np.uint8] | None,
        defect: Defect,
    ) -> dict[str, NDArray[np.float32]]:
        calls.append(defect)
        if len(calls) == fail_at:
            raise KeyboardInterrupt
        return {}

    asked: dict[str, Any] = {
        "explain": explain,
        "num_defects": 2,
        "num_randomised": 1,
        "shifts": (),
        "seed": 5,
    }
    fail_at = 0
    unbroken = measure(shipped, samples, keep=tmp_path / "unbroken.jsonl", **asked)
    assert [line for line in (tmp_path / "unbroken.jsonl").read_text().splitlines()][1:] == [
        json.dumps(entry) for entry in unbroken
    ]
    assert unbroken[0]["randomised"]["model"][DIFFERENCE] == 1.0 and not unbroken[1]["randomised"]
    per_run, fail_at = len(calls), 2 * len(calls)
    keep = tmp_path / "broken.jsonl"
    with pytest.raises(KeyboardInterrupt):
        measure(shipped, samples, keep=keep, **asked)
    with keep.open("a") as file:
        file.write('{"label": "op')  # as a power cut leaves it
    assert measure(shipped, samples, keep=keep, **asked) == unbroken
    assert len(calls) < 3 * per_run  # the first defect was not examined again
    assert keep.read_text() == (tmp_path / "unbroken.jsonl").read_text()


def test_the_shipped_explainers_are_tested_by_the_command(
    found: list[Found], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One defect of a sample board, cut out and laid down as DeepPCB does."""
    from inspect_vit.cli import main

    one = found[0]
    x1, y1, x2, y2 = one.sample.boxes[one.truth].astype(int)
    left, top = (int(np.clip((low + high) // 2 - 80, 0, 160)) for low, high in ((x1, x2), (y1, y2)))
    folder = tmp_path / "PCBData" / "group1" / "1"
    folder.mkdir(parents=True)
    board = read_image(one.sample.image)[0]
    for ending, picture in (("test", board), ("temp", reference_under(board, one.sample))):
        cv2.imwrite(str(folder / f"1_{ending}.png"), picture[top : top + 160, left : left + 160])
    kind = CLASS_NAMES.index(one.defect.label) + 1
    (folder / "1.txt").write_text(f"{x1 - left} {y1 - top} {x2 - left} {y2 - top} {kind}\n")
    (tmp_path / "PCBData" / "test.txt").write_text("group1/1/1.png group1/1/1.txt\n")
    out = tmp_path / "out"
    options = ["--data", str(tmp_path), "--out", str(out), "--device", "cpu", "--faithfulness"]
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", "--checkpoint", str(CHECKPOINT), *options])
    assert not ended.value.code
    report = json.loads((out / "faithfulness.json").read_text())
    assert report["defects"] == 1
    maps = report["alignments"]["0"]["maps"]
    assert {
        "attention 4",
        "attention 16",
        "attention 32",
        "gate",
        "rollout",
        "relevance",
        "defect map",
    } < set(maps)
    assert (out / "faithfulness.jsonl").read_text().count("\n") == 2
    printed = capsys.readouterr()
    assert "# Faithfulness of the evidence" in printed.out
    assert re.search(r"testing 9 maps of 1 defects: \d+ passes .* about \d+ min", printed.err)
