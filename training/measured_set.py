"""The labelled set that an evaluation measures on, its classes named as the checkpoint names them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

from inspect_vit.console import say
from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from training.formats.deeppcb import SPLITS, Split, read_deeppcb
from training.formats.references import GroupRule, ReferenceRule
from training.formats.registry import detect_format, read_dataset
from training.redraw import redraw

DEEPPCB = "DeepPCB"
DEEPPCB_PX_PER_MM = 48.0
MAX_NAMED = 10


class ReadOptions(TypedDict, total=False):
    """How a set is read: `read_measured_set` has what each means and its default."""

    format: str
    references: ReferenceRule | None
    groups: GroupRule | None
    rename: Mapping[str, str] | None
    split: str | None
    px_per_mm: float | None
    redraw_px: int | None


@dataclass(frozen=True)
class MeasuredSet:
    """Samples whose labels are all classes of the checkpoint, but for ignored ones."""

    name: str
    split: str
    """As the set calls it; "all" where every picture is measured."""
    samples: tuple[Sample, ...]
    px_per_mm: float | None
    """None where it is not known: false calls per area are then left out."""

    @property
    def fingerprint(self) -> str:
        """12 hex digits over every picture, reference and label: files by path, size and time of change."""
        digest = hashlib.sha256()
        for sample in self.samples:
            for path in (sample.image, sample.reference):
                if path is not None:
                    state = path.stat()
                    digest.update(
                        f"{path.resolve()} {state.st_size} {state.st_mtime_ns}\n".encode("utf-8", "replace")
                    )
            digest.update(f"{sample.labels} {sample.group}".encode("utf-8", "replace"))
            digest.update(sample.boxes.tobytes() + bytes(sample.ignored))
        return digest.hexdigest()[:12]

    @property
    def has_references(self) -> bool:
        """Whether every picture has its golden reference."""
        return all(sample.reference is not None for sample in self.samples)


def read_measured_set(
    root: Path,
    class_names: Sequence[str],
    *,
    format: str = "auto",
    references: ReferenceRule | None = None,
    groups: GroupRule | None = None,
    rename: Mapping[str, str] | None = None,
    split: str | None = None,
    px_per_mm: float | None = None,
    redraw_px: int | None = None,
    is_part: bool = False,
) -> MeasuredSet:
    """Read a set in any format.

    Args:
        class_names: of the checkpoint. Case, spaces, hyphens and underscores do not matter: the set's
            `Missing_hole` is the checkpoint's `missing-hole`.
        format, references, groups: as `read_dataset` takes them.
        rename: class of the set -> class of the checkpoint, for other differences.
        split: part of the set. Default: DeepPCB's test split; of other sets, everything.
        px_per_mm: scale of the pictures, for false calls per area; known for DeepPCB.
        redraw_px: draw the boxes anew by the difference from the reference, this much wider on each side.
        is_part: one of several sets: `rename` may name classes that only the others have.

    Raises:
        ConfigError: nothing to measure on, a split that is not there, or a class that stays unknown.
    """
    name = detect_format(root) if format == "auto" else format
    title: str
    scale: float | None
    if name == "deeppcb" and references is None and groups is None:
        if split not in (None, *SPLITS):
            raise ConfigError(f"DeepPCB has no split {split!r}; use one of {', '.join(SPLITS)}")
        part: Split = "trainval" if split == "trainval" else "test"
        samples, stated = read_deeppcb(root, part), str(part)
        every = tuple(samples)
        title, scale = DEEPPCB, px_per_mm or DEEPPCB_PX_PER_MM
    else:
        data = read_dataset(root, format=name, references=references, groups=groups)
        for fault in data.faults[:MAX_NAMED]:
            say(f"{fault.where}: {fault.message}")
        if len(data.faults) > MAX_NAMED:
            say(f"... and {len(data.faults) - MAX_NAMED} more faults; inspect-vit data check lists them")
        stated = split or "all"
        every = data.samples
        samples = [sample for sample in data.samples if split in (None, sample.split)]
        title, scale = f"{root.resolve().name} ({name})", px_per_mm or None
        if not samples:
            found = sorted({sample.split for sample in data.samples} - {""})
            wanted = f"; it states {', '.join(found) or 'no split'}" if split else ""
            raise ConfigError(f"{root} has no picture{f' of split {split!r}' if split else ''}{wanted}")
    renames = dict(rename or {})
    if is_part:
        present = _counted(every)
        renames = {old: new for old, new in renames.items() if old in present}
    names = known_classes(samples, class_names, renames, every=every)
    renamed = tuple(
        replace(sample, labels=tuple(names.get(label, label) for label in sample.labels))
        for sample in samples
    )
    if redraw_px is not None:
        drawn, kept = redraw(renamed, margin_px=redraw_px)
        say(f"boxes redrawn with {redraw_px} px of margin; {kept} in which nothing differs stay as they are")
        renamed, title = tuple(drawn), f"{title}, boxes redrawn + {redraw_px} px"
    return MeasuredSet(title, stated, renamed, scale)


def parse_renames(pairs: Sequence[str]) -> dict[str, str]:
    """`open_circuit=open` and so on as a mapping.

    Raises:
        ConfigError: an entry without an equals sign or with an empty side.
    """
    renames: dict[str, str] = {}
    for pair in pairs:
        old, _, new = pair.partition("=")
        if not old or not new:
            raise ConfigError(f"rename {pair!r}; wanted CLASS_OF_THE_SET=CLASS_OF_THE_CHECKPOINT")
        if renames.setdefault(old, new) != new:
            raise ConfigError(f"rename {old!r} is given twice, to {renames[old]!r} and to {new!r}")
    return renames


def known_classes(
    samples: Sequence[Sample],
    class_names: Sequence[str],
    rename: Mapping[str, str],
    *,
    every: Sequence[Sample] = (),
) -> dict[str, str]:
    """Class of the set -> class of the checkpoint, for every class that counts.

    every: the samples of all splits, whose classes `rename` may name too.
    """
    counted = _counted(samples)
    if absent := set(rename) - counted - _counted(every):
        raise ConfigError(
            f"no defect of the set is of class {', '.join(sorted(absent))}, which --rename names; "
            f"it has {', '.join(sorted(counted)) or 'none'}"
        )
    names = {label: known_class(rename.get(label, label), class_names) for label in counted}
    if unknown := sorted(label for label, name in names.items() if name is None):
        raise ConfigError(
            f"the labels hold classes {', '.join(unknown)} that the checkpoint does not know; "
            f"it knows {', '.join(class_names)}; --rename {unknown[0]}=CLASS says which one is meant"
        )
    return {label: name for label, name in names.items() if name is not None}


def _counted(samples: Sequence[Sample]) -> set[str]:
    """Classes of the defects that are not ignored."""
    return {
        label
        for sample in samples
        for label, is_ignored in zip(sample.labels, sample.is_ignored.tolist(), strict=True)
        if not is_ignored
    }


def known_class(label: str, class_names: Sequence[str]) -> str | None:
    """The class itself, else the only one that differs in case, spaces, hyphens or underscores alone."""
    if label in class_names:
        return label
    alike = [name for name in class_names if _key(name) == _key(label)]
    if len(alike) > 1:
        raise ConfigError(
            f"the labels' class {label!r} may be {' or '.join(map(repr, alike))} of the checkpoint; "
            f"--rename {label}=CLASS says which"
        )
    return alike[0] if alike else None


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()
