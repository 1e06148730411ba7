"""The acceptance set of the promotion gate: boards of one or several folders, classes as the candidate's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np

from inspect_vit.calibration import Mode, Unit
from inspect_vit.config import ModelConfig
from inspect_vit.console import say
from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from training.measured_set import ReadOptions, known_class, read_measured_set
from training.progress import track

MAX_NAMED = 5


@dataclass(frozen=True)
class Classes:
    """How the base's classes and the candidate's hang together."""

    names: tuple[str, ...]
    """The candidate's."""
    of_base: tuple[int, ...]
    """For each class of the base its place among `names`; len(names) for a retired one."""
    retired: tuple[str, ...]
    """The base's names of classes that the candidate gave up."""
    renamed: dict[str, str]
    """The base's name -> the candidate's, of classes that were renamed."""

    @property
    def shared(self) -> list[int]:
        """Places among `names` of the classes that both know."""
        return sorted(set(self.of_base) - {len(self.names)})


@dataclass(frozen=True)
class Board:
    """One picture of the acceptance set."""

    sample: Sample
    """Labels are the candidate's classes; defects of retired classes are ignored ones."""
    name: str
    """The picture in its folder, with the folder's name where there are several."""
    digest: str
    """sha256 of the picture and its reference, in hexadecimal."""
    key: str
    """The same for pictures of one board, whatever the folder calls it."""


@dataclass(frozen=True)
class Acceptance:
    """All pictures, each once."""

    sets: tuple[str, ...]
    boards: tuple[Board, ...]
    fingerprint: str

    @property
    def num_boards(self) -> int:
        return len({board.key for board in self.boards})


def match_classes(
    base: ModelConfig,
    candidate: ModelConfig,
    *,
    renamed: Mapping[str, str],
    retired: Sequence[str],
) -> Classes:
    """Which class of the base is which of the candidate. Spelling matters as in `measured_set.known_class`.

    Raises:
        ConfigError: a class that is missing without a word, a word that fits no class, or none in common.
    """
    olds, news = tuple(base.class_names), tuple(candidate.class_names)
    asked = {_known(old, olds, "base"): _known(new, news, "candidate") for old, new in renamed.items()}
    given_up = {_known(name, olds, "base") for name in retired}
    places = []
    for old in olds:
        kept = known_class(old, news)
        if old in given_up:
            if kept is not None or old in asked:
                raise ConfigError(f"--retired {old}: the candidate still knows it, as {kept or asked[old]}")
            places.append(len(news))
            continue
        if old in asked and kept is not None and kept != asked[old]:
            raise ConfigError(
                f"--renamed {old}={asked[old]}: the candidate still knows {kept}; leave the option out"
            )
        name = asked.get(old, kept)
        if name is None:
            raise ConfigError(
                f"the candidate does not know class {old!r} of the base; say --renamed {old}=CLASS if it has "
                f"another name now, or --retired {old} if it is given up (it knows {', '.join(news)})"
            )
        places.append(news.index(name))
    if all(place == len(news) for place in places):
        raise ConfigError("all classes of the base are retired: there is nothing to compare")
    return Classes(news, tuple(places), tuple(name for name in olds if name in given_up), asked)


def read_acceptance(
    folders: Sequence[Path],
    classes: Classes,
    *,
    unit: Unit,
    limit: int | None = None,
    **reading: Unpack[ReadOptions],
) -> Acceptance:
    """Read and merge the folders; a picture that several hold counts once, as the first labels it.

    Args:
        limit: keep this many pictures, evenly spaced, instead of all.
        reading: how each folder is read.

    Raises:
        ConfigError: no folder, one that is missing or holds no picture, or a class that neither model knows.
    """
    if not folders:
        raise ConfigError("no acceptance set; name one or more folders of labelled boards with --acceptance")
    known = (*classes.names, *classes.renamed, *classes.retired)
    titles: list[str] = []
    found: list[tuple[str, Path, Sample]] = []
    for number, folder in enumerate(folders):
        if not folder.exists():
            raise ConfigError(f"no acceptance set {folder}; name a folder, or label file, of labelled boards")
        measured = read_measured_set(folder, known, **reading, is_part=len(folders) > 1)
        titles.append(f"{measured.name}, {measured.split}")
        place = folder.resolve().name if folder.is_dir() else folder.resolve().parent.name
        again = sum(other.resolve().name == folder.resolve().name for other in folders[:number])
        prefix = "" if len(folders) == 1 else f"{place}-{again + 1}/" if again else f"{place}/"
        root = folder.resolve() if folder.is_dir() else folder.resolve().parent
        found += [(prefix, root, sample) for sample in measured.samples]
    if limit is not None:
        if not 1 <= limit <= len(found):
            raise ConfigError(
                f"limit {limit}: the acceptance set has {len(found)} pictures; wanted 1 to that many"
            )
        found = [found[i] for i in np.linspace(0, len(found) - 1, limit).round().astype(int)]
    boards: dict[str, Board] = {}
    again_names = []
    for prefix, root, sample in track(found, total=len(found), label="reading"):
        image = sample.image.resolve()
        inside = image.relative_to(root).as_posix() if image.is_relative_to(root) else image.name
        picture = _sha256(sample.image)
        if picture in boards:
            again_names.append(f"{prefix}{inside}")
            continue
        reference = "" if sample.reference is None else _sha256(sample.reference)
        key = f"group {prefix}{sample.group}" if unit == "group" and sample.group else f"picture {picture}"
        boards[picture] = Board(
            _relabelled(sample, classes),
            f"{prefix}{inside}",
            hashlib.sha256(f"{picture} {reference}".encode()).hexdigest(),
            key,
        )
    if again_names:
        named = ", ".join(again_names[:MAX_NAMED]) + (", ..." if len(again_names) > MAX_NAMED else "")
        say(f"{len(again_names)} pictures are in the acceptance set twice and count once: {named}")
    return Acceptance(tuple(titles), tuple(boards.values()), _fingerprint(boards.values()))


def in_mode(
    found: Acceptance,
    with_reference: bool | None,
    *,
    name: str,
    needs_reference: bool,
    has_references: bool = False,
) -> tuple[Acceptance, Mode]:
    """The boards that the base can inspect in the mode asked for, and the mode.

    Whether the candidate can is what the gate finds out: what it cannot inspect it misses.

    Args:
        with_reference: None: with, where every picture has its reference or the base needs one.
        name, needs_reference: of the base.
        has_references: the recipe has its own, so that no picture needs one.

    Raises:
        ConfigError: a mode that the base cannot, or that no picture allows.
    """
    if with_reference is False and needs_reference:
        raise ConfigError(f"{name} inspects only against a golden reference; leave out --no-reference")
    if has_references and with_reference is not False:
        return found, "with_reference"
    paired = tuple(board for board in found.boards if board.sample.reference is not None)
    lacking = len(found.boards) - len(paired)
    if with_reference or needs_reference:
        if not paired:
            raise ConfigError("no acceptance picture has a golden reference; name them with --references")
        if lacking:
            say(f"{lacking} of {len(found.boards)} pictures have no reference and are left out")
        return Acceptance(found.sets, paired, _fingerprint(paired)), "with_reference"
    if with_reference is None and not lacking:
        return found, "with_reference"
    if with_reference is None and paired:
        say(
            f"{lacking} of {len(found.boards)} pictures have no reference: all are inspected without; "
            "--reference takes the others alone, with theirs"
        )
    return found, "without_reference"


def _known(name: str, names: Sequence[str], whose: str) -> str:
    found = known_class(name, names)
    if found is None:
        raise ConfigError(f"the {whose} has no class {name!r}; it knows {', '.join(names)}")
    return found


def _relabelled(sample: Sample, classes: Classes) -> Sample:
    """As the candidate names the classes; retired ones are ignored."""
    flags = sample.is_ignored.tolist()
    gone = [label in classes.retired and label not in classes.names for label in sample.labels]
    return replace(
        sample,
        labels=tuple(classes.renamed.get(label, label) for label in sample.labels),
        ignored=tuple(flag or retired for flag, retired in zip(flags, gone, strict=True)),
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fingerprint(boards: Iterable[Board]) -> str:
    digest = hashlib.sha256()
    for board in boards:
        sample = board.sample
        digest.update(f"{board.digest} {board.key} {sample.labels} {sample.ignored}".encode())
        digest.update(np.ascontiguousarray(sample.boxes, np.float32).tobytes())
    return digest.hexdigest()[:12]
