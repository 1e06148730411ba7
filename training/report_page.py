"""An evaluation's report as a Markdown page: every figure with its n."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from training.measured_set import DEEPPCB
from training.metrics import PANEL_SIDE_MM2
from training.plots import TITLES
from training.report_table import interval, number, share, table, tenths

METHOD = """## How it is measured

* Shipped matching: per image, detections by score; each ground truth, in label order, takes the free
  detection of highest score with IoU > 0.33, whatever its class; a wrong class then is one false positive and
  one miss. AP is the sum of the precision at each true positive over the number of truths, without
  interpolation. Mean AP runs class by class.
* Same-class matching: each detection, by score, takes the free ground truth of its class that it overlaps
  most, IoU > 0.33; the same AP.
* mAP50 and mAP50-95: COCO's, 101-point interpolation, at most 100 calls per image and class.
* F = 2 TP / (calls + truths). Classes without a truth are left out of means."""
MAIN_HEADER = (
    "images",
    "defects",
    "AP, shipped (95 % bootstrap)",
    "mean AP, shipped",
    "mean AP, same-class",
    "F",
    "calls outside, per image",
)


def as_markdown(report: dict[str, Any], plots: Sequence[str]) -> str:
    """The report as a page that stands alone."""
    sections = [
        _head(report),
        _quality(report),
        _per_class(report),
        _operating_points(report),
        _misses(report),
        _sizes(report),
        _boards(report),
        _shifts(report),
        _timings(report),
        "## Plots\n\n" + "\n\n".join(f"![{name}]({name})" for name in plots),
        METHOD,
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _head(report: dict[str, Any]) -> str:
    model, data = report["model"], report["data"]
    whole = "the whole split" if data["images"] == data["split_images"] else f"of {data['split_images']}"
    errors = sum(measured["error_verdicts"] for measured in report["modes"].values())
    lines = [
        f"# Evaluation of {model['name']} {model['version']}",
        f"{data['set']}, split {data['split']}: {data['images']} images ({whole}) with {data['defects']} "
        f"defects, random seed {data['seed']}. Checkpoint of {model['created']}, revision "
        f"{model['git_revision'] or 'unknown'}.",
    ]
    if report["command"]:
        lines.append(f"```sh\n{report['command']}\n```")
    if errors:
        lines.append(
            f"**{errors} inspections ended in verdict ERROR**; their boards count as boards without a call."
        )
    return "\n\n".join(lines)


def _quality(report: dict[str, Any]) -> str:
    def row(name: str, *path: str) -> list[str]:
        return [name, *(number(_at(measured["quality"], path)) for measured in report["modes"].values())]

    def ap_interval(measured: dict[str, Any]) -> str:
        low, high = measured["quality"]["shipped"]["ap_interval"]
        return f"{number(low)} to {number(high)}"

    def best(measured: dict[str, Any]) -> str:
        point = measured["quality"]["shipped"]["best_f"]
        return f"{number(point['f_score'])} at {number(point['threshold'])}"

    modes = report["modes"].values()
    rows = [
        row("AP, pooled, shipped matching", "shipped", "ap"),
        ["... its 95 % bootstrap interval over images", *map(ap_interval, modes)],
        row("mean AP, shipped matching, class by class", "shipped", "mean_ap"),
        row("mean AP, same-class matching", "same_class", "mean_ap"),
        row("AP, pooled, same-class matching", "same_class", "ap"),
        row("AP, class-blind", "class_blind_ap"),
        row("mAP50 (COCO)", "coco", "map50"),
        row("mAP50-95 (COCO)", "coco", "map50_95"),
        row("F at the deployed thresholds, shipped matching", "shipped", "deployed", "f_score"),
        row("... precision", "shipped", "deployed", "precision"),
        row("... recall", "shipped", "deployed", "recall"),
        ["best F of one shared threshold", *map(best, modes)],
        row("F at the deployed thresholds, same-class matching", "same_class", "deployed", "f_score"),
    ]
    n = report["data"]["defects"]
    return f"## Detection quality (n = {n} defects)\n\n" + table(["measure", *_titles(report)], rows)


def _per_class(report: dict[str, Any]) -> str:
    columns = (
        ("shipped AP", "shipped", "ap_per_class"),
        ("AP50", "coco", "ap50_per_class"),
        ("AP50-95", "coco", "ap50_95_per_class"),
    )
    header = [
        "class",
        "n",
        *(f"{name}, {title}" for title in _titles(report) for name, _, _ in columns),
        "thresholds",
    ]
    modes = report["modes"]
    if not modes:
        return ""
    quality = next(iter(modes.values()))["quality"]
    rows = []
    for label, count in quality["truths_per_class"].items():
        values = [
            number(m["quality"][key][table][label]) for m in modes.values() for _, key, table in columns
        ]
        limits = " / ".join(number(report["thresholds"][mode][label]) for mode in modes)
        rows.append([label, str(count), *values, limits])
    absent = quality["absent_classes"]
    note = f"\n\nNo defect of class {', '.join(absent)}: left out of every mean." if absent else ""
    return "## Per class\n\n" + table(header, rows) + note


def _operating_points(report: dict[str, Any]) -> str:
    header = [
        "mode",
        "point",
        "threshold",
        "recall",
        "found, any class",
        "located",
        "precision",
        "F",
        "calls outside every box",
        "per image",
        "per panel side",
        "per m2",
        "good boards flagged",
    ]
    rows = []
    for mode, measured in report["modes"].items():
        for point in measured["operating_points"]:
            if not point["reached"]:
                rows.append([TITLES[mode], point["name"], "not reached", *["-"] * 10])
                continue
            outside, limit = point["outside"], point["threshold"]
            shown = sorted(set(limit.values())) if isinstance(limit, dict) else [limit]
            rows.append(
                [
                    TITLES[mode],
                    point["name"],
                    " to ".join(number(v) for v in {shown[0], shown[-1]}),
                    number(point["recall"]),
                    number(point["found"]["value"]),
                    number(point["located"]["value"]),
                    number(point["precision"]),
                    number(point["f_score"]),
                    f"{outside['count']} in {outside['images']} images",
                    number(outside["per_image"]),
                    tenths(outside["per_panel_side"]),
                    tenths(outside["per_m2"]),
                    share(point["clean_boards_flagged"]),
                ]
            )
    data = report["data"]
    note = (
        "Found: a call of whatever class has IoU > 0.33 with the defect. Located: the centre of one lies in "
        "its box. A call is outside when it shares no area with any true box (IoU 0). "
    )
    note += f"References are taken {data['references']}. "
    if data["px_per_mm"]:
        area_cm2 = data["total_px"] / data["px_per_mm"] ** 2 / 100
        note += (
            f"The images cover {area_cm2:.1f} cm2 at {data['px_per_mm']:g} px per mm; a panel side is "
            f"18 x 24 inch, {PANEL_SIDE_MM2 / 100:.0f} cm2. "
        )
    if "with_reference" in report["modes"]:
        note += (
            "Good boards: without reference, the golden references of the set; with reference, those taken "
            "again against their originals (moved by 1 to 3 px, JPEG; scans with edges redrawn by noise and "
            "a little blur, photographs in other light with noise)."
        )
    return "## False calls\n\n" + table(header, rows) + "\n\n" + note


def _misses(report: dict[str, Any]) -> str:
    names = {
        "miss_rate": "defects missed or called under a wrong class",
        "escape_rate": "escapes: defects without any call",
        "boards_passed": "boards with defects and without any call",
    }
    header = ["measure", "mode", "share (exact 95 % interval)", "upper bound, one-sided 95 %", "ppm"]
    rows = []
    for key, name in names.items():
        for mode, measured in report["modes"].items():
            loss = measured["misses"][key]
            rows.append([name, TITLES[mode], share(loss), number(loss["upper_95"]), f"{loss['ppm']:.0f}"])
    return "## Misses at the deployed thresholds\n\n" + table(header, rows)


def _sizes(report: dict[str, Any]) -> str:
    measured_modes = list(report["modes"].values())
    sizes = measured_modes[0]["recall_by_true_size"].values() if measured_modes else ()
    if not any(row["recall"]["n"] for rows in sizes for row in rows):
        return ""
    tables = []
    for opening in ("opening_2x2", "opening_3x3"):
        header = ["true size", "n"]
        header += [f"{what}, {title}" for title in _titles(report) for what in ("recall", "found, any class")]
        columns = [measured["recall_by_true_size"][opening] for measured in report["modes"].values()]
        rows = []
        for row in zip(*columns, strict=True):
            shares = [interval(cell[key]) for cell in row for key in ("recall", "found")]
            rows.append([row[0]["size"], str(row[0]["recall"]["n"]), *shares])
        tables.append(f"{opening.replace('_', ' ')} of the difference:\n\n" + table(header, rows))
    note = (
        "True size is the longest side of the largest blob of (board XOR reference) inside the label's box, "
        "after the opening named. Shares at the deployed thresholds, with exact 95 % intervals."
    )
    return "## Recall by true size\n\n" + note + "\n\n" + "\n\n".join(tables)


def _boards(report: dict[str, Any]) -> str:
    parts = [
        (TITLES[mode], name, boards)
        for mode, measured in report["modes"].items()
        for name, boards in measured["boards"].items()
        if boards["images"]
    ]
    if not parts:
        return ""
    header = ["mode", "boards", *MAIN_HEADER]
    rows = [[title, name, *_main_row(boards)] for title, name, boards in parts]
    if report["data"]["set"] != DEEPPCB:
        return "## Board by board\n\n" + table(header, rows)
    note = (
        "Unseen: boards of groups 12000, 12100, 12300 and 90100, of which the training split has no picture."
    )
    return "## Seen and unseen boards\n\n" + table(header, rows) + "\n\n" + note


def _shifts(report: dict[str, Any]) -> str:
    shifts = report["reference_moves"]
    if not shifts:
        return ""
    rows = [[moved["moved"], *_main_row(moved), number(moved["ap_loss"])] for moved in shifts]
    moved = table(["reference moved by", *MAIN_HEADER, "AP lost"], rows)
    return (
        "## Misregistration\n\nThe reference moved right, down, left or up in turn, or turned either way.\n\n"
        + moved
    )


def _main_row(figures: dict[str, Any]) -> list[str]:
    low, high = figures["ap_interval"]
    return [
        str(figures["images"]),
        str(figures["defects"]),
        f"{number(figures['ap'])} ({number(low)} to {number(high)})",
        number(figures["mean_ap"]),
        number(figures["same_class_mean_ap"]),
        number(figures["f_score"]),
        f"{number(figures['outside']['per_image'])} ({figures['outside']['count']})",
    ]


def _timings(report: dict[str, Any]) -> str:
    rows = [
        [
            TITLES[mode],
            stage,
            f"{t['mean']:.1f}",
            f"{t['median']:.1f}",
            f"{t['p95']:.1f}",
            f"{100 * t['share']:.0f} %",
            str(t["n"]),
        ]
        for mode, measured in report["modes"].items()
        for stage, t in measured["timings_ms"].items()
    ]
    header = ["mode", "stage", "mean ms", "median ms", "95th percentile ms", "share", "n"]
    return "## Time per image\n\n" + table(header, rows) if rows else ""


def _titles(report: dict[str, Any]) -> list[str]:
    return [TITLES[mode] for mode in report["modes"]]


def _at(tree: Any, path: Iterable[str]) -> float:
    for key in path:
        tree = tree[key]
    return float(tree)
