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
from training.formats.picture_labels import Tally, ends_with, note_moved, read_text, say_unclear
from training.formats.pictures import PictureFinder, unclear_names, unique_names
from training.formats.reading import Reading

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

    Cells are stripped. A name whose folder is not here is read by its last part, as is said, unless another
    name of the column leads to the same picture.

    Raises:
        ConfigError: not a text file, not a table with these columns, or a cell that goes on over the end of
            its line, as it does after a quote that nobody closed.
    """
    text = read_text(path)
    header = text.split("\n", 1)[0].strip()
    rows = _rows(path, text, max(",;\t", key=header.count))
    columns = [name.lower() for name in rows[0][1]] if rows else []
    if "image" not in columns or not {"reference", "group"} & set(columns):
        raise ConfigError(f"{path} begins {header!r:.80}; wanted the columns image and reference or group")
    blank = dict.fromkeys(COLUMNS, "")
    entries = [(where, blank | dict(zip(columns, row, strict=False))) for where, row in rows[1:]]
    table: dict[Path, Row] = {}
    finder = PictureFinder([path.resolve().parent, data.root, data.root / "images"])
    own, reading, tally = _by_name(data), Reading(), Tally()
    boards = {entry["image"]: _trace(entry["image"], finder, own) for _, entry in entries}
    no_board, no_reference = unclear_names(boards), finder.unclear(entry["reference"] for _, entry in entries)
    for where, entry in entries:
        name, named = entry["image"], entry["reference"]
        if name in no_board:
            say_unclear(name, where, reading)
            continue
        image, moved = boards[name]
        if image is None:
            reading.fault("missing-image", where, f"there is no picture {name!r}; the row is left out")
            continue
        if moved:
            note_moved(where, tally)
        reference, moved = finder.trace(named)
        if named in no_reference:
            reference = None
        elif moved:
            note_moved(where, tally, "reference")
        row = Row(where, named, reference, entry["group"])
        if image in table and (row.named, row.group) != (table[image].named, table[image].group):
            message = f"{table[image].where} says otherwise of {name!r}; this row counts"
            reading.fault("listed-twice", where, message, image)
        table[image] = row
    tally.say(reading)
    faults += reading.faults
    return table


def _rows(path: Path, text: str, delimiter: str) -> list[tuple[str, list[str]]]:
    """Where each row begins, and its cells, stripped; empty rows are passed over."""
    lines = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=delimiter != "\t"
    )
    rows: list[tuple[str, list[str]]] = []
    where = f"{path}:1"
    try:
        for cells in lines:
            if any("\n" in cell or "\r" in cell for cell in cells):
                raise ConfigError(
                    f"{where}: a cell goes on over the end of its line; close the quote that it begins with"
                )
            if cells:
                rows.append((where, [cell.strip() for cell in cells]))
            where = f"{path}:{lines.line_num + 1}"
    except csv.Error as error:
        raise ConfigError(
            f"{where} is not CSV: {error}; close the quotes of this row, or save the table as CSV"
        ) from error
    return rows


def _trace(name: str, finder: PictureFinder, own: dict[str, list[Path]]) -> tuple[Path | None, bool]:
    """A board's file, else the only picture of the set that is called so; and whether its folders differ."""
    path, moved = finder.trace(name)
    alike = own.get(PurePosixPath(name.replace("\\", "/")).name, [])
    if path is not None or len(alike) != 1:
        return path, moved
    return alike[0], not ends_with(alike[0], name)


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
                message = f"there is no reference {row.named!r}, or another name leads to it; kept without"
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
        group = " ".join(sample.group.splitlines()).strip()
        if groups and group != sample.group:
            export.lose("group-name", sample, f"group {sample.group!r} is written as {group!r}")
        if any(cell.splitlines() != [cell] for cell in cells if cell):
            message = (
                "a file name has a line break, which a table cannot hold; its reference and group are lost"
            )
            export.lose("no-pair", sample, message)
            continue
        table.writerow([*cells, group] if groups else cells)
    export.write_text(export.out / PAIRS_NAME, text.getvalue())
