"""Which picture shows the good board, and which pictures show one board: by file name, by table, by folder.

On the command line: `--references name`, `name:(.*)_test={1}_temp`, `table:pairs.csv`, `folder:golden`;
`--groups name:(board\\d+)`, `table:boards.csv`, `folder`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from inspect_vit.errors import ConfigError, ImageError
from inspect_vit.image_io import picture_size
from inspect_vit.results import Sample
from training.formats.dataset import DataSet, Fault
from training.formats.pair_table import Row, apply_table, drop_references, read_table
from training.formats.pictures import PICTURE_SUFFIXES, list_pictures
from training.formats.values import is_unicode


@dataclass(frozen=True)
class ReferenceByName:
    """A board whose name without suffix fits `board` has its reference, named `reference`, beside it."""

    board: str = r"(.*)_test"
    """Regular expression for the whole name without suffix."""
    reference: str = "{1}_temp"
    """Name of the reference, without suffix; {1}, {2} ... stand for the expression's groups."""


@dataclass(frozen=True)
class ReferenceByTable:
    """A CSV file of the columns `image`, `reference`, perhaps `group` (training/formats/pair_table.py)."""

    path: Path


@dataclass(frozen=True)
class ReferenceByFolder:
    """A folder holds the reference under the board's name, else its group's; or one for all boards."""

    folder: Path


@dataclass(frozen=True)
class GroupByName:
    """What the expression finds in the path from the set's folder: its first group, or all of it."""

    pattern: str


@dataclass(frozen=True)
class GroupByTable:
    """A CSV file with the columns `image` and `group`."""

    path: Path


@dataclass(frozen=True)
class GroupByFolder:
    """The folder that a picture lies in."""


ReferenceRule = ReferenceByName | ReferenceByTable | ReferenceByFolder
GroupRule = GroupByName | GroupByTable | GroupByFolder


def parse_references(text: str) -> ReferenceRule:
    """A rule from the command line; raises ConfigError where it is none."""
    kind, _, rest = text.partition(":")
    if kind == "name" and (not rest or "=" in rest):
        board, _, reference = rest.rpartition("=")
        _compile(board)
        return ReferenceByName(board, reference) if rest else ReferenceByName()
    if kind in ("table", "folder") and rest:
        return ReferenceByTable(Path(rest)) if kind == "table" else ReferenceByFolder(Path(rest))
    raise ConfigError(
        f"references {text!r}; wanted name, name:PATTERN=NAME such as name:(.*)_test={{1}}_temp, "
        "table:FILE.csv or folder:FOLDER"
    )


def parse_groups(text: str) -> GroupRule:
    """A rule from the command line; raises ConfigError where it is none."""
    kind, _, rest = text.partition(":")
    if text == "folder":
        return GroupByFolder()
    if kind == "name" and rest:
        _compile(rest)
        return GroupByName(rest)
    if kind == "table" and rest:
        return GroupByTable(Path(rest))
    raise ConfigError(
        f"groups {text!r}; wanted name:PATTERN such as name:(board\\d+), table:FILE.csv or folder"
    )


def apply_references(data: DataSet, rule: ReferenceRule) -> DataSet:
    """The set with a reference for each sample that the rule finds one for; the others are named.

    A reference is no sample of its own: pictures that were read as good boards and turn out to be the
    reference of another are taken out, and counted in the faults. A table gives groups, too.
    """
    if isinstance(rule, ReferenceByTable):
        data = apply_table(data, rule.path)
    else:
        found = ((sample, _find_reference(sample, rule, data)) for sample in data.samples)
        samples = (
            replace(sample, reference=path) if path not in (None, sample.image) else sample
            for sample, path in found
        )
        data = drop_references(replace(data, samples=tuple(samples)))
    faults = list(data.faults)
    told = {fault.image for fault in faults if fault.kind == "missing-reference"}
    for sample in data.samples:
        if sample.reference is None and sample.image not in told:
            message = f"{type(rule).__name__} finds no reference; kept without"
            faults.append(Fault("missing-reference", sample.origin, message, sample.image))
    return replace(data, faults=tuple(faults))


def apply_groups(data: DataSet, rule: GroupRule) -> DataSet:
    """The set with a group for each sample that the rule finds one for; the others are named, unchanged."""
    faults, samples = list(data.faults), []
    table = read_table(rule.path, data, faults) if isinstance(rule, GroupByTable) else {}
    for sample in data.samples:
        group = _find_group(sample, rule, data, table)
        if not group:
            message = f"{type(rule).__name__} finds no group; kept {sample.group!r}"
            faults.append(Fault("missing-group", sample.origin, message, sample.image))
        samples.append(replace(sample, group=group or sample.group))
    return replace(data, samples=tuple(samples), faults=tuple(faults))


def check_references(data: DataSet) -> DataSet:
    """The set without references that cannot be read, are the board or have another size; each is named."""
    faults, samples = list(data.faults), []
    for sample in data.samples:
        if sample.reference is not None and (fault := _misfit(sample, sample.reference)) is not None:
            faults.append(fault)
            sample = replace(sample, reference=None)
        samples.append(sample)
    return replace(data, samples=tuple(samples), faults=tuple(faults))


def _misfit(sample: Sample, reference: Path) -> Fault | None:
    if reference == sample.image:
        message = "the board is named as its own reference; kept without"
        return Fault("own-reference", sample.origin, message, sample.image)
    if not is_unicode(str(reference)):
        message = f"the name of reference {reference} is not UTF-8; kept without, rename it"
        return Fault("not-unicode", sample.origin, message, sample.image)
    size = picture_size(sample.image)
    try:
        other = picture_size(reference)
    except ImageError as error:
        message = f"reference {reference}: {error}; kept without"
        return Fault("corrupt-reference", sample.origin, message, sample.image)
    if size == other:
        return None
    message = f"reference {reference} has {other}, the board {size} px (width, height); kept without"
    return Fault("reference-size", sample.origin, message, sample.image)


def _find_reference(sample: Sample, rule: ReferenceByName | ReferenceByFolder, data: DataSet) -> Path | None:
    """The reference by the rule, else the one the sample has."""
    found: Path | None = None
    if isinstance(rule, ReferenceByFolder):
        found = _in_folder(sample, data.root / rule.folder if not rule.folder.is_dir() else rule.folder)
    elif match := _compile(rule.board).fullmatch(sample.image.stem):
        found = _beside(sample.image, _fill(rule.reference, match))
    return found or sample.reference


def _fill(template: str, match: re.Match[str]) -> str:
    try:
        return template.format(match[0], *match.groups(default=""))
    except (IndexError, KeyError, ValueError) as error:
        raise ConfigError(
            f"reference name {template!r} asks for a group that {match.re.pattern!r} has not: {error}"
        ) from error


def _beside(image: Path, stem: str) -> Path | None:
    """A picture of that name in the folder of another; the same suffix first."""
    suffixes = sorted(PICTURE_SUFFIXES)
    for suffix in (image.suffix, *suffixes, *(suffix.upper() for suffix in suffixes)):
        if (path := image.parent / (stem + suffix)).is_file():
            return path.resolve()
    return None


def _in_folder(sample: Sample, folder: Path) -> Path | None:
    if not folder.is_dir():
        raise ConfigError(f"there is no folder of references {folder}")
    pictures = {path.stem: path for path in list_pictures(folder)}
    stem = sample.image.stem
    usual = stem.removesuffix("_test") + "_temp" if stem.endswith("_test") else ""
    named = pictures.get(stem) or pictures.get(usual) or pictures.get(sample.group)
    only = next(iter(pictures.values())) if len(pictures) == 1 else None
    found = named or only
    return found.resolve() if found else None


def _find_group(sample: Sample, rule: GroupRule, data: DataSet, table: dict[Path, Row]) -> str:
    if isinstance(rule, GroupByTable):
        return table[sample.image].group if sample.image in table else ""
    inside = sample.image.relative_to(data.root) if sample.image.is_relative_to(data.root) else sample.image
    if isinstance(rule, GroupByFolder):
        return inside.parent.as_posix() if inside.parent.parts else ""
    match = _compile(rule.pattern).search(inside.as_posix())
    return "" if match is None else (match[1] or "" if match.re.groups else match[0])


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"{pattern!r} is no regular expression: {error}") from error
