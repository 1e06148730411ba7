"""Teach a model new classes from a few labelled boards: checkpoint, new data and old data in, candidate out.

Killed at any moment, the same command goes on: boards it made are on disk, crops are a function of the seed,
and the steps resume from the last state saved.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import torch

from inspect_vit.checkpoint import CheckpointMetadata, load_checkpoint, round_to_fp16, save_checkpoint
from inspect_vit.console import say
from inspect_vit.errors import ConfigError
from inspect_vit.files import write_atomically
from inspect_vit.model import HierarchicalViT
from inspect_vit.results import Sample
from training.before_after import BeforeAfter, table_lines
from training.data import fingerprint
from training.distill import Columns
from training.fit import git_revision
from training.grow_head import grow, new_names
from training.incremental_config import IncrementalConfig
from training.incremental_curves import plot_learning
from training.incremental_data import Gathered, Request, gather, paste_examples
from training.incremental_loop import Learner, learn, load_learner, save_learner
from training.incremental_measure import Boards, judge
from training.job_files import EXIT_TERMINATED, MetricsLog, Progress, Termination, termination
from training.lesson import Material, prepare, settle, start_learner

STATE, LOG, CURVES, TABLE, RUN = "state.safetensors", "metrics.jsonl", "curves.png", "table.json", "run.json"
LOG_EVERY = 20
MOST_OF_BASE, MOST_CHARS = 24, 48
"""Of a name that nobody gave; file names may have 255 bytes, which are four a letter at worst."""


def add_class(request: Request, config: IncrementalConfig, *, out: Path) -> Path:
    """Write out/NAME.safetensors and what its maker needs to judge it; returns the checkpoint.

    Raises:
        ConfigError: a request that cannot work, or a folder with another run.
    """
    start = time.monotonic()
    if config.threads:
        torch.set_num_threads(config.threads)
        cv2.setNumThreads(config.threads)
    old, metadata = load_checkpoint(request.base)
    names = new_names(old.config.class_names, add=request.add, rename=request.rename, retire=request.retire)
    if request.add and request.data is None:
        raise ConfigError(f"no examples of {', '.join(request.add)}: give labelled boards with --data")
    if names == {name: name for name in old.config.class_names} and request.data is None:
        raise ConfigError("nothing to do: name a class to add, or give --rename, --retire or --data")
    name = request.name or _default_name(metadata.name, [*request.add, *request.rename.values()])
    name = re.sub(r"[^\w.-]+", "_", name)
    out.mkdir(parents=True, exist_ok=True)
    with termination() as asked, Progress(out / "progress.json") as progress:
        if request.data is None:
            _settle(out, request, config, metadata, [])
            return _write(
                out, name, grow(old, names), _unmoved(metadata, names), metadata, request, config, None
            )
        gathered = gather(request, config, names, drawn=out / "drawn")
        _settle(out, request, config, metadata, _all(gathered))
        replay, counts = gathered.replay, gathered.counts
        say(
            f"{len(gathered.taught)} boards to learn from "
            f"({', '.join(f'{n} {label}' for label, n in counts.items())}), {len(gathered.held)} held back; "
            f"{len(replay.taught)} old boards, {len(replay.held)} held back"
        )

        def tick(done: int, total: int) -> None:
            progress.tell("boards", done, total)

        labels = request.add or tuple(counts)
        pasted = paste_examples(gathered, labels, tuple(names), config, out / "pasted", tick=tick)
        material = Material(gathered.taught, pasted, replay.taught, not replay.is_drawn)
        learner, columns, earlier_s = _learn(material, old, names, config, out, progress, asked)
        settle(learner.model, columns, config)
        round_to_fp16(learner.model)
        boards = Boards(replay.held, gathered.held, replay.is_drawn)
        verdicts = judge(
            request.base,
            learner.model,
            metadata,
            names,
            boards,
            out / ".measured.safetensors",
            progress,
            new_bias=config.new_bias,
        )
        plot_learning(out / LOG, out / CURVES)
        table: BeforeAfter = {
            "base": metadata.name,
            "version": "",
            "classes": verdicts.rows,
            "false_calls": verdicts.false_calls,
            "examples": {label: counts[label] for label in labels},
            "minutes": round((earlier_s + time.monotonic() - start) / 60, 1),
            "measured_on": _measured_on(gathered),
        }
        facts = {
            "examples": table["examples"],
            "minutes": table["minutes"],
            "pictures": {
                "examples": len(gathered.taught),
                "held_back": len(gathered.held),
                "pasted": len(pasted),
                "old": len(replay.taught),
                "old_are_drawn": replay.is_drawn,
            },
            "data_fingerprint": fingerprint(_all(gathered)),
        }
        return _write(
            out, name, learner.model, verdicts.thresholds, metadata, request, config, table, facts=facts
        )


def _default_name(base: str, labels: Sequence[str]) -> str:
    """Short enough for a file, however many classes were added one after another."""
    return "-".join([base[:MOST_OF_BASE], *labels])[:MOST_CHARS]


def _learn(
    material: Material,
    old: HierarchicalViT,
    names: Mapping[str, str | None],
    config: IncrementalConfig,
    out: Path,
    progress: Progress,
    asked: Termination,
) -> tuple[Learner, Columns, float]:
    """The learner after its last step, its columns, and the seconds that earlier processes spent on it."""
    state, start = out / STATE, time.monotonic()
    shares = prepare(
        material, old, names, config, tick=lambda done, total: progress.tell("features", done, total)
    )
    learner, columns = start_learner(old, names, shares, config)
    earlier_s = load_learner(state, learner)
    log = MetricsLog(out / LOG, learner.step, every=LOG_EVERY)
    saved = time.monotonic()

    def after_step(step: int, terms: dict[str, float]) -> None:
        nonlocal saved
        log.add(step, terms)
        progress.tell("learning", step, config.steps)
        now = time.monotonic()
        if asked.is_asked or step == config.steps or now - saved >= config.save_every_s:
            save_learner(state, learner, seconds=earlier_s + now - start)
            saved = now
        if asked.is_asked:
            raise SystemExit(EXIT_TERMINATED)

    try:
        with asked.held():
            learn(learner, old, shares, columns, config, after_step=after_step)
    finally:
        log.close()
    return learner, columns, earlier_s


def _all(gathered: Gathered) -> list[Sample]:
    return [*gathered.taught, *gathered.held, *gathered.replay.taught]


def _measured_on(gathered: Gathered) -> str:
    replay = gathered.replay
    old = f"{len(replay.held)} {'drawn' if replay.is_drawn else 'old'} boards held back"
    if gathered.held:
        return f"{old}, and {len(gathered.held)} boards with new defects held back"
    return f"{old}; no new defect was held back, so nothing is known of the new classes but their false calls"


def _unmoved(metadata: CheckpointMetadata, names: Mapping[str, str | None]) -> dict[Any, dict[str, float]]:
    """Thresholds of classes that were only renamed."""
    return {
        mode: {name: scores[origin] for name, origin in names.items() if origin is not None}
        for mode, scores in metadata.thresholds.items()
    }


def _settle(
    out: Path,
    request: Request,
    config: IncrementalConfig,
    metadata: CheckpointMetadata,
    samples: Sequence[Sample],
) -> None:
    """Note what the folder is for, or find that it is for the same."""
    key: dict[str, Any] = {
        "base": metadata.version,
        "add": list(request.add),
        "rename": dict(request.rename),
        "retire": list(request.retire),
        "data": fingerprint(samples),
        "settings": config.model_dump(mode="json", exclude={"threads", "save_every_s"}),
    }
    path = out / RUN
    if not path.exists():
        write_atomically(path, json.dumps(key, indent=1).encode())
        return
    left = json.loads(path.read_text(encoding="utf-8"))
    if differing := [name for name, value in key.items() if left.get(name) != value]:
        raise ConfigError(
            f"{out} holds a run with another {', '.join(differing)}; give another --out, or remove it"
        )


def _write(
    out: Path,
    name: str,
    model: HierarchicalViT,
    thresholds: dict[Any, dict[str, float]],
    base: CheckpointMetadata,
    request: Request,
    config: IncrementalConfig,
    table: BeforeAfter | None,
    *,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """The checkpoint, and beside it its table."""
    path = out / f"{name}.safetensors"
    written = save_checkpoint(
        path,
        model,
        name=name,
        thresholds=thresholds,
        training={
            "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
            "parent": {"name": base.name, "version": base.version},
            "added": list(request.add),
            "renamed": dict(request.rename),
            "retired": list(request.retire),
            "config": config.model_dump(mode="json"),
            **(facts or {}),
        },
        needs_reference=base.needs_reference,
        data_fingerprint=(facts or {}).get("data_fingerprint", base.data_fingerprint),
        git_revision=git_revision(),
    )
    if table is not None:
        table = {**table, "version": written.version}
        write_atomically(out / TABLE, json.dumps(table, indent=1, allow_nan=False).encode())
        for line in table_lines(table):
            say(line)
    return path
