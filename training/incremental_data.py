"""What `add-class` learns from: the examples, the old boards, and examples pasted into old boards."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inspect_vit.console import say
from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from training.formats.references import GroupRule, ReferenceRule
from training.formats.splits import board_of, split_by_group
from training.incremental_config import MIN_HELD, IncrementalConfig
from training.pasted_boards import read_pasted, write_pasted
from training.pasting import cut_examples
from training.replay import Naming, Replay, drawn_boards, own_boards, read_boards

ENOUGH_BOARDS = 5
"""Boards with examples from which on some are held back."""
MOST_HELD = 0.4
"""Where whole boards can only be held back in larger shares than this, none is."""


@dataclass(frozen=True)
class Request:
    """What is asked of `add-class`."""

    base: Path
    add: tuple[str, ...] = ()
    data: Path | None = None
    replay: Path | None = None
    rename: Mapping[str, str] = field(default_factory=dict)
    retire: tuple[str, ...] = ()
    name: str | None = None
    format: str = "auto"
    references: ReferenceRule | None = None
    groups: GroupRule | None = None


@dataclass(frozen=True)
class Gathered:
    """Boards by their use. No board is both learnt from and measured on."""

    taught: list[Sample]
    """With examples, to learn from."""
    held: list[Sample]
    """With examples, to judge by."""
    replay: Replay
    counts: dict[str, int]
    """Labelled defects of each class on the boards that are learnt from."""


def gather(
    request: Request, config: IncrementalConfig, names: Mapping[str, str | None], *, drawn: Path
) -> Gathered:
    """Read both sets and part them.

    Args:
        names: as `grow_head.new_names` gives them.
        drawn: folder for boards that are drawn where no old ones are given.

    Raises:
        ConfigError: a set that cannot be read, or without an example of a class.
    """
    assert request.data is not None
    naming = Naming(names, request.retire)
    samples = _read(request, request.data, naming, "the examples")
    for label in request.add:
        if not _counts(samples)[label]:
            found = ", ".join(sorted(_counts(samples))) or "no class"
            hint = "; every setting needs a --set of its own" if "=" in label else ""
            raise ConfigError(f"{request.data} has no example of {label!r}; its labels are of {found}{hint}")
    shown = [sample for sample in samples if not sample.is_ignored.all()]
    if not shown:
        raise ConfigError(f"{request.data} has no labelled defect to learn from")
    taught, held = _parted(shown, request.add, config)
    if request.replay is None:
        replay = drawn_boards(drawn, naming, config)
    else:
        own = _without(_read(request, request.replay, naming, "the old boards"), samples)
        replay = own_boards(own, config)
        boards = {board_of(sample) for sample in taught}
        replay = Replay(replay.taught, [s for s in replay.held if board_of(s) not in boards], False)
    return Gathered(taught, held, replay, dict(_counts(taught)))


def paste_examples(
    gathered: Gathered,
    labels: Sequence[str],
    names: Sequence[str],
    config: IncrementalConfig,
    folder: Path,
    *,
    tick: Callable[[int, int], None],
) -> list[Sample]:
    """Boards with examples of those classes pasted in; none where no example's pixels are known."""
    if not config.pasted_boards or not config.pasted_crops or not config.protect:
        return []
    if made := read_pasted(folder):
        return made
    replay = gathered.replay
    examples = cut_examples(gathered.taught, labels)
    boards = [s for s in gathered.taught if s.reference is not None] if replay.is_drawn else replay.taught
    if not examples or not boards:
        say("no example has an outline or a reference to cut it out by: none are pasted into other boards")
        return []
    for number in write_pasted(
        folder,
        examples,
        boards,
        names,
        count=config.pasted_boards,
        most=config.pastes,
        only_good=replay.is_drawn,
        seed=config.seed,
    ):
        tick(number + 1, config.pasted_boards)
    return read_pasted(folder)


def _read(request: Request, root: Path, naming: Naming, what: str) -> list[Sample]:
    return read_boards(
        root, naming, what, format=request.format, references=request.references, groups=request.groups
    )


def _parted(
    shown: list[Sample], add: Sequence[str], config: IncrementalConfig
) -> tuple[list[Sample], list[Sample]]:
    """Boards to learn from and to judge by; few are all learnt from."""
    counts = _counts(shown)
    enough = min((counts[label] for label in add), default=0) >= MIN_HELD
    if not config.held_back or not enough or len({board_of(s) for s in shown}) < ENOUGH_BOARDS:
        return shown, []
    taught, held = split_by_group(shown, fraction=config.held_back, seed=config.seed)
    if len(held) > MOST_HELD * len(shown) or not set(add) <= set(_counts(taught)):
        return shown, []
    return taught, held


def _without(samples: Sequence[Sample], examples: Sequence[Sample]) -> list[Sample]:
    """The samples less those that show an example's picture: there its defects would be background."""
    shown = {_digest(sample.image) for sample in examples}
    kept = [sample for sample in samples if _digest(sample.image) not in shown]
    if len(kept) < len(samples):
        say(
            f"{len(samples) - len(kept)} old boards are among the examples too and are left out of the replay"
        )
    if not kept:
        raise ConfigError("every old board is among the examples; give others with --replay, or none")
    return kept


def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def _counts(samples: Sequence[Sample]) -> Counter[str]:
    return Counter(
        label
        for sample in samples
        for label, is_ignored in zip(sample.labels, sample.is_ignored.tolist(), strict=True)
        if not is_ignored
    )
