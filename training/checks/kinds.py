"""The kinds of finding: how bad each is, whether it keeps a picture out of training, what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    ERROR = "error"
    """Training or measuring on it gives wrong results."""
    WARNING = "warning"
    """Probably wrong; look at it."""
    NOTE = "note"
    """Right as it may be, worth knowing."""


@dataclass(frozen=True)
class Kind:
    severity: Severity
    title: str
    advice: str
    quarantine: bool = False
    """Training leaves the picture out when it is given the quarantine list."""


KINDS: dict[str, Kind] = {
    # Pictures
    "corrupt-image": Kind(
        Severity.ERROR,
        "Pictures that cannot be read",
        "Copy them again from the source, or remove them.",
        True,
    ),
    "corrupt-reference": Kind(
        Severity.ERROR,
        "Pictures whose golden reference cannot be read",
        "Copy the reference again from the source, or pair the picture with another.",
        True,
    ),
    "missing-image": Kind(
        Severity.ERROR, "Labels without their picture", "Find the pictures, or remove these labels."
    ),
    "missing-labels": Kind(
        Severity.ERROR,
        "Pictures without their labels",
        "Find the label files; an empty one says that the board is good.",
    ),
    "missing-reference": Kind(
        Severity.WARNING,
        "Pictures without the reference that is named",
        "Find the references, or drop their names.",
    ),
    "unlabelled-image": Kind(
        Severity.WARNING,
        "Pictures that no label names",
        "Label them or take them out of the folder; they are used neither for training nor for measuring.",
    ),
    "unfit-image": Kind(
        Severity.WARNING,
        "Pictures that would not be inspected",
        "The service answers ERROR to these. Leave them out unless they are meant.",
    ),
    "poor-image": Kind(
        Severity.NOTE, "Pictures of poor quality", "Look whether boards at the line look like this."
    ),
    "empty-labels": Kind(
        Severity.NOTE,
        "Pictures without any box",
        "Are these good boards, or were labels lost? Where a reference is known, it was compared: see "
        "differences that no label covers.",
    ),
    # Labels
    "size-mismatch": Kind(
        Severity.ERROR,
        "Labels made for a picture of another size",
        "The picture was resized or turned after it was labelled: scale the labels, or restore the picture.",
    ),
    "labels-rotated": Kind(
        Severity.ERROR,
        "Labels turned against the picture",
        "The boxes were drawn on the stored pixels, not on the picture as EXIF turns it. Turn them, or "
        "strip the EXIF orientation from the file.",
        True,
    ),
    "painted-labels": Kind(
        Severity.ERROR,
        "Pictures with their labels painted in",
        "Get the picture without the frames. A network learns the frames, and scores well where they are.",
        True,
    ),
    "turned-by-exif": Kind(
        Severity.NOTE,
        "Labelled pictures that EXIF turns",
        "Nothing contradicts their labels, but not every labelling tool honours EXIF: look at the boxes.",
    ),
    "empty-box": Kind(
        Severity.ERROR, "Boxes without area", "Draw them again; the defects in them are not labelled now."
    ),
    "box-outside": Kind(
        Severity.ERROR,
        "Boxes outside the picture",
        "Draw them again; the defects in them are not labelled now.",
    ),
    "box-clipped": Kind(
        Severity.WARNING,
        "Boxes that reach out of the picture",
        "They are clipped; check that no scale is off.",
    ),
    "tiny-box": Kind(
        Severity.WARNING, "Boxes under 2 px", "A slip of the mouse? Nothing can be learned from them."
    ),
    "double-box": Kind(
        Severity.WARNING, "Boxes drawn twice", "Remove one: a defect counted twice is missed twice."
    ),
    "two-classes": Kind(
        Severity.WARNING,
        "One box under two classes",
        "Decide on one class; training is told both, and neither is learned.",
    ),
    "outline-with-holes": Kind(
        Severity.NOTE,
        "Outlines with holes",
        "They are read and kept. In YOLO, LabelMe and CVAT files they are joined to their ring by cuts, "
        "which other programs keep; Pascal VOC holds pixels only.",
    ),
    "outline-crosses-itself": Kind(
        Severity.WARNING,
        "Outlines that cross themselves",
        "Draw them again: part of the area counts as outside.",
    ),
    "outline-beyond-box": Kind(
        Severity.WARNING,
        "Outlines that leave their box",
        "Box and outline belong to different defects, or one was moved.",
    ),
    "outline-without-pixels": Kind(
        Severity.WARNING,
        "Outlines that hold no pixel",
        "They are too thin to be drawn; the box is all that is left.",
    ),
    # Classes
    "class-spelling": Kind(
        Severity.ERROR,
        "Classes that differ in case or spelling only",
        "Rename them to one; as they stand, each is learned from a part of the examples.",
    ),
    "class-near-spelling": Kind(
        Severity.WARNING, "Classes with nearly the same name", "A slip of the keyboard? Rename to one."
    ),
    "class-unused": Kind(Severity.NOTE, "Classes without a box", "Nothing can be learned of them."),
    "class-lookalike": Kind(
        Severity.WARNING,
        "Classes whose boxes look alike",
        "By plain nearest neighbours the two cannot be told apart. They may be one class under two names, or "
        "differ in ways that small crops do not show.",
    ),
    # Duplicates and splits
    "split-leak": Kind(
        Severity.ERROR,
        "The same picture in training and in test",
        "Every figure measured on it is too good. The training copy is in the quarantine list.",
        True,
    ),
    "duplicate-disagrees": Kind(
        Severity.ERROR,
        "The same picture with different labels",
        "One of the two is wrong; keep the right one.",
    ),
    "duplicate": Kind(
        Severity.WARNING, "The same picture more than once", "Keep one; the others only add weight."
    ),
    "near-duplicate": Kind(
        Severity.WARNING,
        "Pictures that differ by nothing but noise, scale, light or turning",
        "Copies of one shot? Keep one, or keep all on the same side of the split.",
    ),
    "board-in-two-splits": Kind(
        Severity.WARNING,
        "The same board in training and in test",
        "What is measured there says little about boards never seen. Split by board.",
    ),
    "same-board": Kind(
        Severity.NOTE,
        "Pictures of the same board without a common group",
        "They differ in small places only. Give them one group, so that a split never parts them.",
    ),
    # References
    "defective-reference": Kind(
        Severity.ERROR,
        "A labelled board that serves as reference",
        "Its defects would count as good. Use a picture of a good board.",
    ),
    "reference-size": Kind(
        Severity.ERROR,
        "References of another size",
        "Board and reference must show the same at the same scale.",
        True,
    ),
    "reference-mismatch": Kind(
        Severity.ERROR,
        "References of another board",
        "Board and reference have too little in common: pair them anew.",
        True,
    ),
    "reference-shifted": Kind(
        Severity.WARNING,
        "References that lie beside their board",
        "Register them before training, or let training shift references by as much (augment.misalign_px).",
    ),
    "reference-warped": Kind(
        Severity.WARNING,
        "References that no shift brings onto their board",
        "Turned, stretched or bent: register them with more than a shift.",
    ),
    "unlabelled-difference": Kind(
        Severity.WARNING,
        "Differences from the reference that no label covers",
        "A defect that nobody labelled, dirt, wider etching, or a defect of the reference. Not labelled, a "
        "defect teaches that such a thing is good.",
    ),
    "many-differences": Kind(
        Severity.WARNING,
        "Boards that differ from their reference everywhere",
        "Other light, another revision, another board?",
    ),
    "unchanged-box": Kind(
        Severity.WARNING,
        "Labels where board and reference are the same",
        "A box at the wrong place, or a wrong reference?",
    ),
    # What readers say beyond these
    "corrupt-labels": Kind(
        Severity.ERROR, "Label files that cannot be read", "Export them again; nothing in them is used."
    ),
    "no-label-file": Kind(
        Severity.WARNING,
        "Pictures without a label file",
        "Good boards, or boards not labelled yet? The message says whether they were read as good boards.",
    ),
    "missing-group": Kind(
        Severity.WARNING, "Pictures for which the rule finds no group", "Correct the rule, or their names."
    ),
    "several-classes": Kind(
        Severity.WARNING, "Masks for several classes", "The mask does not say which part is which."
    ),
    "duplicate-class": Kind(
        Severity.WARNING, "Classes listed twice", "They become one class; is one of the names wrong?"
    ),
    "class-count": Kind(Severity.WARNING, "A number of classes that is wrong", "The names are used."),
    "no-class-names": Kind(Severity.WARNING, "Classes without names", "Name them in data.yaml."),
    "unlisted-class": Kind(Severity.WARNING, "Classes that the set does not list", "They are kept."),
    "unread-outlines": Kind(
        Severity.WARNING, "Outlines that are not read", "Boxes are used in their place; see the message."
    ),
    "path-moved": Kind(Severity.NOTE, "Paths that lead elsewhere", "Check that the right folder was read."),
    "no-data-yaml": Kind(Severity.NOTE, "No data.yaml", "Splits and class names are taken from the folders."),
    "image-by-stem": Kind(
        Severity.NOTE,
        "Pictures found by their stem",
        "The label names another suffix; check that it is meant.",
    ),
    "used-as-reference": Kind(
        Severity.NOTE, "Good pictures that are references", "They are not counted as boards of their own."
    ),
    "embedded-picture": Kind(
        Severity.NOTE, "Pictures taken out of label files", "They were written beside their label file."
    ),
    "empty-supercategory": Kind(
        Severity.NOTE, "Headings among the classes", "Left out: they have no annotation."
    ),
    "unread-file": Kind(Severity.NOTE, "Files that were not read", "Nothing in them is used."),
    "unread-key": Kind(Severity.NOTE, "Parts of label files that are not read", "Nothing in them is used."),
}


def kind_of(name: str) -> Kind:
    """The kind of that name; what a reader alone knows is an error, since something was left out."""
    return KINDS.get(name) or Kind(
        Severity.ERROR,
        name.replace("-", " ").capitalize(),
        "Correct these entries; they are not used as they stand.",
    )
