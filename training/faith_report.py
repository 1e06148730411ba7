"""The report on the evidence: faithfulness.json, faithfulness.md and a plot of each measure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from training.faith_examine import DIFFERENCE, RANDOM
from training.faith_plots import draw_faithfulness
from training.faith_summary import ALIGNED, summarise_faithfulness
from training.report import finite

METHOD = """## How it is measured

* Defects: true positives at the deployed thresholds with the golden reference, drawn over pictures and
  classes. Every map ranks the 4 px cells of the region around the defect, equal cells in random order; cells
  under the boxes of other labelled defects alone are left out.
* Score: the highest centre score of the defect's class in its box. Replaced cells show the good board.
* Deletion: mean score while the first cells of the ranking are replaced, 0 to 100 % of the region; low is
  good. Insertion: the same from the good board, with cells of the inspected board put back; high is good.
  "log": mean over the logarithm of the share, 0.1 to 100 %.
* Pointing: the map's highest cell lies on the true defect, which is what differs from the reference inside
  the label's box, widened by 4 px. "Alone": other defects of the region take part, and count as misses.
  Energy: share of the map's sum on the true defect.
* Flip: with the first 1 % of the region replaced the score falls below its threshold; "any class": the score
  of every class does. n counts the defects that reach the threshold before.
* Reference moved: model and maps get a reference that is shifted right, down, left or up in turn; replaced
  cells still show the good board where it lies.
* Randomised weights: Spearman's correlation with the map after the values of every weight tensor, of the head
  or of the whole model, are shuffled, over cells where either map is above 0. A map that stays alike does not
  depend on what was learned.
* Intervals: 95 %, exact for shares, bootstrap over defects for means."""


def write_faithfulness(
    record: Sequence[dict[str, Any]], about: dict[str, Any], *, out: Path
) -> dict[str, Any]:
    """Write the report into `out` and return it.

    Args:
        record: as `faithfulness.measure` gives it.
        about: model, data and seed.
    """
    report = about | summarise_faithfulness(record, seed=about["seed"])
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(finite(report), indent=2, allow_nan=False) + "\n"
    (out / "faithfulness.json").write_text(text, encoding="utf-8")
    plots = draw_faithfulness(report, out)
    page = faithfulness_page(report, [plot.name for plot in plots])
    (out / "faithfulness.md").write_text(page, encoding="utf-8")
    return report


def faithfulness_page(report: dict[str, Any], plots: Sequence[str]) -> str:
    """The report as a page that stands alone."""
    sections = [
        _head(report),
        _aligned(report),
        _moved(report),
        _randomised(report),
        _aims(report),
        "## Plots\n\n" + "\n\n".join(f"![{name}]({name})" for name in plots),
        METHOD,
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _head(report: dict[str, Any]) -> str:
    model, data = report["model"], report["data"]
    classes = ", ".join(f"{count} {name}" for name, count in report["per_class"].items())
    aligned = report["alignments"][ALIGNED]
    lines = [
        f"# Faithfulness of the evidence, {model['name']} {model['version']}",
        f"{data['set']}, split {data['split']}: {report['defects']} defects found ({classes}) on "
        f"{report['images']} pictures of {report['groups']} board groups, drawn from {data['images']} "
        f"pictures, random seed {report['seed']}. Mean score {_number(aligned['score']['value'])}, "
        f"{_number(aligned['score_replaced']['value'])} with the whole region replaced. "
        f"{aligned['cropped']} of {report['defects']} defects were looked at in their region alone.",
    ]
    if report["default_overlay"] is not None:
        lines.append(
            f"Best map of the model by mean rank over deletion, insertion, pointing and flip: "
            f"**{report['default_overlay']}**."
        )
    return "\n\n".join(lines)


def _aligned(report: dict[str, Any]) -> str:
    measured = report["alignments"][ALIGNED]
    header = (
        "map",
        "deletion",
        "deletion, log",
        "insertion",
        "insertion, log",
        "pointing",
        "pointing alone",
        "energy",
        "flip",
        "flip, any class",
        "mean rank",
    )
    rows = [
        [
            _cell_name(name),
            _mean(figures["deletion"]),
            _number(figures["deletion_log"]["value"]),
            _mean(figures["insertion"]),
            _number(figures["insertion_log"]["value"]),
            _mean(figures["pointing"]),
            _number(figures["pointing_alone"]["value"]),
            _number(figures["energy"]["value"]),
            _mean(figures["flip"]),
            _number(figures["flip_any"]["value"]),
            _number(report["mean_rank"].get(name, math.nan), 2),
        ]
        for name, figures in measured["maps"].items()
    ]
    counts = measured["maps"][DIFFERENCE]
    return (
        f"## Reference aligned\n\n{_table(header, rows)}\n\nn = {counts['deletion']['n']} for deletion "
        f"and insertion, {counts['pointing']['n']} for pointing and energy, {counts['flip']['n']} for flip. "
        f"The true defects cover {_number(measured['area']['value'], 4)} of the area: the energy of an even "
        "map."
    )


def _moved(report: dict[str, Any]) -> str:
    moved = {name: measured for name, measured in report["alignments"].items() if name != ALIGNED}
    if not moved:
        return ""
    header = ["map"]
    for name, measured in moved.items():
        called = measured["maps"][DIFFERENCE]["flip"]["n"]
        header += [
            f"{name} px: deletion",
            f"{name} px: minus {_cell_name(DIFFERENCE)}",
            f"{name} px: pointing",
            f"{name} px: flip (n = {called})",
        ]
    rows = []
    for map_name in next(iter(moved.values()))["maps"]:
        row = [_cell_name(map_name)]
        for measured in moved.values():
            figures = measured["maps"][map_name]
            row += [
                _number(figures["deletion"]["value"]),
                _mean(figures["deletion_over_difference"]),
                _number(figures["pointing"]["value"]),
                _number(figures["flip"]["value"]),
            ]
        rows.append(row)
    scores = ", ".join(f"{name} px {_number(measured['score']['value'])}" for name, measured in moved.items())
    return f"## Reference moved\n\n{_table(header, rows)}\n\nMean score of the defects: {scores}."


def _randomised(report: dict[str, Any]) -> str:
    parts = report["randomised"]
    if not parts:
        return ""
    names = next(iter(parts.values()))
    rows = [[_cell_name(name), *(_mean(figures[name]) for figures in parts.values())] for name in names]
    count = max(figures[RANDOM]["n"] for figures in parts.values())
    return (
        f"## Randomised weights\n\n{_table(['map', *(f'{part} shuffled' for part in parts)], rows)}\n\n"
        f"n = {count} defects. {_cell_name(DIFFERENCE)} does not see the model and is 1 by construction; "
        "attention and gates come before the head, so shuffling the head reaches them at most through the "
        "defect map that weights their rows."
    )


def _aims(report: dict[str, Any]) -> str:
    if not report["aims"]:
        return ""
    rows = [
        [
            _cell_name(aim["aim"]),
            _number(aim["value"]),
            aim["wanted"],
            "reached" if aim["reached"] else "missed",
        ]
        for aim in report["aims"]
    ]
    table = _table(["aim", "value", "wanted", ""], rows)
    return f"## Aims, for the map {report['default_overlay']}\n\n{table}"


def _cell_name(name: str) -> str:
    """A bar in a name would end the cell of a Markdown table."""
    return name.replace("|", "\\|")


def _number(value: float, digits: int = 3) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _mean(figure: dict[str, float]) -> str:
    if not figure["n"]:
        return "-"
    return f"{figure['value']:.3f} ({figure['low']:.3f} to {figure['high']:.3f})"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
