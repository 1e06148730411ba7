"""The report on the evidence: figures on a record made by hand, and a page that holds together."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from training.faith_examine import DIFFERENCE, RANDOM
from training.faith_measures import SHARES
from training.faith_report import write_faithfulness
from training.faith_summary import summarise_faithfulness

ABOUT = {
    "model": {"name": "m", "version": "1"},
    "data": {"set": "DeepPCB", "split": "test", "images": 2},
    "seed": 0,
}


def entry(label: str, image: str, **scores: float) -> dict[str, Any]:
    """One defect: every map's score is 0.9 at share 0 and the given value from the next step on."""

    def alignment(both: bool) -> dict[str, Any]:
        maps = {
            name: {
                "deletion": [0.9, *[low] * (len(SHARES) - 1)],
                "flip": low < 0.3,
                "flip_any": False,
                "pointing": low < 0.3,
                "pointing_alone": False,
                "energy": 1.0 - low,
            }
            | ({"insertion": [*[1.0 - low] * (len(SHARES) - 1), 0.9]} if both else {})
            for name, low in scores.items()
        }
        return {"cropped": True, "area": 0.01, "maps": maps}

    correlations = {
        part: {name: 1.0 if name == DIFFERENCE else None for name in scores} for part in ("head",)
    }
    return {
        "label": label,
        "image": image,
        "group": "g",
        "alignments": {"0": alignment(True), "1": alignment(False)},
        "randomised": correlations,
    }


@pytest.fixture(scope="module")
def record() -> list[dict[str, Any]]:
    names = ("good", "poor", DIFFERENCE, RANDOM)
    return [
        entry("open", "a.png", **dict(zip(names, (0.05, 0.6, 0.2, 0.8), strict=True))),
        entry("spur", "b.png", **dict(zip(names, (0.3, 0.8, 0.2, 0.8), strict=True))),
    ]


def test_figures_are_means_over_defects_with_their_n(record: list[dict[str, Any]]) -> None:
    report = summarise_faithfulness(record, seed=0)
    assert (report["defects"], report["images"], report["groups"]) == (2, 2, 1)
    maps = report["alignments"]["0"]["maps"]
    step = SHARES[1] / 2  # of the first trapezoid, from 0.9 down
    expected = np.mean([low + (0.9 - low) * step for low in (0.05, 0.3)])
    assert maps["good"]["deletion"]["value"] == pytest.approx(expected)
    assert maps["good"]["deletion_over_difference"]["value"] == pytest.approx(-0.025 * (1 - step))
    assert maps["good"]["flip"] | {"low": 0, "high": 0} == {
        "value": 0.5,
        "count": 1,
        "n": 2,
        "low": 0,
        "high": 0,
    }
    assert maps["good"]["energy"]["value"] == pytest.approx(0.825)
    assert report["default_overlay"] == "good"
    assert report["mean_rank"] == {"good": 1.0, "poor": 2.0}
    reached = {aim["aim"]: aim["reached"] for aim in report["aims"]}
    assert reached == {
        "pointing game": False,
        "flip at 1 %": False,
        f"deletion over {DIFFERENCE}, aligned": True,
        f"deletion over {DIFFERENCE}, reference moved by 1 px": True,
    }
    assert report["randomised"]["head"][DIFFERENCE]["value"] == 1.0
    assert report["randomised"]["head"]["good"]["n"] == 0


def test_the_report_is_written_whole(record: list[dict[str, Any]], tmp_path: Path) -> None:
    report = write_faithfulness(record, ABOUT, out=tmp_path)
    page = (tmp_path / "faithfulness.md").read_text()
    assert json.loads((tmp_path / "faithfulness.json").read_text())["default_overlay"] == "good"
    assert report["per_class"] == {"open": 1, "spur": 1}
    for name in re.findall(r"!\[.*?\]\((.*?)\)", page):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert len(list(tmp_path.glob("*.png"))) == 6
    for block in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1, block
