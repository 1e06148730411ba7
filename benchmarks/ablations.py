"""What each part of the hierarchy is worth: nano trained with one thing changed, against nano as it is.

    python benchmarks/ablations.py DeepPCB --list
    python benchmarks/ablations.py DeepPCB --out ablations/

Every run starts from chance and makes the same steps on the same crops. Choices are made here, so it is
measured on board groups held back from DeepPCB's 1000 training pairs; the official test split only by --test.
A stopped run goes on where it was, and what is done is not done again. One experiment is
read in one place, so this stays one file; its table is benchmarks/ablation_table.py.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.ablation_table import table
from inspect_vit.checkpoint import save_checkpoint
from inspect_vit.config import load_config
from inspect_vit.errors import ConfigError
from inspect_vit.files import write_atomically
from inspect_vit.image_io import read_image
from inspect_vit.inspector import Inspector
from inspect_vit.matching import Detections, Truths, match_images
from inspect_vit.model import HierarchicalViT
from inspect_vit.results import Sample
from training.config import TrainConfig
from training.fit import averaged_model, run_training
from training.formats.deeppcb import read_deeppcb
from training.loading import load_samples
from training.loop import build_model, evaluate
from training.metrics import ap_per_class, mean_of_present
from training.protocols import threshold_at_outside
from training.true_size import OPENINGS, true_size_px

ROOT = Path(__file__).resolve().parent.parent
VAL_GROUPS = ("13000", "44000", "50600")
"""298 of the 1000 pairs; 77000, where the shipped model chooses its thresholds, has hardly a small defect."""
SMALL_PX, OPENING = 8, 3
OUTSIDE_PER_BOARD = 0.1
STEP_S, LOOK_S = 0.17, 0.2
"""A step and the inspection of a board, on two cores with AVX-512 bf16, for the estimate printed first."""
MODES = ("with", "without")
DEFAULT = "default"


@dataclass(frozen=True)
class Variant:
    """One change."""

    sentence: str
    changes: tuple[str, ...] = ()
    """As `inspect-vit train --set` takes."""


def _levels(setting: str) -> tuple[str, ...]:
    """One setting on all levels."""
    return tuple(f"model.levels.{index}.{setting}" for index in range(3))


VARIANTS = {
    DEFAULT: Variant("configs/deeppcb_nano.yaml from chance"),
    "sum": Variant("fusion adds the projected levels in place of weighing them by a gate", ("ablation=sum",)),
    "concatenation": Variant(
        "fusion lays the levels side by side and mixes them: two 1x1 convolutions with a GELU between",
        ("ablation=concatenation",),
    ),
    "one-w-o": Variant(
        "one W_o for every input of both fusions, each using its first rows and columns, in place of one per "
        "level",
        ("ablation=one-w-o",),
    ),
    "no-fine-level": Variant(
        "no 4 px tokens: 16 px tokens enlarged by a transposed convolution; the envelopes, which only that "
        "level sees, go too",
        ("ablation=no-fine-level", "model.envelope_radii=[]"),
    ),
    "no-envelopes": Variant("no tolerance envelopes of the reference", ("model.envelope_radii=[]",)),
    "head-dim-32": Variant("head_dim 32 on all levels in place of 32, 64, 128", _levels("head_dim=32")),
    "dropout-0.2": Variant(
        "attention dropout 0.2 on all levels in place of 0.5, 0.2, 0.1", _levels("attn_drop=0.2")
    ),
    "fine-dropout-0.1": Variant(
        "attention dropout 0.1 on the 4 px level in place of 0.5", ("model.levels.0.attn_drop=0.1",)
    ),
    "shifted-windows": Variant(
        "windows shifted in every other block, and learned offsets as position, in place of the depthwise "
        "convolution where there are windows; needs two 4 px blocks, so compare with fine-depth-2",
        ("ablation=shifted-windows", "model.levels.0.depth=2"),
    ),
    "fine-depth-2": Variant("two blocks on the 4 px level in place of one", ("model.levels.0.depth=2",)),
    "position-none": Variant("no position code", _levels("position=none")),
    "position-sincos": Variant("sine-cosine position code", _levels("position=sincos")),
    "position-learned": Variant("learned table of positions", _levels("position=learned")),
    "position-alibi": Variant("ALiBi, a penalty on distance", _levels("position=alibi")),
    "position-log-scan": Variant("log-scan, the time of a line-scan camera", _levels("position=log-scan")),
}


def changes(variant: str, seed: int, options: argparse.Namespace) -> list[str]:
    """All that a run changes in configs/deeppcb_nano.yaml, but the folder of the data."""
    return [
        f"name={variant}",
        "init_from=null",
        f"seed={seed}",
        f"epochs={options.epochs}",
        f"data.val_groups={json.dumps(VAL_GROUPS)}",
        *([] if options.crops is None else [f"data.crops_per_image={options.crops}"]),
        *([] if options.limit is None else [f"data.limit={options.limit}"]),
        *VARIANTS[variant].changes,
    ]


def configuration(variant: str, seed: int, options: argparse.Namespace) -> TrainConfig:
    base = load_config(ROOT / "configs" / "deeppcb_nano.yaml", TrainConfig, changes(variant, seed, options))
    return base.model_copy(update={"data": base.data.model_copy(update={"root": options.data.resolve()})})


def cell_path(variant: str, seed: int, options: argparse.Namespace) -> Path:
    """Where the figures of a run are kept: by variant, seed and what they were measured on."""
    path: Path = options.out / ("test" if options.test else "validation") / f"{variant}-seed{seed}.json"
    return path


def read_cell(variant: str, seed: int, options: argparse.Namespace) -> dict[str, Any] | None:
    """The figures of a run that is done, or None.

    Raises:
        ConfigError: they are of a run with other options.
    """
    path = cell_path(variant, seed, options)
    if not path.exists():
        return None
    cell: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    wanted = changes(variant, seed, options)
    if cell["changes"] != wanted:
        differing = sorted(set(cell["changes"]) ^ set(wanted))
        raise ConfigError(
            f"{path} is of a run with other options ({', '.join(differing)}); use another --out"
        )
    return cell


def is_small(samples: Sequence[Sample]) -> np.ndarray:
    """(T,) bool: defects whose true size is 1 to SMALL_PX px, in the order of the truths."""
    sizes = []
    for sample in samples:
        assert sample.reference is not None
        board, reference = read_image(sample.image)[0], read_image(sample.reference)[0]
        sizes += [true_size_px(board, reference, box) for box in sample.boxes[~sample.is_ignored]]
    longest = np.array(sizes, np.int64).reshape(-1, len(OPENINGS))[:, OPENINGS.index(OPENING)]
    return (longest >= 1) & (longest <= SMALL_PX)


def measure(
    inspector: Inspector, samples: Sequence[Sample], small: np.ndarray, label: str
) -> dict[str, float]:
    """The figures of a network, with and without reference."""
    figures: dict[str, float] = {}
    num_classes = len(inspector.metadata.model.class_names)
    for mode in MODES:
        found = evaluate(inspector, samples, with_reference=mode == "with", label=f"{label}, {mode}")
        ap, recall = mean_ap_and_recall(*found, small, num_classes)
        figures |= {f"mean AP, {mode} reference": ap, f"recall <= {SMALL_PX} px, {mode}": recall}
    return figures


def mean_ap_and_recall(
    found: Sequence[Detections], truths: Sequence[Truths], small: np.ndarray, num_classes: int
) -> tuple[float, float]:
    """Same-class mean AP, and recall (class right) of the small (T,) at OUTSIDE_PER_BOARD false calls."""
    per_class = ap_per_class(found, truths, num_classes, matching="same-class")
    limit = threshold_at_outside(match_images(found, truths), OUTSIDE_PER_BOARD)
    hit = match_images([calls.select(calls.scores >= limit) for calls in found], truths).recalled()[small]
    return mean_of_present(per_class), float(hit.mean()) if len(hit) else math.nan


def run_cells(wanted: Sequence[tuple[str, int]], options: argparse.Namespace) -> None:
    """Train and measure each (variant, seed); a training that was stopped goes on."""
    samples = boards(options)
    small = is_small(samples)
    frame = options.out / "frame.safetensors"
    blank = HierarchicalViT(configuration(DEFAULT, 0, options).model)
    limits = dict.fromkeys(blank.config.class_names, 0.5)
    thresholds: dict[Any, Any] = {"with_reference": limits, "without_reference": limits}
    save_checkpoint(frame, blank, name="frame", thresholds=thresholds, training={})
    # Everything about an inspection but the network; all variants have the same classes and picture sizes.
    inspector = Inspector(frame)
    for number, (variant, seed) in enumerate(wanted, 1):
        label = f"{variant}, seed {seed}"
        print(f"{number} of {len(wanted)}: {label}", flush=True)
        config, out = configuration(variant, seed, options), options.out / "runs" / f"{variant}-seed{seed}"
        run = run_training(config, out=out)
        model = averaged_model(config, out=out)
        assert isinstance(model, HierarchicalViT)
        inspector.model = model.to(memory_format=torch.channels_last).to(inspector.device)
        cell = {
            "variant": variant,
            "seed": seed,
            "changes": changes(variant, seed, options),
            "boards": len(samples),
            "defects": len(small),
            "small": int(small.sum()),
            "precision": run.precision,
            "minutes_of_last_training": round(run.minutes, 2),
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "figures": measure(inspector, samples, small, label),
        }
        path = cell_path(variant, seed, options)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, (json.dumps(cell, indent=2) + "\n").encode())


def boards(options: argparse.Namespace) -> list[Sample]:
    """What is measured on."""
    if options.test:
        return read_deeppcb(options.data, "test")[: options.limit]
    return load_samples(configuration(DEFAULT, 0, options), out=options.out)[1]


def time_passes(variants: Sequence[str], options: argparse.Namespace) -> dict[str, tuple[float, float]]:
    """Per variant: median ms of a pass over a 640x640 board, and of its ratio to the first's in that round.

    On the CPU, alternating in one process; the time of a pass does not depend on the weights.
    """
    models = {
        name: build_model(configuration(name, 0, options)).eval().to(memory_format=torch.channels_last)
        for name in variants
    }
    pictures = torch.randint(256, (2, 1, 1, 640, 640), dtype=torch.uint8)
    times: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(options.rounds + 2):
        for name, model in models.items():
            start = time.perf_counter()
            with torch.inference_mode():
                model(*pictures, torch.ones(1))
            if number >= 2:
                times[name].append(1e3 * (time.perf_counter() - start))
    first = times[variants[0]]
    return {
        name: (statistics.median(own), statistics.median(a / b for a, b in zip(own, first, strict=True)))
        for name, own in times.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder that holds PCBData/")
    parser.add_argument("--out", type=Path, default=Path("ablations"))
    parser.add_argument("--only", nargs="+", choices=VARIANTS, metavar="VARIANT", help="and the default")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--epochs", type=int, default=10, help="of 702 pairs: 10 are 3510 steps")
    parser.add_argument("--crops", type=float, help="per pair and epoch, for trials")
    parser.add_argument("--limit", type=int, help="use the first pairs only, for trials")
    parser.add_argument("--rounds", type=int, default=20, help="timed passes")
    parser.add_argument("--test", action="store_true", help="measure on the test split, once all is chosen")
    parser.add_argument("--list", action="store_true", help="say what would be done, and how long it takes")
    options = parser.parse_args(arguments)
    names = [name for name in VARIANTS if not options.only or name in (DEFAULT, *options.only)]
    cells = [(name, seed) for name in names for seed in options.seeds]
    missing = [cell for cell in cells if read_cell(*cell, options) is None]
    if options.list:
        print("".join(f"{name}: {VARIANTS[name].sentence}\n" for name in names))
    if missing:
        config = configuration(DEFAULT, 0, options)
        training = len(load_samples(config, out=options.out)[0])
        steps = math.ceil(training * config.data.crops_per_image * config.epochs / config.batch_size)
        each = (steps * STEP_S + len(MODES) * len(boards(options)) * LOOK_S) / 60
        print(
            f"{len(missing)} of {len(cells)} runs to do, each {steps} steps and {each:.1f} minutes with "
            f"measuring: {len(missing) * each:.0f} minutes on two quiet cores",
            flush=True,
        )
    if options.list:
        return
    if missing:
        run_cells(missing, options)
    done = [figures for cell in cells if (figures := read_cell(*cell, options)) is not None]
    text = table(done, time_passes(names, options), default=DEFAULT) + (
        f"\n{done[0]['boards']} boards of the {'test split' if options.test else 'groups held back'}, "
        f"{done[0]['defects']} defects, {done[0]['small']} of a true size of 1 to {SMALL_PX} px "
        f"({OPENING}x{OPENING} opening). Mean AP is same-class; recall asks for the right class, at the "
        f"threshold that leaves {OUTSIDE_PER_BOARD} calls outside every true box per board.\n"
    )
    (options.out / f"ablations{'-test' if options.test else ''}.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
