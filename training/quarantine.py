"""Pictures to keep out of training: the list that a check writes, and those found unreadable on the way.

A quarantine list is JSON, a list of {"image", "kind", "message"}; a relative `image` starts from the list's
folder. The notes of a run are the same entries, one a line, so that several processes can add to them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from inspect_vit.errors import ConfigError
from inspect_vit.files import write_atomically
from inspect_vit.results import Sample

LIST_NAME = "quarantine.json"


def write_quarantine(path: Path, reasons: Mapping[Path, tuple[str, str]]) -> None:
    """Write a list. `reasons`: picture -> (kind, message)."""
    entries = [
        {"image": str(image), "kind": kind, "message": message} for image, (kind, message) in reasons.items()
    ]
    text = json.dumps(entries, indent=1, ensure_ascii=False)
    write_atomically(path, (text + "\n").encode())


def read_quarantine(path: Path) -> dict[Path, str]:
    """Picture (absolute, resolved) -> why it is left out.

    Raises:
        ConfigError: no such file, or not a list as described above.
    """
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(entries, list):
            raise TypeError(f"{type(entries).__name__} at its top")
        return {
            (path.parent / entry["image"]).resolve(): f"{entry['kind']}: {entry['message']}"
            for entry in entries
        }
    except OSError as error:
        raise ConfigError(f"cannot read the quarantine list {path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, RecursionError, RuntimeError) as error:
        raise ConfigError(
            f"{path} is no quarantine list ({type(error).__name__}: {error}); wanted a JSON list of objects "
            "with image, kind and message, as `inspect-vit data check` writes it"
        ) from error


def leave_out(samples: Sequence[Sample], reasons: Mapping[Path, str]) -> tuple[list[Sample], dict[Path, str]]:
    """(samples that stay, picture -> reason of the others); a sample goes with its picture or reference."""
    kept: list[Sample] = []
    left_out: dict[Path, str] = {}
    for sample in samples:
        image = sample.image.resolve()
        reference = sample.reference and sample.reference.resolve()
        if image in reasons:
            left_out[image] = reasons[image]
        elif reference is not None and reference in reasons:
            left_out[image] = f"its reference {reference}: {reasons[reference]}"
        else:
            kept.append(sample)
    return kept, left_out


def note_unreadable(notes: Path, image: Path, message: str) -> None:
    """Add a line to the notes of a run."""
    line = json.dumps({"image": str(image.resolve()), "kind": "corrupt-image", "message": message})
    with notes.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def read_notes(notes: Path) -> dict[Path, str]:
    """Picture -> why it could not be read; none without a file. A line cut short by a kill is skipped."""
    found: dict[Path, str] = {}
    for line in notes.read_text(encoding="utf-8").splitlines() if notes.exists() else ():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[Path(entry["image"])] = entry["message"]
    return found
