"""A labelled set as every format is read, and the faults met while reading it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from inspect_vit.results import Sample
from training.formats.values import escaped, is_unicode


@dataclass(frozen=True)
class Fault:
    """One entry that could not be read as it stands, and what became of it."""

    kind: str
    """What is wrong, in one kebab-case name: "empty-box", "missing-image"."""
    where: str
    """File, with the line or the path inside it: `labels/a.txt:3`, `annotations.coco.json:annotations[7]`."""
    message: str
    """The value met, the value wanted, and what was done: left out, clipped, kept."""
    image: Path | None = None
    """None also where its name cannot be written as UTF-8."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "where", escaped(self.where))
        object.__setattr__(self, "message", escaped(self.message))
        if self.image is not None and not is_unicode(str(self.image)):
            object.__setattr__(self, "image", None)


@dataclass(frozen=True)
class DataSet:
    """What a reader of any format answers. A good board is a sample without boxes."""

    samples: tuple[Sample, ...]
    class_names: tuple[str, ...]
    """In the order of the set itself; classes without a defect are kept."""
    faults: tuple[Fault, ...] = ()
    format: str = ""
    """Name in `registry.FORMATS`."""
    root: Path = field(default_factory=Path)
    remarks: tuple[str, ...] = ()
    """What was read beside the labels, and is no fault."""
