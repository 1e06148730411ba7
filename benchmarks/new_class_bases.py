"""The bases of benchmarks/new_class.py: nano models that never saw a class, and one that saw all."""

from __future__ import annotations

import time
from pathlib import Path

from inspect_vit.config import load_config
from training.config import TrainConfig
from training.fit import fit
from training.formats.deeppcb import CLASS_NAMES, read_deeppcb
from training.healing import write_healed_deeppcb

JOINT, FIRST_THREE = "joint", "first-three"
CONFIG = Path(__file__).resolve().parent.parent / "configs" / "deeppcb_nano.yaml"
EMA_DECAY = 0.998
"""Of a short run; the shipped 0.9995 would average over most of it."""
CACHE_MB = 1500


def missing_classes(base: str) -> tuple[str, ...]:
    """The classes that a base never saw: those healed from every board it was trained on."""
    if base == JOINT:
        return ()
    if base == FIRST_THREE:
        return ("open", "short", "mousebite")
    return (base.removeprefix("no-"),)


def data_folder(base: str, root: Path, out: Path) -> Path:
    """The boards that a base was trained on."""
    return root if base == JOINT else out / "data" / base


def checkpoint(base: str, out: Path) -> Path:
    return out / base / f"{base}.safetensors"


def train_base(base: str, root: Path, out: Path, *, epochs: int) -> None:
    """Train one base from chance, unless it is there; stopped, it goes on where it was."""
    if checkpoint(base, out).exists():
        return
    dropped = missing_classes(base)
    data = data_folder(base, root, out)
    if dropped and not (data / "PCBData" / "trainval.txt").exists():
        write_healed_deeppcb(read_deeppcb(root, "trainval"), data, classes=set(dropped))
    shipped = load_config(CONFIG, TrainConfig)
    tree = shipped.model_dump() | {"name": base, "init_from": None, "epochs": epochs}
    names = tuple(name for name in CLASS_NAMES if name not in dropped)
    tree["model"] = shipped.model.model_dump() | {"class_names": names}
    tree["data"] = shipped.data.model_dump() | {"root": data, "cache_mb": CACHE_MB}
    tree["optim"] = shipped.optim.model_dump() | {"ema_decay": EMA_DECAY}
    start = time.monotonic()
    fit(TrainConfig.model_validate(tree), out=out / base)
    print(f"{base}: trained in {(time.monotonic() - start) / 60:.1f} minutes", flush=True)
