"""The measures of detection quality, as pure functions on detections and truths.

Letters: D detections and T truths of all images together. A measure of a class that no truth has is NaN and
left out of every mean; `summarise` names those classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from faster_coco_eval import COCO, COCOeval_faster

from inspect_vit.intervals import clopper_pearson, upper_bound
from inspect_vit.matching import (
    BoolArray,
    Detections,
    FloatArray,
    Matches,
    Matching,
    Truths,
    match_images,
)
from inspect_vit.thresholds import best_f_point, operating_point

PANEL_SIDE_MM2 = 18 * 24 * 25.4**2
"""One side of an 18 x 24 inch panel."""
MATCHINGS: Mapping[str, Matching] = {"shipped": "shipped", "same_class": "same-class"}
"""The matchings, by their keys in a report."""


def average_precision(correct: BoolArray, num_truths: int) -> float:
    """Sum of the precision at each true positive over the number of truths, without interpolation.

    Args:
        correct: (D,) by score, highest first.
    """
    if not num_truths:
        return float("nan")
    ranks = np.flatnonzero(correct) + 1
    return float((np.arange(1, len(ranks) + 1) / ranks).sum() / num_truths)


def precision_recall(correct: BoolArray, num_truths: int) -> tuple[FloatArray, FloatArray]:
    """Precision and recall (D,) each after 1 to D detections, by score."""
    hits = np.cumsum(correct)
    return hits / np.arange(1, len(correct) + 1), hits / max(num_truths, 1)


def of_class(
    detections: Sequence[Detections], truths: Sequence[Truths], label: int
) -> tuple[list[Detections], list[Truths]]:
    """The detections and truths of one class, all images kept."""
    return [d.select(d.labels == label) for d in detections], [t.select(t.labels == label) for t in truths]


def ap_per_class(
    detections: Sequence[Detections], truths: Sequence[Truths], num_classes: int, *, matching: Matching
) -> list[float]:
    """AP of each class alone, as though the others did not exist; NaN for a class without a truth."""
    alone = (
        match_images(*of_class(detections, truths, label), matching=matching) for label in range(num_classes)
    )
    return [average_precision(matches.correct, matches.num_truths) for matches in alone]


def mean_of_present(values: Sequence[float]) -> float:
    """Mean over the classes whose value is not NaN; NaN when none is."""
    present = [value for value in values if not np.isnan(value)]
    return float(np.mean(present)) if present else float("nan")


def coco_map(
    detections: Sequence[Detections],
    truths: Sequence[Truths],
    class_names: Sequence[str],
    *,
    max_dets: int = 100,
) -> dict[str, Any]:
    """COCO's mean AP (101-point interpolation, at most `max_dets` calls per image and class)."""
    images = [{"id": image} for image in range(len(truths))]
    categories = [{"id": label, "name": name} for label, name in enumerate(class_names)]
    annotations = _coco_annotations(truths)
    for number, annotation in enumerate(annotations, 1):
        annotation.update(id=number, iscrowd=0)
    calls = _coco_annotations(detections)
    for call, score in zip(calls, np.concatenate([[], *(d.scores for d in detections)]), strict=True):
        call["score"] = float(score)
    truth_set = COCO({"images": images, "categories": categories, "annotations": annotations})
    evaluator = COCOeval_faster(truth_set, truth_set.loadRes(calls), "bbox")
    evaluator.params.maxDets = [max_dets]
    evaluator.params.areaRng, evaluator.params.areaRngLbl = [[0, 1e10]], ["all"]
    evaluator.evaluate()
    evaluator.accumulate()
    precision = np.asarray(evaluator.eval["precision"])[:, :, :, 0, 0]  # (IoU, recall, class), -1 for absent
    per_class = np.where(precision < 0, np.nan, precision).mean(axis=1)  # (IoU, class)
    ap50, ap50_95 = per_class[0].tolist(), per_class.mean(axis=0).tolist()
    return {
        "map50": mean_of_present(ap50),
        "map50_95": mean_of_present(ap50_95),
        "ap50_per_class": dict(zip(class_names, ap50, strict=True)),
        "ap50_95_per_class": dict(zip(class_names, ap50_95, strict=True)),
    }


def _coco_annotations(images: Sequence[Detections | Truths]) -> list[dict[str, Any]]:
    return [
        {
            "image_id": image,
            "category_id": int(label),
            "bbox": [float(x1), float(y1), float(x2 - x1), float(y2 - y1)],
            "area": float((x2 - x1) * (y2 - y1)),
        }
        for image, content in enumerate(images)
        for (x1, y1, x2, y2), label in zip(content.boxes.astype(np.float64), content.labels, strict=True)
    ]


def proportion(count: int, n: int) -> dict[str, Any]:
    """A share with its n and exact 95 % interval."""
    low, high = clopper_pearson(count, n)
    return {"value": count / n if n else float("nan"), "count": count, "n": n, "low": low, "high": high}


def false_calls(matches: Matches, *, total_px: int, px_per_mm: float) -> dict[str, Any]:
    """Calls that share no area with any truth (IoU 0), per image, panel side and square metre.

    Args:
        total_px: pixels of all images together.
        px_per_mm: NaN where it is not known, and so are the figures per area.
    """
    count = int(np.count_nonzero(matches.outside))
    area_mm2 = total_px / px_per_mm**2
    return {
        "count": count,
        "images": matches.num_images,
        "per_image": count / matches.num_images if matches.num_images else float("nan"),
        "images_with": proportion(len(np.unique(matches.images[matches.outside])), matches.num_images),
        "area_mm2": area_mm2,
        "per_panel_side": count / area_mm2 * PANEL_SIDE_MM2 if total_px else float("nan"),
        "per_m2": count / area_mm2 * 1e6 if total_px else float("nan"),
    }


def misses(matches: Matches) -> dict[str, Any]:
    """Defects that were missed: by a call of the right class, by any call, and boards passed with a defect.

    An escape is a defect that no call found, whatever its class. ppm is 1e6 x count / n.

    Args:
        matches: the shipped matching of the calls that reach their thresholds.
    """
    missed, escaped = (int(np.count_nonzero(~hit)) for hit in (matches.recalled(), matches.found()))
    defective = np.unique(matches.truth_images)
    passed = len(np.setdiff1d(defective, matches.images))
    return {
        "miss_rate": _loss(missed, matches.num_truths),
        "escape_rate": _loss(escaped, matches.num_truths),
        "boards_passed": _loss(passed, len(defective)),
    }


def _loss(count: int, n: int) -> dict[str, Any]:
    """`proportion` with its one-sided 95 % upper bound and parts per million."""
    share = proportion(count, n)
    return share | {"upper_95": upper_bound(count, n), "ppm": 1e6 * float(share["value"])}


def summarise(
    detections: Sequence[Detections],
    truths: Sequence[Truths],
    class_names: Sequence[str],
    *,
    thresholds: Mapping[str, float] | None = None,
    coco: bool = True,
) -> dict[str, Any]:
    """Every measure that needs only detections and truths; plain floats, NaN where a measure has no n.

    Args:
        detections, truths: one entry per image, labels indexing class_names.
        thresholds: deployed score threshold of each class; adds `deployed` to each matching.
        coco: add COCO's mean AP, the slowest of the measures.
    """
    labels = np.concatenate([np.zeros(0, np.int64), *(t.labels for t in truths)])
    counts = np.bincount(labels, minlength=len(class_names)).tolist()
    blind = match_images(detections, truths, matching="class-blind")
    report: dict[str, Any] = {
        "images": len(truths),
        "detections": len(blind.scores),
        "truths": blind.num_truths,
        "truths_per_class": dict(zip(class_names, counts, strict=True)),
        "absent_classes": [name for name, count in zip(class_names, counts, strict=True) if not count],
        "class_blind_ap": average_precision(blind.correct, blind.num_truths),
    }
    for name, matching in MATCHINGS.items():
        matches = match_images(detections, truths, matching=matching)
        per_class = ap_per_class(detections, truths, len(class_names), matching=matching)
        report[name] = {
            "ap": average_precision(matches.correct, matches.num_truths),
            "mean_ap": mean_of_present(per_class),
            "ap_per_class": dict(zip(class_names, per_class, strict=True)),
            "best_f": asdict(best_f_point(matches)),
        }
        if thresholds is not None:
            reached = deployed_detections(detections, class_names, thresholds)
            point = operating_point(match_images(reached, truths, matching=matching), 0.0)
            report[name]["deployed"] = asdict(point) | {"threshold": dict(thresholds)}
    if coco:
        report["coco"] = coco_map(detections, truths, class_names)
    return report


def deployed_detections(
    detections: Sequence[Detections], class_names: Sequence[str], thresholds: Mapping[str, float]
) -> list[Detections]:
    """The calls that become defects: score at least the threshold of their class."""
    limits = np.array([thresholds[name] for name in class_names])
    return [d.reaching(limits) for d in detections]
