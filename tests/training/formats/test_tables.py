"""Tables of references as people leave them: open quotes, blanks, moved folders, boards of themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from inspect_vit.errors import ConfigError
from inspect_vit.results import Sample
from training.formats.dataset import DataSet, Fault
from training.formats.pair_table import apply_pairs, read_table
from training.formats.references import check_references
from training.formats.registry import read_dataset, write_dataset


def draw(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (64, 48), sum(path.as_posix().encode()) % 256).save(path)
    return path.resolve()


def boards(root: Path, count: int = 3) -> DataSet:
    box = np.array([[1, 1, 9, 9]], np.float32)
    samples = [Sample(draw(root / "images" / f"b{i}.png"), box, ("open",)) for i in range(count)]
    for i in range(count):
        draw(root / "gold" / f"g{i}.png")
    return DataSet(tuple(samples), ("open",), root=root.resolve())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('image,group\nimages/b0.png,"lot 1\nimages/b1.png,lot 2\n', 2),
        ('image,group\nimages/b0.png,lot\nimages/b1.png,"lot 1\nimages/b2.png,"lot 2"\n', 3),
        ('image,group\nimages/b0.png,"lot\n1"\n', 2),
        ('image,"group\nimages/b0.png,lot 1\n', 1),
    ],
)
def test_an_open_quote_swallows_no_row(tmp_path: Path, text: str, line: int) -> None:
    data = boards(tmp_path)
    (tmp_path / "pairs.csv").write_text(text)
    with pytest.raises(ConfigError, match=rf"pairs\.csv:{line}\b.*close the quote"):
        apply_pairs(data)


def test_cells_are_stripped(tmp_path: Path) -> None:
    data = boards(tmp_path, 2)
    first, second = 'images/b0.png ,gold/g0.png, "lot, A"', "images/b1.png,\t gold/g1.png ,lot B "
    rows = ("image, reference, group", first, "", second)
    (tmp_path / "pairs.csv").write_text("\n".join(rows))
    found = apply_pairs(data)
    assert found.faults == ()
    assert [(s.reference and s.reference.name, s.group) for s in found.samples] == [
        ("g0.png", "lot, A"),
        ("g1.png", "lot B"),
    ]


def test_moved_names_are_said_and_unclear_ones_refused(tmp_path: Path) -> None:
    data = boards(tmp_path)
    draw(tmp_path / "g0.png")
    table = tmp_path / "pairs.csv"
    table.write_text("image,reference\nlot/b0.png,x/g0.png\n")
    faults: list[Fault] = []
    (row,) = read_table(table, data, faults).values()
    assert row.reference == (tmp_path / "g0.png").resolve()
    assert [(f.kind, f.where) for f in faults] == [("image-moved", f"{table}:2")] * 2
    table.write_text(
        "image,reference\nlotA/b0.png,\nlotB/b0.png,\nimages/b1.png,x/g0.png\nimages/b2.png,y/g0.png\n"
    )
    found = apply_pairs(data)
    assert [s.reference for s in found.samples] == [None] * 3
    assert [(f.kind, f.where.rpartition(":")[2]) for f in found.faults] == [
        ("unclear-image", "2"),
        ("unclear-image", "3"),
        ("missing-reference", "4"),
        ("missing-reference", "5"),
    ]


def test_a_board_is_not_its_own_reference(tmp_path: Path) -> None:
    data = boards(tmp_path, 1)
    (tmp_path / "pairs.csv").write_text("image,reference\nimages/b0.png,images/b0.png\n")
    found = check_references(apply_pairs(data))
    assert [sample.reference for sample in found.samples] == [None]
    assert [fault.kind for fault in found.faults] == ["own-reference"]


def test_what_a_table_cannot_hold_is_said_and_the_set_can_be_read(tmp_path: Path) -> None:
    data = boards(tmp_path / "in", 2)
    odd = data.samples[1].image.with_name("b\n1.png")
    data.samples[1].image.rename(odd)
    samples = (replace(data.samples[0], group="lot\n1"), replace(data.samples[1], image=odd, group="lot 2"))
    lost: list[Fault] = []
    write_dataset(replace(data, samples=samples), tmp_path / "out", "yolo", lost=lost)
    assert {"group-name", "no-pair"} <= {fault.kind for fault in lost}
    groups = {sample.image.name: sample.group for sample in read_dataset(tmp_path / "out").samples}
    assert groups == {"b0.png": "lot 1", "b\n1.png": ""}


def test_boards_that_only_the_set_knows_are_not_mixed_up(tmp_path: Path) -> None:
    """The pictures lie where the table's folders do not lead; two names of one of them are no two boards."""
    data = boards(tmp_path / "deep" / "er", 2)
    data = replace(data, root=tmp_path.resolve())
    table = tmp_path / "pairs.csv"
    table.write_text("image,group\nb0.png,lot 1\nlotA/b1.png,lot 2\n")
    found = apply_pairs(data)
    assert [sample.group for sample in found.samples] == ["lot 1", "lot 2"]
    assert [(fault.kind, fault.where) for fault in found.faults] == [("image-moved", f"{table}:3")]
    table.write_text("image,group\nb0.png,lot 1\nlotA/b1.png,lot 2\nlotB/b1.png,lot 3\n")
    found = apply_pairs(data)
    assert [sample.group for sample in found.samples] == ["lot 1", ""]
    assert [fault.kind for fault in found.faults] == ["unclear-image"] * 2
