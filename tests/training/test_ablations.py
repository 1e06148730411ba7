"""The table of ablations counts what it says, goes on where it was, and is of boards held back."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import cv2
import numpy as np
import pytest

from benchmarks.ablation_table import Spread, pooled, table
from benchmarks.ablations import VAL_GROUPS, changes, configuration, is_small, main, mean_ap_and_recall
from inspect_vit.errors import ConfigError
from inspect_vit.matching import Detections, Truths
from inspect_vit.results import Sample
from training.formats.deeppcb import read_deeppcb
from training.loading import load_samples


def options(**changed: object) -> argparse.Namespace:
    return argparse.Namespace(
        **{"epochs": 10, "crops": None, "limit": None, "data": Path("DeepPCB")} | changed
    )


def cell(variant: str, seed: int, ap: float, recall: float) -> dict[str, object]:
    return {
        "variant": variant,
        "seed": seed,
        "changes": changes(variant, seed, options()),
        "boards": 4,
        "defects": 9,
        "small": 3,
        "parameters": 2000,
        "figures": {"AP": ap, "recall": recall},
    }


def test_the_spread_is_pooled_over_variants() -> None:
    assert pooled([[1.0, 3.0], [2.0, 2.0]]) == Spread(1.0, 2)  # variances 2 and 0
    assert pooled([[1.0, 2.0, 3.0], [5.0]]) == Spread(1.0, 2)
    alone = pooled([[1.0], [5.0]])
    assert math.isnan(alone.deviation)
    assert alone.mark(9.0, 1, 1) == ""


@pytest.mark.parametrize(("difference", "mark"), [(0.9, ""), (-1.1, "*"), (4.2, "*"), (-4.4, "**")])
def test_a_difference_is_marked_by_what_the_seeds_explain(difference: float, mark: str) -> None:
    # Two seeds each: error of a difference 1.0 * sqrt(1/2 + 1/2); Student's t at 0.975, 2 degrees: 4.303.
    assert Spread(1.0, 2).mark(difference, 2, 2) == mark


def test_the_table_shows_means_spread_and_differences() -> None:
    cells = [
        cell("default", 0, 0.90, 0.5),
        cell("default", 1, 0.92, 0.5),
        cell("sum", 0, 0.80, 0.5),
        cell("sum", 1, 0.82, 0.52),
    ]
    text = table(cells, {"default": (50.0, 1.0), "sum": (45.0, 0.9)}, default="default")
    rows = [[part.strip() for part in line.split("|")[1:-1]] for line in text.splitlines()[:4]]
    assert rows[0] == ["", "seeds", "parameters", "ms (ratio)", "AP", "recall"]
    # Standard deviation of two values 0.02 apart: 0.0141. Error of a difference of means: the same; t: 4.303.
    assert rows[2] == ["default", "2", "2,000", "50 (1.00)", "0.9100 +- 0.0141", "0.5000 +- 0.0000"]
    assert rows[3] == [
        "sum",
        "2",
        "2,000",
        "45 (0.90)",
        "0.8100 +- 0.0141, -0.1000 **",
        "0.5100 +- 0.0141, +0.0100",
    ]
    assert "AP 0.0141, recall 0.0100" in text  # the latter: root of the mean of 0 and 0.0002


def test_recall_is_of_the_small_at_one_false_call_in_ten_boards() -> None:
    box, away = [10.0, 10.0, 40.0, 40.0], [100.0, 100.0, 130.0, 130.0]
    truths = [Truths(np.array([box]), np.array([0], np.int64)) for _ in range(20)]
    # Boards 0 to 4: found by 0.9, 0.8, ..., 0.5, the first as another class. False: 0.95, 0.75 and 0.55,
    # of which 2 are allowed on 20 boards, so that calls count above 0.55.
    calls = [[(box, 0.9 - i / 10, int(i == 0))] for i in range(5)] + [[] for _ in range(15)]
    for board, score in ((10, 0.95), (11, 0.75), (12, 0.55)):
        calls[board].append((away, score, 0))
    found = [
        Detections(
            np.array([b for b, _, _ in own], np.float32).reshape(-1, 4),
            np.array([s for _, s, _ in own], np.float32),
            np.array([label for _, _, label in own], np.int64),
        )
        for own in calls
    ]
    small = np.zeros(20, np.bool_)
    small[:5] = True
    ap, recall = mean_ap_and_recall(found, truths, small, 2)
    assert recall == pytest.approx(3 / 5)
    # Of class 0, by score: false, hit, false, hit, hit, false, hit. Class 1 has no truth and does not count.
    assert ap == pytest.approx((1 / 2 + 2 / 4 + 3 / 5 + 4 / 7) / 20)


def test_small_is_1_to_8_px(tmp_path: Path) -> None:
    reference = np.zeros((64, 128), np.uint8)
    board = reference.copy()
    board[20:26, 10:16], board[20:32, 50:62], board[20, 90:96] = 255, 255, 255  # 6 px, 12 px, a scratch
    for name, picture in (("board", board), ("reference", reference)):
        cv2.imwrite(str(tmp_path / f"{name}.png"), picture)
    boxes = np.array([[5, 5, 40, 40], [45, 5, 80, 40], [85, 5, 120, 40]], np.float32)
    sample = Sample(tmp_path / "board.png", boxes, ("open",) * 3, reference=tmp_path / "reference.png")
    assert is_small([sample]).tolist() == [True, False, False]


def test_what_is_done_is_not_done_again_and_other_options_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "validation"
    folder.mkdir()
    for variant, seed in (("default", 0), ("default", 1), ("sum", 0), ("sum", 1)):
        figures = cell(variant, seed, 0.9 + seed / 100, 0.5)
        (folder / f"{variant}-seed{seed}.json").write_text(json.dumps(figures), encoding="utf-8")
    # There is no data: a run that had to be trained would fail.
    asked = [str(tmp_path / "nowhere"), "--out", str(tmp_path), "--only", "sum", "--rounds", "1"]
    main(asked)
    printed = capsys.readouterr().out
    assert [line.split("|")[1].strip() for line in printed.splitlines()[2:4]] == ["default", "sum"]
    assert (tmp_path / "ablations.md").read_text(encoding="utf-8") in printed
    with pytest.raises(ConfigError, match=r"default-seed0\.json is of a run with .*epochs=10, epochs=3"):
        main([*asked, "--epochs", "3"])
    with pytest.raises(ConfigError, match="no data set at"):
        main([*asked, "--seeds", "2"])


def test_the_budget_is_said_first_and_the_boards_measured_on_are_held_back(
    deeppcb_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(deeppcb_root), "--out", str(tmp_path), "--only", "sum", "--list"])
    printed = capsys.readouterr().out
    assert "fusion adds the projected levels" in printed
    # 702 pairs of 4 crops in batches of 8, 10 epochs: 3510 steps of 0.17 s, and 298 boards of 0.2 s, twice.
    assert "4 of 4 runs to do, each 3510 steps and 11.9 minutes with measuring: 48 minutes" in printed
    assert list(tmp_path.iterdir()) == []
    training, held_back = load_samples(configuration("sum", 1, options(data=deeppcb_root)), out=tmp_path)
    assert {sample.group for sample in held_back} == set(VAL_GROUPS)
    assert not {sample.group for sample in training} & set(VAL_GROUPS)
    official = {sample.image for sample in read_deeppcb(deeppcb_root, "test")}
    assert not official & {sample.image for sample in held_back}
