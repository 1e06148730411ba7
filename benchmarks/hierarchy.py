"""Train the hierarchy and a plain ViT/16 alike and compare them on defects of 3 to 8 px.

    python benchmarks/hierarchy.py DeepPCB --epochs 8 --out hierarchy/

Same data, epochs, seed, input, reference handling and head; parameters within 5 % of each other (it refuses
otherwise). Measured on DeepPCB's test split, and on pairs with drawn micro-defects: test templates into whose
copper defects of 3 to 8 px are drawn at tracks and gaps as they are, with exact pixels and classes true by
connectivity.
Times are medians of alternating passes in one process. A stopped run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from inspect_vit.config import load_config
from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from inspect_vit.matching import Detections, Matches, Truths, match_images
from inspect_vit.results import Sample
from training.config import TrainConfig
from training.defect_kinds import COPPER_KINDS
from training.fit import averaged_model, fit, run_training
from training.formats.deeppcb import read_deeppcb
from training.formats.registry import read_dataset
from training.loop import evaluate
from training.metrics import average_precision, proportion
from training.pairs import DefectPlan
from training.protocols import threshold_at_outside
from training.synthesise import synthesise
from training.true_size import OPENINGS, true_size_px

ROOT = Path(__file__).resolve().parent.parent
MICRO_PX = (3, 8)
OUTSIDE_PER_BOARD = 0.1
STEP_S = 0.17
"""Of nano on two cores with AVX-512 bf16, for the estimate that is printed first."""


def draw_micro_defects(data: Path, out: Path, *, boards: int) -> list[Sample]:
    """Test templates with drawn defects of 3 to 8 px."""
    templates = out / "templates"
    templates.mkdir(parents=True, exist_ok=True)
    for sample in read_deeppcb(data, "test"):
        assert sample.reference is not None
        link = templates / sample.reference.name
        if not link.exists():
            link.symlink_to(sample.reference.resolve())
    plan = DefectPlan(
        count=(8, 14),
        kinds=dict.fromkeys(COPPER_KINDS, 1.0),
        size_px=MICRO_PX,
        even_sizes=True,
        good_share=0.0,
    )
    made = synthesise(out / "micro", count=boards, source=templates, plan=plan, seed=0, copper="dark")
    return list(read_dataset(made.folder, format="coco").samples)


def longest_sides(samples: Sequence[Sample]) -> np.ndarray:
    """(T,) px: longer side of the drawn pixels of each defect."""
    sides = []
    for sample in samples:
        height, width = read_image(sample.image)[0].shape[:2]
        for shape in sample.masks or ():
            assert shape is not None
            mask = np.zeros((height, width), np.uint8)
            shape.paint(mask, 1)
            rows, columns = np.nonzero(mask)
            sides.append(max(np.ptp(rows), np.ptp(columns)) + 1)
    return np.array(sides, np.int64)


def true_sizes(samples: Sequence[Sample]) -> np.ndarray:
    """(T, 2) px: true size of each labelled defect, by the two openings."""
    sizes = []
    for sample in samples:
        assert sample.reference is not None
        board, reference = (read_image(path)[0] for path in (sample.image, sample.reference))
        sizes += [true_size_px(board, reference, box) for box in sample.boxes]
    return np.array(sizes, np.int64)


def at_false_calls(
    detections: list[Detections], truths: list[Truths], per_board: float
) -> tuple[Matches, float]:
    """The matches of the calls at the threshold that leaves that many calls outside per board, and it."""
    limit = threshold_at_outside(match_images(detections, truths), per_board)
    return match_images([d.select(d.scores >= limit) for d in detections], truths), limit


def alternate(inspectors: dict[str, Inspector], rounds: int) -> dict[str, float]:
    """Median milliseconds of one 640x640 board with reference through each model, in turn."""
    torch.set_num_threads(2)
    picture = np.random.default_rng(0).integers(0, 256, (2, 640, 640, 3)).astype(np.uint8)
    times: dict[str, list[float]] = {name: [] for name in inspectors}
    for number in range(rounds + 2):
        for name, inspector in inspectors.items():
            tensors = inspector.tensors(picture[0], picture[1])
            start = time.perf_counter()
            with torch.inference_mode():
                inspector.model(*tensors)
            if number >= 2:
                times[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def grown_mb(model: torch.nn.Module) -> float:
    """MB that a fresh process grows by at most while it inspects one 640x640 board with reference."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_grown_mb, model).result()


def _grown_mb(model: torch.nn.Module) -> float:
    def resident_kb(name: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name))

    with torch.inference_mode():
        for side in (320, 640):
            picture = torch.zeros(1, 1, side, side, dtype=torch.uint8)
            before = resident_kb("VmRSS")
            Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
            model(picture, picture, torch.ones(1))
    return (resident_kb("VmHWM") - before) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder that holds PCBData/")
    parser.add_argument("--out", type=Path, default=Path("hierarchy"))
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--boards", type=int, default=500, help="pairs with drawn micro-defects")
    parser.add_argument(
        "--limit", type=int, default=None, help="train on the first pictures only, for trials"
    )
    parser.add_argument(
        "--checkpoint", type=Path, nargs="*", default=[], help="more to measure, of DeepPCB's six classes"
    )
    parser.add_argument("--rounds", type=int, default=20, help="timed passes")
    options = parser.parse_args()
    base = load_config(ROOT / "configs" / "deeppcb_nano.yaml", TrainConfig)
    data = base.data.model_copy(update={"root": options.data.resolve(), "limit": options.limit})
    fair = {
        "name": "hierarchy",
        "init_from": None,
        "epochs": options.epochs,
        "data": data,
        "seed": options.seed,
    }
    hierarchy = base.model_copy(update=fair)
    tree = hierarchy.model_dump() | {"name": "plain-vit16", "plain_vit": {"embed_dim": 192, "depth": 4}}
    plain = TrainConfig.model_validate(tree)
    steps = options.epochs * (options.limit or 900) * data.crops_per_image / base.batch_size
    print(f"two runs of {steps:.0f} steps, some {2 * steps * STEP_S / 60:.0f} minutes, then measuring")

    options.out.mkdir(parents=True, exist_ok=True)
    checkpoint = fit(hierarchy, out=options.out / "hierarchy")
    run_training(plain, out=options.out / "plain-vit16")
    inspectors = {"hierarchy": Inspector(checkpoint), "plain ViT/16": Inspector(checkpoint)}
    inspectors["plain ViT/16"].model = averaged_model(plain, out=options.out / "plain-vit16")  # type: ignore[assignment]
    sizes = {name: sum(p.numel() for p in i.model.parameters()) for name, i in inspectors.items()}
    first, second = sizes.values()
    assert abs(first / second - 1) <= 0.05, f"parameters {sizes} are further apart than 5 %"
    for path in options.checkpoint:
        other = Inspector(path)
        assert other.metadata.model.class_names == base.model.class_names, f"{path} knows other classes"
        name = f"{other.metadata.name} {other.metadata.version}"
        inspectors[name] = other
        sizes[name] = sum(p.numel() for p in other.model.parameters())

    micro = draw_micro_defects(options.data, options.out, boards=options.boards)
    sides = longest_sides(micro)
    test = read_deeppcb(options.data, "test")
    real = true_sizes(test)
    milliseconds = alternate(inspectors, options.rounds)
    class_names = list(base.model.class_names)
    rows: dict[str, dict[str, object]] = {}
    for name, inspector in inspectors.items():
        row: dict[str, object] = {
            "parameters": sizes[name],
            "ms": round(milliseconds[name], 1),
            "MB": round(grown_mb(inspector.model), 1),
        }
        for mode in ("with", "without"):
            found = evaluate(inspector, test, with_reference=mode == "with", label=f"{name}, test {mode}")
            matches = match_images(*found)
            row[f"AP, {mode} reference"] = round(average_precision(matches.correct, matches.num_truths), 4)
            matches, _ = at_false_calls(*found, OUTSIDE_PER_BOARD)
            hit, shorts = matches.found(), matches.truth_labels == class_names.index("short")
            for column, opening in enumerate(OPENINGS):
                small = (real[:, column] > 0) & (real[:, column] <= MICRO_PX[1])
                for kind, inside in (("defects", small), ("shorts", small & shorts)):
                    key = f"real {kind} of true size <= 8 px ({opening}x{opening} opening), {mode}"
                    row[key] = proportion(int(hit[inside].sum()), int(inside.sum()))
            found = evaluate(inspector, micro, with_reference=mode == "with", label=f"{name}, micro {mode}")
            matches, _ = at_false_calls(*found, OUTSIDE_PER_BOARD)
            hit = matches.found()
            for label, kind in enumerate(class_names):
                inside = matches.truth_labels == label
                row[f"{kind} of 3 to 8 px, {mode}"] = proportion(int(hit[inside].sum()), int(inside.sum()))
            shorts = matches.truth_labels == class_names.index("short")
            for low, high in ((3, 4), (5, 6), (7, 8)):
                inside = shorts & (sides >= low) & (sides <= high)
                row[f"shorts of {low} to {high} px, {mode}"] = proportion(
                    int(hit[inside].sum()), int(inside.sum())
                )
        rows[name] = row
    (options.out / "hierarchy.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    print("| | " + " | ".join(rows) + " |\n|" + "---|" * (len(rows) + 1))
    for key in rows["hierarchy"]:
        print(f"| {key} | " + " | ".join(shown(row[key]) for row in rows.values()) + " |")
    print(
        f"\nFound, whatever the class, at the threshold that leaves {OUTSIDE_PER_BOARD} calls outside every "
        "true box per board; exact 95 % intervals."
    )


def shown(value: object) -> str:
    if isinstance(value, dict):
        return f"{value['value']:.3f} ({value['low']:.3f} to {value['high']:.3f}), n = {value['n']}"
    return str(value)


if __name__ == "__main__":
    main()
