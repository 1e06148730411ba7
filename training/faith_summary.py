"""The figures on all defects: means and shares with their n and intervals, the default overlay, the aims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from training.faith_examine import DIFFERENCE, RANDOM
from training.faith_measures import SHARES, area_under, area_under_log, bootstrap_mean
from training.metrics import proportion

ALIGNED = "0"
SHARE_FIGURES = ("pointing", "pointing_alone", "flip", "flip_any")
"""Figures that are true or false for each defect."""
RANKED = {"deletion": -1, "insertion": 1, "pointing": 1, "flip": 1}
"""What decides on the default overlay, and whether more is better."""
POINTING_AIM, FLIP_AIM, DELETION_AIM = 0.97, 0.95, 0.02


def summarise_faithfulness(record: Sequence[dict[str, Any]], *, seed: int) -> dict[str, Any]:
    """Every figure of the report; NaN where a figure has no n.

    record: as `faithfulness.measure` gives it.
    """
    alignments = {
        name: _alignment([entry["alignments"][name] for entry in record], seed)
        for name in record[0]["alignments"]
    }
    ranks = _mean_ranks(alignments[ALIGNED]["maps"])
    best = min(ranks, key=lambda name: ranks[name]) if ranks else None
    return {
        "defects": len(record),
        "images": len({entry["image"] for entry in record}),
        "groups": len({entry["group"] for entry in record}),
        "per_class": dict(sorted(Counter(entry["label"] for entry in record).items())),
        "shares": SHARES,
        "alignments": alignments,
        "randomised": _randomised(record, seed),
        "mean_rank": ranks,
        "default_overlay": best,
        "aims": [] if best is None else _aims(alignments, best),
    }


def _alignment(entries: Sequence[dict[str, Any]], seed: int) -> dict[str, Any]:
    """One alignment of the reference: figures of every map over all defects."""
    by_map = {name: [entry["maps"][name] for entry in entries] for name in entries[0]["maps"]}
    baseline = _column(by_map[DIFFERENCE], lambda figures: area_under(figures["deletion"]))
    first = next(iter(by_map.values()))
    return {
        "cropped": sum(entry["cropped"] for entry in entries),
        "area": bootstrap_mean(
            np.array(
                [entry["area"] if "energy" in entry["maps"][DIFFERENCE] else np.nan for entry in entries]
            ),
            seed=seed,
        ),
        "score": bootstrap_mean(_column(first, lambda figures: figures["deletion"][0]), seed=seed),
        "score_replaced": bootstrap_mean(_column(first, lambda figures: figures["deletion"][-1]), seed=seed),
        "maps": {name: _map(rows, baseline, seed) for name, rows in by_map.items()},
    }


def _map(rows: Sequence[dict[str, Any]], baseline: NDArray[np.float64], seed: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for kind in ("deletion", "insertion"):
        if kind in rows[0]:
            curves = np.array([row[kind] for row in rows])
            figures[kind] = bootstrap_mean(np.array([area_under(curve) for curve in curves]), seed=seed)
            figures[f"{kind}_log"] = bootstrap_mean(
                np.array([area_under_log(curve) for curve in curves]), seed=seed
            )
            figures[f"{kind}_curve"] = curves.mean(0).tolist()
    areas = np.array([area_under(row["deletion"]) for row in rows])
    figures["deletion_over_difference"] = bootstrap_mean(areas - baseline, seed=seed)
    for kind in SHARE_FIGURES:
        known = [row[kind] for row in rows if row.get(kind) is not None]
        figures[kind] = proportion(sum(known), len(known))
    figures["energy"] = bootstrap_mean(_column(rows, lambda row: row.get("energy")), seed=seed)
    return figures


def _column(
    rows: Sequence[dict[str, Any]], figure: Callable[[dict[str, Any]], float | None]
) -> NDArray[np.float64]:
    values = (figure(row) for row in rows)
    return np.array([np.nan if value is None else value for value in values])


def _randomised(record: Sequence[dict[str, Any]], seed: int) -> dict[str, Any]:
    """{part: {map: mean rank correlation with the map of the trained model}}."""
    drawn = [entry["randomised"] for entry in record if entry["randomised"]]
    if not drawn:
        return {}
    return {
        part: {
            name: bootstrap_mean(_column([entry[part] for entry in drawn], lambda row: row[name]), seed=seed)  # noqa: B023
            for name in drawn[0][part]
        }
        for part in drawn[0]
    }


def _mean_ranks(maps: dict[str, Any]) -> dict[str, float]:
    """Mean place of each map of the model over RANKED, 1 the best, equal ones sharing their mean place."""
    names = [name for name in maps if name not in (DIFFERENCE, RANDOM)]
    if not names:
        return {}
    places = []
    for figure, sign in RANKED.items():
        values = np.array([maps[name][figure]["value"] for name in names])
        places.append(rankdata(np.nan_to_num(-sign * values, nan=np.inf)))
    return {name: float(place) for name, place in zip(names, np.mean(places, 0), strict=True)}


def _aims(alignments: dict[str, Any], best: str) -> list[dict[str, Any]]:
    """What was aimed at with DeepPCB's test boards, held against the default overlay."""
    figures = alignments[ALIGNED]["maps"][best]
    pointing, flip = (figures[kind]["value"] for kind in ("pointing", "flip"))
    over = figures["deletion_over_difference"]["value"]
    aims: list[tuple[str, float, str, bool]] = [
        ("pointing game", pointing, f">= {POINTING_AIM}", pointing >= POINTING_AIM),
        ("flip at 1 %", flip, f">= {FLIP_AIM}", flip >= FLIP_AIM),
        (f"deletion over {DIFFERENCE}, aligned", over, f"<= {DELETION_AIM}", over <= DELETION_AIM),
    ]
    for name, measured in alignments.items():
        if name != ALIGNED:
            over = measured["maps"][best]["deletion_over_difference"]["value"]
            aims.append(
                (f"deletion over {DIFFERENCE}, reference moved by {name} px", over, "< 0", over < 0.0)
            )
    return [dict(zip(("aim", "value", "wanted", "reached"), aim, strict=True)) for aim in aims]
