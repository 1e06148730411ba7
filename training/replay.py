"""Boards of the classes that are known: the user's own old ones, or drawn ones where there are none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from inspect_vit.console import say
from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from training.defect_kinds import DEFECT_KINDS
from training.formats.coco import read_coco
from training.formats.references import GroupRule, ReferenceRule
from training.formats.registry import read_dataset
from training.formats.splits import board_of, split_by_group
from training.incremental_config import IncrementalConfig
from training.measured_set import known_class
from training.pairs import DefectPlan
from training.synthesise import synthesise

MAX_NAMED = 10
HELD_SHARE = 0.25
"""Largest share of the old boards that is held back for thresholds and the table."""


@dataclass(frozen=True)
class Replay:
    """Old boards, parted by board."""

    taught: list[Sample]
    held: list[Sample]
    is_drawn: bool


@dataclass(frozen=True)
class Naming:
    """How the labels of a set become classes of the new model."""

    names: Mapping[str, str | None]
    """Class of the new model -> class of the old one, None for a new one."""
    retired: Collection[str]

    def apply(self, samples: Sequence[Sample], what: str) -> list[Sample]:
        """Labels by their new names; those of retired classes are ignored: neither defect nor background.

        Raises:
            ConfigError: a label that is none of the classes.
        """
        return [self._one(sample, what) for sample in samples]

    def _one(self, sample: Sample, what: str) -> Sample:
        renamed = {origin: name for name, origin in self.names.items() if origin is not None}
        labels, ignored = [], []
        for label, is_ignored in zip(sample.labels, sample.is_ignored.tolist(), strict=True):
            old = known_class(label, [*renamed, *self.retired])
            name = known_class(label, tuple(self.names)) or (None if old is None else renamed.get(old))
            if name is None and old is None and not is_ignored:
                raise ConfigError(
                    f"{sample.origin or sample.image}: {what} hold class {label!r}, which the model would "
                    f"not know; name it after add-class to add it, or relabel it as one of "
                    f"{', '.join(self.names)}"
                )
            labels.append(name or label)
            ignored.append(is_ignored or name is None)
        return replace(sample, labels=tuple(labels), ignored=tuple(ignored))


def read_boards(
    root: Path,
    naming: Naming,
    what: str,
    *,
    format: str,
    references: ReferenceRule | None,
    groups: GroupRule | None,
) -> list[Sample]:
    """A labelled set of any format, named as the new model names its classes."""
    data = read_dataset(root, format=format, references=references, groups=groups)
    for fault in data.faults[:MAX_NAMED]:
        say(f"{fault.where}: {fault.message}")
    if len(data.faults) > MAX_NAMED:
        say(f"... and {len(data.faults) - MAX_NAMED} more faults; inspect-vit data check lists them")
    if not data.samples:
        raise ConfigError(f"{root}: {what} hold no picture that can be read")
    return naming.apply(data.samples, what)


def own_boards(samples: Sequence[Sample], config: IncrementalConfig) -> Replay:
    """Some of the user's old boards to learn from, and some held back, never the same board in both."""
    order = np.random.default_rng((config.seed, 4)).permutation(len(samples))
    chosen = [samples[i] for i in sorted(order[: config.replay_limit + config.measured_boards].tolist())]
    if len({board_of(sample) for sample in chosen}) < 2:
        return Replay(chosen, [], False)
    share = min(config.measured_boards / len(chosen), HELD_SHARE)
    taught, held = split_by_group(chosen, fraction=share, seed=config.seed)
    places = np.linspace(0, len(held) - 1, min(config.measured_boards, len(held))).round().astype(int)
    return Replay(taught, [held[i] for i in places.tolist()], False)


def drawn_boards(out: Path, naming: Naming, config: IncrementalConfig) -> Replay:
    """Boards drawn with those of the old classes that can be drawn. The old model's answers stand for labels.

    Raises:
        ConfigError: none of the old classes can be drawn.
    """
    kinds = {origin: 1.0 for origin in naming.names.values() if origin is not None and origin in DEFECT_KINDS}
    if not kinds:
        raise ConfigError(
            f"none of the classes {', '.join(naming.names)} can be drawn; give old boards with --replay"
        )
    say(f"no --replay: drawing {config.drawn_boards} boards with {', '.join(kinds)}")
    made = synthesise(
        out, count=config.drawn_boards, seed=config.seed, plan=DefectPlan(kinds=kinds), workers=1
    )
    samples = naming.apply(read_coco(made.folder).samples, "the drawn boards")
    num_held = min(config.measured_boards, len(samples) // 4)
    return Replay(samples[num_held:], samples[:num_held], True)
