"""Write sets in every format, read them back, and say what is not the same: the table of docs/data.md.

    python benchmarks/round_trips.py SET... [--limit N]

SET is a folder that `inspect-vit data check` reads. "Otherwise" is what the written set has otherwise when
it is read again, boxes and outlines by more than 0.01 px; "said" is what the writer said that the format
cannot hold.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from training.formats.convert import count, not_held
from training.formats.dataset import DataSet, Fault
from training.formats.registry import FORMATS, WRITTEN, read_dataset, write_dataset

COUNTED = ("samples", "boxes", "outlines", "references", "groups")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET")
    parser.add_argument("--limit", type=int, help="take this many pictures of each set, evenly spaced")
    parser.add_argument(
        "--copy", action="store_true", help="copy the pictures instead of naming them in place"
    )
    options = parser.parse_args()
    print("| set | written as | otherwise when read again | said to be lost |\n|---|---|---|---|")
    for path in options.sets:
        data = some_of(read_dataset(path), options.limit)
        for row in rows(path.resolve().name, data, copy=options.copy):
            print(f"| {' | '.join(row)} |", flush=True)


def some_of(data: DataSet, limit: int | None) -> DataSet:
    """The set, or `limit` pictures of it."""
    total = len(data.samples)
    if limit is None or limit >= total:
        return data
    chosen = np.linspace(0, total - 1, limit).round().astype(int)
    return replace(data, samples=tuple(data.samples[i] for i in chosen))


def rows(name: str, data: DataSet, *, copy: bool) -> Iterator[tuple[str, ...]]:
    """One row for each format that can be written."""
    counts = count(data)
    splits = len({sample.split for sample in data.samples} - {""})
    held = ", ".join(f"{counts[key]} {key}" for key in COUNTED if counts[key]).replace("samples", "pictures")
    for number, format_ in enumerate(WRITTEN):
        with tempfile.TemporaryDirectory() as folder:
            lost: list[Fault] = []
            write_dataset(data, Path(folder) / "set", format_, copy_pictures=copy, lost=lost)
            otherwise = not_held(data, read_dataset(Path(folder) / "set"))
        kinds = Counter(fault.kind for fault in lost)
        said = "; ".join(f"{kind} ({times})" for kind, times in kinds.items())
        title = f"{name}: {held}, {splits} splits" if number == 0 else ""
        yield title, FORMATS[format_].title, "; ".join(otherwise) or "nothing", said or "nothing"


if __name__ == "__main__":
    main()
