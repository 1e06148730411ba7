"""Does a level's gate share say what a call would lose without it? Do levels that disagree mark wrong calls?

    python benchmarks/gate_share.py DeepPCB --limit 100

Every call at the deployed thresholds on evenly spaced pairs of DeepPCB's test split, with and without
reference: its gate shares against the fall of its centre logit when a level's tokens are replaced
(inspect_vit/ablation.py), and the disagreement of fine level and context against whether the call was wrong
under DeepPCB's own matching."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import pearsonr, rankdata, spearmanr

from inspect_vit import Inspector, read_image
from inspect_vit.ablation import evidence
from inspect_vit.alignment import lay_under
from inspect_vit.checkpoint import default_checkpoint
from inspect_vit.inspector import LEVEL_NAMES
from inspect_vit.matching import Truths, as_detections, match_images
from inspect_vit.results import Sample
from training.formats.deeppcb import read_deeppcb

COLUMNS = ("share", "logits", "score")


def measure(
    inspector: Inspector, samples: list[Sample], *, with_reference: bool
) -> dict[str, NDArray[np.float64]]:
    """Per call: share, logits and score lost (n, 3) by level, disagreement, score and whether it was wrong
    (n,)."""
    names = list(inspector.metadata.model.class_names)
    rows: dict[str, list[object]] = {key: [] for key in (*COLUMNS, "disagreement", "call score", "wrong")}
    for number, sample in enumerate(samples, start=1):
        assert sample.reference is not None
        image = read_image(sample.image)[0]
        laid = lay_under(image, read_image(sample.reference)[0]) if with_reference else None
        reference = laid and laid.picture
        result = inspector.inspect(image, reference=laid)
        truths = Truths(sample.boxes, np.array([names.index(label) for label in sample.labels], np.int64))
        # The listed calls come highest score first, which is the order that matches are answered in.
        correct = match_images([as_detections(result)], [truths]).correct
        found = evidence(inspector, image, reference=reference, defects=result.defects)
        for defect, shown, right in zip(result.defects, found, correct, strict=True):
            rows["share"].append([defect.gate_share[level] for level in LEVEL_NAMES])
            rows["logits"].append([shown.drop[level] for level in LEVEL_NAMES])
            rows["score"].append([shown.score_drop[level] for level in LEVEL_NAMES])
            rows["disagreement"].append(shown.disagreement)
            rows["call score"].append(defect.score)
            rows["wrong"].append(float(not right))
        print(f"\r{number} of {len(samples)} pictures", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {key: np.array(values, np.float64) for key, values in rows.items()}


def area_under_curve(marks: NDArray[np.float64], wrong: NDArray[np.bool_]) -> float:
    """Chance that a wrong call is marked higher than a right one, ties half; NaN without one of either."""
    num_wrong, num_right = int(wrong.sum()), int((~wrong).sum())
    if not num_wrong or not num_right:
        return float("nan")
    above = rankdata(marks)[wrong].sum() - num_wrong * (num_wrong + 1) / 2
    return float(above / (num_wrong * num_right))


def correlation_table(rows: dict[str, NDArray[np.float64]]) -> str:
    """Share against loss, for each level over the calls, and for all levels of all calls together."""
    lines = [
        "| level | mean share | mean loss, logits | mean loss, score | Spearman, logits | Pearson, logits | "
        "Spearman, score |",
        "|---|---|---|---|---|---|---|",
    ]
    for index, level in enumerate((*LEVEL_NAMES, "all")):
        share, logits, score = (
            rows[key].ravel() if level == "all" else rows[key][:, index] for key in COLUMNS
        )
        figures = [
            spearmanr(share, logits).statistic,
            pearsonr(share, logits).statistic,
            spearmanr(share, score).statistic,
        ]
        name = level if level == "all" else f"{level} px"
        means = f"{share.mean():.2f} | {logits.mean():.2f} | {score.mean():.2f}"
        lines.append(f"| {name} | {means} | " + " | ".join(f"{figure:.2f}" for figure in figures) + " |")
    return "\n".join(lines)


def report(rows: dict[str, NDArray[np.float64]]) -> None:
    count = len(rows["wrong"])
    print(f"{count} calls\n\n{correlation_table(rows)}\n")
    by_share, by_loss = rows["share"].argmax(1), rows["logits"].argmax(1)
    for index, level in enumerate(LEVEL_NAMES):
        print(
            f"{level} px: highest share in {np.mean(by_share == index):.1%} of calls, "
            f"greatest loss in {np.mean(by_loss == index):.1%}"
        )
    agree = np.mean(by_share == by_loss)
    print(f"the level with the highest share is the one with the greatest loss: {agree:.1%}")
    wrong = rows["wrong"].astype(bool)
    flagged = rows["disagreement"] > 0
    print(
        f"levels disagree in {flagged[~wrong].sum()} of {(~wrong).sum()} right calls and "
        f"{flagged[wrong].sum()} of {wrong.sum()} wrong ones"
    )
    by_flag = area_under_curve(rows["disagreement"], wrong)
    by_score = area_under_curve(-rows["call score"], wrong)
    print(f"area under the curve against wrong calls: disagreement {by_flag:.2f}, low score {by_score:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder that holds PCBData/")
    parser.add_argument("--checkpoint", type=Path, default=default_checkpoint())
    parser.add_argument("--limit", type=int, default=100, help="pairs, evenly spaced over the test split")
    options = parser.parse_args()
    samples = read_deeppcb(options.data, "test")
    chosen = np.linspace(0, len(samples) - 1, min(options.limit, len(samples))).round().astype(int)
    inspector = Inspector(options.checkpoint)
    for with_reference in (True, False):
        print(f"\n{'with' if with_reference else 'without'} reference, {len(chosen)} pictures, ", end="")
        report(measure(inspector, [samples[i] for i in chosen], with_reference=with_reference))


if __name__ == "__main__":
    main()
