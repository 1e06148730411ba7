"""Which class of one version is which of another: by name, by what their lineage tells, and as a person says.

The gate needs a word on every class that the version in production knows and the candidate does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from inspect_vit.checkpoint import read_metadata
from inspect_vit.errors import CheckpointError
from serving.errors import FieldError, ModelRefusedError, NotFoundError, VersionGoneError
from serving.job_sets import class_key
from serving.model_files import check_version
from serving.registry import find_model


@dataclass(frozen=True)
class ClassChanges:
    """From the version in production to the candidate."""

    renamed: Mapping[str, str]
    """New name by the old one."""
    retired: tuple[str, ...]
    """Old names of classes that were given up."""
    untold: tuple[str, ...] = ()
    """Old names of classes that the candidate lacks, of which nobody says what became of them."""


def class_changes(
    engine: Engine,
    home: Path,
    base: str,
    candidate: str,
    *,
    renamed: Mapping[str, str],
    retired: Sequence[str],
) -> ClassChanges:
    """What became of the base's classes. What a person says goes before what the lineage tells.

    Args:
        renamed, retired: as a person says.

    Raises:
        NotFoundError: no such version.
        FieldError: a word that fits no class, a word of a class that the candidate still knows, two words of
            one, or no class left to compare.
    """
    olds, news = (find_model(engine, version).facts.classes for version in (base, candidate))
    said = _said(renamed, olds, news, base, candidate)
    kept = {class_key(name): name for name in news}
    given_up = [_known("retired", name, olds, base) for name in retired]
    for old in given_up:
        if old in said:
            raise FieldError(f"retired: {old!r} is said to be renamed too; say one of the two")
        if class_key(old) in kept:
            raise FieldError(f"retired: {candidate} still knows {kept[class_key(old)]!r}; leave it out")
    if set(given_up) == set(olds):
        raise FieldError(
            f"retired: names all classes of {base}, so there is nothing to compare",
            hint="leave it out; a version that has no class in common goes ahead by an override alone",
        )
    told, lost = _lineage(engine, home, base, candidate)
    renames = {
        old: new
        for old, new in told.items()
        if old not in said and old not in given_up and class_key(new) in kept
    } | said
    lost = [old for old in lost if old not in said and class_key(old) not in kept]
    gone = tuple(dict.fromkeys([*given_up, *lost]))
    untold = tuple(
        old for old in olds if class_key(old) not in kept and old not in renames and old not in gone
    )
    return ClassChanges(renames, gone, untold)


def _said(
    renamed: Mapping[str, str], olds: Sequence[str], news: Sequence[str], base: str, candidate: str
) -> dict[str, str]:
    """What a person says was renamed, as the versions spell it."""
    said: dict[str, str] = {}
    for old, new in renamed.items():
        field = f"renamed.{old}"
        known, name = _known("renamed", old, olds, base), _known(field, new, news, candidate)
        if known in said:
            raise FieldError(f"{field}: {known!r} is named twice, {said[known]!r} and {name!r}; name it once")
        if class_key(known) in map(class_key, news) and class_key(known) != class_key(name):
            raise FieldError(f"{field}: {name!r}, but {candidate} still knows {known!r}; leave it out")
        said[known] = name
    return said


def _known(field: str, name: str, classes: Sequence[str], version: str) -> str:
    """The class as the version spells it."""
    found = [one for one in classes if class_key(one) == class_key(name)]
    if not found:
        raise FieldError(f"{field}: {name!r} is no class of {version}, which knows {', '.join(classes)}")
    return found[0]


def _lineage(engine: Engine, home: Path, base: str, candidate: str) -> tuple[dict[str, str], list[str]]:
    """New name by the base's, and the base's classes that were given up; nothing is known of that where the
    candidate did not come from the base, or a version between them cannot be read."""
    steps: list[dict[str, Any]] = []
    version: str | None = candidate
    seen: set[str] = set()
    while version is not None and version != base:
        if version in seen:
            return {}, []
        seen.add(version)
        try:
            steps.append(read_metadata(check_version(home, version)).training)
            version = find_model(engine, version).parent
        except (NotFoundError, VersionGoneError, ModelRefusedError, CheckpointError):
            # A checkpoint may name a parent that was never here.
            return {}, []
    if version != base:
        return {}, []
    names = {name: name for name in find_model(engine, base).facts.classes}
    retired: list[str] = []
    for step in reversed(steps):
        given_up, renames = set(step.get("retired", ())), dict(step.get("renamed", {}))
        retired += [old for old, now in names.items() if now in given_up]
        names = {old: renames.get(now, now) for old, now in names.items() if now not in given_up}
    return {old: now for old, now in names.items() if old != now}, retired
