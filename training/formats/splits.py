"""Hold back whole board groups for validation; crops or pictures of one board never land on both sides.

A sample without a group goes by its reference, which is the board's, and without one by its picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample


def split_by_group(
    samples: Sequence[Sample], *, groups: Collection[str] = (), fraction: float | None = None, seed: int = 0
) -> tuple[list[Sample], list[Sample]]:
    """Part samples into (training, validation), both in their order; give `groups` or `fraction`.

    Args:
        groups: names of the groups held back, as `board_of` gives them.
        fraction: share of the samples wanted in validation, 0..1 exclusive. Groups, shuffled by `seed`, are
            taken while that brings the count nearer the share; at least one is taken and one left.

    Raises:
        ConfigError: neither or both given, a name that no sample has, or nothing left to train on.
    """
    sizes = Counter(map(board_of, samples))
    if bool(groups) == (fraction is not None):
        raise ConfigError("give either the groups held back for validation or their fraction")
    held = set(groups) if fraction is None else _take_groups(sizes, fraction, seed)
    if unknown := held - set(sizes):
        raise ConfigError(f"no sample is of group {_names(unknown)}; groups are {_names(sizes)}")
    if held == set(sizes):
        raise ConfigError(f"validation would take all groups, {_names(sizes)}; leave one to train on")
    return (
        [sample for sample in samples if board_of(sample) not in held],
        [sample for sample in samples if board_of(sample) in held],
    )


def split_as_stated(samples: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
    """(training, validation) as the set itself says; what it keeps for test is in neither.

    Raises:
        ConfigError: no sample is stated for one of the two, or a board is in more than one split.
    """
    stated: dict[str, set[str]] = {}
    for sample in samples:
        stated.setdefault(board_of(sample), set()).add(sample.split)
    if torn := {board for board, splits in stated.items() if len(splits) > 1}:
        raise ConfigError(f"the set has pictures of one board in several splits: {_names(torn)}")
    training, validation = ([s for s in samples if s.split == split] for split in ("train", "val"))
    if not training or not validation:
        counts = dict(Counter(sample.split or "none" for sample in samples))
        raise ConfigError(f"the set states {counts}; a stated split needs pictures for train and val")
    return training, validation


def board_of(sample: Sample) -> str:
    """The board that a picture shows, as far as the labels tell."""
    return sample.group or str(sample.reference or sample.image)


def _take_groups(sizes: Counter[str], fraction: float, seed: int) -> set[str]:
    if not 0.0 < fraction < 1.0:
        raise ConfigError(f"the validation fraction {fraction} must lie between 0 and 1")
    if len(sizes) < 2:
        raise ConfigError(f"a split by board group needs two groups; there is {_names(sizes) or 'no sample'}")
    wanted = fraction * sizes.total()
    names = [str(name) for name in np.random.default_rng(seed).permutation(sorted(sizes))]
    taken: set[str] = set()
    count = 0
    for name in names:
        if len(taken) < len(sizes) - 1 and abs(count + sizes[name] - wanted) < abs(count - wanted):
            taken.add(name)
            count += sizes[name]
    return taken or {min(sizes, key=lambda name: (sizes[name], name))}


def _names(groups: Iterable[str]) -> str:
    names = sorted(groups)
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
