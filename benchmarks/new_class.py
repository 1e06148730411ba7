"""Learn DeepPCB's classes from k examples: new AP, what the old classes lose, false calls, minutes.

    python benchmarks/new_class.py --out runs/new_class                          everything, hours
    python benchmarks/new_class.py --out runs/new_class --classes short --k 10 --draws 1 --limit-test 100

Bases are trained on boards from which a class was healed. An example is one labelled defect on a board from
which other new defects were healed; old defects on it stay and have no label. Each cell is one JSON under
OUT/cells: what is there is not done again, and two processes may share OUT if their classes differ. Compared
with: the same steps on the examples alone (no replay, no distillation), and a base that was trained on all
classes with all labels. Thresholds are chosen as `add-class` does. Bases, measuring and the table are
in new_class_bases.py, new_class_measure.py and new_class_table.py; what is left is one experiment, read in
one place.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from new_class_bases import FIRST_THREE, JOINT, checkpoint, data_folder, missing_classes, train_base
from new_class_measure import (
    Pictures,
    cache_features,
    calls_on_features,
    calls_on_pictures,
    figures,
    truths_of,
)
from new_class_table import summary

from inspect_vit.checkpoint import ReferenceMode, load_checkpoint, round_to_fp16, save_checkpoint
from inspect_vit.config import changed
from inspect_vit.files import write_atomically
from inspect_vit.image_io import read_image
from inspect_vit.matching import Detections, Truths
from inspect_vit.model import HierarchicalViT
from inspect_vit.results import Sample
from training.formats.deeppcb import CLASS_NAMES, read_deeppcb
from training.grow_head import new_names
from training.healing import heal
from training.incremental_config import IncrementalConfig
from training.incremental_loop import learn
from training.lesson import Material, prepare, settle, start_learner
from training.new_thresholds import Measured, kept_thresholds, new_threshold, usual_threshold
from training.pasted_boards import read_pasted, write_pasted
from training.pasting import cut_examples
from training.pools import CACHED_PARTS, Prepared, make_pool

HELD_GROUP = "77000"
"""Boards that no base was trained on. The first CALIBRATED choose new thresholds, the rest are for trials."""
CALIBRATED = 40
THREE = "3+3"
REPLAY_SEED = 9
NOTHING = Truths(np.zeros((0, 4), np.float32), np.zeros(0, np.int64))
Thresholds = dict[ReferenceMode, dict[str, float]]
MINUTES = {"base": 10.0, "features": 3.0, "cell": 4.0, "encoder cell": 10.0}
"""Estimates for two idle cores, for the budget that is printed first."""


@dataclass(frozen=True)
class Cell:
    task: str
    k: int
    draw: int
    method: str
    part: str

    @property
    def base(self) -> str:
        return FIRST_THREE if self.task == THREE else f"no-{self.task}"

    @property
    def name(self) -> str:
        return f"{self.task}-k{self.k}-draw{self.draw}-{self.method}-{self.part}"


def examples_of(
    samples: Sequence[Sample], classes: Sequence[str], k: int, draw: int, folder: Path
) -> list[Sample]:
    """k labelled defects of each class, all on different boards; others of these classes are healed."""
    folder.mkdir(parents=True, exist_ok=True)
    used: set[Path] = set()
    chosen = []
    for number, label in enumerate(classes):
        rng = np.random.default_rng((draw, number, 7))
        having = [s for s in samples if label in s.labels and s.image not in used]
        for index in rng.permutation(len(having))[:k].tolist():
            sample = having[index]
            used.add(sample.image)
            keep = int(rng.choice([i for i, name in enumerate(sample.labels) if name == label]))
            others = [
                "to heal" if name in classes and i != keep else name for i, name in enumerate(sample.labels)
            ]
            assert sample.reference is not None
            board, reference = read_image(sample.image)[0], read_image(sample.reference)[0]
            healed = heal(board, reference, replace(sample, labels=tuple(others)), {"to heal"})
            path = folder / f"{sample.image.stem}.png"
            cv2.imwrite(str(path), healed[..., 0])
            chosen.append(replace(sample, image=path, boxes=sample.boxes[[keep]], labels=(label,)))
    return chosen


class Bench:
    """Owns what the cells of one base share: the old model, its old boards' crops, and cached features."""

    def __init__(
        self, base: str, root: Path, out: Path, config: IncrementalConfig, *, split: str, limit: int
    ) -> None:
        self.base, self.root, self.out, self.config = base, root, out, config
        self.old, self.metadata = load_checkpoint(checkpoint(base, out))
        self.of_old: dict[ReferenceMode, Measured] = {}
        every = read_deeppcb(root, "trainval")
        self.taught = [sample for sample in every if sample.group != HELD_GROUP]
        held = [sample for sample in every if sample.group == HELD_GROUP]
        measured = held[CALIBRATED:] if split == "dev" else read_deeppcb(root, "test")
        places = np.linspace(0, len(measured) - 1, min(limit, len(measured))).round().astype(int)
        self.samples = [measured[i] for i in places.tolist()]
        name = f"{split}{len(self.samples)}"
        self.sets = {
            "boards": Pictures(f"{name}-boards", self.samples, "pairs"),
            "alone": Pictures(f"{name}-alone", self.samples, "boards"),
            "clean": Pictures(f"{name}-clean", self.samples, "clean"),
        }
        if base != JOINT:
            own = read_deeppcb(data_folder(base, root, out), "trainval")
            healed = [sample for sample in own if sample.group == HELD_GROUP][:CALIBRATED]
            own = [sample for sample in own if sample.group != HELD_GROUP]
            order = np.random.default_rng(0).permutation(len(own)).tolist()
            self.own = [own[i] for i in order[: -config.measured_boards]]
            self.held = [*healed, *(own[i] for i in order[-config.measured_boards :])]
            self.sets |= {
                f"held {shown}": Pictures(f"held{len(self.held)}-{shown}", self.held, shown)
                for shown in ("pairs", "boards", "clean")
            }

    def calls(self, model: HierarchicalViT, name: str, part: str, owner: str) -> list[Detections]:
        """Calls on one set of pictures, kept on disk for the next choice of thresholds.

        Args:
            part: where the encoder is the old one, its cached features are used.
            owner: name of the model.
        """
        path = self.out / "calls" / owner / f"{self.sets[name].name}.pt"
        if path.exists():
            kept = torch.load(path, weights_only=True)
            return [Detections(*(column.numpy() for column in each)) for each in kept]
        if part not in CACHED_PARTS:
            calls = calls_on_pictures(model, self.sets[name])
        else:
            features = cache_features(self.out / "features" / self.base, self.old, self.sets[name])
            calls = calls_on_features(model, features)
        path.parent.mkdir(parents=True, exist_ok=True)
        columns = [(each.boxes, each.scores, each.labels) for each in calls]
        torch.save([tuple(torch.from_numpy(column) for column in each) for each in columns], path)
        return calls

    def measure(
        self, model: HierarchicalViT, names: Sequence[str], thresholds: Thresholds, part: str, owner: str
    ) -> dict[str, Any]:
        boards, alone, clean = (self.calls(model, name, part, owner) for name in ("boards", "alone", "clean"))
        return figures(boards, alone, clean, self.samples, CLASS_NAMES, names, thresholds)

    def before(self) -> dict[str, Any]:
        """Figures of the base itself, made once."""
        path = self.out / "cells" / f"base-{self.base}-{self.sets['boards'].name}.json"
        if path.exists():
            return json.loads(path.read_text())  # type: ignore[no-any-return]
        names = self.old.config.class_names
        found = self.measure(self.old, names, self.metadata.thresholds, "whole", self.base)
        write_atomically(path, json.dumps(found).encode())
        return found

    def replay(self, part: str) -> tuple[Prepared, float]:
        """Crops of the old boards, the same for every cell, and the CPU minutes that they took."""
        path = self.out / "features" / self.base / f"replay-{self.config.replay_crops}.pt"
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            kept = torch.load(path, weights_only=True)
            return Prepared(kept["crops"], True), kept["cpu_minutes"]
        cpu = time.process_time()
        chosen = self.own[: self.config.replay_limit]
        names = {name: name for name in self.old.config.class_names} | dict.fromkeys(
            missing_classes(self.base)
        )
        pool = make_pool(
            chosen,
            self.old,
            tuple(names),
            self.config.model_copy(update={"part": part}),
            count=self.config.replay_crops,
            is_complete=True,
            on_defects=self.config.data.defect_share,
            good_share=self.config.data.good_share,
            seed=REPLAY_SEED,
            tick=lambda done: None,
        )
        minutes = (time.process_time() - cpu) / 60
        assert isinstance(pool, Prepared)
        torch.save({"crops": pool.tensors, "cpu_minutes": minutes}, path)
        return pool, minutes

    def learnt(self, cell: Cell, path: Path) -> tuple[HierarchicalViT, dict[str, Any]]:
        """The model of one cell, learnt unless it is in `path`, and what it took."""
        if path.exists():
            model, metadata = load_checkpoint(path)
            return model, metadata.training
        shutil.rmtree(self.out / "calls" / path.stem, ignore_errors=True)
        classes = missing_classes(self.base)
        names = new_names(self.old.config.class_names, add=classes)
        config = self.config.model_copy(
            update={"part": cell.part, "seed": cell.draw, "protect": cell.method == "protected"}
        )
        work = self.out / "work" / f"{cell.task}-k{cell.k}-draw{cell.draw}"
        examples = examples_of(self.taught, classes, cell.k, cell.draw, work / "examples")
        is_cached = config.protect and cell.part in CACHED_PARTS
        replay, replay_minutes = self.replay(cell.part) if is_cached else (None, 0.0)
        cpu = time.process_time()
        pasted: list[Sample] = []
        if config.protect:
            for _ in write_pasted(
                work / "pasted",
                cut_examples(examples, classes),
                self.own,
                tuple(names),
                count=config.pasted_boards,
                most=config.pastes,
                only_good=False,
                seed=config.seed,
            ):
                pass
            pasted = read_pasted(work / "pasted")
        material = Material(examples, pasted, self.own[: config.replay_limit], True)
        shares = prepare(
            material,
            self.old,
            names,
            config,
            tick=lambda done, total: None,
            replay=replay,
        )
        learner, columns = start_learner(self.old, names, shares, config)
        learn(learner, self.old, shares, columns, config, after_step=lambda step, terms: None)
        settle(learner.model, columns, config)
        round_to_fp16(learner.model)
        took = {
            "cpu_minutes": replay_minutes + (time.process_time() - cpu) / 60,
            "pasted": sum(label in classes for sample in pasted for label in sample.labels),
        }
        unmeasured = {mode: dict.fromkeys(names, 0.5) for mode in self.metadata.thresholds}
        path.parent.mkdir(parents=True, exist_ok=True)
        save_checkpoint(path, learner.model, name="candidate", thresholds=unmeasured, training=took)
        return learner.model, took

    def run(self, cell: Cell, path: Path) -> dict[str, Any]:
        """Learn one cell and measure it."""
        classes = missing_classes(self.base)
        names = new_names(self.old.config.class_names, add=classes)
        model, took = self.learnt(cell, path)
        thresholds = self.thresholds(model, names, cell.part, path.stem)
        after = self.measure(model, tuple(names), thresholds, cell.part, path.stem)
        return {
            **cell.__dict__,
            **took,
            "new": list(classes),
            "pictures": self.sets["boards"].name,
            "before": self.before(),
            "after": after,
            "thresholds": thresholds,
        }

    def thresholds(
        self, model: HierarchicalViT, names: dict[str, str | None], part: str, owner: str
    ) -> Thresholds:
        """As `add-class` chooses them where no example is held back."""
        chosen: Thresholds = {}
        old_names = self.old.config.class_names
        for mode, scores in self.metadata.thresholds.items():
            if mode not in self.of_old:
                self.of_old[mode] = self.measured(self.old, old_names, mode, "whole", self.base)
            before = self.of_old[mode]
            after = self.measured(model, tuple(names), mode, part, owner)
            usual = usual_threshold(scores.values(), mode, new_bias=self.config.new_bias)
            chosen[mode] = kept_thresholds(before, after, scores, names, old_names) | {
                name: new_threshold(after, label, usual=usual)
                for label, (name, origin) in enumerate(names.items())
                if origin is None
            }
        return chosen

    def measured(
        self, model: HierarchicalViT, names: Sequence[str], mode: ReferenceMode, part: str, owner: str
    ) -> Measured:
        """A model's calls on the old boards held back."""
        sets = ("held pairs",) if mode == "with_reference" else ("held boards", "held clean")
        calls = [call for name in sets for call in self.calls(model, name, part, owner)]
        truths = truths_of(self.held, names)
        if mode == "without_reference":
            truths += [NOTHING] * len(self.held)
        return Measured(calls, truths, [True] * len(calls))


def plan_cells(options: argparse.Namespace) -> list[Cell]:
    """Whole draws first, so that a run that is stopped has something of everything."""
    cells = [
        Cell(task, k, draw, method, options.part)
        for draw in range(options.draws)
        for k in sorted(options.k, reverse=True)
        for method in options.methods
        for task in options.classes
        if method == "protected" or draw == 0
    ]
    return cells + [
        Cell(task, k, 0, "protected", part)
        for part in options.parts
        for k in options.k
        if k >= 10
        for task in [name for name in options.classes if name != THREE][:2]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = Path(os.environ.get("INSPECT_VIT_DATA", "../shared/data")) / "deeppcb"
    parser.add_argument("--data", type=Path, default=data, help="folder of DeepPCB (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/new_class"))
    parser.add_argument("--classes", nargs="+", default=[*CLASS_NAMES, THREE], choices=[*CLASS_NAMES, THREE])
    parser.add_argument("--k", nargs="+", type=int, default=[1, 5, 10, 30], help="examples per class")
    parser.add_argument("--draws", type=int, default=5, help="draws of examples per cell")
    parser.add_argument(
        "--methods",
        nargs="+",
        default=["protected", "unprotected"],
        choices=["protected", "unprotected"],
        help="unprotected: no replay and no distillation; draw 0 only",
    )
    parser.add_argument("--part", default=IncrementalConfig().part, help="what is trained")
    parser.add_argument(
        "--parts",
        nargs="*",
        default=["branch", "last-level"],
        help="what is trained in two classes besides, from 10 examples on",
    )
    parser.add_argument("--split", choices=["test", "dev"], default="test", help="dev: training group 77000")
    parser.add_argument("--limit-test", type=int, default=500, help="pictures measured on, evenly spaced")
    parser.add_argument("--epochs", type=int, default=6, help="of the bases")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--set", nargs="*", default=[], dest="overrides", help="settings of add-class, key=value"
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    cv2.setNumThreads(options.threads)
    config = changed(IncrementalConfig(), options.overrides)
    (options.out / "cells").mkdir(parents=True, exist_ok=True)
    cells = plan_cells(options)
    settings = "".join(f"-{pair}" for pair in options.overrides)
    tag = f"{options.split}{options.limit_test}{settings}"
    paths = {cell: options.out / "cells" / f"{cell.name}-{tag}.json" for cell in cells}
    left = [cell for cell in cells if not paths[cell].exists()]
    bases = list(dict.fromkeys([JOINT, *(cell.base for cell in cells)]))
    missing = [base for base in bases if not checkpoint(base, options.out).exists()]
    encoder = [cell for cell in left if cell.part not in CACHED_PARTS]
    minutes = (
        len(missing) * MINUTES["base"]
        + len(bases) * MINUTES["features"]
        + (len(left) - len(encoder)) * MINUTES["cell"]
        + len(encoder) * MINUTES["encoder cell"]
    )
    print(
        f"{len(missing)} bases to train, {len(left)} of {len(cells)} cells to learn: about "
        f"{minutes / 60:.1f} hours on two cores",
        flush=True,
    )
    for base in missing:
        shutil.rmtree(options.out / "calls" / base, ignore_errors=True)
        for figures_of_base in (options.out / "cells").glob(f"base-{base}-*.json"):
            figures_of_base.unlink()
        train_base(base, options.data, options.out, epochs=options.epochs)
    setup: dict[str, Any] = {"split": options.split, "limit": options.limit_test}
    joint = Bench(JOINT, options.data, options.out, config, **setup).before()
    benches: dict[str, Bench] = {}
    for cell in left:
        if cell.base not in benches:
            benches = {cell.base: Bench(cell.base, options.data, options.out, config, **setup)}
        found = benches[cell.base].run(cell, options.out / "models" / f"{cell.name}{settings}.safetensors")
        write_atomically(paths[cell], json.dumps(found, indent=1).encode())
        print(
            cell.name,
            {name: found["after"]["ap"][name] for name in found["new"]},
            {
                name: round(found["after"]["ap"][name] - value, 4)
                for name, value in found["before"]["ap"].items()
            },
            f"{found['cpu_minutes']:.1f} CPU minutes",
            flush=True,
        )
    lines = summary([json.loads(paths[cell].read_text()) for cell in cells], joint)
    (options.out / f"summary-{tag}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
