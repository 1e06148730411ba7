"""A lamp that loses half a percent a board is noticed before the first planted defect is missed."""

from __future__ import annotations

from pathlib import Path

from benchmarks.drift import BASELINE, LOSS, Line, cut, products, take
from inspect_vit import Inspector
from inspect_vit.checkpoint import default_checkpoint
from inspect_vit.results import Verdict


def test_the_alarm_comes_while_every_planted_defect_is_still_found(project: Path) -> None:
    (whole,) = products(project / "data_samples", ["colour_01"])
    line = Line(Inspector(default_checkpoint()), cut(whole, 320), seed=0)
    for _ in range(BASELINE):
        assert line.post(take(line.product.good, line.rng), is_inspected=False) == []
    at_full_light, _ = line.found(1.0, seed=7)
    assert at_full_light
    alarm, raised = 0, list[str]()
    while not raised:
        alarm += 1
        assert alarm <= 10, "5 % of the light is gone"
        light = 1 - LOSS * alarm
        raised = line.post(take(line.product.good, line.rng, light=light), is_inspected=False)
    assert "mean_grey" in raised
    # The light only falls: what is found with twice the loss was found until the alarm.
    found, verdict = line.found(1 - LOSS * 2 * alarm, seed=7)
    assert at_full_light <= found
    assert verdict is Verdict.FAIL
