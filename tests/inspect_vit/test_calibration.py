"""A calibration travels as a file, sets the thresholds, and is void once anything changes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspect_vit.calibration import (
    Calibration,
    load_calibration,
    parse_target,
    save_calibration,
    thresholds_in_force,
)
from inspect_vit.console import calibration_remark
from inspect_vit.errors import ConfigError
from inspect_vit.inspector import Inspector
from inspect_vit.report import inspection_report
from inspect_vit.results import IntakeReport

MakeCalibration = Callable[..., Calibration]


@pytest.mark.parametrize(
    ("text", "label", "rate", "confidence"),
    [
        ("short: 1% @ 95%", "short", 0.01, 0.95),
        ("0.5 % @ 99.9 %", None, 0.005, 0.999),
        ("pin: hole:2%@90%", "pin: hole", 0.02, 0.9),
    ],
)
def test_targets_as_they_are_typed(text: str, label: str | None, rate: float, confidence: float) -> None:
    target = parse_target(text)
    assert (target.label, target.max_miss_rate, target.confidence) == (
        label,
        pytest.approx(rate),
        pytest.approx(confidence),
    )


@pytest.mark.parametrize(
    "text", ["", "short", "short: 1%", "short: 1 @ 95", "0% @ 95%", "100% @ 95%", "1% @ 100%", "1..2% @ 95%"]
)
def test_a_target_that_makes_no_sense_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="wanted"):
        parse_target(text)


def test_the_document_comes_back_as_it_was(make_calibration: MakeCalibration, tmp_path: Path) -> None:
    calibration = make_calibration({"a": 0.2, "b": 0.7}, "abc")
    save_calibration(tmp_path / "new" / "c.json", calibration)
    assert load_calibration(tmp_path / "new" / "c.json") == calibration


@pytest.mark.parametrize("text", ["", "[]", '{"format": 2}', '{"model_name": 3}'])
def test_a_file_that_is_none_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"c\.json"):
        load_calibration(path)
    with pytest.raises(ConfigError, match="cannot read"):
        load_calibration(tmp_path / "missing.json")


SAME: dict[str, Any] = {
    "model_version": "abc",
    "mode": "with_reference",
    "recipe": "panel 7",
    "camera": "line 3",
}


@pytest.mark.parametrize(
    ("change", "words", "thresholds"),
    [
        ({}, None, {"a": 0.2, "b": 0.7}),
        ({"model_version": "abd"}, "model version abc.*has abd", {"a": 0.5, "b": 0.5}),
        ({"mode": "without_reference"}, "reference mode with reference", {"a": 0.5, "b": 0.5}),
        # Scores mean the same there, so the lower threshold of both misses no more than either.
        ({"recipe": "panel 8"}, "recipe panel 7.*has panel 8", {"a": 0.2, "b": 0.5}),
        ({"recipe": None}, r"recipe panel 7.*none stated", {"a": 0.2, "b": 0.5}),
        ({"camera": "line 4"}, "camera line 3.*has line 4", {"a": 0.2, "b": 0.5}),
    ],
)
def test_a_changed_circumstance_voids_the_claims_and_never_makes_the_model_miss_more(
    make_calibration: MakeCalibration,
    change: dict[str, Any],
    words: str | None,
    thresholds: dict[str, float],
) -> None:
    calibration = make_calibration({"a": 0.2, "b": 0.7}, "abc")
    chosen, report = thresholds_in_force(calibration, {"a": 0.5, "b": 0.5}, **SAME | change)
    assert report is not None
    assert chosen == thresholds
    assert report.valid is (words is None)
    assert len(report.void_because) == (words is not None)
    if words is not None:
        assert re.search(words, report.void_because[0])
    assert (report.n, report.claims) == (59, calibration.claims)


def test_without_a_calibration_nothing_is_promised() -> None:
    assert thresholds_in_force(None, {"a": 0.5}, model_version="abc", mode="with_reference") == (
        {"a": 0.5},
        None,
    )


def test_the_inspector_judges_by_it_and_every_report_carries_it(
    make_calibration: MakeCalibration, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    plain = Inspector(tiny_checkpoint, device="cpu")
    names, version = plain.metadata.model.class_names, plain.metadata.version
    board = np.random.default_rng(0).integers(0, 255, (320, 320, 3), np.uint8)
    low = make_calibration(dict.fromkeys(names, 0.0101), version, reference_mode="without_reference")
    save_calibration(tmp_path / "c.json", low)
    calibrated = Inspector(tiny_checkpoint, device="cpu", calibration=tmp_path / "c.json")
    stated = {"recipe": "panel 7", "camera": "line 3"}
    intake = IntakeReport(format="PNG", mode="RGB", bit_depth=8, width=320, height=320)

    def report(result: Any) -> Any:
        return json.loads(
            json.dumps(inspection_report(result, inspection_id="1", intake=intake, links={}), allow_nan=False)
        )

    assert plain.inspect(board).verdict == "PASS"
    assert report(plain.inspect(board))["calibration"] is None
    result = calibrated.inspect(board, **stated)
    assert result.verdict == "FAIL"
    told = report(result)["calibration"]
    assert (told["valid"], told["void_because"], told["n"]) == (True, [], 59)
    assert (told["recipe"], told["camera"], told["date"]) == ("panel 7", "line 3", low.date)
    assert told["claims"][0]["words"] == low.claims[0].words

    reference = board.copy()
    reference[:8, :8] = 255
    void = calibrated.inspect(board, reference=reference, **stated)
    assert void.verdict == "PASS"
    told = report(void)["calibration"]
    assert not told["valid"]
    assert told["claims"][0]["kept"]
    assert calibration_remark([report(void)]).startswith("calibration VOID")
    # A calibration that is given with the board comes before the inspector's.
    other = low.model_copy(update={"model_version": "0"})
    assert not calibrated.inspect(board, calibration=other, **stated).calibration.valid
