"""Tables that name each picture's golden reference and its board or lot, and pairs.csv, which writers leave.

A table is a CSV file with the columns `image` and `reference` or `group`, one row for each picture, in UTF-8
or UTF-16; commas, semicolons or tabs part the columns. Paths start at the table's folder or the set's; a name
alone will do where only one picture of the set has it. A picture that is some board's reference and has a
row of its own is a board of its own, too.

A table called pairs.csv in the folder of a set is read with the set, whatever its format.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from training.formats.dataset import DataSet, Fault
from training.formats.export import Export, relative_name
from training.formats.picture_labels import read_text
from training.formats.pictures import PictureFinder, unique_names

PAIRS_NAME = "pairs.csv"
REFERENCES = "references"
COLUMNS = ("image", "reference", "group")


@dataclass(frozen=True)
class Row:
    """What a table says of one picture."""

    where: str
    named: str
    """The reference as the table names it, or ""."""
    reference: Path | None
    """The file of that name; None where there is none."""
    group: str


def read_table(path: Path, data: DataSet, faults: list[Fault]) -> dict[Path, Row]:
    """Picture -> its row; rows without a picture are named in `faults`.

    Raises:
        ConfigError: not a text file, or not a table with these columns.
    """
    text = read_text(path)
    header = text.split("\n", 1)[0].strip()
    lines = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=header.count), restval="")
    table: dict[Path, Row] = {}
    finder = PictureFinder([path.resolve().parent, data.root, data.root / "images"])
    own = _by_name(data)
    try:
        lines.fieldnames = [name.strip().lower() for name in lines.fieldnames or ()]
        if "image" not in lines.fieldnames or not {"reference", "group"} & set(lines.fieldnames):
            raise ConfigError(
                f"{path} begins {header!r:.80}; wanted the columns image and reference or group"
            )
        for entry in lines:
            where, name = f"{path}:{lines.line_num}", entry["image"]
            alike = own.get(PurePosixPath(name.replace("\\", "/")).name, [])
            image = finder.find(name) or (alike[0] if len(alike) == 1 else None)
            if image is None:
                message = f"there is no picture {name!r}; the row is left out"
                faults.append(Fault("missing-image", where, message))
                continue
            named = entry.get("reference", "")
            row = Row(where, named, finder.find(named) if named else None, entry.get("group", ""))
            if image in table and (row.named, row.group) != (table[image].named, table[image].group):
                message = f"{table[image].where} says otherwise of {name!r}; this row counts"
                faults.append(Fault("listed-twice", where, message, image))
            table[image] = row
    except csv.Error as error:
        raise ConfigError(f"{path}:{lines.line_num} is not CSV: {error}; save the table as CSV") from error
    return table


def _by_name(data: DataSet) -> dict[str, list[Path]]:
    """File name -> the pictures of the set that are called so."""
    names: dict[str, list[Path]] = {}
    for image in dict.fromkeys(sample.image for sample in data.samples):
        names.setdefault(image.name, []).append(image)
    return names


def apply_table(data: DataSet, path: Path, *, references: bool = True, groups: bool = True) -> DataSet:
    """The set with the references and groups that a table names; where it names none, what was there stays.

    A reference without a row of its own that was read as a good board is no board: it is taken out.
    """
    faults, samples = list(data.faults), []
    table = read_table(path, data, faults)
    for sample in data.samples:
        row = table.get(sample.image)
        if row is not None and references and row.named:
            if row.reference is None:
                message = f"there is no reference {row.named!r}; kept without"
                faults.append(Fault("missing-reference", row.where, message, sample.image))
            sample = replace(sample, reference=row.reference or sample.reference)
        if row is not None and groups and row.group:
            sample = replace(sample, group=row.group)
        samples.append(sample)
    data = replace(data, samples=tuple(samples), faults=tuple(faults))
    return drop_references(data, boards=table.keys()) if references else data


def apply_pairs(data: DataSet, *, references: bool = True, groups: bool = True) -> DataSet:
    """The set with what pairs.csv in its folder says, and a remark; as it was where there is none."""
    path = data.root / PAIRS_NAME
    if not (references or groups) or not path.is_file():
        return data
    found = apply_table(data, path, references=references, groups=groups)
    read = " and ".join(name for name, wanted in (("references", references), ("groups", groups)) if wanted)
    return replace(found, remarks=(*found.remarks, f"{read} as {PAIRS_NAME} has them"))


def drop_references(data: DataSet, *, boards: Collection[Path] = ()) -> DataSet:
    """The set without good pictures that are references of others and not among `boards`.

    How many they were is said; that no label file names them is not a fault any more.
    """
    used = {sample.reference for sample in data.samples if sample.reference is not None} - set(boards)
    kept = tuple(sample for sample in data.samples if len(sample.boxes) or sample.image not in used)
    faults = [fault for fault in data.faults if fault.kind != "no-label-file" or fault.image not in used]
    if dropped := len(data.samples) - len(kept):
        message = f"{dropped} good pictures are references of others, and no boards of their own"
        faults.append(Fault("used-as-reference", str(data.root), message))
    return replace(data, samples=kept, faults=tuple(faults))


def write_pairs(
    export: Export, placed: Sequence[tuple[Sample, Path]], *, copy: bool, groups: bool = True
) -> None:
    """Write pairs.csv into the folder of a set, and the references into references/.

    Nothing is written where no sample has a reference or, with `groups`, a group.

    Args:
        placed: samples, and where their pictures lie in the written set.
        copy: else the references are named where they are. One that is a board of the set is copied once.
    """
    if not any(sample.reference or (groups and sample.group) for sample, _ in placed):
        return
    places: dict[Path, Path] = {}
    for sample, place in placed:
        places.setdefault(sample.image, place)
    references = [sample.reference for sample, _ in placed if sample.reference is not None]
    outside = (path for path in references if path not in places)
    for path, name in unique_names(outside, export.data.root).items():
        places[path] = export.place(path, export.out / REFERENCES / name, copy=copy)
        if copy and name != path.name:
            message = f"another reference is called so; now {REFERENCES}/{name}"
            export.lost.append(Fault("renamed", str(path), message, path))
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS if groups else COLUMNS[:2])
    for sample, place in placed:
        reference = places[sample.reference] if sample.reference is not None else None
        cells = [relative_name(path, export.out) if path else "" for path in (place, reference)]
        table.writerow([*cells, sample.group] if groups else cells)
    export.write_text(export.out / PAIRS_NAME, text.getvalue())
